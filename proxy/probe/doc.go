// Package probe looks at channels whose breaker is open, so that one which works again
// comes back before its time is over.
//
// It never touches a channel that is in use: only those of groups with a health check
// that [engine.Standing.OpenChannels] names. A look is a connection, with TLS where the
// provider wants it, and perhaps a GET without a credential and without a body, to which
// any answer below 500 is good. A look that went well is told to the standing, whose
// breaker then lets requests prove the channel; one that went badly changes nothing.
//
// Each look has a time limit, each channel one look at a time, and all together a bounded
// number, so that a large outage isn't followed by a storm of looks. The looks at one
// channel are an interval apart, a quarter more or less.
//
// cmd/fourgate runs it beside the proxy:
//
//	p, err := probe.New(probe.Options{Standing: standing, Catalog: server.Catalog, …})
//	go p.Run(ctx) // returns once ctx is done and no look is under way
package probe
