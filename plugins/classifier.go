package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/fourgate-dev/fourgate/engine"
)

// The faults of a classifier, as [engine.Verdict] names them.
const (
	faultTrap     = "trap"
	faultTimeout  = "timeout"
	faultNonsense = "nonsense"
	faultAbsent   = "absent"
	faultSetAside = "set_aside"
)

// classifier is a loaded module. It implements [engine.Classifier]. When nobody holds it
// any more, what its program has is freed: a configuration that was replaced lives as
// long as the last request that began under it, and its modules with it.
type classifier struct {
	program *program
	guard   *guard
}

// Classify runs the module over ev, in an instance that is as new.
func (c *classifier) Classify(ev *engine.Evidence) engine.Verdict {
	p := c.program
	p.host.running.RLock()
	defer p.host.running.RUnlock()
	defer runtime.KeepAlive(c)
	if p.host.closed {
		return engine.Verdict{Fault: faultAbsent}
	}
	admitted, trial := c.guard.admit()
	if !admitted {
		return engine.Verdict{Fault: faultSetAside}
	}
	v := p.run(ev, c.guard.excuses)
	if v.Fault == faultTimeout {
		// The limit is wall time, and a classifier needs a hundredth of it: most likely the
		// process had no processor meanwhile. A guest that is to blame fails again.
		v = p.run(ev, c.guard.excuses)
	}
	c.guard.report(v.Fault, trial)
	return v
}

// run asks the guest in one instance. A verdict that comes after the deadline is a timeout,
// unless that is excused: what costs too much time must be seen, whoever spent it.
func (p *program) run(ev *engine.Evidence, excused bool) engine.Verdict {
	state, _ := p.host.calls.Get().(*call)
	state.reset(ev, p.timeout)
	state.lists, state.sets = &p.lists, &p.sets
	v, i := p.ask(state)
	// Only after the clock was stopped in time is it sure that nobody closes the instance.
	inTime := state.end()
	if i != nil {
		if inTime && v.Fault == "" {
			p.give(i, state.wrote)
		} else {
			i.close()
		}
	}
	if v.Fault == "" && !excused && (!inTime || state.over()) {
		v = engine.Verdict{Fault: faultTimeout}
	}
	state.release()
	if inTime {
		p.host.calls.Put(state)
	}
	return v
}

// ask runs the guest once. It returns the instance, too, if there was one.
func (p *program) ask(state *call) (engine.Verdict, *instance) {
	i, err := p.take(state)
	if err != nil {
		return engine.Verdict{Fault: faultOf(err)}, nil
	}
	err = i.classify.CallWithStack(state, nil)
	switch {
	case err != nil:
		return engine.Verdict{Fault: faultOf(err)}, i
	case state.verdicts != 1 || state.nonsense:
		return engine.Verdict{Fault: faultNonsense}, i
	}
	return state.answer, i
}

// instanceConfig is the same for every instance: anonymous, so that many of one module
// may live at the same time. No guest can reach the random source; naming one saves the
// runtime from seeding its own each time, which takes longer than a small guest runs.
func instanceConfig() wazero.ModuleConfig {
	return wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithRandSource(noRandom{})
}

type noRandom struct{}

// Read implements [io.Reader].
func (noRandom) Read([]byte) (int, error) { return 0, io.EOF }

// try instantiates the module once, so that one that can't be is refused when it is
// loaded and not when it is needed.
func (p *program) try() error {
	state := newCall()
	state.reset(new(engine.Evidence), MaxTimeout)
	defer state.end()
	i, err := p.instantiate(state)
	if err != nil {
		return err
	}
	i.close()
	return nil
}

// faultOf names what ended a guest.
func faultOf(err error) string {
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == sys.ExitCodeDeadlineExceeded {
		return faultTimeout
	}
	return faultTrap
}

// callWatch makes every function of a module look at the deadline when it is called, and
// bounds how deep calls nest. It makes the built-in modules about a third slower, so it is
// used only for modules of which the check couldn't prove that they need no watching.
type callWatch struct{}

// maxNested is how deep the calls of a watched module nest. The runtime's own limit is a
// stack of 50 MB, which it doubles and copies on the way there; with this one the largest
// frames come to a third of that, and a stack of usual frames stays far below a megabyte.
const maxNested = 1000

// NewFunctionListener implements [experimental.FunctionListenerFactory].
func (w callWatch) NewFunctionListener(api.FunctionDefinition) experimental.FunctionListener {
	return w
}

// Before implements [experimental.FunctionListener].
func (callWatch) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	c := callOf(ctx)
	c.look()
	if c.nested++; c.nested > maxNested {
		panic(abuse(fmt.Sprintf("its calls nest more than %d deep", maxNested)))
	}
}

// After implements [experimental.FunctionListener].
func (callWatch) After(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64) {
	callOf(ctx).nested--
}

// Abort implements [experimental.FunctionListener].
func (callWatch) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}
