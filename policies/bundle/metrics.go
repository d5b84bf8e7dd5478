package bundle

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxRevision bounds a label's value in bytes.
const maxRevision = 128

// Metrics are what sources count. They can be registered as a collector, and one value
// serves one source after the other.
type Metrics struct {
	loads *prometheus.CounterVec
	since prometheus.Gauge
	info  *prometheus.GaugeVec
}

// NewMetrics returns metrics that count nothing yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		loads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fourgate_policy_bundle_loads_total", Help: "Questions for a policy bundle, by how they ended.",
		}, []string{"outcome"}),
		since: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fourgate_policy_bundle_timestamp_seconds", Help: "Since when the policy bundle in force is in force, in Unix time.",
		}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fourgate_policy_bundle_info", Help: "Always 1; the labels name the policy bundle in force and where it came from.",
		}, []string{"revision", "digest", "origin"}),
	}
	for _, o := range []Outcome{Activated, Unchanged, Refused, Unreachable} {
		m.loads.WithLabelValues(string(o))
	}
	return m
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.loads, m.since, m.info}
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}

// NoneInForce says that no bundle is in force any more.
func (m *Metrics) NoneInForce() {
	m.since.Set(0)
	m.info.Reset()
}

func (m *Metrics) inForce(b Bundle, origin string, at time.Time) {
	m.since.Set(float64(at.UnixMilli()) / 1000)
	m.info.Reset()
	// Cut between bytes, not letters; a label that is no UTF-8 would panic.
	revision := strings.ToValidUTF8(b.Revision[:min(len(b.Revision), maxRevision)], "")
	m.info.WithLabelValues(revision, b.Digest, origin).Set(1)
}
