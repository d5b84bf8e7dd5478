package state

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/fourgate-dev/fourgate/engine"
)

// putScript writes a value (ARGV[1]) that lives for ARGV[2] ms at KEYS[1], unless one that
// lives as long is there and ARGV[3] is "later". KEYS[2] is the index: the keys by when
// they end, in the backend's own time. An index that is none is made anew. A value that
// would live less than 50 ms longer isn't written again: many requests find the same at
// once, each with its own end. The index lives as long as any fact may
// ([engine.MaxSetAside], 30 days, here in ms).
const putScript = `
local ttl, left = tonumber(ARGV[2]), redis.call('PTTL', KEYS[1])
local written = 0
if ARGV[3] ~= 'later' or left + 50 < ttl then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ttl)
  left, written = ttl, 1
end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.pcall('ZADD', KEYS[2], now + left, KEYS[1])
if type(r) == 'table' and r.err then
  redis.call('DEL', KEYS[2])
  redis.call('ZADD', KEYS[2], now + left, KEYS[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('PEXPIRE', KEYS[2], 2592000000)
return written`

// liftScript deletes KEYS[1] if this instance (ARGV[1]) has told it.
const liftScript = `
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.pcall('ZREM', KEYS[2], KEYS[1])
  return 1
end
return 0`

// tell carries what is in the box to the backend, and everything if something didn't fit.
func (x *session) tell(ctx context.Context) error {
	waiting, lost := x.box.take()
	err := x.carry(ctx, waiting)
	if err != nil {
		x.box.putBack(waiting)
		return err
	}
	if lost {
		return x.tellAll(ctx)
	}
	return nil
}

// tellAll tells everything that is set aside for what was seen here.
func (x *session) tellAll(ctx context.Context) error {
	own := map[engine.Fact]notice{}
	for _, fact := range x.options.Standing.Told(x.options.Clock()) {
		if x.shares(fact.Kind) {
			f, n := split(fact)
			own[f] = n
		}
	}
	return x.carry(ctx, own)
}

// carry tells facts to the backend, many at once.
func (x *session) carry(ctx context.Context, facts map[engine.Fact]notice) error {
	now := x.options.Clock()
	var cmds []rueidis.Completed
	for f, n := range facts {
		key := x.keys.fact(f)
		switch life := n.until.Sub(now); {
		case n.lifted:
			cmds = append(cmds, x.client.B().Eval().Script(liftScript).Numkeys(2).Key(key, x.keys.index).Arg(x.instance).Build())
		case life >= time.Millisecond:
			cmds = append(cmds, x.put(key, x.instance, min(life, maxTTL), "later"))
		default:
			continue // it is over
		}
		x.metrics.facts.WithLabelValues("told", f.Kind.String()).Inc()
	}
	for some := range slices.Chunk(cmds, batch) {
		if _, err := x.exchange(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (x *session) put(key, value string, life time.Duration, mode string) rueidis.Completed {
	return x.client.B().Eval().Script(putScript).Numkeys(2).Key(key, x.keys.index).
		Arg(value, strconv.FormatInt(life.Milliseconds(), 10), mode).Build()
}

// ratesLife is how long what an instance has admitted counts after it was told last: an
// instance that has ended has admitted it all the same.
const ratesLife = time.Minute

// teller tells how much of this instance's rates is used.
type teller struct {
	said string    // as told last
	at   time.Time // when it was
}

// tellRates tells what this instance has admitted in the last minute, if it has changed.
func (x *session) tellRates(ctx context.Context, again bool) error {
	now := x.options.Clock()
	// A long list is told less often: that of 10,000 active callers about twice a second.
	pause := time.Duration(1+len(x.rates.said)/(64<<10)) * ratesEvery
	if !again && now.Sub(x.rates.at) < pause && !now.Before(x.rates.at) {
		return nil
	}
	text, cut := rateList(x.options.Standing, now)
	if cut {
		x.metrics.errors.WithLabelValues("rates_cut").Inc()
	}
	if text == x.rates.said && !again && (text == "" || now.Sub(x.rates.at) < ratesLife/2) {
		return nil
	}
	x.rates = teller{text, now}
	key := x.keys.rateKey(x.instance)
	cmd := x.put(key, text, ratesLife, "always")
	if text == "" {
		cmd = x.client.B().Del().Key(key).Build()
	}
	_, err := x.exchange(ctx, []rueidis.Completed{cmd})
	return err
}

// rateList is the value of the key of this instance's rates. It is cut at the most that
// others read.
func rateList(standing *engine.Standing, now time.Time) (text string, cut bool) {
	var lines []string
	standing.Spent(now, func(rate string, used int) {
		lines = append(lines, string(appendRate(nil, rate, min(used, maxRateCount))))
	})
	slices.Sort(lines) // equal lists are equal texts
	text = strings.Join(lines, "")
	if len(text) <= maxRatesBytes {
		return text, false
	}
	return text[:strings.LastIndexByte(text[:maxRatesBytes], '\n')+1], true
}

var _ engine.Sharer = (*Shared)(nil)
