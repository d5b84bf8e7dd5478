package engine

import (
	"fmt"
	"time"
)

// maxReason bounds a reason so that a plugin or a policy can't fill the ledger.
const maxReason = 64

// Reason is a stable snake_case word that says why. Its zero value says nothing.
type Reason struct{ text string }

// ParseReason accepts 1 to 64 bytes of lower-case letters, digits and underscores.
func ParseReason(s string) (Reason, error) {
	if len(s) == 0 || len(s) > maxReason {
		return Reason{}, fmt.Errorf("cannot read reason: it has %d bytes; use 1 to %d", len(s), maxReason)
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return Reason{}, fmt.Errorf("cannot read reason: use lower-case letters, digits and underscores")
		}
	}
	return Reason{s}, nil
}

func (r Reason) String() string { return r.text }

// Secret is a credential. Every formatter prints three stars; only [Secret.Reveal],
// which the upstream transport calls, gives the text.
type Secret struct{ text string }

// NewSecret wraps a credential.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the credential itself.
func (s Secret) Reveal() string { return s.text }

// Empty says whether there is no credential.
func (s Secret) Empty() bool { return s.text == "" }

func (s Secret) String() string { return "***" }

// GoString keeps %#v from printing the credential.
func (s Secret) GoString() string { return "***" }

// Format keeps every verb from printing the credential.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("***")) }

// MarshalText keeps encoders from writing the credential.
func (s Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Wait is an optional duration: a retry-after that was given or not. The zero value
// is "not given", which differs from a wait of zero.
type Wait struct {
	d     time.Duration
	given bool
}

// WaitOf makes a given wait; a negative one counts as zero.
func WaitOf(d time.Duration) Wait { return Wait{max(d, 0), true} }

// Get returns the wait and whether it was given.
func (w Wait) Get() (time.Duration, bool) { return w.d, w.given }

// Tokens is a number of tokens that may be unknown, which is never the same as zero.
type Tokens struct {
	n     int64
	known bool
}

// TokensOf makes a known number of tokens.
func TokensOf(n int64) Tokens { return Tokens{n, true} }

// Get returns the number and whether it is known.
func (t Tokens) Get() (int64, bool) { return t.n, t.known }

// Usage is what an upstream said it has used.
type Usage struct {
	Input       Tokens
	Output      Tokens
	CachedInput Tokens
}
