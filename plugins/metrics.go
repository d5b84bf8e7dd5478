package plugins

import "github.com/prometheus/client_golang/prometheus"

// metrics are what a host counts. A host can be registered as a collector.
type metrics struct {
	aside   *prometheus.CounterVec
	shadow  *prometheus.CounterVec
	dropped *prometheus.CounterVec
	modules prometheus.Gauge
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		aside:   counter("fourgate_classifier_set_aside_total", "Times that a classifier was set aside because it misbehaved.", "classifier"),
		shadow:  counter("fourgate_classifier_shadow_total", "Verdicts of shadow classifiers, by what differs from the live one.", "classifier", "result"),
		dropped: counter("fourgate_classifier_shadow_dropped_total", "Failures that a shadow classifier was not asked about, because it couldn't keep up.", "classifier"),
		modules: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fourgate_classifier_modules",
			Help: "Modules that are held, the replaced ones included that requests still need or that were not cleaned up yet.",
		}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.aside, m.shadow, m.dropped, m.modules}
}

// Describe implements [prometheus.Collector].
func (h *Host) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range h.metrics.all() {
		c.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (h *Host) Collect(ch chan<- prometheus.Metric) {
	for _, c := range h.metrics.all() {
		c.Collect(ch)
	}
}
