package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
)

// standing shows how channels, keys and retry budgets stand at the moment of a scrape, and
// which policies decide, under the configuration that serves then.
type standing struct{ server *Server }

var (
	breakerState = prometheus.NewDesc("fourgate_breaker_state", "Breaker of a channel: 0 closed, 1 half open, 2 open.", []string{"group", "channel"}, nil)
	channelOut   = prometheus.NewDesc("fourgate_channel_out", "1 if no request gets the channel now, for this reason.", []string{"group", "channel", "why"}, nil)
	outForSome   = prometheus.NewDesc("fourgate_channel_out_callers", "Callers for whom alone the channel is out, since no other has seen it fail.", []string{"group", "channel"}, nil)
	keyCooling   = prometheus.NewDesc("fourgate_key_cooling", "1 if the key is set aside now.", []string{"provider", "key"}, nil)
	modelEvicted = prometheus.NewDesc("fourgate_model_evicted", "1 while the model is evicted on the channel.", []string{"group", "channel", "model"}, nil)
	policyInfo   = prometheus.NewDesc("fourgate_policy_info", "1 for the policy that decides for the group, by its revision.", []string{"group", "revision"}, nil)
	retryTokens  = prometheus.NewDesc("fourgate_retry_budget_tokens", "Extra attempts that the group can pay now.", []string{"group"}, nil)
)

// Describe is for the registry.
func (standing) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{breakerState, channelOut, outForSome, keyCooling, modelEvicted, retryTokens, policyInfo} {
		out <- d
	}
}

// Collect is called at each scrape.
func (s standing) Collect(out chan<- prometheus.Metric) {
	now, held := s.server.around.Clock(), s.server.around.Standing
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	snapshot := s.server.snapshot.Load()
	catalog := snapshot.Catalog
	for _, g := range catalog.Groups() {
		gauge(policyInfo, 1, g.Name(), snapshot.policies[g].revision)
		gauge(retryTokens, held.RetryTokens(now, g, catalog.RetryBudget()), g.Name())
		for _, ch := range g.Channels() {
			r := held.Report(now, ch)
			gauge(breakerState, float64(r.Breaker), g.Name(), ch.Name())
			if r.Bar != engine.BarNone {
				gauge(channelOut, 1, g.Name(), ch.Name(), r.Bar.String())
			}
			if r.Alone > 0 {
				gauge(outForSome, float64(r.Alone), g.Name(), ch.Name())
			}
		}
	}
	for _, a := range held.Evicted(now) {
		gauge(modelEvicted, 1, a.Group, a.Channel, a.Model)
	}
	for _, p := range catalog.Providers() {
		for _, k := range p.Keys() {
			v := 0.0
			if _, cools := held.Cooling(now, p, k); cools {
				v = 1
			}
			gauge(keyCooling, v, p.Name(), k.Name())
		}
	}
}
