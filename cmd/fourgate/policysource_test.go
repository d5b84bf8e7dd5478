package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runIn runs the program without a process of its own.
func runIn(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(context.Background(), &env{
		args: args, stdin: strings.NewReader(""), stdout: &out, stderr: &err,
		lookup: func(string) (string, bool) { return "", false }, now: time.Now,
	})
	return code, out.String(), err.String()
}

// writeBundle makes a bundle of files, as "opa build" does.
func writeBundle(t *testing.T, name string, files map[string]string) {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for path, text := range files {
		if err := archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A bundle is a policy like a directory, with its data.
func TestPolicyOfABundle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.tar.gz"), filepath.Join(dir, "bad.tar.gz")
	writeBundle(t, good, map[string]string{
		"/slow.rego": "package fourgate\n\nimport data.fourgate.standard\n\n" +
			"decision := {\"action\": \"abort\", \"reason\": data.acme.reason} if {\n\tinput.failure.class == \"rate_limited\"\n} else := standard.decision\n",
		"/data.json": `{"acme": {"reason": "told_by_data"}}`,
	})
	writeBundle(t, bad, map[string]string{"/bad.rego": "package fourgate\n\ndecision := input.no_such_fact\n"})

	code, out, stderr := runIn(t, "policy", "matrix", "-class", "rate_limited", good)
	if code != exitOK || !strings.Contains(out, "told_by_data") || !strings.Contains(out, "bundle:slow.rego:5") {
		t.Errorf("code %d\n%s%s", code, out, stderr)
	}
	if code, out, _ = runIn(t, "policy", "diff", "-check", "-class", "rate_limited", "embedded", good); code != exitFailure || !strings.Contains(out, "rate_limited") {
		t.Errorf("code %d\n%s", code, out)
	}
	if code, _, stderr = runIn(t, "policy", "matrix", bad); code != exitFailure || !strings.Contains(stderr, "bundle:bad.rego line 3") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	if err := os.WriteFile(bad, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr = runIn(t, "policy", "matrix", bad); code != exitFailure || !strings.Contains(stderr, "cannot use policy bundle") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

// Files are asked above the group's profile, as they would be in its configuration.
func TestPolicyOfFilesAboveAProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, files := filepath.Join(dir, "fourgate.hcl"), filepath.Join(dir, "narrow")
	for name, text := range map[string]string{
		filepath.Join(files, "route.rego"): "package fourgate\n\nroute := {\"attempts\": 1, \"reason\": \"tools\"} if input.request.tools\n",
		config: `
provider "one" {
  base_url   = "http://127.0.0.1:1"
  classifier = classifier.openai
  auth       = "none"
}
classifier "openai" {
  module = "builtin:openai"
}
route_group "m" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  channel "one" {
    provider = provider.one
  }
}
policy {
  profile = "studyhub"
  paths   = ["narrow"]
}
ledger {
  store = "none"
}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, stderr := runIn(t, "policy", "diff", "-check", "-class", "schema_invalid", "-c", config, files)
	if code != exitOK {
		t.Errorf("code %d\n%s%s", code, out, stderr)
	}
}

// 2 is a command line that can't be understood, 1 a policy that can't be used or, with
// -check, one that differs.
func TestExitCodesOfPolicyCommands(t *testing.T) {
	t.Parallel()
	f := func(want int, args ...string) {
		t.Helper()
		if code, _, stderr := runIn(t, append([]string{"policy"}, args...)...); code != want {
			t.Errorf("%q: exit code %d, want %d\n%s", args, code, want, stderr)
		}
	}
	f(exitOK, "matrix")
	f(exitUsage, "matrix", "a", "b")
	f(exitUsage, "matrix", "-json", "-html")
	f(exitUsage, "matrix", "-class", "none")
	f(exitUsage, "matrix", "-action", "none")
	f(exitUsage, "matrix", "-fact", "none")
	f(exitUsage, "matrix", "-group", "g")
	f(exitUsage, "matrix", "config")
	f(exitFailure, "matrix", "nowhere")
	f(exitFailure, "matrix", "-c", "nowhere.hcl")
	f(exitFailure, "matrix", "profile:none")
	f(exitUsage, "diff")
	f(exitUsage, "diff", "embedded")
	f(exitUsage, "diff", "embedded", "embedded", "embedded")
	f(exitOK, "diff", "-class", "bad_model", "embedded", "kunavo")
	f(exitFailure, "diff", "-check", "-class", "bad_model", "embedded", "kunavo")
	f(exitFailure, "diff", "-check", "-class", "schema_invalid", "embedded", "studyhub") // other effects alone
	f(exitOK, "diff", "-check", "-class", "bad_model", "embedded", "embedded")
	f(exitFailure, "matrix", "-class", "ok", "-html="+filepath.Join("no", "such", "dir.html"))
}
