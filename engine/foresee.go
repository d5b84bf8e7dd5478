package engine

import (
	"slices"
	"time"
)

// Foresee says which interlock would act on decision d about q, as far as the facts of
// the question tell: [InterlockNone] where d aborts or its attempt would begin. It asks
// the same rules as a call that obeys d; what the facts don't tell, it takes as it
// stands: that a bar doesn't end during the decision's delay, that the retry budget
// isn't spent or earned meanwhile, and that the decision's effects set nothing aside but
// what failed. [InterlockRetryAfter] may also mean that a same-route attempt is put off
// and begins later than the decision says; [Follows] tells which.
func Foresee(q *Question, d Decision) Interlock {
	lock, _, _ := foresee(q, d.usable())
	return lock
}

// Follows says whether another attempt would follow on decision d about q, and after
// which wait, with the reservations of [Foresee].
func Follows(q *Question, d Decision) (time.Duration, bool) {
	_, wait, follows := foresee(q, d.usable())
	return wait, follows
}

// foresee follows the way of a decision through the call's state asking.
func foresee(q *Question, d Decision) (lock Interlock, wait time.Duration, follows bool) {
	if lock, stops := ruledOut(q.Failure, q.Idempotency, d); stops {
		return lock, 0, false
	}
	var free bool
	if d.Action == Fallback {
		wait, _ = d.Delay.Get()
		free = len(q.Fallback) > 0
		if d.Channel != "" {
			free = slices.Contains(q.Fallback, d.Channel)
			if !free && q.AttemptsLeft > 0 { // without attempts the list is always empty
				return InterlockEligible, 0, false
			}
		}
	} else {
		wait, lock = sameRouteWait(q, d, q.Remaining)
		free = q.Same && !setsAside(q, d, wait)
	}
	switch {
	case !useful(q.Remaining-wait, q.MinUseful):
		if lock == InterlockNone {
			lock = InterlockBudget
		}
		return lock, 0, false
	case q.AttemptsLeft <= 0:
		return InterlockBudget, 0, false
	case !free:
		return InterlockEligible, 0, false
	case !q.RetryBudget:
		return InterlockRetryBudget, 0, false
	}
	return lock, wait, true
}

// setsAside says whether a decision's own effects take the route away from a same-route
// attempt that starts after wait. Where failures are counted, by a breaker or for a
// quarantine, this one may be the last that it takes; the question doesn't tell.
func setsAside(q *Question, d Decision, wait time.Duration) bool {
	for _, e := range blamed(q.Failure, d.Effects) {
		if min(e.For, MaxSetAside) <= wait {
			continue
		}
		switch e.Kind {
		case EffectEvictModel:
			return true
		case EffectQuarantineChannel:
			if e.After <= 1 {
				return true
			}
		case EffectCoolKey:
			if q.Key != "" && !q.SpareKey {
				return true
			}
		}
	}
	return false
}
