// Package policies answers what to do about a failed attempt, with Rego.
//
// It holds the default policy (decision.rego, the four gates below gates, blame.rego,
// knobs.rego), the profiles that may stand in its place, each beside its tests, and the
// [Set]: a compiled policy that implements [engine.Policy] and [engine.RoutePolicy]. The
// command that puts the product together loads a set for each group by one [Loader], and
// hands it to the proxy; tools that explain or compare policies load several.
//
// A set is a pure function of the question. Its policy can't reach outside, read a
// clock or draw a random number: builtins that could are refused when it is loaded, and
// so is what would outgrow time, memory or stack inside one step, where no time limit is
// looked at (shape.go, weight.go). The question's own time is a fact, input.clock.
// An answer that is missing, contradictory, mistyped or late aborts and says so in
// [engine.Decision.Fault]; it never becomes a panic or a guess. The package doesn't act
// on answers, sleep, log or count, and the engine's interlocks hold whatever it says.
//
//	set, err := policies.Load(ctx, policies.Options{Paths: []string{"policies"}})
//	if err != nil {
//		return err // a *LoadError lists every problem with its place
//	}
//	decision := set.Decide(&question)
package policies
