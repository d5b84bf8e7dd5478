package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

var start = time.Unix(1_800_000_000, 0)

// half is a source of chance that always says one half.
type half struct{}

func (half) Float64() float64 { return 0.5 }

// spec is a group of n channels a, b, c, … each with a provider and two keys.
func spec(n int) engine.Spec {
	s := engine.Spec{RetryBudget: engine.RetryBudgetSpec{Ratio: 0.1, Floor: 0.1, Cap: 100}}
	g := engine.GroupSpec{
		Name: "g", Models: []string{"m"}, Endpoints: []engine.Endpoint{engine.OpenAIChat},
		Budget: engine.BudgetSpec{Attempts: 3, PerRoute: 2, Deadline: time.Minute, MinUseful: 2 * time.Second, BackoffBase: 200 * time.Millisecond, BackoffMax: 5 * time.Second},
	}
	for i := range n {
		name := string(rune('a' + i))
		s.Providers = append(s.Providers, engine.ProviderSpec{
			Name: "p" + name, BaseURL: "https://" + name + ".example/v1", Auth: engine.AuthBearer,
			Keys:   []engine.KeySpec{{Name: "main", Secret: engine.NewSecret("x")}, {Name: "spare", Secret: engine.NewSecret("y")}},
			Limits: engine.Limits{Connect: time.Second, Headers: 20 * time.Second, Gate: time.Second, Idle: time.Second},
		})
		g.Channels = append(g.Channels, engine.ChannelSpec{Name: name, Provider: "p" + name})
	}
	s.Groups = []engine.GroupSpec{g}
	return s
}

func catalog(t *testing.T, s engine.Spec) *engine.Catalog {
	t.Helper()
	c, problems := engine.NewCatalog(s)
	if c == nil {
		t.Fatalf("the specification is refused: %+v", problems)
	}
	return c
}

// play runs one request in a world where each upstream call takes the next outcome and
// each question the next decision.
type play struct {
	outcomes  []enginetest.Outcome
	decisions []engine.Decision
	verdict   engine.Verdict
	leaves    time.Duration
	request   engine.Request
	standing  *engine.Standing
	now       time.Time
}

func (p *play) run(t *testing.T, c *engine.Catalog) enginetest.Trace {
	t.Helper()
	if p.standing == nil {
		p.standing = engine.NewStanding()
	}
	if p.now.IsZero() {
		p.now = start
	}
	if p.leaves == 0 {
		p.leaves = -1
	}
	next := 0
	w := &enginetest.World{
		Now: p.now, Catalog: c, Standing: p.standing, Rand: half{}, LeavesAfter: p.leaves,
		Upstream: func(s *engine.Send) enginetest.Outcome { return p.outcomes[min(s.Attempt, len(p.outcomes))-1] },
		Classify: func(*engine.Evidence) engine.Verdict { return p.verdict },
		Decide: func(*engine.Question) engine.Decision {
			next++
			return p.decisions[min(next, len(p.decisions))-1]
		},
	}
	req := p.request
	req.ID, req.Contract = "r", engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}
	req.Caller, _ = c.Caller("")
	if req.Idempotency.Effects == engine.EffectsUnknown {
		req.Idempotency = engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone}
	}
	tr, err := w.Run(&req)
	if err != nil {
		t.Fatal(err)
	}
	p.now = w.Now
	return tr
}

// story tells a trace in one line: where each attempt went and when, and how it ended.
func story(tr enginetest.Trace) string {
	s := ""
	for _, x := range tr.Sent {
		key := ""
		if x.Send.Key != nil && x.Send.Key.Name() != "main" {
			key = "/" + x.Send.Key.Name()
		}
		last := ""
		if x.Send.Last {
			last = "!"
		}
		s += fmt.Sprintf("%s%s%s@%v ", x.Send.Channel.Name(), key, last, x.At.Sub(tr.Request.Arrived))
	}
	if tr.Refusal != nil {
		return "refused " + tr.Refusal.Message
	}
	s += tr.Finish.Terminal.String()
	if tr.Finish.Reply.Kind == engine.ReplyOwn {
		s += fmt.Sprintf(" %d %s", tr.Finish.Reply.Status, tr.Finish.Reply.Code)
	}
	for _, a := range tr.Record.Attempts() {
		if d, _ := a.Decision(); d.Interlock() != engine.InterlockNone {
			s += " [" + d.Interlock().String() + "]"
		}
	}
	return s
}

func failing(status int) enginetest.Outcome {
	return enginetest.Outcome{Takes: time.Second, Failure: &engine.Evidence{Transport: engine.TransportHTTP, Status: status, Phase: engine.BeforeOutput}}
}

var (
	good     = enginetest.Outcome{Takes: time.Second, Status: 200, Model: "m"}
	refused  = enginetest.Outcome{Failure: &engine.Evidence{NetKind: engine.NetConnRefused, NetOp: engine.OpDial, NotStarted: true}}
	silent   = enginetest.Outcome{Takes: time.Hour}
	retry    = engine.Decision{Action: engine.Retry}
	fallback = engine.Decision{Action: engine.Fallback}
)
