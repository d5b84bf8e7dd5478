package admin

import (
	"fmt"
	"net/http"
	"strings"
)

// readiness says whether requests are welcome, and with ?verbose what that rests on, in
// lines as Kubernetes' own endpoints have them. The details are behind the token and for no web page.
func readiness(p Parts) http.Handler {
	verbose := noBrowser(p.Token, wantToken(p.Token, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, first := readyStatus(p)
		say(w, status, first+checkLines(p))
	})))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("verbose") {
			verbose.ServeHTTP(w, r)
			return
		}
		status, text := readyStatus(p)
		say(w, status, text)
	})
}

func readyStatus(p Parts) (int, string) {
	if p.Ready() {
		return http.StatusOK, "ready\n"
	}
	return http.StatusServiceUnavailable, "not ready\n"
}

func checkLines(p Parts) string {
	if p.Checks == nil {
		return ""
	}
	var b strings.Builder
	for _, c := range p.Checks() {
		mark := "[+]"
		if !c.OK {
			mark = "[-]"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", mark, c.Name, c.Detail)
	}
	return b.String()
}
