package bundle_test

import (
	"context"
	"crypto/elliptic"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/bundle"
)

// What "opa build" writes and signs, as the documentation shows it, is a policy here.
func TestWhatOPABuilds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs OPA's command, which takes long to compile for the first time")
	}
	key := newPair(t, elliptic.P256())
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	private := write("bundle.key", key.private)
	write("policies/decision.rego", "package fourgate\n\nimport data.limits\n\ndecision := {\"action\": \"abort\", \"reason\": sprintf(\"limit_%d\", [limits.max])}\n")
	write("policies/decision_test.rego", "package fourgate_test\n\ntest_it if true\n")
	write("policies/limits/data.json", `{"max": 3}`)
	claims := write("claims.json", `{"scope": "production", "keyid": "2026"}`)
	f := func(name string, by bundle.Key, args ...string) {
		t.Helper()
		output := filepath.Join(dir, name+".tar.gz")
		args = append([]string{"tool", "-modfile=.ci/tools.mod", "opa", "build", "--output", output,
			"--signing-alg", "ES256", "--signing-key", private, "--revision", name}, args...)
		command := exec.CommandContext(t.Context(), "go", append(args, "--bundle", filepath.Join(dir, "policies"))...)
		command.Dir = filepath.Join("..", "..")
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("opa build: %v\n%s", err, text)
		}
		by.PEM = key.public
		read, err := bundle.ReadFile(output, &by)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		var set *policies.Set
		s := open(t, bundle.Options{URL: newServer(t, raw).URL, Key: by, Accept: func(ctx context.Context, b bundle.Bundle) (err error) {
			set, err = policies.Load(ctx, policies.Options{Modules: b.Modules, Data: b.Data})
			return err
		}})
		inForce(t, s, name)
		if s.Current().Digest != read.Digest || len(read.Modules) != 1 {
			t.Errorf("%s: read as %+v", name, read)
		}
		if decision := set.Decide(&engine.Question{}); decision.Reason.String() != "limit_3" || decision.Fault != "" {
			t.Errorf("%s: decided %+v", name, decision)
		}
	}
	f("plain", bundle.Key{})
	f("claims", bundle.Key{Scope: "production"}, "--claims-file", claims)
	f("optimized", bundle.Key{}, "--optimize", "1", "--entrypoint", "fourgate/decision")
}
