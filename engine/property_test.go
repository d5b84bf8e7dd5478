package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// schedules is how many random fault schedules one run takes through the engine.
const schedules = 30_000

// TestInterlocksHoldOverRandomFaults takes random requests through random worlds that
// keep their standing over several requests, and checks every interlock on every trace.
func TestInterlocksHoldOverRandomFaults(t *testing.T) {
	t.Parallel()
	const requestsOfOneWorld = 6
	seen := map[engine.Interlock]int{}
	terminals := map[engine.Terminal]int{}
	refused := map[engine.RefusalKind]int{}
	foreseen := foresight{seen: map[engine.Interlock]int{}}
	abroad := 0
	for seed := range uint64(schedules / requestsOfOneWorld) {
		c := chaos{rand.New(rand.NewPCG(seed, 4))}
		spec := c.spec()
		w := &enginetest.World{
			Now: time.Unix(1_800_000_000, 0), Catalog: built(spec), Standing: engine.NewStanding(), Rand: c,
			Upstream: c.outcome, Classify: c.verdict, Decide: c.decision,
		}
		if c.chance(50) {
			w.Narrow = c.routeAnswer
		}
		w.Standing.Adopt(w.Catalog)
		rates, tokens := newRateTwin(), tokenTwin{w.Now, map[string]float64{}, map[string]float64{}}
		for i := range requestsOfOneWorld {
			w.LeavesAfter = -1
			w.Oversleeps = func() time.Duration { return pick(c, 0, 0, c.upTo(4*time.Second)) }
			if c.chance(25) {
				w.LeavesAfter = c.upTo(12 * time.Second)
			}
			for c.chance(35) {
				c.unsettle(w.Now, w.Catalog, w.Standing, rates)
			}
			tr, err := w.Run(c.request(pick(c, w.Catalog.Callers()...), i))
			if err != nil {
				t.Fatalf("seed %d request %d: %v", seed, i, err)
			}
			broken := ""
			if tr.Chain.Group() != nil {
				broken = rates.admitted(spec, tr)
			}
			switch {
			case broken != "":
			case tr.Refusal == nil:
				broken = cmp.Or(violations(spec, tr), ineligible(spec, tr), foreseen.misforeseen(tr.Asked), tokens.spent(spec, tr, w.Now))
				terminals[tr.Finish.Terminal]++
				for _, a := range tr.Record.Attempts() {
					d, _ := a.Decision()
					seen[d.Interlock()]++
				}
			case tr.Refusal.Kind == engine.RefusalPolicy:
				broken = misrefused(tr)
			default:
				broken = refusedFor(spec, w, tr, rates)
			}
			if tr.Refusal != nil {
				refused[tr.Refusal.Kind]++
			}
			if broken != "" {
				record := ""
				if tr.Record != nil {
					record = "\nrecord: " + string(tr.Record.AppendJSON(nil))
				}
				t.Fatalf("seed %d request %d: %s%s", seed, i, broken, record)
			}
			for _, s := range tr.Sent {
				if slices.ContainsFunc(s.Aside, func(a engine.Aside) bool {
					return a.Abroad && a.Group == s.Send.Channel.Group().Name() && a.Channel == s.Send.Channel.Name()
				}) {
					abroad++
				}
			}
			w.Now = w.Now.Add(c.upTo(5 * time.Second))
		}
	}
	// A property over a thing that never happens would hold by itself.
	for lock := engine.InterlockCommitted; lock <= engine.InterlockRetryBudget; lock++ {
		if seen[lock] == 0 {
			t.Errorf("interlock %s never acted in %d schedules", lock, schedules)
		}
	}
	for lock := engine.InterlockCommitted; lock <= engine.InterlockRetryBudget; lock++ {
		if lock != engine.InterlockCancelled && foreseen.seen[lock] == 0 {
			t.Errorf("interlock %s was never foreseen", lock)
		}
	}
	for _, kind := range []engine.RefusalKind{engine.RefusalRate, engine.RefusalNoChannel, engine.RefusalPolicy} {
		if refused[kind] == 0 {
			t.Errorf("no request was refused for kind %d", kind)
		}
	}
	if abroad == 0 {
		t.Error("no attempt went where only another instance knows of a bar")
	}
	if foreseen.untold > foreseen.told {
		t.Errorf("of %d decisions nothing could be foreseen, of %d something", foreseen.untold, foreseen.told)
	}
	for end := engine.TerminalSuccess; end <= engine.TerminalPolicyStop; end++ {
		if terminals[end] == 0 {
			t.Errorf("no call ended with %s in %d schedules", end, schedules)
		}
	}
	t.Logf("%d schedules; refused %v; interlocks %v; terminals %v; %d decisions foreseen, %d not: %v", schedules, refused, seen, terminals, foreseen.told, foreseen.untold, foreseen.seen)
}

