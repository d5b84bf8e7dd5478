package policies

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fourgate-dev/fourgate/engine"
)

// errMistyped says that a part of a policy's answer doesn't have the documented form. It
// is wrapped with the names of the members that lead there.
var errMistyped = errors.New("unknown member, wrong type or unknown word; see docs/policies.md for the answer's form")

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
			d.Channel, err = nonEmpty(v)
		case "reason":
			reasoned = true
			d.Reason, err = parsed(v, engine.ParseReason)
		case "delay_ms":
			var delay time.Duration
			delay, err = readMillis(v)
			d.Delay = engine.WaitOf(delay)
		case "effects":
			d.Effects, err = readEffects(v)
		case "gates":
			d.Gates, err = readGates(v)
		default:
			err = errMistyped
		}
		return err
	})
	if err != nil {
		return engine.Decision{}, err
	}
	switch {
	case !acted:
		return engine.Decision{}, fmt.Errorf("action: missing: %w", errMistyped)
	case !reasoned:
		return engine.Decision{}, fmt.Errorf("reason: missing: %w", errMistyped)
	case d.Channel != "" && d.Action != engine.Fallback:
		return engine.Decision{}, fmt.Errorf("channel: only with the action fallback: %w", errMistyped)
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
	var err error
	switch v := v.(type) {
	case *ast.Array:
		if v.Len() > maxEffects {
			return nil, errMistyped
		}
		err = v.Iter(one)
	case ast.Set:
		if v.Len() > maxEffects {
			return nil, errMistyped
		}
		err = v.Iter(one)
	default:
		err = errMistyped
	}
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
			err = errMistyped
		}
		return err
	})
	if err != nil {
		return engine.Effect{}, err
	}
	wantsTime := e.Kind != engine.EffectCountFailure
	mayRepeat := e.Kind == engine.EffectQuarantineChannel
	if e.Kind == engine.EffectNothing || timed != wantsTime || repeated && !mayRepeat {
		return engine.Effect{}, errMistyped
	}
	return e, nil
}

func readGates(v ast.Value) (engine.Gates, error) {
	var g engine.Gates
	err := eachName(v, func(name string, v ast.Value) error {
		mark, err := parsed(v, engine.ParseGateMark)
		switch name {
		case "failure_class":
			g.FailureClass = mark
		case "response_phase":
			g.ResponsePhase = mark
		case "idempotency":
			g.Idempotency = mark
		case "attempt_budget":
			g.AttemptBudget = mark
		default:
			return errMistyped
		}
		return err
	})
	return g, err
}

// eachName calls f for every member of an object.
func eachName(v ast.Value, f func(name string, v ast.Value) error) error {
	object, ok := v.(ast.Object)
	if !ok {
		return errMistyped
	}
	return object.Iter(func(k, v *ast.Term) error {
		name, ok := k.Value.(ast.String)
		if !ok {
			return errMistyped
		}
		if err := f(string(name), v.Value); err != nil {
			return fmt.Errorf("%s: %w", string(name), err)
		}
		return nil
	})
}

func parsed[T any](v ast.Value, parse func(string) (T, error)) (T, error) {
	s, ok := v.(ast.String)
	if !ok {
		var none T
		return none, errMistyped
	}
	t, err := parse(string(s))
	if err != nil {
		return t, errMistyped
	}
	return t, nil
}

func nonEmpty(v ast.Value) (string, error) {
	s, ok := v.(ast.String)
	if !ok || s == "" {
		return "", errMistyped
	}
	return string(s), nil
}

func readMillis(v ast.Value) (time.Duration, error) {
	n, err := readNumber(v)
	if err != nil || n > math.MaxInt64/int64(time.Millisecond) {
		return 0, errMistyped
	}
	return time.Duration(n) * time.Millisecond, nil
}

func readCount(v ast.Value) (int, error) {
	n, err := readNumber(v)
	if err != nil || n > math.MaxInt32 {
		return 0, errMistyped
	}
	return int(n), nil
}

// readNumber reads a whole number that isn't negative.
func readNumber(v ast.Value) (int64, error) {
	number, ok := v.(ast.Number)
	if !ok {
		return 0, errMistyped
	}
	n, whole := number.Int64()
	if !whole { // or written with a point or an exponent: 1.5e3
		const exact = 1 << 53 // from here on a float64 skips whole numbers
		f, ok := number.Float64()
		if !ok || f != math.Trunc(f) || math.Abs(f) >= exact {
			return 0, errMistyped
		}
		n = int64(f)
	}
	if n < 0 {
		return 0, errMistyped
	}
	return n, nil
}
