// Package admin serves what a platform engineer and a scraper ask a running proxy:
// metrics, liveness and readiness. It listens apart from the callers' listener, knows no
// request and no key, and changes nothing. cmd/fourgate serves it:
//
//	srv := admin.New(admin.Parts{Gatherer: registry, Ready: proxy.Ready, Token: token})
//	err := srv.Serve(listener)
package admin

import (
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Parts are what the admin listener shows.
type Parts struct {
	Gatherer prometheus.Gatherer
	Ready    func() bool
	// Notes are lines that /readyz?verbose adds; nil adds none.
	Notes func() []string
	// Token is wanted as a bearer token for /metrics; empty asks for none.
	Token string
}

// readHeaderTimeout keeps a client that sends nothing from holding a connection.
const readHeaderTimeout = 10 * time.Second

// New returns a server for the admin listener: GET /metrics, /healthz and /readyz.
// Health needs no token, since orchestrators have none.
func New(p Parts) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", guard(p.Token, promhttp.HandlerFor(p.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusOK, "ready"
		if !p.Ready() {
			status, text = http.StatusServiceUnavailable, "not ready"
		}
		if p.Notes != nil && r.URL.Query().Has("verbose") {
			text = strings.Join(append([]string{text}, p.Notes()...), "\n")
		}
		answer(w, status, text)
	})
	return &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout}
}

func guard(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(shown), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, "the admin token is wanted as a bearer token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // the client may have gone
}
