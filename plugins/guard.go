package plugins

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// When a classifier that misbehaves is set aside, and for how long.
const (
	// asideFaults within asideWindow set a classifier aside. One fault can be an odd
	// failure, and two a pair of attempts at it; three are the module.
	asideFaults = 3
	asideWindow = time.Minute
	// asideFor is the time until one classification is tried again: a module that always
	// runs into its limit then costs two of them in half a minute.
	asideFor = 30 * time.Second
)

// guard sets a classifier aside that misbehaves, so that it costs no more time and its
// faults no more log. Its methods are safe for many goroutines.
type guard struct {
	name   string
	now    func() time.Time
	logger *slog.Logger
	count  func() // called when the classifier is set aside
	// excuses is set for the program's own modules: they are known to end, so their
	// running out of time says that the machine is starved, and answers are needed most
	// then.
	excuses bool

	aside  atomic.Bool // read without the lock by every classification
	mu     sync.Mutex
	faults [asideFaults]time.Time // the last ones, the oldest first
	until  time.Time
	trying bool
}

// admit says whether a classification may run, and whether it is the trial of a
// classifier that was set aside.
func (g *guard) admit() (admitted, trial bool) {
	if !g.aside.Load() {
		return true, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until.IsZero() {
		return true, false // put back meanwhile
	}
	if g.trying || g.now().Before(g.until) {
		return false, false
	}
	g.trying = true
	return true, true
}

// report takes the fault of an admitted classification, empty for a verdict.
func (g *guard) report(fault string, trial bool) {
	if fault == faultTimeout && g.excuses {
		fault = ""
	}
	if fault == "" && !trial {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	switch {
	case trial && fault == "":
		g.trying, g.until, g.faults = false, time.Time{}, [asideFaults]time.Time{}
		g.aside.Store(false)
		g.logger.Info("classifier is used again", "classifier", g.name)
	case trial:
		g.trying, g.until = false, now.Add(asideFor)
	case g.until.IsZero(): // else it began before the classifier was set aside
		g.fault(fault, now)
	}
}

func (g *guard) fault(fault string, now time.Time) {
	copy(g.faults[:], g.faults[1:])
	g.faults[asideFaults-1] = now
	if oldest := g.faults[0]; oldest.IsZero() || now.Sub(oldest) > asideWindow {
		return
	}
	g.until = now.Add(asideFor)
	g.aside.Store(true)
	g.count()
	g.logger.Warn("classifier set aside: its failures are unknown meanwhile", "classifier", g.name,
		"fault", fault, "faults", asideFaults, "within", asideWindow, "for", asideFor)
}
