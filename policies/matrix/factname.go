package matrix

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// fact is one of the fixed facts by the name that it has in a policy's input.
type fact struct {
	name  string
	value func(f *Facts) any // nil where each class has its own
	set   func(f *Facts, s string) error
}

// errFact is wrapped with what was expected.
var errFact = errors.New("unusable value")

// facts are the names in the order of the documentation.
var facts = []fact{
	textFact("request.caller", func(f *Facts) *string { return &f.question.Caller }),
	wordFact("request.endpoint", func(f *Facts) *engine.Endpoint { return &f.question.Contract.Endpoint }, engine.ParseEndpoint),
	textFact("request.model", func(f *Facts) *string { return &f.question.Contract.Model }),
	boolFact("request.stream", func(f *Facts) *bool { return &f.question.Stream }),
	boolFact("request.tools", func(f *Facts) *bool { return &f.question.Tools }),
	numberFact("request.sdk_retry", func(f *Facts) *int { return &f.question.SDKRetry }),
	textFact("request.idempotency.key", func(f *Facts) *string { return &f.question.Idempotency.Key }),
	wordFact("request.idempotency.effects", func(f *Facts) *engine.Effects { return &f.question.Idempotency.Effects }, engine.ParseEffects),
	textFact("attempt.group", func(f *Facts) *string { return &f.question.Group }),
	textFact("attempt.channel", func(f *Facts) *string { return &f.question.Channel }),
	textFact("attempt.provider", func(f *Facts) *string { return &f.question.Provider }),
	textFact("attempt.key", func(f *Facts) *string { return &f.question.Key }),
	numberFact("attempt.route_attempts", func(f *Facts) *int { return &f.question.RouteAttempts }),
	{name: "failure.reason", set: forAll(engine.ParseReason, func(t *Typical, r engine.Reason) { t.Reason = r })},
	{name: "failure.scope", set: forAll(engine.ParseScope, func(t *Typical, s engine.Scope) { t.Scope = s })},
	{name: "failure.status", set: forAll(parseNumber, func(t *Typical, n int) { t.Status = n })},
	{
		"failure.retry_after_ms",
		func(f *Facts) any {
			if d, given := f.wait.Get(); given {
				return d.Milliseconds()
			}
			return nil
		},
		func(f *Facts, s string) error {
			if s == "null" || s == "" {
				f.wait = engine.Wait{}
				return nil
			}
			n, err := parseNumber(s)
			f.wait = engine.WaitOf(time.Duration(n) * time.Millisecond)
			return err
		},
	},
	numberFact("budget.attempts", func(f *Facts) *int { return &f.attempts }),
	millisFact("budget.elapsed_ms", func(f *Facts) *time.Duration { return &f.question.Elapsed }),
	millisFact("budget.remaining_ms", func(f *Facts) *time.Duration { return &f.question.Remaining }),
	millisFact("budget.min_useful_ms", func(f *Facts) *time.Duration { return &f.question.MinUseful }),
	millisFact("budget.backoff_ms", func(f *Facts) *time.Duration { return &f.question.Backoff }),
	boolFact("routes.same", func(f *Facts) *bool { return &f.question.Same }),
	boolFact("routes.spare_key", func(f *Facts) *bool { return &f.question.SpareKey }),
	listFact("routes.fallback", func(f *Facts) *[]string { return &f.question.Fallback }),
	listFact("routes.substitute", func(f *Facts) *[]string { return &f.question.Substitute }),
	{
		"now",
		func(f *Facts) any { return f.question.Now.Format(time.RFC3339) },
		func(f *Facts, s string) error {
			t, err := time.Parse(time.RFC3339, s)
			if err != nil {
				return fmt.Errorf("%w: write a time such as 2026-01-14T23:30:00+01:00", errFact)
			}
			f.question.Now = t
			return nil
		},
	},
}

// FactNames are the names that [Facts.Set] knows.
func FactNames() []string {
	names := make([]string, len(facts))
	for i, f := range facts {
		names[i] = f.name
	}
	return names
}

// Set changes a fact: name and value are joined by "=", as in routes.fallback=b,c. The
// facts of a failure are set for all classes.
func (f *Facts) Set(assignment string) error {
	name, value, found := strings.Cut(assignment, "=")
	if !found {
		return fmt.Errorf("cannot read fact %q: write NAME=VALUE, such as request.caller=batch", assignment)
	}
	for _, known := range facts {
		if known.name == name {
			if err := known.set(f, value); err != nil {
				return fmt.Errorf("cannot set fact %s to %q: %w", name, value, err)
			}
			return nil
		}
	}
	return fmt.Errorf("cannot set fact %q: there are %s", name, strings.Join(FactNames(), ", "))
}

func textFact(name string, at func(*Facts) *string) fact {
	return fact{
		name, func(f *Facts) any { return *at(f) },
		func(f *Facts, s string) error { *at(f) = s; return nil },
	}
}

func wordFact[W interface {
	~uint8
	String() string
}](name string, at func(*Facts) *W, parse func(string) (W, error)) fact {
	return fact{
		name, func(f *Facts) any { return (*at(f)).String() },
		func(f *Facts, s string) (err error) { *at(f), err = parse(s); return err },
	}
}

func boolFact(name string, at func(*Facts) *bool) fact {
	return fact{
		name, func(f *Facts) any { return *at(f) },
		func(f *Facts, s string) error {
			if s != "true" && s != "false" {
				return fmt.Errorf("%w: write true or false", errFact)
			}
			*at(f) = s == "true"
			return nil
		},
	}
}

func numberFact(name string, at func(*Facts) *int) fact {
	return fact{
		name, func(f *Facts) any { return *at(f) },
		func(f *Facts, s string) (err error) { *at(f), err = parseNumber(s); return err },
	}
}

func millisFact(name string, at func(*Facts) *time.Duration) fact {
	return fact{
		name, func(f *Facts) any { return at(f).Milliseconds() },
		func(f *Facts, s string) error {
			n, err := parseNumber(s)
			*at(f) = time.Duration(n) * time.Millisecond
			return err
		},
	}
}

// listFact is written with commas; nothing is the empty list.
func listFact(name string, at func(*Facts) *[]string) fact {
	return fact{
		name, func(f *Facts) any { return append([]string{}, *at(f)...) },
		func(f *Facts, s string) error {
			*at(f) = nil
			if s != "" {
				*at(f) = strings.Split(s, ",")
			}
			return nil
		},
	}
}

// forAll sets a part of the failure of every class.
func forAll[T any](parse func(string) (T, error), set func(*Typical, T)) func(*Facts, string) error {
	return func(f *Facts, s string) error {
		v, err := parse(s)
		if err != nil {
			return err
		}
		for i := range f.failures {
			set(&f.failures[i], v)
		}
		return nil
	}
}

// maxNumber bounds a number of a fact: more milliseconds than a month has.
const maxNumber = 1 << 32

func parseNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n > maxNumber {
		return 0, fmt.Errorf("%w: write a whole number from 0", errFact)
	}
	return int(n), nil
}
