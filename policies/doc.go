// Package policies answers what to do about a failed attempt, with Rego.
//
// It holds the default policy (decision.rego, the four gates below gates, blame.rego,
// knobs.rego), each beside its tests, and the [Set]: a compiled policy that implements
// [engine.Policy]. The command that puts the product together loads a set and hands it
// to the proxy; tools that explain or compare policies load several.
//
// A set is a pure function of the question. Its policy can't reach outside, read a
// clock or draw a random number: builtins that could are refused when it is loaded.
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
