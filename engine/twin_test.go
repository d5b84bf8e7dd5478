package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// twinBreaker is a breaker written the dumb way: it keeps everything that ever happened
// and works the state out anew for each question.
type twinBreaker struct {
	spec   BreakerSpec
	events []twinEvent
}

type twinEvent struct {
	at      time.Time
	what    string // "permit", "success", "failure", "neutral"
	permit  int
	caller  string // of a failure
	epoch   int    // filled by replay
	isProbe bool
}

// replay runs all events and returns whether a permit would be given now.
func (t *twinBreaker) replay(now time.Time) (open bool) {
	epoch, failures, halfOpen, probing, probed, prober := 0, []*twinEvent{}, false, 0, 0, ""
	var openUntil time.Time
	reset := func() {
		epoch++
		failures, halfOpen, probing, probed, openUntil, prober = nil, false, 0, 0, time.Time{}, ""
	}
	given := map[int]*twinEvent{}
	for i := range t.events {
		e := &t.events[i]
		p := given[e.permit]
		live := p != nil && p.epoch == epoch
		switch e.what {
		case "permit":
			if !openUntil.IsZero() && !e.at.Before(openUntil) {
				last := prober
				reset()
				if halfOpen = t.spec.HalfOpenProbes > 0; halfOpen {
					prober = last
				}
			}
			e.epoch, e.isProbe = epoch, halfOpen
			if halfOpen {
				probing++
			}
			given[e.permit] = e
		case "neutral":
			if live && p.isProbe {
				probing--
			}
		case "commit":
			if !live || !p.isProbe {
				break
			}
			probing--
			if probed++; probed >= t.spec.HalfOpenProbes {
				reset()
			}
			p.epoch, p.isProbe = epoch, false
		case "success":
			if !live {
				break
			}
			if p.isProbe {
				probing--
				if probed++; probed >= t.spec.HalfOpenProbes {
					reset()
				}
			} else if t.spec.Mode == BreakerConsecutive {
				failures = nil
			}
		case "failure":
			if !live {
				break
			}
			if p.isProbe {
				if e.caller != "" && e.caller == prober {
					probing--
					break
				}
				reset()
				openUntil, prober = e.at.Add(t.spec.OpenFor), e.caller
				break
			}
			failures = append(failures, e)
			if t.opens(e.at, failures) {
				reset()
				openUntil = e.at.Add(t.spec.OpenFor)
			}
		}
	}
	if halfOpen {
		return probing+probed >= t.spec.HalfOpenProbes
	}
	return !openUntil.IsZero() && now.Before(openUntil)
}

// opens says whether these failures are enough: as many as the breaker wants, where one of
// several callers gives no more than half, and more than one has seen some.
func (t *twinBreaker) opens(now time.Time, failures []*twinEvent) bool {
	of := map[string]int{}
	for _, f := range failures {
		if t.spec.Mode == BreakerConsecutive || f.at.After(now.Add(-t.spec.Window)) {
			of[f.caller]++
		}
	}
	if n, only := of[""]; only {
		return n >= t.spec.Failures
	}
	sum := 0
	for _, n := range of {
		sum += min(n, (t.spec.Failures+1)/2)
	}
	return sum >= t.spec.Failures && len(of) > 1
}

func TestBreakerAgreesWithItsTwin(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 9))
		spec := BreakerSpec{
			Mode: BreakerWindow, Failures: 1 + r.IntN(5), Window: time.Duration(1+r.IntN(20)) * time.Second,
			OpenFor: time.Duration(1+r.IntN(10)) * time.Second, HalfOpenProbes: r.IntN(3),
		}
		if r.IntN(2) == 0 {
			spec.Mode = BreakerConsecutive
		}
		b, twin := &breaker{}, &twinBreaker{spec: spec}
		callers := []string{"x", "y", "z"}[:1+r.IntN(3)]
		if len(callers) == 1 {
			callers[0] = "" // the only one
		}
		now := time.Unix(1_800_000_000, 0)
		type outstanding struct {
			permit
			id int
		}
		var out []outstanding
		for step := range 60 {
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			admits, _ := b.admits(now, spec)
			if open := twin.replay(now); admits == open {
				t.Fatalf("seed %d step %d: the breaker admits %v, its twin is open %v; %+v", seed, step, admits, open, spec)
			}
			if admits && r.IntN(2) == 0 {
				out = append(out, outstanding{b.permit(now, spec), step})
				twin.events = append(twin.events, twinEvent{at: now, what: "permit", permit: step})
				continue
			}
			if len(out) == 0 {
				continue
			}
			i := r.IntN(len(out))
			p := out[i]
			out = append(out[:i], out[i+1:]...) // a permit reports once
			what := []string{"success", "failure", "failure", "neutral", "commit"}[r.IntN(5)]
			caller := callers[r.IntN(len(callers))]
			if what == "commit" { // a probe is good once its answer is committed, and goes on as any attempt
				left, _ := p.commit(spec)
				twin.events = append(twin.events, twinEvent{at: now, what: what, permit: p.id})
				out = append(out, outstanding{left, p.id})
				continue
			}
			twin.events = append(twin.events, twinEvent{at: now, what: what, permit: p.id, caller: caller})
			switch what {
			case "success":
				p.success(spec)
			case "failure":
				p.failure(now, spec, caller)
			default:
				p.neutral()
			}
		}
	}
}

