package main

import (
	"fmt"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// unservedText says why a request made no attempt, or nothing where that isn't known.
func unservedText(why engine.UnservedWhy) string {
	switch why {
	case engine.UnservedCallerRate:
		return "the caller's rate was spent"
	case engine.UnservedGroupRates:
		return "the rates of all its route groups were spent"
	case engine.UnservedNoChannel:
		return "every channel was out"
	case engine.UnservedPolicy:
		return "the policy left no channel"
	case engine.UnservedRetryBudget:
		return "it repeated a request that had failed a moment before, and the retry budget was spent"
	case engine.UnservedBudget:
		return "less than the minimum useful time was left"
	case engine.UnservedGone:
		return "the channels of its chain went out meanwhile"
	}
	return ""
}

// drawUnserved draws why no attempt was made, with the channels that were out.
func drawUnserved(b *strings.Builder, u *engine.Unserved) {
	b.WriteString("no attempt was made")
	if u == nil {
		b.WriteByte('\n')
		return
	}
	if text := unservedText(u.Why()); text != "" {
		b.WriteString(": " + text)
	}
	b.WriteByte('\n')
	outs, more := u.Outs()
	for _, o := range outs {
		line := chainOut{Why: o.Why.String()}
		if !o.Until.IsZero() {
			line.Until = &o.Until
		}
		fmt.Fprintf(b, "  %s/%s: %s\n", o.Group, o.Channel, line.text())
	}
	if more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}
