package state

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// heard is what other instances have told, as far as it counts here.
type heard struct {
	facts map[string]time.Time     // until when, by key
	rates map[string]instanceRates // by instance
}

// instanceRates are what one other instance has admitted in the last minute.
type instanceRates struct {
	used  map[string]int
	until time.Time
}

func newHeard() heard {
	return heard{facts: map[string]time.Time{}, rates: map[string]instanceRates{}}
}

// sameEnd is how much two readings of one key may differ by the time that they took.
const sameEnd = time.Second

// indexScript returns the first ARGV[1] names of the index KEYS[1], up to ARGV[3] bytes
// altogether and without those of more than ARGV[2]. What others have put there must not be
// more than a connection takes: it would be lost each time anew.
const indexScript = `
local names = redis.pcall('ZRANGE', KEYS[1], 0, ARGV[1] - 1)
if names.err then return names end
local kept, bytes = {}, 0
for _, name in ipairs(names) do
  if #name <= tonumber(ARGV[2]) and bytes + #name <= tonumber(ARGV[3]) then
    kept[#kept + 1] = name
    bytes = bytes + #name
  end
end
return kept`

// sweep reads everything that the index names. With all it reads also what was heard
// before and isn't named any more: that has been lifted, or its backend has forgotten it.
func (x *session) sweep(ctx context.Context, all bool) error {
	cmd := x.client.B().Eval().Script(indexScript).Numkeys(1).Key(x.keys.index).
		Arg(strconv.Itoa(maxFacts), strconv.Itoa(maxKeyBytes), strconv.Itoa(maxIndexBytes)).Build()
	answers, err := x.exchange(ctx, []rueidis.Completed{cmd})
	if err != nil {
		return err
	}
	named, err := answers[0].AsStrSlice()
	if err != nil && !rueidis.IsRedisNil(err) {
		x.unbelievable() // another thing is at the index's place; the next one that tells mends it
	}
	keys := map[string]struct{}{}
	for _, key := range named {
		keys[key] = struct{}{}
	}
	if all {
		for key := range x.heard.facts {
			keys[key] = struct{}{}
		}
		for instance := range x.heard.rates {
			keys[x.keys.rateKey(instance)] = struct{}{}
		}
	}
	list := make([]string, 0, len(keys))
	for key := range keys {
		list = append(list, key)
	}
	return x.read(ctx, list)
}

// learnAgain has the standing learn everything once more, which may have forgotten some of
// it with names that came back.
func (x *session) learnAgain(ctx context.Context) error {
	for key := range x.heard.facts {
		x.heard.facts[key] = time.Time{}
	}
	return x.sweep(ctx, true)
}

// unbelievable counts a value that can't be believed.
func (x *session) unbelievable() { x.metrics.errors.WithLabelValues("value").Inc() }

// read reads keys again and learns what they say.
func (x *session) read(ctx context.Context, keys []string) error {
	const perKey = 2
	ratesToo := false
	for len(keys) > 0 {
		var cmds []rueidis.Completed
		var some []string
		for len(keys) > 0 && len(some) < batch/perKey {
			key := keys[0]
			keys = keys[1:]
			limit := int64(maxFactBytes)
			if instance, ok := x.keys.parseRates(key); ok {
				if instance == x.instance {
					continue
				}
				limit, ratesToo = maxRatesBytes, true
			} else if key == x.keys.index || !strings.HasPrefix(key, x.keys.root) {
				continue
			} else if _, ok := x.keys.parseFact(key); !ok {
				x.unbelievable()
				continue
			}
			some = append(some, key)
			cmds = append(cmds, x.client.B().Getrange().Key(key).Start(0).End(limit).Build(), x.client.B().Pttl().Key(key).Build())
			if limit == maxRatesBytes {
				break // one long answer at a time
			}
		}
		if len(cmds) == 0 {
			continue
		}
		answers, err := x.exchange(ctx, cmds)
		if err != nil {
			return err
		}
		for i, key := range some {
			x.learn(key, answers[perKey*i], answers[perKey*i+1])
		}
	}
	if ratesToo {
		x.learnRates()
	}
	return nil
}

