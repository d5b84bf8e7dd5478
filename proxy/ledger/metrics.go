package ledger

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of one store.
type metrics struct {
	written  prometheus.Counter
	dropped  prometheus.Counter
	unsynced prometheus.Counter
	// othersDropped counts disagreements.
	othersDropped prometheus.Counter

	registry prometheus.Registerer
	all      []prometheus.Collector
}

func newMetrics(registry prometheus.Registerer, queued func() float64) (*metrics, error) {
	m := &metrics{
		registry: registry,
		written: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fourgate_ledger_records_total",
			Help: "Requests whose record was written to the ledger.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fourgate_ledger_dropped_total",
			Help: "Requests whose record was lost because the ledger could not be written.",
		}),
		unsynced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fourgate_ledger_unsynced_total",
			Help: "Times that a request went on before its record was on disk although durability is sync.",
		}),
		othersDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fourgate_ledger_disagreements_dropped_total",
			Help: "Disagreements of candidate policies that were lost because the ledger could not be written.",
		}),
	}
	m.all = []prometheus.Collector{m.written, m.dropped, m.unsynced, m.othersDropped,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "fourgate_ledger_queue_records",
			Help: "Records that wait in memory to be written to the ledger.",
		}, queued),
	}
	if registry == nil {
		return m, nil
	}
	for i, c := range m.all {
		if err := registry.Register(c); err != nil {
			m.all = m.all[:i]
			m.unregister()
			return nil, fmt.Errorf("cannot register ledger metrics: %w; close the other ledger first", err)
		}
	}
	return m, nil
}

// unregister makes room for the next store.
func (m *metrics) unregister() {
	if m.registry == nil {
		return
	}
	for _, c := range m.all {
		m.registry.Unregister(c)
	}
}
