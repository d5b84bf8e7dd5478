package state

import (
	"errors"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// version is of the keys and their values. Instances with another one share nothing with
// this one and don't disturb it.
const version = "1"

const (
	// maxFacts bounds how many facts of others are kept; it is more than any catalog has
	// channels and keys that fail at once.
	maxFacts = 10_000
	// maxInstances bounds how many other instances' rates are kept.
	maxInstances = 1000
	// maxKeyBytes is a little more than the longest key that names of a configuration can
	// make, each byte escaped.
	maxKeyBytes = 2048
	// maxIndexBytes bounds what is read of the index: ten times what its facts take with
	// names of an ordinary length.
	maxIndexBytes = 4 << 20
	// maxFactBytes bounds the value of a fact: an instance's name. Of this and of the next
	// one byte more is read, so that a longer value is known for one.
	maxFactBytes = 64
	// maxRatesBytes bounds the rates that one instance tells; 20,000 fit.
	maxRatesBytes = 1 << 20
	// maxRateCount is the largest rpm that a configuration may have.
	maxRateCount = 10_000_000
	// maxTTL is as long as a standing believes anything (30 days).
	maxTTL = 30 * 24 * time.Hour
)

// keyspace makes and reads the names of keys.
type keyspace struct {
	root  string // of all, "fg:1:"
	facts string
	rates string
	index string
}

func newKeyspace(prefix string) keyspace {
	root := prefix + version + ":"
	return keyspace{root: root, facts: root + "fact:", rates: root + "rates:", index: root + "index"}
}

// checkPrefix refuses what would be trouble in a pattern, an access list or a terminal.
func checkPrefix(prefix string) error {
	if prefix == "" || len(prefix) > 64 {
		return errors.New("the prefix of the shared state must have 1 to 64 characters, such as \"fg:\"")
	}
	for _, r := range prefix {
		if !isNameByte(r) && r != ':' && r != '/' {
			return errors.New("the prefix of the shared state may have letters, digits and . _ - : / only, such as \"fg:\"")
		}
	}
	return nil
}

// isNameByte says what the name of an instance consists of.
func isNameByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

func isInstance(s string) bool {
	return s != "" && len(s) <= maxFactBytes && strings.IndexFunc(s, func(r rune) bool { return !isNameByte(r) }) < 0
}

// fact names the key of a fact: its kind and its names, each escaped as in a query.
func (k keyspace) fact(f engine.Fact) string {
	var b strings.Builder
	b.WriteString(k.facts)
	b.WriteString(f.Kind.String())
	for _, name := range factNames(&f) {
		b.WriteByte(':')
		b.WriteString(url.QueryEscape(*name))
	}
	return b.String()
}

// factNames are the fields that tell facts of one kind apart, nil for what isn't shared.
func factNames(f *engine.Fact) []*string {
	switch f.Kind {
	case engine.FactKeyCooled:
		return []*string{&f.Provider, &f.Key, &f.KeyPrint}
	case engine.FactChannelQuarantined, engine.FactBreakerOpen:
		return []*string{&f.Group, &f.Channel}
	case engine.FactModelEvicted:
		return []*string{&f.Group, &f.Channel, &f.Model}
	}
	return nil
}

// parseFact reads the name of a fact's key. A fact has one name only: another spelling of
// it is refused.
func (k keyspace) parseFact(key string) (engine.Fact, bool) {
	rest, ok := strings.CutPrefix(key, k.facts)
	if !ok || len(key) > maxKeyBytes {
		return engine.Fact{}, false
	}
	kind, rest, ok := strings.Cut(rest, ":")
	if !ok {
		return engine.Fact{}, false
	}
	var f engine.Fact
	var err error
	if f.Kind, err = engine.ParseFactKind(kind); err != nil {
		return engine.Fact{}, false
	}
	names, fields := strings.Split(rest, ":"), factNames(&f)
	if len(names) != len(fields) {
		return engine.Fact{}, false
	}
	for i, field := range fields {
		if *field, err = url.QueryUnescape(names[i]); err != nil || *field == "" {
			return engine.Fact{}, false
		}
	}
	return f, k.fact(f) == key
}

// rateKey names the key of one instance's rates.
func (k keyspace) rateKey(instance string) string { return k.rates + instance }

// parseRates reads the name of a key of rates.
func (k keyspace) parseRates(key string) (instance string, ok bool) {
	instance, ok = strings.CutPrefix(key, k.rates)
	return instance, ok && isInstance(instance)
}

// appendRate adds a rate to the value of a key of rates: "COUNT NAME\n".
func appendRate(b []byte, name string, count int) []byte {
	b = strconv.AppendInt(b, int64(count), 10)
	b = append(b, ' ')
	b = append(b, url.QueryEscape(name)...)
	return append(b, '\n')
}

// parseRateList reads the value of a key of rates, all of it or nothing.
func parseRateList(text string) (map[string]int, bool) {
	rates := map[string]int{}
	for text != "" {
		line, rest, whole := strings.Cut(text, "\n")
		number, escaped, ok := strings.Cut(line, " ")
		count, err := strconv.Atoi(number)
		name, badName := url.QueryUnescape(escaped)
		if !whole || !ok || err != nil || badName != nil || name == "" || count < 1 || count > maxRateCount {
			return nil, false
		}
		if _, twice := rates[name]; twice {
			return nil, false
		}
		rates[name], text = count, rest
	}
	return rates, true
}

// lifeOf is how long a key has to live, from the backend's PTTL. A key without an end is
// none of ours.
func lifeOf(pttl int64) (time.Duration, bool) {
	if pttl < 0 {
		return 0, false
	}
	return time.Duration(min(pttl, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, true
}
