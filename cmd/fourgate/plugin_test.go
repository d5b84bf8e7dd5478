package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/plugins/starter"
)

// fourgate runs the program to its end, with the process's environment and vars. It
// leaves the user's cache alone.
func fourgate(t testing.TB, vars map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := processEnv()
	e.args, e.stdin, e.stdout, e.stderr = args, strings.NewReader(""), &out, &errs
	e.lookup = func(name string) (string, bool) {
		if text, ok := vars[name]; ok {
			return text, true
		}
		if name == "HOME" || name == "XDG_CACHE_HOME" {
			return "", false
		}
		return os.LookupEnv(name)
	}
	code = run(t.Context(), e)
	return code, out.String(), errs.String()
}

// mustFourgate runs a command that must succeed and returns what it printed.
func mustFourgate(t testing.TB, vars map[string]string, args ...string) string {
	t.Helper()
	code, stdout, stderr := fourgate(t, vars, args...)
	if code != 0 {
		t.Fatalf("fourgate %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// toolchain returns the environment in which a language can be built. Where it can't, the
// test is skipped on a laptop and fails in CI.
func toolchain(t testing.TB, lang starter.Language) map[string]string {
	t.Helper()
	vars := map[string]string{"XDG_CACHE_HOME": t.TempDir()}
	if lang.Name == "rust" {
		// A Rust compiler of the distribution may have the target that the first one in
		// the path lacks.
		for _, rustc := range []string{"rustc", "/usr/bin/rustc"} {
			if path, err := exec.LookPath(rustc); err == nil && rustTarget(t.Context(), path) == nil {
				vars["RUSTC"] = path
				break
			}
		}
	}
	e := processEnv()
	e.lookup = func(name string) (string, bool) { text, ok := vars[name]; return text, ok }
	if _, err := findTools(t.Context(), e, lang); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return vars
}

// TestStartersPassTheirOwnTest takes each language the way of its README: begin, build,
// test, inspect, with nothing but the toolchain.
func TestStartersPassTheirOwnTest(t *testing.T) {
	t.Parallel()
	for _, lang := range starter.Languages() {
		t.Run(lang.Name, func(t *testing.T) {
			t.Parallel()
			vars := toolchain(t, lang)
			dir := filepath.Join(t.TempDir(), "acme-"+lang.Name)
			mustFourgate(t, nil, "plugin", "new", "-lang", lang.Name, dir)
			if out := mustFourgate(t, vars, "plugin", "build", dir); !strings.Contains(out, "sha256 ") {
				t.Errorf("build printed %q", out)
			}
			out := mustFourgate(t, vars, "plugin", "test", "-timeout", "1s", dir)
			for _, want := range []string{"class        6 of 6", "scope        6 of 6", "retry-after  3 of 3"} {
				if !strings.Contains(out, want) {
					t.Errorf("test printed no %q:\n%s", want, out)
				}
			}
			out = mustFourgate(t, vars, "plugin", "inspect", dir)
			wasi := lang.Profile != ""
			if !strings.Contains(out, `classifier "acme-`+lang.Name+`"`) || strings.Contains(out, `profile = "wasi"`) != wasi || strings.Contains(out, "wasi_snapshot_preview1") != wasi {
				t.Errorf("inspect printed:\n%s", out)
			}
			if example := exampleOf(t, lang); example != "" {
				t.Run("example of the manual", func(t *testing.T) { buildsExample(t, lang, vars, example) })
			}
			t.Run("build.sh", func(t *testing.T) {
				sameByScript(t, dir, vars)
			})
			if lang.Name == "go" {
				t.Run("memory", func(t *testing.T) { remembersNothing(t, dir, vars) })
			}
		})
	}
}

// exampleOf returns the manual's example in a language, empty if it has none.
func exampleOf(t *testing.T, lang starter.Language) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "plugins.md"))
	if err != nil {
		t.Fatal(err)
	}
	tag := map[string]string{"assemblyscript": "ts"}[lang.Name]
	if tag == "" {
		tag = lang.Name
	}
	_, block, _ := strings.Cut(string(text), "```"+tag+"\n")
	block, _, _ = strings.Cut(block, "```")
	return block
}

