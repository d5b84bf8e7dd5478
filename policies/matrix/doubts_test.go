package matrix

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestDoubtsOf(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	m := asked(t, "odd", scripted(func(q *engine.Question) engine.Decision {
		switch q.Failure.Class() {
		case engine.ClassKeyFault:
			return engine.Decision{Rule: "p.rego:3", Effects: []engine.Effect{{Kind: engine.EffectCoolKey, For: 365 * day}, {Kind: engine.EffectEvictModel, For: 30 * day}}}
		case engine.ClassRateLimited:
			return engine.Decision{Rule: "p.rego:7", Action: engine.Retry, Delay: engine.WaitOf(2 * time.Minute)}
		case engine.ClassDenied:
			return engine.Decision{Rule: "p.rego:9", Delay: engine.WaitOf(time.Hour)} // of an abort nobody waits
		}
		return engine.Decision{Action: engine.Retry, Delay: engine.WaitOf(50 * time.Second)}
	}))
	want := []Doubt{
		{"for_ms of cool_key is 31536000000 (365 days): it ends after 30 days, which is the most", "p.rego", 3, engine.Cell{Class: engine.ClassKeyFault}},
		{"delay_ms is 120000 (2m): no attempt follows, because a request has 1m in all unless its group's budget says more", "p.rego", 7, engine.Cell{Class: engine.ClassRateLimited}},
	}
	if diff := cmp.Diff(want, DoubtsOf(Default(), m.Answers)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
