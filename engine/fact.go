package engine

import (
	"cmp"
	"encoding/hex"
	"time"
)

// FactKind is what a [Fact] says. The zero value says nothing.
type FactKind uint8

// The kinds of facts.
const (
	FactNothing FactKind = iota
	FactKeyCooled
	FactChannelQuarantined
	FactModelEvicted
	FactBreakerOpen
	FactChannelDisabled // by hand; it is never shared
)

var factKindNames = [...]string{"", "key_cooled", "channel_quarantined", "model_evicted", "breaker_open", "channel_disabled"}

func (k FactKind) String() string { return name(factKindNames[:], k) }

// ParseFactKind reads the kind of a fact.
func ParseFactKind(s string) (FactKind, error) {
	return parse[FactKind]("kind of fact", factKindNames[:], s)
}

// Fact is one thing that a standing knows and others may want to: something is set aside
// until a time, or is no longer. It names things and holds no secret.
type Fact struct {
	Kind           FactKind
	Group, Channel string // of all but FactKeyCooled
	Model          string // FactModelEvicted
	Provider, Key  string // FactKeyCooled
	// KeyPrint tells the secrets of one key's name apart, in hex. It is half a hash of
	// the secret, which can't be found from it.
	KeyPrint string
	// Until is when it ends by itself, the zero time if only a hand can end it.
	Until time.Time
	// Lifted says that it has ended; Until means nothing then.
	Lifted bool
}

// like says whether f is about what like names. An empty name in like fits all.
func (f *Fact) like(like *Fact) bool {
	fits := func(name, pattern string) bool { return pattern == "" || name == pattern }
	return (like.Kind == FactNothing || f.Kind == like.Kind) &&
		fits(f.Group, like.Group) && fits(f.Channel, like.Channel) && fits(f.Model, like.Model) &&
		fits(f.Provider, like.Provider) && fits(f.Key, like.Key) && fits(f.KeyPrint, like.KeyPrint)
}

func (f *Fact) compare(o *Fact) int {
	return cmp.Or(
		cmp.Compare(f.Kind, o.Kind), cmp.Compare(f.Group, o.Group), cmp.Compare(f.Channel, o.Channel),
		cmp.Compare(f.Model, o.Model), cmp.Compare(f.Provider, o.Provider), cmp.Compare(f.Key, o.Key), cmp.Compare(f.KeyPrint, o.KeyPrint),
	)
}

func (st *channelState) fact(kind FactKind, model string, until time.Time) Fact {
	return Fact{Kind: kind, Group: st.id.group, Channel: st.id.channel, Model: model, Until: until}
}

func (st *keyState) fact(until time.Time) Fact {
	return Fact{Kind: FactKeyCooled, Provider: st.id.provider, Key: st.id.key, KeyPrint: st.id.print.String(), Until: until}
}

// Sharer is told what a standing learns for itself, to tell other instances.
type Sharer interface {
	// Share must not block and must not call the standing: it runs on a request's way.
	// What it can't keep it drops; the fact ends by itself elsewhere or is told again.
	Share(f Fact)
}

// ShareWith has sh told from now on. Call it before the first request.
func (s *Standing) ShareWith(sh Sharer) { s.sharer = sh }

// tell tells others, without the lock.
func (s *Standing) tell(facts []Fact) {
	if s.sharer == nil {
		return
	}
	for _, f := range facts {
		s.sharer.Share(f)
	}
}

// Learn takes over what another instance has told. It is kept apart from what was seen
// here: it shapes the chains of new requests while it lasts, at most 30 days, and where
// it would leave a request no channel at all it is not believed. What is told of
// unknown names, or of a key with another secret, is dropped. It says whether anything
// has changed.
func (s *Standing) Learn(now time.Time, f Fact) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := f.Until
	if limit := now.Add(MaxSetAside); until.After(limit) {
		until = limit
	}
	if f.Kind == FactKeyCooled {
		if st := s.keys[keyID{f.Provider, f.Key, parsePrint(f.KeyPrint)}]; st != nil {
			st.stir(until)
			return learn(now, &st.cooling.abroad, until, f.Lifted)
		}
		return false
	}
	st := s.channels[channelID{f.Group, f.Channel}]
	if st == nil {
		return false
	}
	st.stir(until)
	switch f.Kind {
	case FactChannelQuarantined:
		return learn(now, &st.confined.abroad, until, f.Lifted)
	case FactBreakerOpen:
		return learn(now, &st.abroad, until, f.Lifted)
	case FactModelEvicted:
		gone, known := st.evictions[f.Model]
		if !known && !st.serves(f.Model) || !learn(now, &gone.abroad, until, f.Lifted) {
			return false
		}
		st.evict(f.Model, gone)
		return true
	}
	return false
}

// learn moves a time that was told. The latest of several instances' counts.
func learn(now time.Time, told *time.Time, until time.Time, lifted bool) bool {
	if lifted {
		was := now.Before(*told)
		*told = time.Time{}
		return was
	}
	if !until.After(*told) || !until.After(now) {
		return false
	}
	*told = until
	return true
}

// parsePrint reads a print; one that can't be read fits no key.
func parsePrint(s string) keyPrint {
	var p keyPrint
	if len(s) != hex.EncodedLen(len(p)) {
		return keyPrint{}
	}
	if _, err := hex.Decode(p[:], []byte(s)); err != nil {
		return keyPrint{}
	}
	return p
}

// Forget drops everything that other instances have told, as when they can't be heard
// any more.
func (s *Standing) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.channels {
		st.abroad, st.confined.abroad = time.Time{}, time.Time{}
		for model, gone := range st.evictions {
			gone.abroad = time.Time{}
			st.evictions[model] = gone
		}
	}
	for _, st := range s.keys {
		st.cooling.abroad = time.Time{}
	}
	for _, r := range s.rates {
		r.others, r.otherEnd = 0, time.Time{}
	}
}
