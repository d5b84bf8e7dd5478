package admin

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

// Parts are what the admin listener shows and changes. All of it must be safe for many
// goroutines.
type Parts struct {
	Gatherer prometheus.Gatherer
	Ready    func() bool
	// Token is wanted as a bearer token for all but health; empty asks for none, which is
	// for listeners on a loopback address alone.
	Token string
	// Checks are what /readyz?verbose lists; nil lists nothing.
	Checks func() []Check

	// Standing is shown and changed under /api; nil serves no API.
	Standing *engine.Standing
	// Catalog gives the configuration that serves now.
	Catalog func() *engine.Catalog
	Clock   func() time.Time // the one that the standing's other users have
	Changes Recorder
	// Chain answers GET /api/chain with what is to be written as JSON. Its error is about
	// the question.
	Chain func(q ChainQuestion) (any, error)
}

// Recorder keeps each change. It must not block for long.
type Recorder interface{ Changed(c ledger.Change) }

// ChainQuestion asks which chain a request would get now. Empty names are for the server
// to choose, if there is only one choice.
type ChainQuestion struct{ Caller, Endpoint, Model string }

// Check is one thing that /readyz?verbose tells of. What isn't well doesn't make the
// process unready by itself: sent elsewhere, requests might meet the same.
type Check struct {
	Name   string
	OK     bool
	Detail string // a short line without a secret
}

// The limits of a connection. Nobody who is meant needs longer.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// New returns a server for the admin listener: GET /metrics, /healthz and /readyz, and
// the API. Plain health needs no token, since orchestrators have none.
func New(p Parts) *http.Server {
	mux := http.NewServeMux()
	metrics := promhttp.HandlerFor(p.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})
	mux.Handle("GET /metrics", noBrowser(p.Token, wantToken(p.Token, metrics)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok\n") })
	mux.Handle("GET /readyz", readiness(p))
	if p.Standing != nil {
		mux.Handle("/api/", newAPI(p))
	}
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client may have gone
}
