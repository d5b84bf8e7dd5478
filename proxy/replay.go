package proxy

import (
	"crypto/sha256"

	"github.com/fourgate-dev/fourgate/engine"
)

// recognise looks whether the request is a replay of one that has failed, before anything
// is decided about it. While nothing has failed no body is hashed.
func (x *exchange) recognise() {
	if s, now := x.server.around.Standing, x.now(); s.Replays(now) {
		x.identify()
		s.Recognise(now, &x.request)
	}
}

// remember sees to it that a request which fails is known by its body when it comes again.
func (x *exchange) remember(ev engine.Event) {
	switch ev := ev.(type) {
	case *engine.Failed, *engine.Gone:
		x.identify()
	case *engine.Ended:
		if ev.Broken != nil {
			x.identify()
		}
	}
}

// identify hashes the body. Where the path names the model and the kind of answer, they are
// as much a part of the request as in a body that names them.
func (x *exchange) identify() {
	if x.request.BodyHash != [sha256.Size]byte{} {
		return
	}
	x.request.BodyHash = sha256.Sum256(x.raw)
	if x.route.model == "" {
		return
	}
	b := append(make([]byte, 0, 128), x.request.BodyHash[:]...)
	kind := "whole "
	if x.route.stream {
		kind = "stream "
	}
	b = append(b, kind...)
	x.request.BodyHash = sha256.Sum256(append(b, x.route.model...))
}
