package matrix

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
)

func always(d engine.Decision) scripted {
	return func(*engine.Question) engine.Decision { return d }
}

// What counts as another action, what is told apart, and what is no difference.
func TestWhatCountsAsAChange(t *testing.T) {
	t.Parallel()
	base := engine.Decision{Action: engine.Fallback, Rule: "a.rego:1"}
	f := func(name string, to engine.Decision, moved, others bool) {
		t.Helper()
		d := Compare(asked(t, "a", always(base)), asked(t, "b", always(to)), nil)
		if (len(d.Moved) > 0) != moved || (len(d.Others) > 0) != others || d.Same() == (moved || others) {
			t.Errorf("%s: %d moved, %d others, want %v and %v", name, len(d.Moved), len(d.Others), moved, others)
		}
	}
	with := func(change func(*engine.Decision)) engine.Decision {
		d := base
		change(&d)
		return d
	}
	cool := engine.Effect{Kind: engine.EffectCoolKey, For: time.Minute}
	count := engine.Effect{Kind: engine.EffectCountFailure}
	f("nothing", base, false, false)
	f("rule moved by an edit", with(func(d *engine.Decision) { d.Rule = "a.rego:2" }), false, false)
	f("action", with(func(d *engine.Decision) { d.Action = engine.Abort }), true, false)
	f("channel", with(func(d *engine.Decision) { d.Channel = "second" }), true, false)
	f("fault", engine.Decision{Fault: "undefined"}, true, false)
	f("delay", with(func(d *engine.Decision) { d.Delay = engine.WaitOf(time.Second) }), false, true)
	f("a delay past the deadline", with(func(d *engine.Decision) { d.Delay = engine.WaitOf(time.Hour) }), true, true)
	f("effects", with(func(d *engine.Decision) { d.Effects = []engine.Effect{cool} }), false, true)
	f("gates", with(func(d *engine.Decision) { d.Gates.Idempotency = engine.GateStop }), false, true)

	base.Effects = []engine.Effect{cool, count}
	f("order of effects", with(func(d *engine.Decision) { d.Effects = []engine.Effect{count, cool} }), false, false)
}

// Every cell that moved is in the text once, collapsed or not.
func TestDiffOfProfiles(t *testing.T) {
	t.Parallel()
	from, to := matrixOf(t, policies.Options{}), matrixOf(t, policies.Options{Profile: "kunavo"})
	to.Policy = "profile:kunavo"
	d := Compare(from, to, nil)
	var b bytes.Buffer
	if err := d.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "diff.golden", b.Bytes())
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}

	var form struct {
		Cells, Others []struct {
			Class, From, To string
			FromRule        string `json:"from_rule"`
			ToRule          string `json:"to_rule"`
			Changed         []string
		}
	}
	b.Reset()
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &form); err != nil {
		t.Fatal(err)
	}
	if len(form.Cells) != len(d.Moved) || len(form.Others) != len(d.Others) || len(form.Cells) == 0 {
		t.Fatalf("%d and %d cells, want %d and %d", len(form.Cells), len(form.Others), len(d.Moved), len(d.Others))
	}
	for _, c := range form.Cells {
		if c.Class != "bad_model" || c.From != "fallback" || c.To != "abort" || c.FromRule == "" || c.ToRule == "" {
			t.Errorf("got %+v", c)
		}
	}
	for _, c := range form.Others {
		if c.From != c.To || len(c.Changed) == 0 {
			t.Errorf("got %+v", c)
		}
	}
}

func TestDiffOfActions(t *testing.T) {
	t.Parallel()
	from := asked(t, "a", always(engine.Decision{Action: engine.Fallback}))
	to := asked(t, "b", always(engine.Decision{}))
	for _, c := range []struct {
		action engine.Action
		want   int
	}{{engine.Fallback, Size}, {engine.Abort, Size}, {engine.Retry, 0}} {
		if d := Compare(from, to, []engine.Action{c.action}); len(d.Moved) != c.want {
			t.Errorf("%v: %d cells, want %d", c.action, len(d.Moved), c.want)
		}
	}
}
