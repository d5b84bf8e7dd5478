package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// block is a fenced block of a manual. After the language its head may name a file.
type block struct {
	language, file, text string
	line                 int
}

// blocksOf reads the fenced blocks of a manual in order.
func blocksOf(text string) []block {
	var blocks []block
	var open *block
	for i, line := range strings.SplitAfter(text, "\n") {
		head, fence := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "```")
		switch {
		case fence && open == nil:
			language, file, _ := strings.Cut(head, " ")
			open = &block{language: language, file: file, line: i + 1}
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	return blocks
}

// reader follows a manual as its reader would: writes its files, runs its commands, and
// compares what they print with what the manual shows.
type reader struct {
	t       *testing.T
	addrs   *strings.Replacer // of the manual to free ones
	proxy   *command
	reloads int
	line    int
}

// TestTutorial does what docs/policy-tutorial.md says, word by word, in a directory of its
// own. Not parallel, because its paths are relative to that.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile("../../docs/policy-tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(t.TempDir(), "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	r := &reader{t: t, addrs: strings.NewReplacer(
		"127.0.0.1:9101", freeAddr(t), "127.0.0.1:8080", freeAddr(t), "127.0.0.1:8081", freeAddr(t),
	)}
	var printed, command string
	for _, b := range blocksOf(string(text)) {
		r.line = b.line
		b.text = r.addrs.Replace(b.text)
		switch {
		case b.file != "":
			r.write(b.file, b.text)
		case b.language == "sh":
			for line := range strings.Lines(b.text) {
				command = strings.TrimSpace(line)
				printed = r.do(command)
			}
		case b.language == "yaml":
			for line := range strings.Lines(b.text) {
				if step, found := strings.CutPrefix(strings.TrimSpace(line), "- run: "); found {
					r.do(step)
				}
			}
		case b.language == "text":
			r.compare(command, printed, b.text)
		default:
			t.Errorf("line %d: nothing is done with a block of %q", b.line, b.language)
		}
	}
	if r.reloads != 2 {
		t.Errorf("the tutorial has %d reloads, want 2", r.reloads)
	}
}

// freeAddr is an address where nobody listens a moment later.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// write puts a file where the manual says. A proxy that runs takes it over.
func (r *reader) write(name, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		r.t.Fatal(err)
	}
	// In one step, or a slow machine might reload a file that is half written, and again.
	next := filepath.Join(r.t.TempDir(), "next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(next, name); err != nil {
		r.t.Fatal(err)
	}
	if r.proxy != nil && strings.HasSuffix(name, ".hcl") {
		r.awaitReload()
	}
}

// awaitReload waits until the proxy has reloaded, and has the policy that the configuration
// names now.
func (r *reader) awaitReload() {
	r.t.Helper()
	r.reloads++
	r.proxy.stderr.await(r.t, "reloaded")
	_, rest, _ := strings.Cut(r.run("matrix", "policy", "matrix", "-c", "conf", "config"), "revision ")
	revision, _, _ := strings.Cut(rest, ":")
	_, admin, _ := strings.Cut(r.proxy.stdout.await(r.t, "metrics and health on "), "metrics and health on ")
	admin, _, _ = strings.Cut(admin, "\n")
	want := fmt.Sprintf(`fourgate_policy_info{group="gpt-4o",revision=%q} 1`, revision)
	for limit := time.Now().Add(waitLimit); !strings.Contains(fetch(r.t, admin+"/metrics"), want); {
		if time.Now().After(limit) {
			r.t.Fatalf("the proxy never had policy %s", revision)
		}
	}
}

// do runs a command of the manual and returns what it prints. Of other programs it knows
// those that the manual uses.
func (r *reader) do(line string) string {
	r.t.Helper()
	words, background := wordsOf(line), false
	if words[len(words)-1] == "&" {
		words, background = words[:len(words)-1], true
	}
	switch {
	case words[0] == "fourgate" && background:
		c := startAt(r.t, new(movable), nil, words[1:]...)
		if words[1] == "serve" {
			r.proxy = c
			c.stdout.awaitFrom(r.t, "serves on ", c.done)
		} else {
			c.stdout.awaitFrom(r.t, "http://", c.done)
		}
		return ""
	case words[0] == "fourgate":
		return r.run(line, words[1:]...)
	case words[0] == "curl":
		return r.curl(words[1:])
	case strings.HasPrefix(line, "opa test "):
		// Elsewhere it is proved that both have the same outcome.
		return r.run(line, "policy", "test", "-with-defaults=false", words[2])
	case strings.HasPrefix(line, "opa check "):
		return r.run(line, "policy", "check", words[len(words)-1])
	case line == "git worktree add ../main main":
		// On the main branch the default policy is in force.
		for _, name := range []string{"conf/fourgate.hcl", "conf/policy.hcl"} {
			text, err := os.ReadFile(name)
			if err != nil {
				r.t.Fatal(err)
			}
			if err := os.MkdirAll("../main/conf", 0o700); err != nil {
				r.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join("../main", name), text, 0o600); err != nil {
				r.t.Fatal(err)
			}
		}
		return ""
	}
	r.t.Fatalf("line %d: nobody knows how to run %q", r.line, line)
	return ""
}

func (r *reader) run(line string, args ...string) string {
	r.t.Helper()
	code, out := runOnce(r.t, args...)
	for limit := time.Now().Add(waitLimit); code != exitOK && askedLater(line) && time.Now().Before(limit); {
		code, out = runOnce(r.t, args...)
	}
	if code != exitOK {
		r.t.Errorf("block at line %d: %q ends with %d:\n%s", r.line, line, code, out)
	}
	return out
}

// curl does what curl does with -H and -d.
func (r *reader) curl(words []string) string {
	r.t.Helper()
	var url, body string
	var header []string
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			header = append(header, name, value)
		case "-d":
			i++
			body = words[i]
		default:
			url = words[i]
		}
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// askedLater says that a command reads the ledger, where a request appears a moment later.
func askedLater(line string) bool { return strings.HasPrefix(line, "fourgate ledger ") }

// compare wants what a command has printed to be what the manual shows, where … stands for
// anything.
func (r *reader) compare(command, printed, want string) {
	r.t.Helper()
	pattern := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*?") + "$")
	for limit := time.Now().Add(waitLimit); !pattern.MatchString(printed); printed = r.do(command) {
		if !askedLater(command) || time.Now().After(limit) {
			r.t.Errorf("block at line %d: %q prints\n%s\nwant\n%s", r.line, command, printed, want)
			return
		}
	}
}

// wordsOf splits a command line as a shell does that knows single quotes only.
func wordsOf(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