func buildsExample(t *testing.T, lang starter.Language, vars map[string]string, example string) {
	dir := filepath.Join(t.TempDir(), "example")
	mustFourgate(t, nil, "plugin", "new", "-lang", lang.Name, dir)
	if err := os.WriteFile(filepath.Join(dir, lang.Source), []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	mustFourgate(t, vars, "plugin", "build", dir)
	out := mustFourgate(t, nil, "plugin", "test", "-timeout", "1s", "-min-class", "0", dir)
	if lang.Name == "assemblyscript" && !strings.Contains(out, "class        6 of 6") {
		t.Errorf("the example has other general rules than the starter:\n%s", out)
	}
}

// sameByScript builds with the script of the directory, which must give the same module.
func sameByScript(t *testing.T, dir string, vars map[string]string) {
	module := filepath.Join(dir, starter.Module)
	want, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(module); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "build.sh"))
	cmd.Env = os.Environ()
	for name, value := range vars {
		if name == "RUSTC" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build.sh: %v\n%s", err, out)
	}
	got, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("build.sh gave another module of %d bytes, want %d", len(got), len(want))
	}
}

// remembersNothing gives a Go plugin a memory and shows that it has none: each case is
// run by a program that has just begun.
func remembersNothing(t *testing.T, dir string, vars map[string]string) {
	const forgetful = `package main

import "acme_go/fourgate"

var (
	seen  = map[string]int{}
	calls int64
	kept  []byte
)

//go:wasmexport fourgate_abi_1
func abi() {}

//go:wasmexport classify
func classify() {
	calls++
	seen[fourgate.Body()]++
	kept = append(kept, make([]byte, 1000)...)
	fourgate.Answer(fourgate.RateLimited, fourgate.ScopeKey, "requests", calls*1000+int64(len(seen))*100+int64(len(kept)))
}

func main() {}
`
	if err := os.WriteFile(filepath.Join(dir, "classifier.go"), []byte(forgetful), 0o600); err != nil {
		t.Fatal(err)
	}
	mustFourgate(t, vars, "plugin", "build", dir)
	_, out, stderr := fourgate(t, vars, "plugin", "test", "-json", "-timeout", "1s", dir)
	if strings.Contains(stderr, "two verdicts") {
		t.Error(stderr)
	}
	var got resultsForm
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr)
	}
	for _, c := range got.Cases {
		if ms := c.Got.RetryAfterMS; ms == nil || *ms != 2100 {
			t.Errorf("%s: the program remembers: %+v", c.ID, c.Got)
		}
	}
}

// TestLearn takes an unknown failure from the wire to a corpus line that the test reads.
func TestLearn(t *testing.T) {
	t.Parallel()
	const secret = "what-the-caller-asked"
	r := example(t, "kunavo", "a", "b", "c")
	for range 2 {
		r.script("a", "status=418 body=`"+`{"error":{"code":"teapot","message":"`+secret+`","hints":[{"wait":"1s"}]}}`+"`")
		r.script("b", "status=418")
		r.script("c", "status=418")
		if status, story := r.ask("gpt-4o-2024-08-06"); !strings.Contains(story, "unknown") {
			t.Fatalf("the failure is known: %d %s", status, story)
		}
	}
	r.proxy.end(t)
	out := mustFourgate(t, nil, "plugin", "learn", "-ledger", r.ledger)
	if strings.Contains(out, secret) || strings.Contains(out, "teapot") {
		t.Errorf("the lines tell what was said:\n%s", out)
	}
	first, _, _ := strings.Cut(out, "\n")
	for _, want := range []string{`"status":418`, `{\"error\":{\"code\":\"?\",\"hints\":[{\"wait\":\"?\"}],\"message\":\"?\"}}`, `"class":"unknown"`, "Seen 2 times"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first line has no %s:\n%s", want, first)
		}
	}
	corpus := filepath.Join(t.TempDir(), "learnt.jsonl")
	if err := os.WriteFile(corpus, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := fourgate(t, nil, "plugin", "test", "-min-class", "0", "builtin", corpus); code != 0 {
		t.Errorf("the lines are no corpus: %s", stderr)
	}
	if timeline := mustFourgate(t, nil, "ledger", "list", "-json", "-ledger", r.ledger); !strings.Contains(timeline, `"shape":{`) || strings.Contains(timeline, secret) {
		t.Errorf("the record: %s", timeline)
	}
	asJSON := mustFourgate(t, nil, "plugin", "learn", "-json", "-ledger", r.ledger)
	if !strings.Contains(asJSON, `"count":2`) || !strings.Contains(asJSON, `"shape":{"transport":"http","status":418`) {
		t.Errorf("as JSON: %s", asJSON)
	}
	for since, want := range map[string]bool{"1h": true, "2020-01-01T00:00:00Z": true, "2100-01-01T00:00:00Z": false} {
		some := mustFourgate(t, nil, "plugin", "learn", "-since", since, "-ledger", r.ledger)
		if (some != "") != want {
			t.Errorf("since %s: %q", since, some)
		}
	}
}
