package proxy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy"
)

type routeFunc func(q *engine.RouteQuestion) engine.RouteAnswer

func (f routeFunc) Route(q *engine.RouteQuestion) engine.RouteAnswer { return f(q) }

// routing is a policy with both entry points.
type routing struct {
	policyFunc
	routeFunc
}

// counters are the counters with one of these names, by name and labels.
func counters(t *testing.T, from prometheus.Gatherer, names ...string) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, name := range names {
				if f.GetName() == name {
					labels := []string{}
					for _, l := range m.GetLabel() {
						labels = append(labels, l.GetValue())
					}
					got[strings.TrimPrefix(name, "fourgate_")+" "+strings.Join(labels, ",")] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return got
}

func reason(t *testing.T, text string) engine.Reason {
	t.Helper()
	r, err := engine.ParseReason(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What a policy answers before the first attempt bounds the request, is counted, and is
// refused where it would widen.
func TestRoutePolicy(t *testing.T) {
	t.Parallel()
	house := reason(t, "house_rule")
	for _, c := range []struct {
		name    string
		answer  engine.RouteAnswer
		status  int
		record  string
		counted map[string]float64
		logged  string
	}{
		{
			name: "nothing to say", status: 200, record: "success 200 | ch1 provider_transient before_output | ch2",
			counted: map[string]float64{"route_policy_total unchanged": 1},
		},
		{
			name: "the second channel only", answer: engine.RouteAnswer{Picked: true, Channels: []string{"ch2"}, Reason: house},
			status: 200, record: "success 200 | ch2",
			counted: map[string]float64{"route_policy_total narrowed": 1},
		},
		{
			name: "another order", answer: engine.RouteAnswer{Picked: true, Channels: []string{"ch2", "ch1"}, Reason: house},
			status: 200, record: "success 200 | ch2",
			counted: map[string]float64{"route_policy_total narrowed": 1},
		},
		{
			name: "one attempt", answer: engine.RouteAnswer{Attempts: 1, Reason: house},
			status: 503, record: "exhausted 503 | ch1 provider_transient before_output",
			counted: map[string]float64{"route_policy_total narrowed": 1},
		},
		{
			name: "a channel that isn't there and more attempts", answer: engine.RouteAnswer{Picked: true, Channels: []string{"ch1", "ch9", "ch2"}, Attempts: 9, Reason: house},
			status: 200, record: "success 200 | ch1 provider_transient before_output | ch2",
			counted: map[string]float64{"route_policy_total unchanged": 1, "policy_widenings_total channel": 1, "policy_widenings_total attempts": 1},
			logged:  "the policy tried to widen the chain",
		},
		{
			name: "nobody", answer: engine.RouteAnswer{Picked: true, Reason: house},
			status: 503, record: "policy_stop 503",
			counted: map[string]float64{"route_policy_total refused": 1},
		},
		{
			name: "a fault", answer: engine.RouteAnswer{Fault: "timeout", Rule: "house.rego:7", Why: "it took too long"},
			status: 503, record: "policy_stop 503",
			counted: map[string]float64{"route_policy_total error": 1, "policy_errors_total timeout": 1},
			logged:  "rule=house.rego:7",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bad, good := newProvider(t, answer(503, "application/json", `{}`)), newProvider(t, answer(200, "application/json", wholeAnswer))
			asked := 0
			g := setup{providers: []*provider{bad, good}, route: func(q *engine.RouteQuestion) engine.RouteAnswer {
				asked++
				if q.Group != "g" || len(q.Channels) != 2 || q.Attempts != 3 {
					t.Errorf("asked %+v", q)
				}
				return c.answer
			}}.start(t)
			got := g.post(t, "/v1/chat/completions", wholeRequest)
			if got.status != c.status || asked != 1 {
				t.Errorf("status %d after %d questions: %s", got.status, asked, got.body)
			}
			if record := g.ledger.next(t); record != c.record {
				t.Errorf("recorded %q, want %q", record, c.record)
			}
			names := []string{"fourgate_route_policy_total", "fourgate_policy_widenings_total", "fourgate_policy_errors_total"}
			if diff := cmp.Diff(c.counted, counters(t, g.registry, names...)); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			if log := g.logs.String(); (log != "") != (c.logged != "") || !strings.Contains(log, c.logged) {
				t.Errorf("logged: %s", log)
			}
		})
	}
}

// A request that a policy refuses before the first attempt gets an error in its own
// protocol which no SDK retries.
func TestRefusedByRoutePolicy(t *testing.T) {
	t.Parallel()
	for fault, code := range map[string]string{"": "policy_refused", "conflict": "policy_error"} {
		p := newProvider(t, answer(200, "application/json", wholeAnswer))
		g := setup{providers: []*provider{p}, route: func(*engine.RouteQuestion) engine.RouteAnswer {
			return engine.RouteAnswer{Picked: true, Reason: reason(t, "no_region"), Fault: fault}
		}}.start(t)
		for path, want := range map[string]string{
			"/v1/chat/completions": fmt.Sprintf(`"code":%q`, code), "/v1/responses": fmt.Sprintf(`"code":%q`, code),
			"/v1/messages": `{"type":"error","error":{"type":`, "/v1beta/models/" + model + ":generateContent": `{"error":{"code":503,"message":`,
		} {
			for range 2 { // the log has one line for both
				got := g.post(t, path, wholeRequest)
				if got.status != 503 || !strings.Contains(got.body, want) || !json.Valid([]byte(got.body)) || !strings.Contains(got.body, "fourgate ledger show") {
					t.Errorf("%s: %d %s", path, got.status, got.body)
				}
				if got.header.Get("X-Should-Retry") != "false" || got.header.Get("Retry-After") != "" {
					t.Errorf("%s: headers %v", path, got.header)
				}
				if fault == "" && !strings.Contains(got.body, "no_region") {
					t.Errorf("%s: the reason isn't told: %s", path, got.body)
				}
			}
		}
		if n := len(p.requests()); n != 0 {
			t.Errorf("%d upstream calls", n)
		}
		if n := strings.Count(g.logs.String(), "policy_error="); fault != "" && n != 1 || fault == "" && n != 0 {
			t.Errorf("%d lines in the log:\n%s", n, g.logs)
		}
	}
}

// What only other instances know of a channel doesn't take it away from a request for which
// the policy leaves no other, and does from one that has another.
func TestForeignFactsLeaveAPolicySomebody(t *testing.T) {
	t.Parallel()
	local, abroad := newProvider(t, answer(200, "application/json", wholeAnswer)), newProvider(t, answer(200, "application/json", wholeAnswer))
	picks := []string{"ch1"}
	g := setup{providers: []*provider{local, abroad}, settings: proxy.Settings{DebugHeaders: true}, route: func(*engine.RouteQuestion) engine.RouteAnswer {
		return engine.RouteAnswer{Picked: true, Channels: picks, Reason: reason(t, "region")}
	}}.start(t)
	g.standing.Learn(time.Now(), engine.Fact{Kind: engine.FactChannelQuarantined, Group: "g", Channel: "ch1", Until: time.Now().Add(time.Hour)})
	ask := func(want, out string) {
		t.Helper()
		answer := g.post(t, "/v1/chat/completions", wholeRequest)
		if got := g.ledger.next(t); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := answer.header.Get("X-Fourgate-Out"); got != out {
			t.Errorf("out: %q, want %q", got, out)
		}
	}
	ask("success 200 | ch1", "g/ch2 (dropped by policy)")
	picks = []string{"ch1", "ch2"}
	ask("success 200 | ch2", "g/ch1 (quarantined)")
	picks = nil
	ask("policy_stop 503", "g/ch1 (dropped by policy), g/ch2 (dropped by policy)")
}

// The policy of the primary group decides, also for a channel of another group; the
// group without one of its own has the policy of all.
func TestGroupPolicies(t *testing.T) {
	t.Parallel()
	bad := newProvider(t, answer(503, "application/json", `{}`))
	s := setup{providers: []*provider{bad, bad}}
	parts := s.parts(t)
	own := policyFunc(func(q *engine.Question) engine.Decision {
		if q.Group != "g" {
			t.Errorf("asked for group %q", q.Group)
		}
		return engine.Decision{Action: engine.Abort, Reason: reason(t, "own")}
	})
	g, body := s.start(t), wholeRequest
	ask := func(want string, p map[string]engine.Policy) {
		t.Helper()
		body += " " // another request, not a replay of one that failed
		parts.GroupPolicies = p
		if err := g.server.Swap(parts); err != nil {
			t.Fatal(err)
		}
		g.post(t, "/v1/chat/completions", body)
		if got := g.ledger.next(t); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	ask("exhausted 503 | ch1 provider_transient before_output | ch2 provider_transient before_output", nil)
	ask("policy_stop 503 | ch1 provider_transient before_output", map[string]engine.Policy{"g": own})
	ask("exhausted 503 | ch1 provider_transient before_output | ch2 provider_transient before_output", map[string]engine.Policy{"other": own})
}
