// Package hcl reads Fourgate's configuration: one file of HCL or a directory of them,
// in native syntax or as JSON.
//
// [Load] reports everything that is wrong in one run. Each [Diagnostic] has a place,
// says why it matters and what to write instead, and [WriteDiagnostics] draws it with
// its source line. A secret is a call, env("NAME") or file("path"); no diagnostic and
// no picture ever shows one. The rules about models, channels and budgets are the
// engine's ([engine.NewCatalog]); this package gives them their places and adds the
// rules about the file itself.
//
// The package never opens a socket, a database or a module, never changes a file, and
// reads the world only through an [Environment]. It is the one home of the HCL library:
// nothing of that library is part of this package's surface. cmd/fourgate calls it, at
// the start, for a reload and for validate and fmt.
//
//	cfg, diags := hcl.Load("fourgate.hcl", hcl.Process())
//	if err := hcl.WriteDiagnostics(os.Stderr, diags, false, 78); err != nil {
//		return err
//	}
//	if cfg == nil {
//		return errInvalid
//	}
//	serve(cfg.Server, cfg.Catalog)
package hcl
