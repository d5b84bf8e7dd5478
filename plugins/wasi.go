package plugins

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// wasiModule is the module from which toolchains for WASI preview 1 import.
const wasiModule = "wasi_snapshot_preview1"

// Error numbers of WASI preview 1.
const (
	wasiSuccess     = 0
	wasiBadFile     = 8
	wasiFault       = 21
	wasiUnavailable = 52 // ENOSYS
)

// wasiTime is what every clock of a guest says, in nanoseconds. Go's runtime takes 0 for a
// clock that is broken.
const wasiTime = 1_000_000_000

// wasiFunction is one function of WASI with nothing behind it.
type wasiFunction struct {
	name string
	sig  signature
	run  func(m api.Memory, stack []uint64) int32 // nil: answers wasiUnavailable
}

// wasiFunctions are what a guest may import in the profile "wasi": all of preview 1 but
// sockets. There is no clock, no randomness, no argument, no variable and no file; what is
// written is thrown away. All of it is the same each time, and nothing waits.
var wasiFunctions = [...]wasiFunction{
	{"args_get", "(i32,i32)->i32", wasiNothing},
	{"args_sizes_get", "(i32,i32)->i32", wasiNoSizes},
	{"environ_get", "(i32,i32)->i32", wasiNothing},
	{"environ_sizes_get", "(i32,i32)->i32", wasiNoSizes},
	{"clock_res_get", "(i32,i32)->i32", func(m api.Memory, s []uint64) int32 { return wasiWrite64(m, s[1], 1) }},
	{"clock_time_get", "(i32,i64,i32)->i32", func(m api.Memory, s []uint64) int32 { return wasiWrite64(m, s[2], wasiTime) }},
	{"random_get", "(i32,i32)->i32", wasiRandom},
	{"fd_write", "(i32,i32,i32,i32)->i32", wasiDiscard},
	{"sched_yield", "()->i32", wasiNothing},
	{"fd_advise", "(i32,i64,i64,i32)->i32", wasiNoFile},
	{"fd_allocate", "(i32,i64,i64)->i32", wasiNoFile},
	{"fd_close", "(i32)->i32", wasiNoFile},
	{"fd_datasync", "(i32)->i32", wasiNoFile},
	{"fd_fdstat_get", "(i32,i32)->i32", wasiNoFile},
	{"fd_fdstat_set_flags", "(i32,i32)->i32", wasiNoFile},
	{"fd_fdstat_set_rights", "(i32,i64,i64)->i32", wasiNoFile},
	{"fd_filestat_get", "(i32,i32)->i32", wasiNoFile},
	{"fd_filestat_set_size", "(i32,i64)->i32", wasiNoFile},
	{"fd_filestat_set_times", "(i32,i64,i64,i32)->i32", wasiNoFile},
	{"fd_pread", "(i32,i32,i32,i64,i32)->i32", wasiNoFile},
	{"fd_prestat_get", "(i32,i32)->i32", wasiNoFile},
	{"fd_prestat_dir_name", "(i32,i32,i32)->i32", wasiNoFile},
	{"fd_pwrite", "(i32,i32,i32,i64,i32)->i32", wasiNoFile},
	{"fd_read", "(i32,i32,i32,i32)->i32", wasiNoFile},
	{"fd_readdir", "(i32,i32,i32,i64,i32)->i32", wasiNoFile},
	{"fd_renumber", "(i32,i32)->i32", wasiNoFile},
	{"fd_seek", "(i32,i64,i32,i32)->i32", wasiNoFile},
	{"fd_sync", "(i32)->i32", wasiNoFile},
	{"fd_tell", "(i32,i32)->i32", wasiNoFile},
	{"path_create_directory", "(i32,i32,i32)->i32", wasiNoFile},
	{"path_filestat_get", "(i32,i32,i32,i32,i32)->i32", wasiNoFile},
	{"path_filestat_set_times", "(i32,i32,i32,i32,i64,i64,i32)->i32", wasiNoFile},
	{"path_link", "(i32,i32,i32,i32,i32,i32,i32)->i32", wasiNoFile},
	{"path_open", "(i32,i32,i32,i32,i32,i64,i64,i32,i32)->i32", wasiNoFile},
	{"path_readlink", "(i32,i32,i32,i32,i32,i32)->i32", wasiNoFile},
	{"path_remove_directory", "(i32,i32,i32)->i32", wasiNoFile},
	{"path_rename", "(i32,i32,i32,i32,i32,i32)->i32", wasiNoFile},
	{"path_symlink", "(i32,i32,i32,i32,i32)->i32", wasiNoFile},
	{"path_unlink_file", "(i32,i32,i32)->i32", wasiNoFile},
	{"poll_oneoff", "(i32,i32,i32,i32)->i32", nil},
	{"proc_raise", "(i32)->i32", nil},
	{"proc_exit", "(i32)->", func(_ api.Memory, s []uint64) int32 { panic(sys.NewExitError(uint32(s[0]))) }},
}

func wasiSignature(name string) (signature, bool) {
	for i := range wasiFunctions {
		if wasiFunctions[i].name == name {
			return wasiFunctions[i].sig, true
		}
	}
	return "", false
}

func wasiNothing(api.Memory, []uint64) int32 { return wasiSuccess }

func wasiNoFile(api.Memory, []uint64) int32 { return wasiBadFile }

// wasiNoSizes says that there are no texts and that they need no room.
func wasiNoSizes(m api.Memory, stack []uint64) int32 {
	if !m.WriteUint32Le(uint32(stack[0]), 0) || !m.WriteUint32Le(uint32(stack[1]), 0) {
		return wasiFault
	}
	return wasiSuccess
}

func wasiWrite64(m api.Memory, at uint64, v uint64) int32 {
	if !m.WriteUint64Le(uint32(at), v) {
		return wasiFault
	}
	return wasiSuccess
}

// wasiRandom gives zeros: a guest's hash tables work with any seed.
func wasiRandom(m api.Memory, stack []uint64) int32 {
	buf, ok := m.Read(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		return wasiFault
	}
	clear(buf)
	return wasiSuccess
}

// wasiDiscard takes what a guest writes, such as the text of a panic, and drops it.
func wasiDiscard(m api.Memory, stack []uint64) int32 {
	const most = 1024 // parts of one write, as much as POSIX promises
	list, ok := m.Read(uint32(stack[1]), min(uint32(stack[2]), most)*8)
	if !ok {
		return wasiFault
	}
	var written uint32
	for ; len(list) > 0; list = list[8:] {
		written += binary.LittleEndian.Uint32(list[4:])
	}
	if !m.WriteUint32Le(uint32(stack[3]), written) {
		return wasiFault
	}
	return wasiSuccess
}

// addWASI makes the functions known to a runtime.
func addWASI(ctx context.Context, r wazero.Runtime) error {
	builder := r.NewHostModuleBuilder(wasiModule)
	for _, f := range wasiFunctions {
		params, results := f.sig.values()
		run := f.run
		builder.NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
				callOf(ctx).look()
				answer := int32(wasiUnavailable)
				if run != nil {
					answer = run(m.Memory(), stack)
				}
				if len(results) > 0 {
					stack[0] = api.EncodeI32(answer)
				}
			}), params, results).
			Export(f.name)
	}
	_, err := builder.Instantiate(ctx)
	return err
}
