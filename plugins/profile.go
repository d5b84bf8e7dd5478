package plugins

import (
	"fmt"

	"github.com/tetratelabs/wazero/api"
)

// ProfileWASI is the profile of modules whose toolchain can't do without the WASI preview
// 1, as Go's: they may import its functions, which give nothing, and be larger.
const ProfileWASI = "wasi"

// MaxWASIMemoryBytes is the most memory that a module of the profile "wasi" may have.
// Go's runtime begins with some 3 MiB.
const MaxWASIMemoryBytes = 64 << 20

// profile is what a kind of module may be and use.
type profile struct {
	name         string // as a configuration writes it
	moduleBytes  int
	codeBytes    int
	functions    uint32
	types        uint32
	segments     uint32
	tableEntries uint32
	locals       uint32
	memoryBytes  int64 // the most that a configuration may allow
	// bodySteps bounds what one function may do between two looks at the deadline, where
	// each call of a function looks. With WASI that is to fill the largest memory once.
	bodySteps uint64
	features  api.CoreFeatures
	// keptMemory and keptTotal bound the memory in bytes of one instance, and of all, that
	// wait for their next use.
	keptMemory uint32
	keptTotal  int64
	wasi       bool // the functions of WASI may be imported, and memory filled and copied
}

// features are what a module may use: nothing that fills memory or grows tables in one
// instruction, and nothing that the check doesn't read.
const features = api.CoreFeaturesV1 |
	api.CoreFeatureMultiValue |
	api.CoreFeatureMutableGlobal |
	api.CoreFeatureSignExtensionOps |
	api.CoreFeatureNonTrappingFloatToIntConversion

// The profiles. The sizes of the first are explained where they are named; those of the
// other hold a large Go program, which has 1.2 MB of code and 2,000 functions at least.
var (
	profilePlain = profile{
		moduleBytes: maxModuleBytes, codeBytes: maxCodeBytes, functions: maxFunctions, types: maxTypes, segments: maxSegments,
		tableEntries: maxTableEntries, locals: maxLocals, memoryBytes: MaxMemoryBytes, bodySteps: maxCodeBytes, features: features,
		keptMemory: maxKeptMemory, keptTotal: maxKeptTotal,
	}
	profileWASI = profile{
		name: ProfileWASI, moduleBytes: 16 << 20, codeBytes: 8 << 20, functions: 50_000, types: 5_000, segments: 50_000,
		tableEntries: 50_000, locals: 10_000, memoryBytes: MaxWASIMemoryBytes, bodySteps: 5 * maxStraightSteps / 2,
		features: features | api.CoreFeatureBulkMemoryOperations, wasi: true,
		// Beginning a Go program takes 6 ms, putting its memory back 0.1 ms: one is kept.
		keptMemory: 8 << 20, keptTotal: 8 << 20,
	}
)

func profileOf(name string) (*profile, error) {
	switch name {
	case profilePlain.name:
		return &profilePlain, nil
	case profileWASI.name:
		return &profileWASI, nil
	}
	return nil, fmt.Errorf("there is no profile %q; write %q, or leave it out", name, ProfileWASI)
}

// hint says what to do with a module that is too large for this profile.
func (p *profile) hint(importsWASI bool) string {
	if p.wasi || !importsWASI {
		return ""
	}
	return fmt.Sprintf("; it imports %s: set profile = %q", wasiModule, ProfileWASI)
}
