package engine

import (
	"strconv"
	"time"
)

// maxListed bounds each list of names in a record, and maxEffects the effects of a
// decision, so that no policy and no configuration makes a record large.
const (
	maxListed  = 32
	maxEffects = 8
)

// keyGiven stands for an Idempotency-Key in a question that was rebuilt from a record:
// callers may put anything there, so no record keeps it.
const keyGiven = "given"

// asked is what a policy was told about an attempt besides the facts that the record of
// the attempt and of the request hold. Together they are the question again.
type asked struct {
	now           time.Time
	stream        bool
	tools         bool
	keyGiven      bool
	replaySafe    bool
	effects       Effects
	routeAttempts int
	status        int // of the failure: the attempt's own is of its answer, broken or not
	retryAfter    Wait
	attemptsUsed  int
	attemptsLeft  int
	elapsed       time.Duration
	remaining     time.Duration
	minUseful     time.Duration
	backoff       time.Duration
	retryBudget   bool
	time          bool
	same          bool
	spareKey      bool
	fallback      []string // at most maxListed
	substitute    []string // at most maxListed
}

// askedOf keeps a question's facts. It shares nothing with q but the names.
func askedOf(q *Question) *asked {
	return &asked{
		now: q.Now, stream: q.Stream, tools: q.Tools,
		keyGiven: q.Idempotency.Key != "", replaySafe: q.Idempotency.ReplaySafe, effects: q.Idempotency.Effects,
		routeAttempts: q.RouteAttempts, status: q.Failure.status, retryAfter: q.Failure.retryAfter,
		attemptsUsed: q.AttemptsUsed, attemptsLeft: q.AttemptsLeft,
		elapsed: q.Elapsed, remaining: q.Remaining, minUseful: q.MinUseful, backoff: q.Backoff,
		retryBudget: q.RetryBudget, time: q.Time, same: q.Same, spareKey: q.SpareKey,
		fallback: listed(q.Fallback), substitute: listed(q.Substitute),
	}
}

// listed copies the names that a record keeps.
func listed(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return append([]string(nil), names[:min(len(names), maxListed)]...)
}

// Question rebuilds what the policy was asked after attempt i, from 0, so that another
// policy can be asked the same. It returns false where no policy was asked, or where an
// older version wrote the record. An Idempotency-Key is the word "given", times have the
// record's microseconds, and lists of names end after 32.
func (r *Record) Question(i int) (Question, bool) {
	if i < 0 || i >= len(r.attempts) || !r.attempts[i].decided || r.attempts[i].decision.asked == nil {
		return Question{}, false
	}
	a := &r.attempts[i]
	k := a.decision.asked
	q := Question{
		RequestID: r.requestID, Caller: r.caller, Contract: r.contract, Stream: k.stream, Tools: k.tools, SDKRetry: r.sdkRetry,
		Idempotency: Idempotency{ReplaySafe: k.replaySafe, Effects: k.effects}, Now: k.now,
		Seq: a.seq, Group: a.group, Channel: a.channel, Provider: a.provider, Key: a.key, RouteAttempts: k.routeAttempts,
		Failure: Failure{
			class: a.class, scope: a.scope, reason: a.reason, status: k.status, retryAfter: k.retryAfter,
			phase: a.phase, completion: a.completion, fault: a.fault,
		},
		AttemptsUsed: k.attemptsUsed, AttemptsLeft: k.attemptsLeft,
		Elapsed: k.elapsed, Remaining: k.remaining, MinUseful: k.minUseful, Backoff: k.backoff,
		Time: k.time, RetryBudget: k.retryBudget, Same: k.same, SpareKey: k.spareKey,
		Fallback: listed(k.fallback), Substitute: listed(k.substitute),
	}
	if k.keyGiven {
		q.Idempotency.Key = keyGiven
	}
	return q, true
}

func (k *asked) appendJSON(b []byte) []byte {
	b = append(b, `{"now":"`...)
	b = k.now.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	b = appendFlag(b, "stream", k.stream)
	b = appendFlag(b, "tools", k.tools)
	b = appendFlag(b, "idempotency_key", k.keyGiven)
	b = appendFlag(b, "replay_safe", k.replaySafe)
	b = append(b, `,"effects":"`...)
	b = append(b, k.effects.String()...)
	b = append(b, '"')
	b = appendCount(b, "route_attempts", k.routeAttempts)
	b = appendCount(b, "status", k.status)
	b = append(b, `,"retry_after_ms":`...)
	if d, given := k.retryAfter.Get(); given {
		b = appendMS(b, d)
	} else {
		b = append(b, `null`...)
	}
	b = appendCount(b, "attempts_used", k.attemptsUsed)
	b = appendCount(b, "attempts_left", k.attemptsLeft)
	for _, f := range [...]struct {
		name string
		d    time.Duration
	}{
		{`,"elapsed_ms":`, k.elapsed}, {`,"remaining_ms":`, k.remaining}, {`,"min_useful_ms":`, k.minUseful}, {`,"backoff_ms":`, k.backoff},
	} {
		b = appendMS(append(b, f.name...), f.d)
	}
	b = appendFlag(b, "retry_budget", k.retryBudget)
	b = appendFlag(b, "time", k.time)
	b = appendFlag(b, "same", k.same)
	b = appendFlag(b, "spare_key", k.spareKey)
	b = appendNames(append(b, `,"fallback":`...), k.fallback)
	b = appendNames(append(b, `,"substitute":`...), k.substitute)
	return append(b, '}')
}