// violations names the first interlock or promise that a trace breaks.
func violations(spec engine.Spec, tr enginetest.Trace) string {
	req, group := tr.Request, tr.Chain.Group()
	granted := group.Budget()
	if own := callerOf(spec, req.Caller.Name()).Budget; own != (engine.CallerBudget{}) {
		granted.Attempts = min(granted.Attempts, cmp.Or(own.Attempts, granted.Attempts))
		granted.PerRoute = min(granted.PerRoute, granted.Attempts)
		granted.Deadline = min(granted.Deadline, cmp.Or(own.Deadline, granted.Deadline))
	}
	budget := narrowedBudget(granted, tr.Narrowed)
	deadline := req.Arrived.Add(budget.Deadline)
	if d, given := req.TimeLimit.Get(); given {
		// A limit counts as no less than the minimum useful time and a little.
		if own := req.Arrived.Add(max(d, budget.MinUseful+250*time.Millisecond)); own.Before(deadline) {
			deadline = own
		}
	}
	perRoute := map[string]int{}
	for i, s := range tr.Sent {
		route := s.Send.Channel.Group().Name() + "/" + s.Send.Channel.Name()
		perRoute[route]++
		switch {
		case !tr.Committed.IsZero() && i >= tr.SentAtCommit:
			return "committed: an attempt started after commit"
		case !tr.Left.IsZero() && s.At.After(tr.Left):
			return "cancelled: an attempt started after the caller had gone"
		case i+1 > min(max(1, granted.Attempts-max(req.SDKRetry, 0)), budget.Attempts):
			return "budget: more attempts than the budget allows"
		case perRoute[route] > budget.PerRoute:
			return "budget: more attempts on one channel than the budget allows"
		case deadline.Sub(s.At) < budget.MinUseful || !deadline.After(s.At):
			return "budget: an attempt started without its minimum useful time"
		case !s.Send.Deadline.Equal(deadline):
			return "budget: an attempt may outlive the deadline"
		case tr.Narrowed != nil && !leaves(tr.Narrowed, route):
			return "eligible: an attempt went to a channel that the route policy had dropped"
		case !slices.Contains(s.Send.Channel.Group().Models(), req.Contract.Model) || !slices.Contains(s.Send.Channel.Group().Endpoints(), req.Contract.Endpoint):
			return "contract: an attempt went to a group that doesn't serve the contract"
		case s.Send.ModelSent != "m" && s.Send.ModelSent != "own-name":
			return "contract: an attempt was sent under an undeclared name"
		}
		if i == 0 {
			continue
		}
		f := s.After.Question.Failure
		idem := req.Idempotency
		if idem.Effects == engine.EffectsUnknown || f.Completion() != engine.CompletionNone && !idem.ReplaySafe {
			return "effects: a replay that is not known to be safe"
		}
		if s.After.Committed {
			return "committed: an attempt was decided on after output"
		}
		if wait, given := f.RetryAfter().Get(); given && s.Send.Channel == tr.Sent[i-1].Send.Channel && s.At.Sub(s.After.At) < wait {
			return "retry_after: a same-route attempt came before the upstream's Retry-After"
		}
		if setAside(s.After.Decision, tr.Sent[i-1], s) {
			return "eligible: an attempt went to a channel or key that its own decision had set aside"
		}
	}
	return promises(tr, perRoute)
}

