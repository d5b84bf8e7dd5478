package plugins

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/fourgate-dev/fourgate/engine"
)

// Defaults and bounds of a module's limits.
const (
	DefaultTimeout     = 25 * time.Millisecond
	MaxTimeout         = time.Second
	DefaultMemoryBytes = 16 << 20
	MaxMemoryBytes     = 256 << 20
)

// Options are the settings of a [Host]. The zero value is good.
type Options struct {
	// CacheDir keeps compiled modules between starts. Empty means that each start
	// compiles them; the built-in ones take some milliseconds each.
	CacheDir string
}

// Host runs classifier modules. Its methods are safe for many goroutines.
type Host struct {
	cache  wazero.CompilationCache
	config wazero.ModuleConfig

	mu       sync.Mutex
	runtimes map[uint32]wazero.Runtime // by memory limit in pages
	loaded   map[loadKey]*classifier
	closed   bool

	// running is held for reading by each classification: a runtime must not be
	// unmapped under one.
	running  sync.RWMutex
	calls    sync.Pool // of *call
	memories memories
}

// loadKey names what makes two loaded modules the same.
type loadKey struct {
	name    string
	digest  string
	timeout time.Duration
	pages   uint32
}

// Open makes a host. Close it to free what its modules hold.
func Open(_ context.Context, o Options) (*Host, error) {
	h := &Host{
		config:   instanceConfig(),
		runtimes: map[uint32]wazero.Runtime{},
		loaded:   map[loadKey]*classifier{},
		calls:    sync.Pool{New: func() any { return new(call) }},
	}
	h.cache = wazero.NewCompilationCache()
	if o.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("cannot open plugin cache %q: %w; name a directory that can be written, or none", o.CacheDir, err)
		}
		h.cache = cache
	}
	return h, nil
}

// Load makes a classifier of a module: reads it, checks its digest and its shape,
// compiles it and tries to instantiate it once. Loading the same bytes with the same
// limits again, as a reload does, returns the same classifier.
func (h *Host) Load(ctx context.Context, m Module) (engine.Classifier, error) {
	c, err := h.load(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("cannot load classifier %q: %w", m.Name, err)
	}
	return c, nil
}

func (h *Host) load(ctx context.Context, m Module) (*classifier, error) {
	if m.Timeout == 0 {
		m.Timeout = DefaultTimeout
	}
	if m.MemoryBytes == 0 {
		m.MemoryBytes = DefaultMemoryBytes
	}
	if m.Timeout < 0 || m.Timeout > MaxTimeout {
		return nil, fmt.Errorf("its timeout is %v; use more than 0 and at most %v", m.Timeout, MaxTimeout)
	}
	if m.MemoryBytes < wasmPage || m.MemoryBytes > MaxMemoryBytes {
		return nil, fmt.Errorf("its memory is %d bytes; use %d to %d", m.MemoryBytes, wasmPage, MaxMemoryBytes)
	}
	binary, digest, err := m.read()
	if err != nil {
		return nil, err
	}
	found, err := check(binary, m.MemoryBytes)
	if err != nil {
		return nil, err
	}
	pages := uint32(m.MemoryBytes / wasmPage)

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	key := loadKey{m.Name, digest, m.Timeout, pages}
	if c, ok := h.loaded[key]; ok {
		return c, nil
	}
	runtime, err := h.runtime(ctx, pages)
	if err != nil {
		return nil, err
	}
	if found.watchCalls {
		ctx = experimental.WithFunctionListenerFactory(ctx, callWatch{})
	}
	compiled, err := runtime.CompileModule(ctx, binary)
	if err != nil {
		return nil, fmt.Errorf("its code is not valid: %w", err)
	}
	c := &classifier{host: h, runtime: runtime, compiled: compiled, timeout: m.Timeout}
	if err := c.try(); err != nil {
		return nil, errors.Join(fmt.Errorf("it can't be instantiated: %w", err), compiled.Close(ctx))
	}
	h.loaded[key] = c
	return c, nil
}

var errClosed = errors.New("the plugin host is closed")

// runtime returns the runtime for a memory limit; the limit belongs to the runtime, not
// to the module.
func (h *Host) runtime(ctx context.Context, pages uint32) (wazero.Runtime, error) {
	if r, ok := h.runtimes[pages]; ok {
		return r, nil
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCoreFeatures(features).
		WithCloseOnContextDone(true).
		WithMemoryLimitPages(pages).
		WithCompilationCache(h.cache).
		WithDebugInfoEnabled(false))
	builder := r.NewHostModuleBuilder(ABIModule)
	for _, f := range abiFunctions {
		params, results := f.sig.values()
		run := f.run
		builder.NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
				c := callOf(ctx)
				c.mem = m.Memory()
				run(c, stack)
			}), params, results).
			Export(f.name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the host's own functions can't be set up: %w", err), r.Close(ctx))
	}
	h.runtimes[pages] = r
	return r, nil
}

// features are what a module may use: nothing that fills memory or grows tables in one
// instruction, and nothing that the check doesn't read.
const features = api.CoreFeaturesV1 |
	api.CoreFeatureMultiValue |
	api.CoreFeatureMutableGlobal |
	api.CoreFeatureSignExtensionOps |
	api.CoreFeatureNonTrappingFloatToIntConversion

// values returns a signature in the runtime's terms.
func (s signature) values() (params, results []api.ValueType) {
	list := &params
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "->":
			list = &results
		case "i3":
			*list = append(*list, api.ValueTypeI32)
		case "i6":
			*list = append(*list, api.ValueTypeI64)
		}
	}
	return params, results
}

// Close waits for the classifications that run and frees all modules. A classifier that
// is asked later answers with the fault "absent".
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running.Lock()
	defer h.running.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	var errs []error
	for _, r := range h.runtimes {
		errs = append(errs, r.Close(ctx))
	}
	errs = append(errs, h.cache.Close(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot close plugin host: %w", err)
	}
	return nil
}
