// Package bundle fetches policies as signed bundles and keeps the last good one.
//
// A [Source] asks an HTTP(S) server or an OCI registry for a bundle, again and again.
// Downloading, unpacking and verifying are OPA's own: its downloaders, its archive
// reader and its signatures, so that whatever "opa build" and "opa sign" write can be
// used. Between them and the policy in force stands a gate: Options.Accept compiles a
// bundle with all the rules that hold for a policy, and only what it accepts becomes
// current and is kept on disk. Anything else, be it unsigned, tampered with, too large
// or wrong Rego, is refused; the last good bundle stays. At a start without the server it
// is the one on disk, whose signature is verified again.
//
// The package never compiles or asks a policy, never takes a bundle without a valid
// signature from a URL, and never shows its token to anybody but the server it is for.
// The command that puts the product together opens a source and swaps policies in Accept:
//
//	source, err := bundle.Open(ctx, bundle.Options{
//		URL:   "https://policies.example.com/fourgate.tar.gz",
//		Key:   bundle.Key{PEM: pem},
//		Cache: "fourgate-bundle",
//		Accept: func(ctx context.Context, b bundle.Bundle) error {
//			set, err := policies.Load(ctx, policies.Options{Modules: b.Modules, Data: b.Data})
//			if err != nil {
//				return err // the bundle is refused, with these diagnostics in the log
//			}
//			use(set)
//			return nil
//		},
//	})
//	if err != nil {
//		return err // nothing from the URL, and no last good bundle
//	}
//	defer source.Close()
package bundle
