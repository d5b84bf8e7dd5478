package plugins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

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
	// FetchedDir keeps modules that were fetched from registries. Empty means that each
	// start and each reload fetches them.
	FetchedDir string
	// Logger is told when a classifier is set aside and used again; nil tells nobody.
	Logger *slog.Logger
	// Now is the clock by which classifiers are set aside; nil means [time.Now].
	Now func() time.Time
}

// Host runs classifier modules. Its methods are safe for many goroutines. It is a
// collector of metrics, too, for whoever has a registry.
type Host struct {
	cache   wazero.CompilationCache
	config  wazero.ModuleConfig
	logger  *slog.Logger
	fetched string // the directory of what was fetched, or empty
	now     func() time.Time
	metrics *metrics

	mu       sync.Mutex
	runtimes map[runtimeKey]wazero.Runtime
	loaded   map[loadKey]weak.Pointer[classifier]
	closed   bool

	// running is held for reading by each classification: a runtime must not be
	// unmapped under one.
	running  sync.RWMutex
	calls    sync.Pool // of *call
	memories memories
	shadows  *shadows     // nil until a classifier has one
	kept     atomic.Int64 // bytes of memory that idle instances have
}

// loadKey names what makes two loaded modules the same.
type loadKey struct {
	name    string
	digest  string
	timeout time.Duration
	pages   uint32
	profile string
}

// Open makes a host. Close it to free what its modules hold.
func Open(_ context.Context, o Options) (*Host, error) {
	h := &Host{
		config:   instanceConfig(),
		logger:   o.Logger,
		fetched:  o.FetchedDir,
		now:      o.Now,
		metrics:  newMetrics(),
		runtimes: map[runtimeKey]wazero.Runtime{},
		loaded:   map[loadKey]weak.Pointer[classifier]{},
		calls:    sync.Pool{New: func() any { return newCall() }},
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	if h.now == nil {
		h.now = time.Now
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
	if m.Shadow == nil {
		return c, nil
	}
	candidate := *m.Shadow
	candidate.Name, candidate.MemoryBytes = m.Name+".shadow", m.MemoryBytes
	if candidate.Timeout == 0 {
		candidate.Timeout = m.Timeout
	}
	shadow, err := h.load(ctx, candidate)
	if err != nil {
		return nil, fmt.Errorf("cannot load the shadow of classifier %q: %w", m.Name, err)
	}
	return h.shadow(m.Name, c, shadow)
}

func (h *Host) load(ctx context.Context, m Module) (*classifier, error) {
	if m.Timeout == 0 {
		m.Timeout = DefaultTimeout
	}
	prof, err := profileOf(m.Profile)
	if err != nil {
		return nil, err
	}
	if m.MemoryBytes == 0 {
		m.MemoryBytes = DefaultMemoryBytes
	}
	if m.Timeout < 0 || m.Timeout > MaxTimeout {
		return nil, fmt.Errorf("its timeout is %v; use more than 0 and at most %v", m.Timeout, MaxTimeout)
	}
	if m.MemoryBytes < wasmPage || m.MemoryBytes > prof.memoryBytes {
		return nil, fmt.Errorf("its memory is %d bytes; use %d to %d", m.MemoryBytes, wasmPage, prof.memoryBytes)
	}
	binary, digest, err := m.read(ctx, h.fetched)
	if err != nil {
		return nil, err
	}
	found, err := check(binary, m.MemoryBytes, prof)
	if err != nil {
		return nil, err
	}
	pages := uint32(m.MemoryBytes / wasmPage)

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	key := loadKey{m.Name, digest, m.Timeout, pages, m.Profile}
	if c := h.loaded[key].Value(); c != nil {
		return c, nil
	}
	p, err := h.compile(ctx, binary, found, m.Timeout, pages)
	if err != nil {
		return nil, err
	}
	c := &classifier{program: p, guard: &guard{
		name: m.Name, now: h.now, logger: h.logger, count: h.metrics.aside.WithLabelValues(m.Name).Inc,
		excuses: strings.HasPrefix(m.Source, BuiltinPrefix),
	}}
	h.loaded[key] = weak.Make(c)
	runtime.AddCleanup(c, h.forget, forgotten{key, p})
	return c, nil
}

// compile makes a program of a checked module. The host is locked.
func (h *Host) compile(ctx context.Context, binary []byte, found checked, timeout time.Duration, pages uint32) (*program, error) {
	rt, err := h.runtime(ctx, runtimeKey{pages, found.loops || found.watchCalls, found.module.profile})
	if err != nil {
		return nil, err
	}
	if found.watchCalls {
		ctx = experimental.WithFunctionListenerFactory(ctx, callWatch{})
	}
	p := &program{host: h, profile: found.module.profile, runtime: rt, timeout: timeout, stores: found.stores}
	binary, p.globals, p.reusable = found.module.exposeGlobals(binary)
	p.reusable = p.reusable && (p.profile.wasi || !found.watchCalls && found.codeBytes <= maxKeptCode)
	p.compiled, err = rt.CompileModule(ctx, binary)
	if err != nil {
		return nil, fmt.Errorf("its code is not valid: %w", err)
	}
	if err := p.try(); err != nil {
		return nil, errors.Join(fmt.Errorf("it can't be instantiated: %w", err), p.compiled.Close(ctx))
	}
	h.metrics.modules.Inc()
	return p, nil
}

// forgotten is a classifier that nobody holds any more.
type forgotten struct {
	key     loadKey
	program *program
}

func (h *Host) forget(f forgotten) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loaded[f.key].Value() == nil { // not loaded again meanwhile
		delete(h.loaded, f.key)
	}
	if !h.closed {
		f.program.free()
	}
}

var errClosed = errors.New("the plugin host is closed")

// runtimeKey is what belongs to a runtime and not to a module.
type runtimeKey struct {
	pages uint32 // the memory limit
	// loops is set for modules that have to be stopped at their deadline. Watching for it
	// takes a goroutine for each classification; a module without loops, whose steps the
	// check has added up, ends by itself.
	loops   bool
	profile *profile
}

func (h *Host) runtime(ctx context.Context, key runtimeKey) (wazero.Runtime, error) {
	if r, ok := h.runtimes[key]; ok {
		return r, nil
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCoreFeatures(key.profile.features).
		WithCloseOnContextDone(key.loops).
		WithMemoryLimitPages(key.pages).
		WithCompilationCache(h.cache).
		WithDebugInfoEnabled(false))
	builder := r.NewHostModuleBuilder(ABIModule)
	for _, f := range abiFunctions {
		params, results := f.sig.values()
		run := f.run
		builder.NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
				c := callOf(ctx)
				c.called = true
				c.spend(questionWork)
				if c.mem == nil {
					c.mem = m.Memory()
				}
				run(c, stack)
			}), params, results).
			Export(f.name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the host's own functions can't be set up: %w", err), r.Close(ctx))
	}
	if key.profile.wasi {
		if err := addWASI(ctx, r); err != nil {
			return nil, errors.Join(fmt.Errorf("the functions of WASI can't be set up: %w", err), r.Close(ctx))
		}
	}
	h.runtimes[key] = r
	return r, nil
}

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

// Close waits for the classifications that run and frees all modules. (A module that no
// configuration has any more is freed before that.) A classifier that
// is asked later answers with the fault "absent".
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shadows != nil {
		h.shadows.stop() // it classifies, so it must end before nobody may
	}
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
