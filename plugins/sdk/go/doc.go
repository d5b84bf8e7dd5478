// Package fourgate has the functions of Fourgate's classifier ABI, version 1, for modules
// that the Go toolchain builds with GOOS=wasip1 GOARCH=wasm. The page "Classifier plugins"
// of Fourgate's manual explains each.
//
// A module's main package exports classify, which answers once, and the version for
// which it was built:
//
//	//go:wasmexport fourgate_abi_1
//	func abi() {}
//
//	//go:wasmexport classify
//	func classify() {
//		if fourgate.JSONContains(fourgate.Failing, "error.code", "insufficient_quota") {
//			fourgate.Answer(fourgate.KeyFault, fourgate.ScopeKey, "billing", fourgate.NoWait)
//			return
//		}
//		fourgate.Answer(fourgate.Unknown, fourgate.ScopeRequest, "unrecognized", fourgate.NoWait)
//	}
//
// The module has no clock, no randomness, no files, no arguments and no network; a panic
// is a trap, and the failure is unknown then.
package fourgate