// appendFlag writes a member that isn't the first of its object.
func appendFlag(b []byte, name string, v bool) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendBool(b, v)
}

// appendCount writes a member that isn't the first of its object.
func appendCount(b []byte, name string, n int) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, int64(n), 10)
}

func appendNames(b []byte, names []string) []byte {
	b = append(b, '[')
	for i, s := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

// askedForm is the public form of asked.
type askedForm struct {
	Now           time.Time `json:"now"`
	Stream        bool      `json:"stream"`
	Tools         bool      `json:"tools"`
	KeyGiven      bool      `json:"idempotency_key"`
	ReplaySafe    bool      `json:"replay_safe"`
	Effects       string    `json:"effects"`
	RouteAttempts int       `json:"route_attempts"`
	Status        int       `json:"status"`
	RetryAfterMS  *float64  `json:"retry_after_ms"`
	AttemptsUsed  int       `json:"attempts_used"`
	AttemptsLeft  int       `json:"attempts_left"`
	ElapsedMS     float64   `json:"elapsed_ms"`
	RemainingMS   float64   `json:"remaining_ms"`
	MinUsefulMS   float64   `json:"min_useful_ms"`
	BackoffMS     float64   `json:"backoff_ms"`
	RetryBudget   bool      `json:"retry_budget"`
	Time          bool      `json:"time"`
	Same          bool      `json:"same"`
	SpareKey      bool      `json:"spare_key"`
	Fallback      []string  `json:"fallback"`
	Substitute    []string  `json:"substitute"`
}

func (f *askedForm) asked() *asked {
	k := &asked{
		now: writable(f.Now), stream: f.Stream, tools: f.Tools, keyGiven: f.KeyGiven, replaySafe: f.ReplaySafe,
		routeAttempts: f.RouteAttempts, status: f.Status, attemptsUsed: f.AttemptsUsed, attemptsLeft: f.AttemptsLeft,
		elapsed: fromMS(f.ElapsedMS), remaining: fromMS(f.RemainingMS), minUseful: fromMS(f.MinUsefulMS), backoff: fromMS(f.BackoffMS),
		retryBudget: f.RetryBudget, time: f.Time, same: f.Same, spareKey: f.SpareKey,
		fallback: listed(f.Fallback), substitute: listed(f.Substitute),
	}
	k.effects, _ = ParseEffects(f.Effects)
	if f.RetryAfterMS != nil {
		k.retryAfter = WaitOf(fromMS(*f.RetryAfterMS))
	}
	return k
}

// appendEffects writes what a decision changes.
func appendEffects(b []byte, effects []Effect) []byte {
	b = append(b, '[')
	for i, e := range effects {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"kind":"`...), e.Kind.String()...), '"')
		if e.For != 0 {
			b = appendMS(append(b, `,"for_ms":`...), e.For)
		}
		if e.After != 0 {
			b = appendCount(b, "after", e.After)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

type effectForm struct {
	Kind  string  `json:"kind"`
	ForMS float64 `json:"for_ms"`
	After int     `json:"after"`
}

// effectsOf reads effects; of a kind that only a later version knows nothing stays.
func effectsOf(forms []effectForm) []Effect {
	var effects []Effect
	for _, f := range forms {
		if kind, err := ParseEffectKind(f.Kind); err == nil && len(effects) < maxEffects {
			effects = append(effects, Effect{Kind: kind, For: fromMS(f.ForMS), After: f.After})
		}
	}
	return effects
}

// recordedEffects are the effects that a record keeps, as the engine takes them: none
// that changes nothing, and none for longer than anything is set aside.
func recordedEffects(effects []Effect) []Effect {
	var kept []Effect
	for _, e := range effects {
		if e.Kind != EffectNothing && len(kept) < maxEffects {
			kept = append(kept, Effect{Kind: e.Kind, For: min(e.For, MaxSetAside), After: e.After})
		}
	}
	return kept
}
