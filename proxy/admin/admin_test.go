package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/proxy/admin"
)

func TestAdmin(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "fourgate_test_total", Help: "A test."})
	registry.MustRegister(counter)
	ready := true
	h := admin.New(admin.Parts{Gatherer: registry, Ready: func() bool { return ready }, Token: "t0ken",
		Checks: func() []admin.Check {
			return []admin.Check{{Name: "config", OK: true, Detail: "generation 3"}, {Name: "group g", Detail: "no usable channel"}}
		}}).Handler
	f := func(method, path, auth string, status int, want string) {
		t.Helper()
		r := httptest.NewRequest(method, path, nil)
		if auth != "" {
			r.Header.Set("Authorization", auth)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s with %q: got %d %q, want %d with %q", method, path, auth, w.Code, w.Body, status, want)
		}
	}
	f("GET", "/metrics", "", http.StatusUnauthorized, "admin token")
	f("GET", "/metrics", "Bearer other", http.StatusUnauthorized, "admin token")
	f("GET", "/metrics", "t0ken", http.StatusUnauthorized, "admin token")
	f("GET", "/metrics", "Bearer t0ken", http.StatusOK, "fourgate_test_total 0")
	f("POST", "/metrics", "Bearer t0ken", http.StatusMethodNotAllowed, "")
	f("GET", "/healthz", "", http.StatusOK, "ok")
	f("GET", "/readyz", "", http.StatusOK, "ready")
	f("GET", "/readyz?verbose", "", http.StatusUnauthorized, "admin token")
	f("GET", "/readyz?verbose", "Bearer t0ken", http.StatusOK, "ready\n[+] config: generation 3\n[-] group g: no usable channel\n")
	f("GET", "/api/standing", "Bearer t0ken", http.StatusNotFound, "") // nothing to show
	ready = false
	f("GET", "/readyz", "", http.StatusServiceUnavailable, "not ready")
	f("GET", "/readyz?verbose", "Bearer t0ken", http.StatusServiceUnavailable, "not ready\n[+] config")
}
