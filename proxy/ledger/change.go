package ledger

import (
	"encoding/json"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Change is one change of what may serve, by a hand or a reload: who made it, what it
// was about, and how that was before. It has no secret: keys appear by their names.
type Change struct {
	At     time.Time `json:"at"`
	Action string    `json:"action"` // "reset", "disable", "enable", "reload"
	By     string    `json:"by"`     // such as "admin_token"; never the token itself
	From   string    `json:"from,omitempty"`
	// What it was about. A name that was left empty stood for all.
	Kind     string `json:"kind,omitempty"`
	Group    string `json:"group,omitempty"`
	Channel  string `json:"channel,omitempty"`
	Provider string `json:"provider,omitempty"`
	Key      string `json:"key,omitempty"`
	Model    string `json:"model,omitempty"`
	// Until is when it ends by itself, nil if it doesn't.
	Until *time.Time `json:"until,omitempty"`
	// Before is what was set aside and isn't any more, or what the change has replaced.
	Before []Aside `json:"before"`
	// Generation is the configuration's that serves: 1 since the start, one more with
	// each reload.
	Generation int `json:"generation,omitempty"`
}

// Aside is one thing that is or was set aside.
type Aside struct {
	Kind     string     `json:"kind"` // as [engine.FactKind] names it
	Group    string     `json:"group,omitempty"`
	Channel  string     `json:"channel,omitempty"`
	Model    string     `json:"model,omitempty"`
	Provider string     `json:"provider,omitempty"`
	Key      string     `json:"key,omitempty"`
	Caller   string     `json:"caller,omitempty"` // for whom alone
	HalfOpen bool       `json:"half_open,omitempty"`
	Abroad   bool       `json:"abroad,omitempty"` // only another instance knows of it
	Until    *time.Time `json:"until,omitempty"`  // nil: until a hand ends it, or for a half-open breaker
}

// AsideOf takes over what people may see of an engine's aside.
func AsideOf(a engine.Aside) Aside {
	out := Aside{
		Kind: a.Kind.String(), Group: a.Group, Channel: a.Channel, Model: a.Model,
		Provider: a.Provider, Key: a.Key, Caller: a.Caller, HalfOpen: a.HalfOpen, Abroad: a.Abroad,
	}
	if !a.Until.IsZero() {
		until := a.Until.UTC()
		out.Until = &until
	}
	return out
}

// Changed keeps a change. It returns at once, and one is lost only with its whole batch,
// when the disk is out of order for long. The caller logs it, too.
func (s *Store) Changed(c Change) {
	if c.Before == nil {
		c.Before = []Aside{}
	}
	c.At = c.At.UTC()
	text, err := json.Marshal(c)
	if err != nil {
		panic("BUG: a change is no JSON: " + err.Error())
	}
	s.mu.Lock()
	b := s.pending
	first := b.empty()
	if !s.closed {
		s.lastChange = max(s.lastChange+1, c.At.UnixNano())
		b.changes = append(b.changes, changeRow{s.lastChange, string(text)})
	}
	s.mu.Unlock()
	if first {
		signal(s.begun)
	}
}
