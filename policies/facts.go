package policies

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// factKind is the form that a fact has in JSON.
type factKind uint8

const (
	factText factKind = iota
	factWord
	factFlag
	factNumber
	factTexts
)

// fact is one leaf of a question's JSON form, the same as the [field] of that path, for the
// tools that read, write and change questions. A policy is asked without it.
//
// A fact's value is a string, a bool, an int64 or a []string, and nil for null.
type fact struct {
	path     string // with dots
	kind     factKind
	nullable bool
	least    int64    // of a number
	most     int64    // of a number with few values, or else 0
	codes    bool     // of a number that stands for itself, such as a status
	words    []string // of a word
	get      func(*engine.Question) any
	set      func(*engine.Question, any) error
}

// facts are all of them in the order of the documentation.
func facts() []fact {
	return []fact{
		textFact("request.id", func(q *engine.Question) *string { return &q.RequestID }),
		textFact("request.caller", func(q *engine.Question) *string { return &q.Caller }),
		wordFact("request.endpoint", engine.ParseEndpoint, func(q *engine.Question) engine.Endpoint { return q.Contract.Endpoint },
			func(q *engine.Question, e engine.Endpoint) { q.Contract.Endpoint = e }),
		textFact("request.model", func(q *engine.Question) *string { return &q.Contract.Model }),
		flagFact("request.stream", func(q *engine.Question) *bool { return &q.Stream }),
		flagFact("request.tools", func(q *engine.Question) *bool { return &q.Tools }),
		countFact("request.sdk_retry", 0, func(q *engine.Question) *int { return &q.SDKRetry }),
		keyFact("request.idempotency.key"),
		flagFact("request.idempotency.replay_safe", func(q *engine.Question) *bool { return &q.Idempotency.ReplaySafe }),
		wordFact("request.idempotency.effects", engine.ParseEffects, func(q *engine.Question) engine.Effects { return q.Idempotency.Effects },
			func(q *engine.Question, e engine.Effects) { q.Idempotency.Effects = e }),

		countFact("attempt.seq", 1, func(q *engine.Question) *int { return &q.Seq }),
		textFact("attempt.group", func(q *engine.Question) *string { return &q.Group }),
		textFact("attempt.channel", func(q *engine.Question) *string { return &q.Channel }),
		textFact("attempt.provider", func(q *engine.Question) *string { return &q.Provider }),
		textFact("attempt.key", func(q *engine.Question) *string { return &q.Key }),
		countFact("attempt.route_attempts", 1, func(q *engine.Question) *int { return &q.RouteAttempts }),

		wordFact("failure.class", engine.ParseClass, func(q *engine.Question) engine.Class { return q.Failure.Class() },
			func(q *engine.Question, c engine.Class) { changeFailure(q, func(p *failureParts) { p.class = c }) }),
		reasonFact("failure.reason"),
		wordFact("failure.scope", engine.ParseScope, func(q *engine.Question) engine.Scope { return q.Failure.Scope() },
			func(q *engine.Question, s engine.Scope) { changeFailure(q, func(p *failureParts) { p.scope = s }) }),
		statusFact("failure.status"),
		waitFact("failure.retry_after_ms"),
		wordFact("failure.completion", engine.ParseCompletion, func(q *engine.Question) engine.Completion { return q.Failure.Completion() },
			func(q *engine.Question, c engine.Completion) {
				changeFailure(q, func(p *failureParts) { p.completion = c })
			}),
		familyFact(familyPath),

		wordFact("phase", engine.ParsePhase, func(q *engine.Question) engine.Phase { return q.Failure.Phase() },
			func(q *engine.Question, ph engine.Phase) { changeFailure(q, func(p *failureParts) { p.phase = ph }) }),

		countFact("budget.attempts_used", 0, func(q *engine.Question) *int { return &q.AttemptsUsed }),
		countFact("budget.attempts_left", 0, func(q *engine.Question) *int { return &q.AttemptsLeft }),
		millisFact("budget.elapsed_ms", func(q *engine.Question) *time.Duration { return &q.Elapsed }),
		millisFact("budget.remaining_ms", func(q *engine.Question) *time.Duration { return &q.Remaining }),
		millisFact("budget.min_useful_ms", func(q *engine.Question) *time.Duration { return &q.MinUseful }),
		millisFact("budget.backoff_ms", func(q *engine.Question) *time.Duration { return &q.Backoff }),
		flagFact("budget.retry_budget", func(q *engine.Question) *bool { return &q.RetryBudget }),
		flagFact("budget.time", func(q *engine.Question) *bool { return &q.Time }),

		flagFact("routes.same", func(q *engine.Question) *bool { return &q.Same }),
		flagFact("routes.spare_key", func(q *engine.Question) *bool { return &q.SpareKey }),
		textsFact("routes.fallback", func(q *engine.Question) *[]string { return &q.Fallback }),
		textsFact("routes.substitute", func(q *engine.Question) *[]string { return &q.Substitute }),

		dateFact("clock.date"),
		weekdayFact(weekdayPath),
		clockFact("clock.hour", 23, func(at time.Time) int { return at.Hour() }, func(at time.Time, n int) time.Time {
			return time.Date(at.Year(), at.Month(), at.Day(), n, at.Minute(), 0, 0, at.Location())
		}),
		clockFact("clock.minute", 59, func(at time.Time) int { return at.Minute() }, func(at time.Time, n int) time.Time {
			return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), n, 0, 0, at.Location())
		}),
	}
}

