package state

import (
	"maps"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestKeysNameFacts(t *testing.T) {
	t.Parallel()
	keys := newKeyspace("fg:")
	f := func(fact engine.Fact, want string) {
		t.Helper()
		if got := keys.fact(fact); got != want {
			t.Errorf("%+v: %s, want %s", fact, got, want)
		}
		if back, ok := keys.parseFact(want); !ok || back != fact {
			t.Errorf("%s is read as %+v, %v", want, back, ok)
		}
	}
	f(engine.Fact{Kind: engine.FactKeyCooled, Provider: "openai", Key: "main", KeyPrint: "0f"}, "fg:1:fact:key_cooled:openai:main:0f")
	f(engine.Fact{Kind: engine.FactChannelQuarantined, Group: "g", Channel: "c"}, "fg:1:fact:channel_quarantined:g:c")
	f(engine.Fact{Kind: engine.FactBreakerOpen, Group: "g", Channel: "c"}, "fg:1:fact:breaker_open:g:c")
	f(engine.Fact{Kind: engine.FactModelEvicted, Group: "g", Channel: "c", Model: "llama3:8b é"}, "fg:1:fact:model_evicted:g:c:llama3%3A8b+%C3%A9")
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"fg:", "a", "team/x-1:fg:"} {
		if err := checkPrefix(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a b", "fg*", "é", "{fg}", "0123456789012345678901234567890123456789012345678901234567890123456789"} {
		if checkPrefix(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func FuzzParseFact(f *testing.F) {
	keys := newKeyspace("fg:")
	f.Add("fg:1:fact:key_cooled:openai:main:0f")
	f.Add("fg:1:fact:model_evicted:g:c:llama3%3A8b+%C3%A9")
	f.Fuzz(func(t *testing.T, key string) {
		if fact, ok := keys.parseFact(key); ok && keys.fact(fact) != key {
			t.Errorf("%q is read as %+v, which is named %q", key, fact, keys.fact(fact))
		}
	})
}

func FuzzParseRateList(f *testing.F) {
	f.Add("5 group+g\n12 caller+team%2Fa\n")
	f.Add("5 x\n5 x\n")
	f.Fuzz(func(t *testing.T, text string) {
		rates, ok := parseRateList(text)
		if !ok {
			return
		}
		var again []byte
		for name, count := range rates {
			if count < 1 || count > maxRateCount || name == "" {
				t.Errorf("%q: a rate %q of %d", text, name, count)
			}
			again = appendRate(again, name, count)
		}
		if back, ok := parseRateList(string(again)); !ok || !maps.Equal(back, rates) {
			t.Errorf("%q is written as %q, which is read as %v", text, again, back)
		}
	})
}
