// Package plugins runs failure classifiers: small WebAssembly modules that look at one
// failed attempt and say what it was.
//
// A [Host] compiles a module once. Every classification finds an instance in its first
// state, newly made or put back byte for byte, so that nothing is remembered from one
// failure to the next and the same evidence gets the same verdict. A module has no clock,
// no files, no network and no randomness; it sees the failure only through the functions
// of the import module "fourgate", listed in abi.go and explained in docs/plugins.md. The
// searching, the JSON and the durations are on the host's side of that border: guests
// stay small and their loops short.
//
// Whatever a module does, it can't hurt the proxy. What it could do wrong is checked
// before it is compiled (imports, exports, sizes, and how long it may run between two
// looks at its deadline); what it does wrong while it runs ends in an unknown verdict
// with a fault.
//
// The package never decides what happens to a request and never keeps a byte of an
// answer. cmd/fourgate opens the host and hands its classifiers to the proxy:
//
//	host, err := plugins.Open(ctx, plugins.Options{})
//	if err != nil { … }
//	defer host.Close(ctx)
//	openai, err := host.Load(ctx, plugins.Module{Name: "openai", Source: "builtin:openai"})
//	if err != nil { … }
//	verdict := openai.Classify(evidence)
package plugins
