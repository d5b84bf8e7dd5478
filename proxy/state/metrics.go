package state

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are of the shared state. Their labels are closed sets.
type metrics struct {
	up     prometheus.Gauge
	facts  *prometheus.CounterVec // direction, kind
	errors *prometheus.CounterVec // what
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fourgate_state_backend_up", Help: "1 while the backend of the shared state can be used."}),
		facts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fourgate_state_facts_total", Help: "Facts that were told to other instances, heard from them, or dropped because too many waited."}, []string{"direction", "kind"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fourgate_state_errors_total", Help: "Connections to the backend that failed, and values in it that could not be believed."}, []string{"what"}),
	}
	return m, errors.Join(registry.Register(m.up), registry.Register(m.facts), registry.Register(m.errors))
}
