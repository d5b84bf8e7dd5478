package replay

import (
	"slices"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// SkippedNoQuestion is why a decision of an older version's record can't be asked again.
const SkippedNoQuestion = "recorded_without_question"

// Options say whom to ask and about what.
type Options struct {
	// Policy is the policy to ask about requests of a primary group.
	Policy func(group string) engine.Policy
	// Group leaves out the decisions about attempts of other groups; empty takes all.
	Group string
	// Changed is told of every changed decision, in order; nil tells nobody.
	Changed func(Change)
}

// Effect is what an answer comes to once the interlocks have held it.
type Effect struct {
	// Action is abort where no attempt follows, whatever the policy has answered.
	Action    engine.Action
	Channel   string // of the next attempt, as far as it is known
	Reason    engine.Reason
	Rule      string           // file:line
	Interlock engine.Interlock // that acts on the answer
	Fault     string           // of the policy
}

// Change is one decision with another effect.
type Change struct {
	RequestID string
	At        time.Time // when the attempt had failed
	Seq       int       // of the failed attempt
	Group     string
	Cell      engine.Cell
	From, To  Effect
	// Hypothetical says that an earlier decision of the request changes already: this
	// question might not have come up. The fields below are zero then.
	Hypothetical bool

	AttemptsSaved int     // recorded attempts that would not have been made
	SavedUSD      float64 // what those have cost, as far as that is known
	CostsUnknown  int     // those of them whose cost isn't
	AttemptsAdded int     // 1 where the request would have gone on; how much further nobody knows
	Redirected    bool    // it would have gone on another way, to an end that nobody knows
	LostSuccess   bool    // it succeeded by an attempt that would not have been made
	// RiskedSuccess says that it succeeded, and that the way there would have been another.
	RiskedSuccess bool
}

// Totals are the sums over all records.
type Totals struct {
	Requests     int // with a decision that was asked again
	Decisions    int // asked again
	Changed      int
	Hypothetical int // of those, after an earlier change of the same request

	// As in [Change].
	AttemptsSaved   int
	SavedUSD        float64
	CostsUnknown    int
	AttemptsAdded   int
	Redirected      int
	SuccessesLost   int
	SuccessesAtRisk int

	EffectsChanged int            // unchanged decisions that would do something else to keys and channels
	WaitsChanged   int            // unchanged decisions that would wait shorter or longer
	Faults         map[string]int // of the new policy, by kind
	Skipped        map[string]int // decisions that were not asked again, by reason
}

// Replay adds up. It is for one goroutine.
type Replay struct {
	options Options
	totals  Totals
}

// New makes an empty replay.
func New(o Options) *Replay {
	return &Replay{options: o, totals: Totals{Faults: map[string]int{}, Skipped: map[string]int{}}}
}

// Totals returns the sums so far. The maps go on with the replay.
func (r *Replay) Totals() Totals { return r.totals }

// Add asks again what was asked about a request.
func (r *Replay) Add(rec *engine.Record) {
	attempts := rec.Attempts()
	asked, diverged := false, false
	for i := range attempts {
		a := &attempts[i]
		recorded, decided := a.Decision()
		if !decided || r.options.Group != "" && r.options.Group != a.Group() {
			continue
		}
		q, ok := rec.Question(i)
		if !ok {
			r.totals.Skipped[SkippedNoQuestion]++
			continue
		}
		asked = true
		r.totals.Decisions++
		// The primary group's policy decides about all attempts of a request.
		d := r.options.Policy(attempts[0].Group()).Decide(&q)
		if d.Fault != "" {
			r.totals.Faults[d.Fault]++
			d = engine.Decision{Fault: d.Fault, Rule: d.Rule}
		}
		then := past{recorded, i+1 < len(attempts)}
		from, to := then.effect(), foreseen(&q, d)
		if then.same(&q, d) {
			r.compareRest(then, &q, d)
			continue
		}
		c := Change{
			RequestID: rec.RequestID(), At: q.Now, Seq: a.Seq(), Group: a.Group(), Cell: engine.CellOf(&q),
			From: from, To: to, Hypothetical: diverged,
		}
		if !diverged {
			c.outcome(rec, attempts[i+1:])
		}
		diverged = true
		r.count(c)
	}
	if asked {
		r.totals.Requests++
	}
}

// outcome says what the first change of a request comes to; later are the attempts that
// were made after it.
func (c *Change) outcome(rec *engine.Record, later []engine.AttemptRecord) {
	succeeded := rec.Terminal() == engine.TerminalSuccess && len(later) > 0
	switch {
	case c.To.Action == engine.Abort:
		c.AttemptsSaved = len(later)
		c.LostSuccess = succeeded
		for i := range later {
			if usd, known := later[i].CostUSD(); known {
				c.SavedUSD += usd
			} else {
				c.CostsUnknown++
			}
		}
	case c.From.Action == engine.Abort:
		c.AttemptsAdded = 1
	default:
		c.Redirected = true
		c.RiskedSuccess = succeeded
	}
}

func (r *Replay) count(c Change) {
	t := &r.totals
	t.Changed++
	if c.Hypothetical {
		t.Hypothetical++
	}
	t.AttemptsSaved += c.AttemptsSaved
	t.SavedUSD += c.SavedUSD
	t.CostsUnknown += c.CostsUnknown
	t.AttemptsAdded += c.AttemptsAdded
	for _, f := range []struct {
		is bool
		n  *int
	}{{c.Redirected, &t.Redirected}, {c.LostSuccess, &t.SuccessesLost}, {c.RiskedSuccess, &t.SuccessesAtRisk}} {
		if f.is {
			*f.n++
		}
	}
	if r.options.Changed != nil {
		r.options.Changed(c)
	}
}

// compareRest looks at what an unchanged decision does besides.
func (r *Replay) compareRest(then past, q *engine.Question, d engine.Decision) {
	if !sameEffects(then.Effects(), d) {
		r.totals.EffectsChanged++
	}
	if wait, follows := engine.Follows(q, d); follows && then.went() && d.Action == then.Action() && !sameWait(wait, then.Delay()) {
		r.totals.WaitsChanged++
	}
}

// past is a recorded decision, and whether an attempt was made after it.
type past struct {
	engine.DecisionRecord
	followed bool
}

// went says that the request went on, or would have if its caller had stayed.
func (p past) went() bool {
	lock := p.Interlock()
	return p.followed || p.Action() != engine.Abort && (lock == engine.InterlockNone || lock == engine.InterlockCancelled)
}

func (p past) effect() Effect {
	e := Effect{Channel: p.Channel(), Reason: p.Reason(), Rule: p.Rule(), Interlock: p.Interlock(), Fault: p.Fault()}
	if p.went() {
		e.Action = p.Action()
	}
	return e
}

// foreseen is what an answer would have come to.
func foreseen(q *engine.Question, d engine.Decision) Effect {
	e := Effect{Reason: d.Reason, Rule: d.Rule, Interlock: engine.Foresee(q, d), Fault: d.Fault}
	if _, follows := engine.Follows(q, d); follows {
		e.Action, e.Channel = d.Action, d.Channel
		if d.Action == engine.Fallback && d.Channel == "" {
			e.Channel = q.Fallback[0] // as far as it was known; there is one, or nothing would follow
		}
	}
	return e
}

// same says whether an answer would have had the effect that the recorded one had.
//
// What an interlock does can't be foreseen in full: a channel may come back, and another
// request may take the last token, between the question and the attempt. So an answer
// with the same action as the recorded one has another effect only where a difference
// between the two answers explains it. The policy that has decided is always its own
// equal by that.
func (p past) same(q *engine.Question, d engine.Decision) bool {
	wait, follows := engine.Follows(q, d)
	went := p.went()
	if d.Action != p.Action() {
		return !follows && !went
	}
	sameChannel := d.Action != engine.Fallback || p.Channel() == "" || p.leadsTo(q, d)
	given, _ := d.Delay.Get()
	switch {
	case follows && went:
		return sameChannel
	case follows:
		return sameWait(wait, p.Delay()) && sameEffects(p.Effects(), d)
	case went:
		return given.Truncate(time.Microsecond) <= p.Delay() && sameEffects(p.Effects(), d) && sameChannel
	}
	return true
}

// leadsTo says whether a fallback goes to the channel that was taken. One that names none
// takes what is next, which may be another than was first when the policy was asked: so a
// difference is only where the recorded policy has named its own.
func (p past) leadsTo(q *engine.Question, d engine.Decision) bool {
	switch {
	case d.Channel != "":
		return d.Channel == p.Channel()
	case p.Picked() == "" || len(q.Fallback) == 0:
		return true
	}
	return q.Fallback[0] == p.Channel()
}

// sameWait compares with what a record keeps of a wait: its microseconds.
func sameWait(wait, recorded time.Duration) bool { return wait.Truncate(time.Microsecond) == recorded }

func sameEffects(recorded []engine.Effect, d engine.Decision) bool {
	return slices.EqualFunc(recorded, engine.AnswerOf(d).Effects, func(a, b engine.Effect) bool {
		return a.Kind == b.Kind && a.After == b.After && sameWait(b.For, a.For)
	})
}
