package matrix

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// Equal faults are one, with their number and the first of their cells.
func TestFaultsAreGathered(t *testing.T) {
	t.Parallel()
	m := asked(t, "faulty", scripted(func(q *engine.Question) engine.Decision {
		switch q.Failure.Class() {
		case engine.ClassUnknown:
			return engine.Decision{Fault: "undefined", Why: "no rule holds"}
		case engine.ClassRateLimited:
			return engine.Decision{Fault: "conflict", Why: "two values:\n  {\x1b[31m}\n  {b}", Rule: "a:b/p.rego:7"}
		}
		return engine.Decision{Action: engine.Abort}
	}))
	want := []Fault{
		{Fault: "undefined", Why: "no rule holds", First: engine.Cell{Class: engine.ClassUnknown}, Cells: perClass},
		{
			Fault: "conflict", Why: "two values:\n  {\x1b[31m}\n  {b}", File: "a:b/p.rego", Line: 7,
			First: engine.Cell{Class: engine.ClassRateLimited}, Cells: perClass,
		},
	}
	if diff := cmp.Diff(want, FaultsOf(m.Answers)); diff != "" {
		t.Errorf("other faults (-want +got):\n%s", diff)
	}
	var b bytes.Buffer
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"undefined in 54 cells: no rule holds\n", "conflict in 54 cells: two values: "} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %q in:\n%s", part, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("the terminal gets a control sequence:\n%q", b.String())
	}
}

// A fault that names a value of each cell doesn't fill the screen.
func TestManyFaultsAreBounded(t *testing.T) {
	t.Parallel()
	n := 0
	m := asked(t, "odd", scripted(func(*engine.Question) engine.Decision {
		n++
		return engine.Decision{Fault: "mistyped", Why: fmt.Sprint("value ", n)}
	}))
	var b bytes.Buffer
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), "mistyped in 1 cells"); got != maxFaults || !strings.Contains(b.String(), "… and 690 more kinds") {
		t.Errorf("%d faults are listed, want %d:\n%s", got, maxFaults, b.String())
	}
}