// TestRetryBudgetAgreesWithItsTwin compares the bucket with a sum over its whole history.
func TestRetryBudgetAgreesWithItsTwin(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 10))
		c := RetryBudgetSpec{Ratio: r.Float64(), Floor: r.Float64(), Cap: 1 + 9*r.Float64()}
		s := NewStanding()
		now := time.Unix(1_800_000_000, 0)
		twin, last := c.Cap, now
		for step := range 40 {
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			twin, last = min(c.Cap, twin+now.Sub(last).Seconds()*c.Floor), now
			ahead := time.Duration(r.IntN(60)) * time.Second
			price := float64(1 + r.IntN(2))
			if got, want := s.affords(now.Add(ahead), bill{"g", nil, c, price}), min(c.Cap, twin+ahead.Seconds()*c.Floor) >= price-1e-9; got != want && !near(twin+ahead.Seconds()*c.Floor, price) {
				t.Fatalf("seed %d step %d: affords %v, want %v", seed, step, got, want)
			}
			switch r.IntN(3) {
			case 0:
				s.mu.Lock()
				s.earn(now, "g", nil, c)
				s.mu.Unlock()
				twin = min(c.Cap, twin+c.Ratio)
			case 1:
				got := s.pay(now, bill{"g", nil, c, price})
				if want := twin >= price; got != want && !near(twin, price) {
					t.Fatalf("seed %d step %d: pays %v with %g tokens for %g", seed, step, got, twin, price)
				}
				if got {
					twin -= price
				}
			}
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// TestBackoffAgreesWithItsTwin compares full jitter with its definition.
func TestBackoffAgreesWithItsTwin(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 11))
		base, most := time.Duration(r.IntN(1000))*time.Millisecond, time.Duration(1000+r.IntN(9000))*time.Millisecond
		n, x := r.IntN(12), r.Float64()
		p := &plan{budget: BudgetSpec{BackoffBase: base, BackoffMax: most}, tries: []uint8{uint8(n + 1)}}
		ceiling := float64(base)
		for range n {
			ceiling *= 2
		}
		want := time.Duration(x * min(ceiling, float64(most)))
		if got := p.backoff(0, fixed(x)); got != want {
			t.Fatalf("seed %d: got %v, want %v for base %v, max %v, n %d", seed, got, want, base, most, n)
		}
	}
}

type fixed float64

func (f fixed) Float64() float64 { return float64(f) }

// TestHalfOpenSurvivesAReload asks for fewer probes in the middle of the probing.
func TestHalfOpenSurvivesAReload(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, probes := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(probes), func(t *testing.T) {
			t.Parallel()
			spec := BreakerSpec{Mode: BreakerConsecutive, Failures: 1, OpenFor: time.Second, HalfOpenProbes: 3}
			b := &breaker{}
			b.permit(now, spec).failure(now, spec, "")
			later := now.Add(2 * time.Second)
			b.permit(later, spec).success(spec)
			b.permit(later, spec).success(spec)
			spec.HalfOpenProbes = probes
			if admits, _ := b.admits(later, spec); !admits {
				t.Fatal("the breaker is shut for good")
			}
			b.permit(later, spec).success(spec)
			if b.halfOpen {
				t.Error("the breaker is still half open")
			}
		})
	}
}
