package engine

import (
	"math"
	"slices"
	"time"
)

// The prefixes of the names under which rates are counted and shared.
const (
	groupRatePrefix  = "group "
	callerRatePrefix = "caller "
)

// GroupRate is the name under which a group's rate is counted and shared.
func GroupRate(group string) string { return groupRatePrefix + group }

// CallerRate is the name under which a caller's rate is counted and shared.
func CallerRate(caller string) string { return callerRatePrefix + caller }

// minute is how many seconds a rate remembers.
const minute = 60

// rate counts the requests of the last minute, second by second. A rate of n requests a
// minute admits n in any minute and no more: after an idle minute all at once, because
// that is what the word says, or evenly, or anything between. (The generic cell rate
// algorithm would need a burst of its own, which either makes the minute longer than n
// or refuses the second of two requests that come together.) The oldest second is let go
// as a whole, so a minute is 59 to 60 seconds.
//
// Other instances' counts are an input that is told from time to time; nothing waits
// for it. So between two tellings all instances together may admit more than n: by what
// they admit in that time.
type rate struct {
	epoch    time.Time      // zero until the first request
	head     int64          // the newest second that has a slot, from epoch
	slots    [minute]uint32 // by second modulo 60
	used     int            // their sum
	others   int            // what other instances have admitted, as told
	otherEnd time.Time      // until when that counts
}

// second is how many whole seconds now is from the first request, and no less than the
// newest one: a clock that is set back changes nothing.
func (r *rate) second(now time.Time) int64 {
	return max(int64(now.Sub(r.epoch)/time.Second), r.head)
}

// usedAt is how many requests of the last minute there will be at a time that may lie
// ahead.
func (r *rate) usedAt(now time.Time) int {
	if r.epoch.IsZero() {
		return 0
	}
	gone := r.second(now) - r.head
	if gone >= minute {
		return 0
	}
	used := r.used
	for i := range gone {
		used -= int(r.slots[(r.head+1+i)%minute])
	}
	return used
}

func (r *rate) othersAt(now time.Time) int {
	if now.Before(r.otherEnd) {
		return r.others
	}
	return 0
}

// admits says whether one more request is within rpm, and otherwise how long to wait.
// It changes nothing.
func (r *rate) admits(now time.Time, rpm int) (time.Duration, bool) {
	if rpm <= 0 {
		return 0, true
	}
	used, others := r.usedAt(now), r.othersAt(now)
	if used+others < rpm {
		return 0, true
	}
	// The first second after which enough of our own have left, or else when the others'
	// count is no longer believed.
	over := used + others - rpm + 1
	for sec := max(r.second(now)-minute+1, 0); sec <= r.head; sec++ {
		if over -= int(r.slots[sec%minute]); over <= 0 {
			return r.epoch.Add(time.Duration(sec+minute) * time.Second).Sub(now), false
		}
	}
	return max(r.otherEnd.Sub(now), time.Second), false
}

// count counts a request that admits has allowed.
func (r *rate) count(now time.Time) {
	if r.epoch.IsZero() {
		r.epoch = now
	}
	sec := r.second(now)
	if sec-r.head >= minute {
		r.slots, r.used, r.head = [minute]uint32{}, 0, sec
	}
	for r.head < sec {
		r.head++
		r.used -= int(r.slots[r.head%minute])
		r.slots[r.head%minute] = 0
	}
	r.slots[sec%minute]++
	r.used++
}

// spentAtOnce is how many rates are read under one lock, some 0.2 ms of requests that wait.
const spentAtOnce = 256

// Spent calls f for each rate with the requests that this instance has admitted in the
// last minute, for a [Sharer] to publish: under the names that [GroupRate] and
// [CallerRate] give. Rates without any are left out. It takes no lock for long, and none
// while f runs.
func (s *Standing) Spent(now time.Time, f func(rate string, used int)) {
	type named struct {
		name string
		rate *rateState
		used int
	}
	s.mu.Lock()
	all := make([]named, 0, len(s.rates))
	for name, r := range s.rates {
		all = append(all, named{name: name, rate: r})
	}
	s.mu.Unlock()
	for some := range slices.Chunk(all, spentAtOnce) {
		s.mu.Lock()
		for i := range some {
			some[i].used = some[i].rate.usedAt(now)
		}
		s.mu.Unlock()
		for _, r := range some {
			if r.used > 0 {
				f(r.name, r.used)
			}
		}
	}
}

// LearnRate tells how many requests all other instances together have admitted within
// the last minute on a rate, and until when this counts. It replaces what was told
// before. A rate of which nothing was asked here yet is left alone: no limit is lost,
// because the next telling finds it.
func (s *Standing) LearnRate(rate string, others int, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rates[rate]; r != nil {
		r.others, r.otherEnd = min(max(others, 0), math.MaxInt32), until
	}
}
