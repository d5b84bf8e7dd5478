package starter

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/agext/levenshtein"
)

// Module is the name of the built module in a plugin's directory.
const Module = "classifier.wasm"

// Corpus is the name of the corpus in a plugin's directory.
const Corpus = "corpus.jsonl"

// Step is one command of a build. It runs in the plugin's directory.
type Step struct {
	Env  []string // NAME=value, beside what the process has
	Args []string // the first one is the tool
	// Once names a path that the step makes and needs to be made but once, unless the
	// file After is newer; empty for a step that always runs.
	Once, After string
}

// Tool is a program that a build needs.
type Tool struct {
	Name     string
	Override string // the environment variable that may name another one, such as CC
	Install  string // how to get it
}

// Language is a language in which a plugin can be begun.
type Language struct {
	Name    string // as -lang has it
	Title   string
	Source  string // the file that tells the language of a directory
	SDK     string // where Fourgate's functions are written
	Needs   string // for the README
	Profile string // of the built module, "" for the default
	Tools   []Tool
	Steps   []Step
}

// Languages returns all languages, in the order of the help.
func Languages() []Language {
	return []Language{
		{
			Name: "go", Title: "Go", Source: "classifier.go", SDK: "fourgate/", Needs: "Go 1.24", Profile: "wasi",
			Tools: []Tool{{"go", "", "install Go 1.24 or later from https://go.dev/dl"}},
			Steps: []Step{{
				Env:  []string{"GOOS=wasip1", "GOARCH=wasm"},
				Args: []string{"go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", Module, "."},
			}},
		},
		{
			Name: "rust", Title: "Rust", Source: "classifier.rs", SDK: "fourgate.rs", Needs: "rustc with the target wasm32-unknown-unknown",
			Tools: []Tool{{"rustc", "RUSTC", "install it with rustup (then: rustup target add wasm32-unknown-unknown), or: apt-get install rustc libstd-rust-dev-wasm32 lld"}},
			Steps: []Step{{Args: []string{
				"rustc", "--edition", "2021", "--crate-type", "cdylib", "--target", "wasm32-unknown-unknown", "-C", "opt-level=s", "-C", "panic=abort",
				"-C", "target-cpu=mvp", "-C", "strip=symbols", "-C", "link-arg=-zstack-size=8192", "-o", Module, "classifier.rs",
			}}},
		},
		{
			Name: "assemblyscript", Title: "AssemblyScript", Source: "classifier.ts", SDK: "sdk/", Needs: "Node 20 and npm",
			Tools: []Tool{
				{"node", "", "install Node 20 or later from https://nodejs.org, or: apt-get install nodejs"},
				{"npm", "", "it comes with Node, or: apt-get install npm"},
			},
			Steps: []Step{
				{Args: []string{"npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"}, Once: "node_modules/.package-lock.json", After: "package-lock.json"},
				{Args: []string{"node", "sdk/build.mjs", "classifier.ts", Module}},
			},
		},
		{
			Name: "c", Title: "C", Source: "classifier.c", SDK: "fourgate.h", Needs: "clang and lld",
			Tools: []Tool{
				{"clang", "CC", "install it with: apt-get install clang lld (macOS: brew install llvm lld)"},
				{"wasm-ld", "", "install it with: apt-get install lld (macOS: brew install lld)"},
			},
			Steps: []Step{{Args: []string{
				"clang", "--target=wasm32", "-mcpu=mvp", "-Os", "-Wall", "-Wextra", "-ffreestanding", "-nostdlib",
				"-Wl,--no-entry", "-Wl,--strip-all", "-Wl,-z,stack-size=8192", "-o", Module, "classifier.c",
			}}},
		},
	}
}

// Lookup returns the language of a name.
func Lookup(name string) (Language, error) {
	var names []string
	near, distance := "", 3
	for _, l := range Languages() {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
		if d := levenshtein.Distance(name, l.Name, nil); d < distance {
			near, distance = l.Name, d
		}
	}
	for short, long := range map[string]string{"golang": "go", "rs": "rust", "as": "assemblyscript", "ts": "assemblyscript", "typescript": "assemblyscript", "c++": "c", "cpp": "c"} {
		if strings.EqualFold(name, short) {
			near = long
		}
	}
	if near != "" {
		return Language{}, fmt.Errorf("there is no language %q; did you mean %q?", name, near)
	}
	return Language{}, fmt.Errorf("there is no language %q; use one of %s", name, strings.Join(names, ", "))
}

// Detect returns the language of a plugin's directory by its files.
func Detect(dir fs.FS) (Language, error) {
	var found []Language
	var sources []string
	for _, l := range Languages() {
		sources = append(sources, l.Source)
		if info, err := fs.Stat(dir, l.Source); err == nil && !info.IsDir() {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Language{}, fmt.Errorf("it has none of %s; 'fourgate plugin new' begins a plugin", strings.Join(sources, ", "))
	}
	return Language{}, fmt.Errorf("it has %s and %s; keep one classifier in a directory", found[0].Source, found[1].Source)
}
