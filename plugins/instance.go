package plugins

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Bounds of what is kept for the next classification. A larger memory costs more to
// restore than to make anew, and there is work for one instance a processor only.
const (
	maxKeptMemory = 2 * wasmPage
	maxKeptTotal  = 4 << 20 // bytes of memory that idle instances of all modules may have
	// maxKeptCode bounds the machine stack of an instance, which lives as long as it
	// does: without recursion it is in proportion to the code.
	maxKeptCode = 64 << 10
)

// program is a compiled module with the instances that wait for its next use. An
// instance that is used again is put back into its first state, byte for byte: the same
// failure must get the same verdict, whatever came before it.
type program struct {
	host     *Host
	profile  *profile
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	timeout  time.Duration
	globals  []string // the exports that have to be put back
	stores   bool     // its code may write into its memory
	reusable bool
	lists    phraseLists
	sets     phraseLists

	mu    sync.Mutex
	idle  []*instance
	freed bool
}

// instance is one instance of a program. One goroutine owns it.
type instance struct {
	module   api.Module
	classify api.Function
	memory   api.Memory
	size     uint32 // of the memory in bytes
	first    []byte // the memory's first bytes; the rest was zero
	globals  []savedGlobal
	reusable bool
}

type savedGlobal struct {
	global api.MutableGlobal
	first  uint64
}

// take returns an idle instance or makes one, for the classification of state.
func (p *program) take(state *call) (*instance, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		i := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		p.host.kept.Add(-int64(i.size))
		return i, nil
	}
	p.mu.Unlock()
	return p.instantiate(state)
}

func (p *program) instantiate(state *call) (*instance, error) {
	ctx := experimental.WithMemoryAllocator(state, &p.host.memories)
	module, err := p.runtime.InstantiateModule(ctx, p.compiled, p.host.config)
	if err != nil {
		return nil, err
	}
	i := &instance{module: module, classify: module.ExportedFunction("classify"), memory: module.Memory()}
	i.size = i.memory.Size()
	// One that asked while it was made may remember this failure.
	i.reusable = p.reusable && i.size <= p.profile.keptMemory && !state.called
	if i.reusable {
		i.save(p)
	}
	return i, nil
}

// save remembers the state that restore puts back.
func (i *instance) save(p *program) {
	all, _ := i.memory.Read(0, i.size)
	i.first = bytes.Clone(bytes.TrimRight(all, "\x00"))
	for _, name := range p.globals {
		g, ok := i.module.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			i.reusable = false
			return
		}
		i.globals = append(i.globals, savedGlobal{g, g.Get()})
	}
}

// restore puts an instance back into its first state and says whether that was possible:
// a memory that has grown doesn't shrink.
func (i *instance) restore(written bool) bool {
	if i.memory.Size() != i.size {
		return false
	}
	if written {
		all, ok := i.memory.Read(0, i.size)
		if !ok {
			return false
		}
		clear(all[copy(all, i.first):])
	}
	for _, g := range i.globals {
		g.global.Set(g.first)
	}
	return true
}

// give keeps an instance that ended well for its next use, if there is room for it.
func (p *program) give(i *instance, written bool) {
	if i.reusable && i.restore(written || p.stores) && p.keep(i) {
		return
	}
	i.close()
}

func (p *program) keep(i *instance) bool {
	if p.host.kept.Add(int64(i.size)) > p.profile.keptTotal {
		p.host.kept.Add(-int64(i.size))
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed || len(p.idle) >= runtime.GOMAXPROCS(0) {
		p.host.kept.Add(-int64(i.size))
		return false
	}
	p.idle = append(p.idle, i)
	return true
}

func (i *instance) close() {
	// Closing runs no code of the module, and there is nothing that could fail.
	_ = i.module.Close(context.Background())
}

// free gives everything back. Nobody uses the program any more.
func (p *program) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freed = true
	for _, i := range p.idle {
		p.host.kept.Add(-int64(i.size))
		i.close()
	}
	p.idle = nil
	p.host.metrics.modules.Dec()
	_ = p.compiled.Close(context.Background()) // never fails
}
