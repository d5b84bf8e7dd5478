// Package proxy serves callers: it takes their requests over HTTP, does what the engine
// says about them, and relays one upstream's answer byte for byte.
//
// A request reads from top to bottom:
//
//	server.go    serve: one request, in this order
//	framing.go   the head, strictly: no two readers may differ about where it ends
//	admit.go     method, caller, body, judgement of the body, chain
//	drive.go     the call: what the engine says is done, what came of it is told
//	attempt.go   one upstream call, its answer held back until it is one; evidence.go: how it failed
//	relay.go     the answer to the caller, whole; stream.go: as it comes
//	errors.go    an error of ours, in the caller's protocol: openai.go, anthropic.go, gemini.go
//
// It never decides what follows a failure: the [engine.Call] does, with the policy's
// answer. It never translates a request, retries by itself, changes a byte of a body but
// for a declared model name, passes a caller's credential upstream or a provider's to a
// caller, or touches fasthttp's request context after the handler has returned.
//
// cmd/fourgate puts it together and runs it:
//
//	server, err := proxy.New(proxy.Settings{}, proxy.Parts{
//		Catalog: catalog, Policy: policies, Classifiers: classifiers,
//	}, proxy.Around{
//		Standing: engine.NewStanding(), Ledger: ledger, Client: upstream.New(upstream.Options{MaxIdle: 64}),
//		Rand: random, Logger: logger, Registry: registry,
//	})
//	…
//	go server.Serve(listener)
//	…
//	server.Swap(newParts)       // a reload: requests in flight keep the old ones
//	…
//	server.Shutdown(drainLimit) // stop accepting, let requests end, then cancel them
//
// # What clients that retry by themselves are told
//
// An error after attempts is final and carries X-Should-Retry: false, which official
// SDKs obey; so does an upstream's own error that passes unchanged, without its
// Retry-After. If the gateway itself knows when a channel is free again, its 429 or 503
// says so in Retry-After beside it. A refusal that cost no upstream call (a rate, no
// free channel) whose wait is at most a minute invites them back instead: Retry-After,
// Retry-After-Ms and no X-Should-Retry. Whole answers carry X-Should-Retry: false too,
// for a client that would replay a 200 whose body it lost. SDKs that read none of it are
// known by their bodies (replay.go): the engine has them pay for what they repeat.
//
// # A caller that leaves
//
// The watch over the caller's connection cancels the running attempt or wakes the
// backoff, and the call ends. A caller that only closes its sending side looks the same.
//
// # Streams
//
// fasthttp runs the relay on the handler's goroutine after the handler has returned. An
// exchange so belongs to one goroutine from start to end; only its leaving is shared.
package proxy
