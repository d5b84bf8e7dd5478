package policies

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fourgate-dev/fourgate/engine"
)

// routeFields returns the whole input of a route question but for params. What it has in
// common with a decision's has the same name.
func routeFields() []field[engine.RouteQuestion] {
	list := []field[engine.RouteQuestion]{
		text(func(q *engine.RouteQuestion) string { return q.RequestID }, "request", "id"),
		text(func(q *engine.RouteQuestion) string { return q.Caller }, "request", "caller"),
		word(func(q *engine.RouteQuestion) engine.Endpoint { return q.Contract.Endpoint }, "request", "endpoint"),
		text(func(q *engine.RouteQuestion) string { return q.Contract.Model }, "request", "model"),
		flag(func(q *engine.RouteQuestion) bool { return q.Stream }, "request", "stream"),
		flag(func(q *engine.RouteQuestion) bool { return q.Tools }, "request", "tools"),
		number(func(q *engine.RouteQuestion) int64 { return int64(q.SDKRetry) }, "request", "sdk_retry"),
		idempotencyKey(func(q *engine.RouteQuestion) string { return q.Idempotency.Key }, "request", "idempotency", "key"),
		flag(func(q *engine.RouteQuestion) bool { return q.Idempotency.ReplaySafe }, "request", "idempotency", "replay_safe"),
		word(func(q *engine.RouteQuestion) engine.Effects { return q.Idempotency.Effects }, "request", "idempotency", "effects"),

		text(func(q *engine.RouteQuestion) string { return q.Group }, "group"),
		{
			path: []string{"channels"},
			key: func(b []byte, q *engine.RouteQuestion, _ time.Time) []byte {
				b = binary.AppendUvarint(b, uint64(len(q.Channels)))
				for i := range q.Channels {
					b = appendChannel(b, &q.Channels[i])
				}
				return b
			},
			value: func(q *engine.RouteQuestion, _ time.Time) *ast.Term {
				terms := make([]*ast.Term, len(q.Channels))
				for i := range q.Channels {
					terms[i] = channelTerm(&q.Channels[i])
				}
				return ast.ArrayTerm(terms...)
			},
		},

		number(func(q *engine.RouteQuestion) int64 { return int64(q.Attempts) }, "budget", "attempts"),
		number(func(q *engine.RouteQuestion) int64 { return int64(q.PerRoute) }, "budget", "per_route"),
		millis(func(q *engine.RouteQuestion) time.Duration { return q.Deadline }, "budget", "deadline_ms"),
	}
	return append(list, clockFields[engine.RouteQuestion]()...)
}

// appendChannel writes the labels in any fixed order: sorted, unless there are none or
// one, which needs no list.
func appendChannel(b []byte, c *engine.RouteChannel) []byte {
	b = appendText(appendText(appendText(b, c.Name), c.Group), c.Provider)
	b = binary.AppendUvarint(b, uint64(len(c.Labels)))
	if len(c.Labels) < 2 {
		for name, value := range c.Labels {
			b = appendText(appendText(b, name), value)
		}
	} else {
		for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
			b = appendText(appendText(b, name), c.Labels[name])
		}
	}
	return appendCost(b, c.Cost)
}

// A channel's cost is null without prices, and a price null that isn't given.
func appendCost(b []byte, c engine.Cost) []byte {
	if !c.Given {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.Input))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.Output))
	if !c.CachedInputGiven {
		return append(b, 0)
	}
	return binary.BigEndian.AppendUint64(append(b, 1), math.Float64bits(c.CachedInput))
}

func channelTerm(c *engine.RouteChannel) *ast.Term {
	labels := ast.NewObject()
	for name, value := range c.Labels {
		labels.Insert(ast.StringTerm(name), ast.StringTerm(value))
	}
	return ast.ObjectTerm(
		ast.Item(ast.InternedTerm("name"), ast.StringTerm(c.Name)),
		ast.Item(ast.InternedTerm("group"), ast.StringTerm(c.Group)),
		ast.Item(ast.InternedTerm("provider"), ast.StringTerm(c.Provider)),
		ast.Item(ast.InternedTerm("labels"), ast.NewTerm(labels)),
		ast.Item(ast.InternedTerm("cost"), costTerm(c.Cost)),
	)
}

func costTerm(c engine.Cost) *ast.Term {
	if !c.Given {
		return ast.NullTerm()
	}
	cached := ast.NullTerm()
	if c.CachedInputGiven {
		cached = ast.FloatNumberTerm(c.CachedInput)
	}
	return ast.ObjectTerm(
		ast.Item(ast.InternedTerm("input"), ast.FloatNumberTerm(c.Input)),
		ast.Item(ast.InternedTerm("output"), ast.FloatNumberTerm(c.Output)),
		ast.Item(ast.InternedTerm("cached_input"), cached),
	)
}
