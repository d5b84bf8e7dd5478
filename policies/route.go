package policies

import (
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fourgate-dev/fourgate/engine"
)

// HasRoute says whether the policy has a rule data.fourgate.route. Without one there is
// nothing to ask before the first attempt.
func (s *Set) HasRoute() bool { return s.program != nil && s.route != nil }

// Route answers before the first attempt, and remembers as [Set.Decide] does. No rule
// that holds is no fault: it leaves the chain as it is.
func (s *Set) Route(q *engine.RouteQuestion) engine.RouteAnswer {
	if !s.HasRoute() {
		return engine.RouteAnswer{}
	}
	if s.routes == nil {
		return s.choose(q)
	}
	var space [512]byte
	key := s.route.reads.appendKey(space[:0], q, s.route.reads.on(q.Now, s.location))
	if a, ok := s.routes.recall(key); ok {
		return a
	}
	a := s.choose(q)
	if a.Fault == "" {
		s.routes.keep(key, a)
	}
	return a
}

func (s *Set) choose(q *engine.RouteQuestion) engine.RouteAnswer {
	e := s.route
	r := s.ask(e.query, e.reads.input(q, e.reads.on(q.Now, s.location), s.params), &e.places)
	switch {
	case r.fault != "":
		return engine.RouteAnswer{Fault: r.fault, Rule: r.rule, Why: e.reads.because(r.err)}
	case r.value == nil:
		return engine.RouteAnswer{}
	}
	a, err := readRouteAnswer(r.value)
	if err != nil {
		return engine.RouteAnswer{Fault: faultMistyped, Rule: r.rule, Why: e.reads.because(err)}
	}
	a.Rule = r.rule
	return a
}

// maxChannels bounds the channels of one answer; a chain has some tens at most.
const maxChannels = 1024

// readRouteAnswer reads the value of the route entry point as strictly as readAnswer.
// An object without members is an opinion, too: that nothing is to change.
func readRouteAnswer(v ast.Value) (engine.RouteAnswer, error) {
	var a engine.RouteAnswer
	var changes, reasoned bool
	err := eachName(v, func(name string, v ast.Value) (err error) {
		changes = changes || name != "reason"
		switch name {
		case "channels":
			a.Picked = true
			a.Channels, err = readChannels(v)
		case "attempts":
			a.Attempts, err = readLimit(v)
		case "per_route":
			a.PerRoute, err = readLimit(v)
		case "deadline_ms":
			a.Deadline, err = readMillis(v)
			if err == nil && a.Deadline < time.Millisecond {
				err = notIn(v, "a whole number of milliseconds, 1 or more")
			}
		case "reason":
			reasoned = true
			a.Reason, err = readReason(v)
		default:
			err = notAMember(name, "channels", "attempts", "per_route", "deadline_ms", "reason")
		}
		return err
	})
	if err == nil && changes && !reasoned {
		err = missing("reason", "")
	}
	if err != nil {
		return engine.RouteAnswer{}, err
	}
	return a, nil
}

// readChannels reads an ordered list of names, each of them once. A set has no order
// that anybody meant.
func readChannels(v ast.Value) ([]string, error) {
	list, ok := v.(*ast.Array)
	switch {
	case !ok:
		return nil, notOfType(v, "a list of names of channels")
	case list.Len() > maxChannels:
		return nil, notIn(v, fmt.Sprintf("at most %d names", maxChannels))
	}
	names := make([]string, 0, list.Len())
	seen := make(map[string]bool, list.Len())
	err := list.Iter(func(t *ast.Term) error {
		name, err := readName(t.Value)
		if err == nil && seen[name] {
			err = &mistyped{twice, ": " + quoted(name) + "; write each channel once"}
		}
		seen[name] = true
		names = append(names, name)
		return err
	})
	return names, err
}

// readLimit reads a count that leaves at least one.
func readLimit(v ast.Value) (int, error) {
	n, err := readCount(v)
	if err == nil && n < 1 {
		err = notIn(v, "a whole number, 1 or more")
	}
	return n, err
}
