// Package sim is a simulated AI provider whose faults are scripted. It stands behind
// "fourgate sim", the demo, the drills and the end-to-end tests.
//
// One listener serves many channels. The first element of a request's path names the
// channel, and what follows is a provider's own path:
//
//	http://ADDR/east/v1/chat/completions
//	http://ADDR/west/v1/messages
//
// Each channel follows its own script: one [Fault] a request. The simulator writes
// HTTP/1.1 to the socket itself, so that a fault happens at an exact byte: a FIN or a
// RST in the middle of a stream, silence, a chunk size that is none. It answers as the
// real providers do in shape (error bodies, opening frames, usage in the last frames),
// and always with the same bytes for the same request and script.
//
// It keeps what arrived, byte for byte, and whether the peer left before the answer was
// whole, so that a test counts upstream calls and cancellations at the socket.
//
// It never judges a request: no schema is checked and no model is refused, unless the
// script says so.
//
//	s, err := sim.Start(sim.Options{})
//	if err != nil { … }
//	defer s.Close()
//	script, err := sim.ParseScript("status=503, cut after=3, ok")
//	if err != nil { … }
//	s.Channel("east").Script(script...)
//	// point a client at s.URL("east") + "/v1", then:
//	seen := s.Requests("east")
package sim
