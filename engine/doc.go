// Package engine decides. It turns a judged request into a chain of channels, walks the
// chain attempt by attempt, and holds the interlocks against whatever a policy or a
// plugin says.
//
// It does no I/O: there is no socket, file, clock, timer or goroutine here. The time is
// an argument and chance is a [Rand], so that production, drills and property tests run
// the same code, the latter two in virtual time.
//
// A driver, such as package proxy, keeps this loop:
//
//	chain, refusal := catalog.Route(now(), standing, request, rnd)
//	call, ins := engine.Begin(now(), request, chain, standing, rnd)
//	for {
//		switch ins := ins.(type) {
//		case *engine.Send:      // call upstream; hold its first frames back
//			ledger.Opened(call.Record()) // before a byte goes out
//			ev = …                       // Held, Failed or Gone
//		case *engine.Classify:  // ask the provider's classifier
//		case *engine.Ask:       // ask the policy
//		case *engine.WaitUntil: // sleep, unless the caller goes
//		case *engine.Relay:     // pass the committed attempt on
//		case *engine.Finish:    // answer the caller if it has no answer yet
//			ledger.Closed(call.Record())
//			return
//		}
//		ins = call.Step(now(), ev)
//	}
//
// The driver owes the engine three things: it answers each instruction with one event;
// it reports [Gone] as soon as the caller has gone, after it has closed the attempt that
// ran; and it lets nothing of an attempt reach the caller before [Relay].
//
// A driver that lets a policy see replays before the first attempt calls
// [Standing.Recognise] before it asks. One that shares what it knows with other instances
// has each catalog adopted ([Standing.Adopt]), hands out what a [Sharer] gets, and feeds
// what it hears to [Standing.Learn] and [Standing.LearnRate]; nothing of that is on a
// request's way.
//
// Read words.go and endpoint.go for the vocabulary, call.go for instructions and events, state.go for
// what follows what, interlock.go for what always holds, standing.go for what is
// remembered between requests, and order.go for the strategies.
package engine
