package plugins

import (
	"context"
	"errors"
	"io"
	"time"

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
)

// classifier is a compiled module. It implements [engine.Classifier].
type classifier struct {
	host     *Host
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	timeout  time.Duration
}

// Classify runs the module over ev in an instance of its own.
func (c *classifier) Classify(ev *engine.Evidence) engine.Verdict {
	c.host.running.RLock()
	defer c.host.running.RUnlock()
	if c.host.closed {
		return engine.Verdict{Fault: faultAbsent}
	}
	state, _ := c.host.calls.Get().(*call)
	defer func() {
		state.release()
		c.host.calls.Put(state)
	}()
	v := c.run(state, ev)
	if v.Fault == faultTimeout {
		// The limit is wall time, and a classifier needs a hundredth of it: most likely the
		// process had no processor meanwhile. A guest that is to blame fails again.
		v = c.run(state, ev)
	}
	return v
}

func (c *classifier) run(state *call, ev *engine.Evidence) engine.Verdict {
	ctx, cancel := c.begin(state, ev, c.timeout)
	defer cancel()

	instance, err := c.instantiate(ctx)
	if err != nil {
		return engine.Verdict{Fault: faultOf(err)}
	}
	err = instance.ExportedFunction("classify").CallWithStack(ctx, nil)
	closeErr := instance.Close(ctx)
	switch {
	case err != nil:
		return engine.Verdict{Fault: faultOf(err)}
	case closeErr != nil:
		return engine.Verdict{Fault: faultTrap}
	case state.verdicts != 1 || state.nonsense:
		return engine.Verdict{Fault: faultNonsense}
	}
	return state.answer
}

// begin sets the state of a classification up and returns the context that carries it.
func (c *classifier) begin(state *call, ev *engine.Evidence, timeout time.Duration) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(timeout)
	state.reset(ev, deadline)
	ctx, cancel := context.WithDeadline(experimental.WithMemoryAllocator(context.Background(), &c.host.memories), deadline)
	return callContext{ctx, state}, cancel
}

func (c *classifier) instantiate(ctx context.Context) (api.Module, error) {
	return c.runtime.InstantiateModule(ctx, c.compiled, c.host.config)
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
func (c *classifier) try() error {
	ctx, cancel := c.begin(new(call), new(engine.Evidence), MaxTimeout)
	defer cancel()
	instance, err := c.instantiate(ctx)
	if err != nil {
		return err
	}
	return instance.Close(ctx)
}

// faultOf names what ended a guest.
func faultOf(err error) string {
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == sys.ExitCodeDeadlineExceeded {
		return faultTimeout
	}
	return faultTrap
}

// callWatch makes every function of a module look at the deadline when it is called. It
// makes the built-in modules about a third slower, so it is used only for modules of
// which the check couldn't prove that they need no watching.
type callWatch struct{}

// NewFunctionListener implements [experimental.FunctionListenerFactory].
func (w callWatch) NewFunctionListener(api.FunctionDefinition) experimental.FunctionListener {
	return w
}

// Before implements [experimental.FunctionListener].
func (callWatch) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	callOf(ctx).checkNow()
}

// After implements [experimental.FunctionListener].
func (callWatch) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

// Abort implements [experimental.FunctionListener].
func (callWatch) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}
