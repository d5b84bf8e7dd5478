package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// drawTimeline draws a request's attempts below each other, each with its time, what
// happened, what was decided, and what candidate policies would have decided.
func drawTimeline(w io.Writer, r *engine.Record, others []engine.Disagreement) error {
	var b strings.Builder
	fmt.Fprintf(&b, "request  %s\n", r.RequestID())
	fmt.Fprintf(&b, "arrived  %s\n", r.At().Local().Format("2006-01-02 15:04:05.000 -0700"))
	fmt.Fprintf(&b, "caller   %s\n", r.Caller())
	fmt.Fprintf(&b, "contract %s over %s\n\n", r.Contract().Model, r.Contract().Endpoint)
	attempts := r.Attempts()
	for i := range attempts {
		drawAttempt(&b, &attempts[i])
		for _, d := range others {
			if d.Seq == attempts[i].Seq() {
				fmt.Fprintf(&b, "%10s       candidate: %s\n", "", candidate(d))
			}
		}
	}
	if len(attempts) == 0 {
		drawUnserved(&b, r.Unserved())
	}
	fmt.Fprintf(&b, "\n%10.1f ms  %s", ms(r.Elapsed()), ending(r))
	if r.Status() != 0 {
		fmt.Fprintf(&b, ", the caller got %d", r.Status())
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func drawAttempt(b *strings.Builder, a *engine.AttemptRecord) {
	timing := a.Timing()
	how := ""
	if a.Action() != engine.Abort {
		how = " (" + a.Action().String() + ")"
	}
	fmt.Fprintf(b, "%10.1f ms  attempt %d%s on %s, provider %s", ms(timing.Started), a.Seq(), how, a.Channel(), a.Provider())
	if a.Key() != "" {
		fmt.Fprintf(b, ", key %s", a.Key())
	}
	b.WriteByte('\n')
	if timing.Headers != 0 {
		fmt.Fprintf(b, "%10.1f ms    answered %s\n", ms(timing.Headers), orDash(a.Status()))
	}
	if timing.Committed != 0 {
		fmt.Fprintf(b, "%10.1f ms    committed\n", ms(timing.Committed))
	}
	if !a.Ended() {
		fmt.Fprintf(b, "%10s       still open: it runs, or its process died\n", "")
		return
	}
	if !a.Failed() {
		fmt.Fprintf(b, "%10.1f ms    ended well%s\n", ms(timing.Ended), usage(a))
		return
	}
	fmt.Fprintf(b, "%10.1f ms    failed: %s\n", ms(timing.Ended), failure(a))
	if shape := a.Shape(); shape != (engine.Shape{}) {
		fmt.Fprintf(b, "%10s       shape: %s\n", "", shape)
	}
	if d, ok := a.Decision(); ok {
		fmt.Fprintf(b, "%10s       gates: %s\n", "", gates(d.Gates()))
		fmt.Fprintf(b, "%10s       decision: %s\n", "", decision(d))
	}
}

func usage(a *engine.AttemptRecord) string {
	in, inKnown := a.Usage().Input.Get()
	out, outKnown := a.Usage().Output.Get()
	text := ""
	switch {
	case inKnown && outKnown:
		text = fmt.Sprintf("; %d tokens in, %d out", in, out)
	case inKnown:
		text = fmt.Sprintf("; %d tokens in, unknown out", in)
	case outKnown:
		text = fmt.Sprintf("; unknown tokens in, %d out", out)
	default:
		return ""
	}
	if cost, known := a.CostUSD(); known {
		text += fmt.Sprintf(", %.6f USD", cost)
	}
	return text
}

// failure is class, reason and circumstances of a failed attempt in a few words.
func failure(a *engine.AttemptRecord) string {
	text := a.Class().String()
	if reason := a.Reason().String(); reason != "" && reason != text {
		text += " (" + reason + ")"
	}
	if a.Status() != 0 {
		text += fmt.Sprintf(", status %d", a.Status())
	}
	text += ", " + a.Phase().String() + ", completion " + a.Completion().String()
	if fault := a.ClassifierFault(); fault != "" {
		text += ", classifier fault " + fault
	}
	return text
}

func gates(g engine.Gates) string {
	text := ""
	for _, mark := range []struct {
		name string
		mark engine.GateMark
	}{
		{"class", g.FailureClass}, {"phase", g.ResponsePhase}, {"idempotency", g.Idempotency}, {"budget", g.AttemptBudget},
	} {
		if mark.mark != engine.GateSilent {
			text += " " + mark.name + "=" + mark.mark.String()
		}
	}
	if text == "" {
		return "none"
	}
	return text[1:]
}

// decision is what the policy said and what came of it.
func decision(d engine.DecisionRecord) string {
	text := d.Action().String()
	if d.Channel() != "" {
		text += " to " + d.Channel()
	}
	if d.Delay() > 0 {
		text += fmt.Sprintf(" after %.0f ms", ms(d.Delay()))
	}
	if reason := d.Reason().String(); reason != "" {
		text += ": " + reason
	}
	if d.Rule() != "" {
		text += " [" + d.Rule() + "]"
	}
	if d.Interlock() != engine.InterlockNone {
		text += ", held by interlock " + d.Interlock().String()
	}
	if d.Fault() != "" {
		text += ", policy fault " + d.Fault()
	}
	return text
}

// candidate is what a candidate policy would have answered, in the manner of decision.
func candidate(d engine.Disagreement) string {
	a := d.To
	text := a.Action.String()
	if a.Channel != "" {
		text += " to " + a.Channel
	}
	if wait, given := a.Delay.Get(); given && wait > 0 {
		text += fmt.Sprintf(" after %.0f ms", ms(wait))
	}
	if reason := a.Reason.String(); reason != "" {
		text += ": " + reason
	}
	if a.Rule != "" {
		text += " [" + a.Rule + "]"
	}
	if a.Fault != "" {
		text += ", policy fault " + a.Fault
	}
	switch difference := d.From.Differs(a); difference {
	case engine.DiffersAction, engine.DiffersNot:
	default:
		text += " (differs in " + difference.String() + ")"
	}
	return text
}