// learn takes over what one key says. What can't be believed counts as if it weren't
// there.
func (x *session) learn(key string, value, pttl rueidis.RedisResult) {
	text, err := value.ToString()
	ms, noTTL := pttl.AsInt64()
	life, lives := lifeOf(ms)
	gone := err == nil && noTTL == nil && ms == -2 // a backend's word for a key that isn't there
	good := err == nil && noTTL == nil && lives
	if instance, ok := x.keys.parseRates(key); ok {
		x.learnInstance(instance, text, life, good, gone)
		return
	}
	f, _ := x.keys.parseFact(key)
	if good && text == x.instance {
		good, gone = false, true // nothing of others; this is what we said ourselves
	}
	if good && !isInstance(text) {
		good = false
	}
	if !good && !gone {
		x.unbelievable()
	}
	if !x.shares(f.Kind) {
		return
	}
	now := x.options.Clock()
	until := now.Add(min(life, maxTTL))
	was, known := x.heard.facts[key]
	if known && (!good || until.Before(was.Add(-sameEnd))) {
		lifted := f
		lifted.Lifted = true
		x.options.Standing.Learn(now, lifted)
		delete(x.heard.facts, key)
		x.metrics.facts.WithLabelValues("heard", f.Kind.String()).Inc()
		known = false
	}
	if !good || !known && len(x.heard.facts) >= maxFacts {
		return
	}
	if known && until.Before(was.Add(sameEnd)) {
		return
	}
	f.Until = until
	changed := x.options.Standing.Learn(now, f)
	if changed {
		x.metrics.facts.WithLabelValues("heard", f.Kind.String()).Inc()
	}
	if changed || known {
		x.heard.facts[key] = until
	}
}

// learnInstance takes over the rates of another instance.
func (x *session) learnInstance(instance, text string, life time.Duration, good, gone bool) {
	if good && len(text) <= maxRatesBytes {
		used, ok := parseRateList(text)
		if limits := x.limits.Load(); limits != nil {
			for rate, count := range used {
				switch limit := (*limits)[rate]; {
				case limit <= 0:
					delete(used, rate) // of a name that has no rate here; there may be any number
				case count > limit:
					delete(used, rate) // a lie, or from before the limit was lowered
					x.unbelievable()
				}
			}
		}
		if _, known := x.heard.rates[instance]; ok && (known || len(x.heard.rates) < maxInstances) {
			x.heard.rates[instance] = instanceRates{used, x.options.Clock().Add(min(life, ratesLife))}
			return
		}
	}
	if !gone {
		x.unbelievable()
	}
	delete(x.heard.rates, instance)
}

// ratesBelieved is for how long the others' rates count without being told again: what is
// told is told each [ratesEvery] while the backend can be used.
const ratesBelieved = 5 * time.Second

// learnRates tells the standing what all other instances together have admitted.
func (x *session) learnRates() {
	now := x.options.Clock()
	sums := map[string]int{}
	for instance, r := range x.heard.rates {
		if !now.Before(r.until) {
			delete(x.heard.rates, instance)
			continue
		}
		for rate, used := range r.used {
			sums[rate] += used
		}
	}
	was := x.told.Swap(&sums)
	if was == nil {
		was = &map[string]int{}
	}
	for rate := range *was {
		if _, still := sums[rate]; !still {
			x.options.Standing.LearnRate(rate, 0, now)
		}
	}
	for rate, used := range sums {
		x.options.Standing.LearnRate(rate, used, now.Add(ratesBelieved))
	}
}

// isWrongType recognises the answer about a key that holds something else.
func isWrongType(text string) bool { return strings.HasPrefix(text, "WRONGTYPE") }
