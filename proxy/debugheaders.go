package proxy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// maxDebugNames bounds how many channels a debug header names.
const maxDebugNames = 20

// explain notes which channels are out before the request takes its chain, because it
// counts against rates itself then. Only who asked for debug headers pays for it.
func (x *exchange) explain() {
	if !x.server.settings.DebugHeaders {
		return
	}
	_, outs, refusal := x.snapshot.Catalog.Explain(x.now(), x.server.around.Standing, &x.request, x.server.around.Rand)
	if refusal == nil {
		x.outs = outs
	}
}

// explainPolicy notes which channels a policy has dropped of those that it was asked about.
func (x *exchange) explainPolicy(asked, left engine.Chain) {
	if !x.server.settings.DebugHeaders {
		return
	}
	// It may have been asked about some that only other instances take for out.
	x.outs = slices.DeleteFunc(x.outs, func(o engine.Out) bool { return slices.Contains(asked.Channels(), o.Channel) })
	for _, ch := range asked.Channels() {
		if !slices.Contains(left.Channels(), ch) {
			x.outs = append(x.outs, engine.Out{Channel: ch, Why: engine.BarPolicy})
		}
	}
}

// debugHeaders says where the answer came from, which channels the request might have
// walked, and why the others of its contract were out, if the settings ask for it.
func (x *exchange) debugHeaders() {
	if !x.server.settings.DebugHeaders {
		return
	}
	h := &x.ctx.Response.Header
	if x.channel != nil {
		h.Set("X-Fourgate-Channel", x.channel.Name())
	}
	if g := x.chain.Group(); g != nil {
		h.Set("X-Fourgate-Strategy", x.strategy(g))
		h.Set("X-Fourgate-Chain", joined(x.chain.Channels(), fullName))
	}
	if len(x.outs) > 0 {
		h.Set("X-Fourgate-Out", joined(x.outs, func(o engine.Out) string { return fullName(o.Channel) + " (" + o.Why.String() + ")" }))
	}
	h.Set("X-Fourgate-Attempts", strconv.Itoa(x.attempts))
}

// strategy is what has put the channel that answered into its place: its own group's
// strategy, or the primary group's where all groups are walked together.
func (x *exchange) strategy(primary *engine.Group) string {
	if x.channel != nil && x.caller.Routing() == engine.RoutingOrdered {
		return x.channel.Group().Strategy().String()
	}
	return primary.Strategy().String()
}

// fullName tells channels of several groups apart.
func fullName(ch *engine.Channel) string { return ch.Group().Name() + "/" + ch.Name() }

func joined[T any](list []T, text func(T) string) string {
	var b strings.Builder
	for i, v := range list {
		if i == maxDebugNames {
			b.WriteString(", and " + strconv.Itoa(len(list)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text(v))
	}
	return b.String()
}