// retryTokens counts what the extra attempts of a trace cost at least, and what it may
// have earned.
func retryTokens(tr enginetest.Trace) (paid, earned float64) {
	if len(tr.Sent) > 1 {
		paid = float64(len(tr.Sent) - 1)
	}
	if len(tr.Sent) == 1 && tr.Finish.Terminal == engine.TerminalSuccess {
		earned = 0.1
	}
	return paid, earned
}

// setAside says whether the decision before an attempt had taken its channel or key away.
func setAside(d engine.Decision, failed, next enginetest.Sent) bool {
	if failed.Send.Channel != next.Send.Channel || next.After.Question.Failure.Scope() == engine.ScopeRequest {
		return false // what only the request is to blame for sets nothing aside
	}
	for _, e := range d.Effects {
		over := next.After.At.Add(e.For)
		if e.For > 24*time.Hour {
			over = next.At.Add(1)
		}
		if !next.At.Before(over) {
			continue
		}
		switch e.Kind {
		case engine.EffectEvictModel:
			return true
		case engine.EffectQuarantineChannel:
			if e.After <= 1 {
				return true
			}
		case engine.EffectCoolKey:
			if failed.Send.Key == next.Send.Key {
				return true
			}
		}
	}
	return false
}

// promises checks what is promised besides the interlocks.
func promises(tr enginetest.Trace, routes map[string]int) string {
	rec := tr.Record
	text := rec.AppendJSON(nil)
	again, err := engine.ParseRecord(text)
	switch {
	case len(rec.Attempts()) != len(tr.Sent):
		return fmt.Sprintf("the ledger has %d attempts and the upstreams saw %d calls", len(rec.Attempts()), len(tr.Sent))
	case bytes.Contains(text, []byte(secretText)):
		return "a secret is in the record"
	case err != nil || !bytes.Equal(again.AppendJSON(nil), text):
		return fmt.Sprintf("the record doesn't survive a round trip (%v): %s", err, again.AppendJSON(nil))
	case rec.Terminal() == engine.TerminalNone || rec.Terminal() != tr.Finish.Terminal:
		return "the record has no terminal reason"
	case !tr.Left.IsZero() && rec.Terminal() != engine.TerminalCancelled:
		return "the caller had gone, and the request didn't end as cancelled"
	case rec.Status() == 0:
		return "the record has no status"
	case tr.Finish.Reply.Kind != engine.ReplyNone && tr.Finish.Terminal == engine.TerminalCancelled:
		return "somebody who has gone gets a reply"
	case !tr.Committed.IsZero() && tr.Finish.Reply.Kind != engine.ReplyNone && tr.Finish.Reply.Kind != engine.ReplyPartial:
		return "a committed answer is followed by another"
	case tr.Committed.IsZero() && tr.Finish.Reply.Kind == engine.ReplyNone && tr.Finish.Terminal != engine.TerminalCancelled:
		return "a caller who waits gets nothing"
	case len(tr.Sent) == 0 && tr.Finish.Reply.Kind != engine.ReplyOwn:
		return "no attempt and no error"
	}
	for i, a := range rec.Attempts() {
		if !a.Ended() || a.Seq() != i+1 {
			return fmt.Sprintf("attempt %d is left open or misnumbered", i+1)
		}
		if !a.Failed() && i != len(tr.Sent)-1 {
			return "an attempt that didn't fail was followed by another"
		}
	}
	if wrong := misnarrowed(tr.Narrowed, again.Route()); wrong != "" {
		return wrong
	}
	return misremembered(tr.Asked, again)
}