// familyPath and weekdayPath are the facts that follow from others.
const (
	familyPath  = "failure.family"
	weekdayPath = "clock.weekday"
)

// failureParts are the parts of a failure, which has no setters.
type failureParts struct {
	class      engine.Class
	scope      engine.Scope
	reason     engine.Reason
	wait       engine.Wait
	status     int
	phase      engine.Phase
	completion engine.Completion
}

func changeFailure(q *engine.Question, change func(*failureParts)) {
	f := &q.Failure
	p := failureParts{f.Class(), f.Scope(), f.Reason(), f.RetryAfter(), f.Status(), f.Phase(), f.Completion()}
	change(&p)
	q.Failure = engine.MakeFailure(p.class, p.scope, p.reason, p.wait, p.status, p.phase, p.completion)
}

func textFact(path string, at func(*engine.Question) *string) fact {
	return fact{
		path: path, kind: factText,
		get: func(q *engine.Question) any { return *at(q) },
		set: func(q *engine.Question, v any) (err error) {
			*at(q), err = as[string](v, "a text")
			return err
		},
	}
}

func wordFact[W interface {
	~uint8
	String() string
}](path string, parse func(string) (W, error), get func(*engine.Question) W, set func(*engine.Question, W)) fact {
	words := wordsOf(parse)
	return fact{
		path: path, kind: factWord, words: words,
		get: func(q *engine.Question) any { return get(q).String() },
		set: func(q *engine.Question, v any) error {
			text, err := as[string](v, "a word")
			if err != nil {
				return err
			}
			w, err := parse(text)
			if err != nil {
				return notAWord(text, words)
			}
			set(q, w)
			return nil
		},
	}
}

// wordsOf lists a closed vocabulary: every value whose name can be read back.
func wordsOf[W interface {
	~uint8
	String() string
}](parse func(string) (W, error)) []string {
	var words []string
	for w := W(0); w < math.MaxUint8; w++ {
		if back, err := parse(w.String()); err == nil && back == w {
			words = append(words, w.String())
		}
	}
	return words
}

func flagFact(path string, at func(*engine.Question) *bool) fact {
	return fact{
		path: path, kind: factFlag,
		get: func(q *engine.Question) any { return *at(q) },
		set: func(q *engine.Question, v any) (err error) {
			*at(q), err = as[bool](v, "true or false")
			return err
		},
	}
}

func countFact(path string, least int64, at func(*engine.Question) *int) fact {
	return fact{
		path: path, kind: factNumber, least: least,
		get: func(q *engine.Question) any { return int64(*at(q)) },
		set: func(q *engine.Question, v any) error {
			n, err := wholeNumber(v, least, math.MaxInt32)
			*at(q) = int(n)
			return err
		},
	}
}

// maxMillis is the longest time that a duration can hold.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

func millisFact(path string, at func(*engine.Question) *time.Duration) fact {
	return fact{
		path: path, kind: factNumber,
		get: func(q *engine.Question) any { return at(q).Milliseconds() },
		set: func(q *engine.Question, v any) error {
			n, err := wholeNumber(v, 0, maxMillis)
			*at(q) = time.Duration(n) * time.Millisecond
			return err
		},
	}
}

