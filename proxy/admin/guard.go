package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// wantToken asks for the token, if there is one. Hashes are compared, so that the time
// that it takes tells neither the token's bytes nor its length.
func wantToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(shown))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "the admin token is wanted as a bearer token: Authorization: Bearer TOKEN, with the one of server.admin_token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// noBrowser keeps web pages away from an API that may ask for no token, because it
// listens on a loopback address. A page that a person on this machine looks at could
// send requests there. Three things keep it from that:
//
//   - A request that changes something has the content type of JSON, which a page can't
//     send to another origin without asking first, and that question is never answered.
//   - What a browser says of a request's origin must be the API's own.
//   - Without a token, the host that was asked for must be this machine by an address or
//     as localhost: a page's own name can be made to lead here (DNS rebinding), but then
//     it is that name that the browser sends.
func noBrowser(token string, next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "a page of another origin may not change anything here")
	}))
	changing := origins.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			refuse(w, http.StatusUnsupportedMediaType, "send the body as JSON, with Content-Type: application/json")
			return
		}
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case token == "" && !isThisMachine(r.Host):
			refuse(w, http.StatusForbidden, "ask for this machine by 127.0.0.1, [::1] or localhost, or set server.admin_token and show it")
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			next.ServeHTTP(w, r)
		default:
			changing.ServeHTTP(w, r)
		}
	})
}

// isThisMachine says whether a Host field names the loopback interface.
func isThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
