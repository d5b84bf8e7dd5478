package policies

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fourgate-dev/fourgate/engine"
)

// maxEffects bounds the effects of one answer; there are four kinds.
const maxEffects = 8

// readAnswer reads the value of the policy's entry point, strictly: an unknown name, a
// wrong type or a bad word makes the whole answer unusable.
func readAnswer(v ast.Value) (engine.Decision, error) {
	var d engine.Decision
	var acted, reasoned bool
	err := eachName(v, func(name string, v ast.Value) (err error) {
		switch name {
		case "action":
			acted = true
			d.Action, err = parsed(v, engine.ParseAction)
		case "channel":
			d.Channel, err = readName(v)
		case "reason":
			reasoned = true
			d.Reason, err = readReason(v)
		case "delay_ms":
			var delay time.Duration
			delay, err = readMillis(v)
			d.Delay = engine.WaitOf(delay)
		case "effects":
			d.Effects, err = readEffects(v)
		case "gates":
			d.Gates, err = readGates(v)
		default:
			err = notAMember(name, "action", "channel", "reason", "delay_ms", "effects", "gates")
		}
		return err
	})
	if err != nil {
		return engine.Decision{}, err
	}
	switch {
	case !acted:
		return engine.Decision{}, missing("action", "")
	case !reasoned:
		return engine.Decision{}, missing("reason", "")
	case d.Channel != "" && d.Action != engine.Fallback:
		return engine.Decision{}, fmt.Errorf("channel: %w", &mistyped{misplaced, ": only the action fallback has one"})
	}
	return d, nil
}

// readEffects reads an array, or a set, which is what a partial rule makes.
func readEffects(v ast.Value) ([]engine.Effect, error) {
	var effects []engine.Effect
	one := func(t *ast.Term) error {
		e, err := readEffect(t.Value)
		effects = append(effects, e)
		return err
	}
	list, ok := v.(interface {
		Len() int
		Iter(func(*ast.Term) error) error
	})
	switch {
	case !ok:
		return nil, notOfType(v, "a list or a set of effects")
	case list.Len() > maxEffects:
		return nil, notIn(v, fmt.Sprintf("at most %d effects", maxEffects))
	}
	err := list.Iter(one)
	return effects, err
}

func readEffect(v ast.Value) (engine.Effect, error) {
	var e engine.Effect
	var timed, repeated bool
	err := eachName(v, func(name string, v ast.Value) (err error) {
		switch name {
		case "kind":
			e.Kind, err = parsed(v, engine.ParseEffectKind)
		case "for_ms":
			timed = true
			e.For, err = readMillis(v)
		case "after":
			repeated = true
			e.After, err = readCount(v)
		default:
			err = notAMember(name, "kind", "for_ms", "after")
		}
		return err
	})
	if err != nil {
		return engine.Effect{}, err
	}
	switch wantsTime := e.Kind != engine.EffectCountFailure; {
	case e.Kind == engine.EffectNothing:
		err = missing("kind", "")
	case wantsTime && !timed:
		err = missing("for_ms", ": "+e.Kind.String()+" has one, in milliseconds")
	case timed && !wantsTime:
		err = fmt.Errorf("for_ms: %w", &mistyped{misplaced, ": " + e.Kind.String() + " has none"})
	case repeated && e.Kind != engine.EffectQuarantineChannel:
		err = fmt.Errorf("after: %w", &mistyped{misplaced, ": only quarantine_channel has one"})
	}
	return e, err
}

func readGates(v ast.Value) (engine.Gates, error) {
	var g engine.Gates
	err := eachName(v, func(name string, v ast.Value) error {
		to := map[string]*engine.GateMark{
			"failure_class": &g.FailureClass, "response_phase": &g.ResponsePhase,
			"idempotency": &g.Idempotency, "attempt_budget": &g.AttemptBudget,
		}[name]
		if to == nil {
			return notAMember(name, "failure_class", "response_phase", "idempotency", "attempt_budget")
		}
		var err error
		*to, err = parsed(v, engine.ParseGateMark)
		return err
	})
	return g, err
}

// eachName calls f for every member of an object.
func eachName(v ast.Value, f func(name string, v ast.Value) error) error {
	object, ok := v.(ast.Object)
	if !ok {
		return notOfType(v, "an object")
	}
	return object.Iter(func(k, v *ast.Term) error {
		name, ok := k.Value.(ast.String)
		if !ok {
			return &mistyped{unknownMember, ": " + kindOf(k.Value) + "; names are texts"}
		}
		if err := f(string(name), v.Value); err != nil {
			return fmt.Errorf("%s: %w", printableName(string(name)), err)
		}
		return nil
	})
}

// printableName is a member's name, quoted and cut if it isn't such a word as members have.
func printableName(name string) string {
	for _, c := range name {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return quoted(name)
		}
	}
	if name == "" || len(name) > maxQuoted {
		return quoted(name)
	}
	return name
}

// parsed reads a word of a closed list.
func parsed[W interface {
	~uint8
	String() string
}](v ast.Value, parse func(string) (W, error)) (W, error) {
	s, ok := v.(ast.String)
	if !ok {
		return 0, notOfType(v, "one of "+strings.Join(wordsOf(parse), ", "))
	}
	w, err := parse(string(s))
	if err != nil {
		return 0, noWord(string(s), wordsOf(parse))
	}
	return w, nil
}

func readReason(v ast.Value) (engine.Reason, error) {
	const want = "1 to 64 lower-case letters, digits and underscores"
	s, ok := v.(ast.String)
	if !ok {
		return engine.Reason{}, notOfType(v, want)
	}
	r, err := engine.ParseReason(string(s))
	if err != nil {
		return engine.Reason{}, &mistyped{unknownWord, " " + quoted(string(s)) + "; write " + want}
	}
	return r, nil
}

// readName reads a channel's name.
func readName(v ast.Value) (string, error) {
	const want = "the name of a channel"
	s, ok := v.(ast.String)
	switch {
	case !ok:
		return "", notOfType(v, want)
	case s == "":
		return "", notIn(v, want)
	}
	return string(s), nil
}

func readMillis(v ast.Value) (time.Duration, error) {
	n, err := readNumber(v, math.MaxInt64/int64(time.Millisecond), "a whole number of milliseconds, 0 or more")
	return time.Duration(n) * time.Millisecond, err
}

func readCount(v ast.Value) (int, error) {
	n, err := readNumber(v, math.MaxInt32, "a whole number, 0 or more")
	return int(n), err
}

// readNumber reads a whole number from 0 to a limit.
func readNumber(v ast.Value, limit int64, want string) (int64, error) {
	number, ok := v.(ast.Number)
	if !ok {
		return 0, notOfType(v, want)
	}
	n, whole := number.Int64()
	if !whole { // or written with a point or an exponent: 1.5e3
		const exact = 1 << 53 // from here on a float64 skips whole numbers
		f, ok := number.Float64()
		if !ok || f != math.Trunc(f) || math.Abs(f) >= exact {
			return 0, notIn(v, want)
		}
		n = int64(f)
	}
	if n < 0 || n > limit {
		return 0, notIn(v, want)
	}
	return n, nil
}