func textsFact(path string, at func(*engine.Question) *[]string) fact {
	return fact{
		path: path, kind: factTexts,
		get: func(q *engine.Question) any { return slices.Clone(*at(q)) },
		set: func(q *engine.Question, v any) error {
			list, err := as[[]string](v, "a list of texts")
			*at(q) = slices.Clone(list)
			return err
		},
	}
}

// keyFact is the Idempotency-Key: null without one.
func keyFact(path string) fact {
	return fact{
		path: path, kind: factText, nullable: true,
		get: func(q *engine.Question) any {
			if q.Idempotency.Key == "" {
				return nil
			}
			return q.Idempotency.Key
		},
		set: func(q *engine.Question, v any) (err error) {
			if v == nil {
				q.Idempotency.Key = ""
				return nil
			}
			q.Idempotency.Key, err = as[string](v, "a text or null")
			if err == nil && q.Idempotency.Key == "" {
				return fmt.Errorf("it is empty; write null if the caller sent no key")
			}
			return err
		},
	}
}

// reasonFact is empty where nothing was said.
func reasonFact(path string) fact {
	return fact{
		path: path, kind: factText,
		get: func(q *engine.Question) any { return q.Failure.Reason().String() },
		set: func(q *engine.Question, v any) error {
			text, err := as[string](v, "a text")
			if err != nil {
				return err
			}
			var reason engine.Reason
			if text != "" {
				if reason, err = engine.ParseReason(text); err != nil {
					return err
				}
			}
			changeFailure(q, func(p *failureParts) { p.reason = reason })
			return nil
		},
	}
}

func statusFact(path string) fact {
	return fact{
		path: path, kind: factNumber, codes: true,
		get: func(q *engine.Question) any { return int64(q.Failure.Status()) },
		set: func(q *engine.Question, v any) error {
			n, err := wholeNumber(v, 0, maxStatus)
			if err == nil {
				changeFailure(q, func(p *failureParts) { p.status = int(n) })
			}
			return err
		},
	}
}

// maxStatus is the last three-digit status of HTTP.
const maxStatus = 999

// waitFact is the upstream's Retry-After: null if it gave none.
func waitFact(path string) fact {
	return fact{
		path: path, kind: factNumber, nullable: true,
		get: func(q *engine.Question) any {
			wait, given := q.Failure.RetryAfter().Get()
			if !given {
				return nil
			}
			return wait.Milliseconds()
		},
		set: func(q *engine.Question, v any) error {
			var wait engine.Wait
			if v != nil {
				n, err := wholeNumber(v, 0, maxMillis)
				if err != nil {
					return err
				}
				wait = engine.WaitOf(time.Duration(n) * time.Millisecond)
			}
			changeFailure(q, func(p *failureParts) { p.wait = wait })
			return nil
		},
	}
}

// familyFact can be read, and written as what it already is.
func familyFact(path string) fact {
	get := func(q *engine.Question) any {
		return engine.FamilyOf(q.Failure.Class(), q.Failure.Scope()).String()
	}
	return fact{
		path: path, kind: factWord, get: get,
		set: func(q *engine.Question, v any) error {
			text, err := as[string](v, "a word")
			if err == nil && text != get(q) {
				err = fmt.Errorf("it is %q, but class %v with scope %v is of the family %v; leave it out, it follows from them",
					text, q.Failure.Class(), q.Failure.Scope(), get(q))
			}
			return err
		},
	}
}

// as is a value of a type, or an error that says what to write.
func as[T any](v any, what string) (T, error) {
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("it is %s; write %s", shown(v), what)
	}
	return t, nil
}

// wholeNumber takes an int64, or a number as it stands in JSON.
func wholeNumber(v any, least, most int64) (int64, error) {
	n, ok := v.(int64)
	if number, isJSON := v.(json.Number); isJSON {
		var err error
		n, err = number.Int64()
		ok = err == nil
	}
	if !ok || n < least || n > most {
		return 0, fmt.Errorf("it is %s; write a whole number from %d to %d", shown(v), least, most)
	}
	return n, nil
}

// shown is a value as a message shows it, in JSON's own form and not too long.
func shown(v any) string {
	const most = 60
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
