// Command tally reads the output of "go test -json" on its standard input, prints
// what failed in full, one line for each package, and the totals. It exits 1 if
// anything failed. Only leaves are counted: a test with subtests stands for them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is one line of the test2json format; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// test is what is known of one test, or of a package when it stands under "".
type test struct {
	result string
	output strings.Builder
	parent bool // it has subtests
	seen   bool // it is one; a name with a slash in it only looks like it has a parent
}

// suite is everything that was read, in the order in which it came.
type suite struct {
	tests    map[string]map[string]*test
	order    []string
	build    map[string]*strings.Builder
	packages int
	failed   bool
	out      io.Writer
}

func main() {
	s := &suite{tests: map[string]map[string]*test{}, build: map[string]*strings.Builder{}, out: os.Stdout}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20) // one line of output can be long: a diff of goldens
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// The go command itself prints plain text when it can't even load packages.
			fmt.Fprintln(s.out, lines.Text())
			continue
		}
		s.take(e)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot read the test output:", err)
		os.Exit(1)
	}
	passed, failed, skipped := s.totals()
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || s.failed || s.packages == 0 {
		os.Exit(1)
	}
}

func (s *suite) take(e event) {
	if e.ImportPath != "" && strings.HasPrefix(e.Action, "build-") {
		if s.build[e.ImportPath] == nil {
			s.build[e.ImportPath] = &strings.Builder{}
		}
		s.build[e.ImportPath].WriteString(e.Output)
		if e.Action == "build-fail" {
			s.failed = true
			fmt.Fprintf(s.out, "--- FAIL: cannot build %s\n%s", e.ImportPath, s.build[e.ImportPath])
		}
		return
	}
	t := s.test(e.Package, e.Test)
	t.seen = true
	switch e.Action {
	case "output":
		t.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		t.result = e.Action
		if e.Test == "" {
			s.closePackage(e, t)
		}
	}
}

// test finds or makes the entry of one test and tells its parents that they are some.
func (s *suite) test(pkg, name string) *test {
	all := s.tests[pkg]
	if all == nil {
		all = map[string]*test{}
		s.tests[pkg] = all
		s.order = append(s.order, pkg)
	}
	t := all[name]
	if t == nil {
		t = &test{}
		all[name] = t
		for cut := strings.LastIndexByte(name, '/'); cut > 0; cut = strings.LastIndexByte(name[:cut], '/') {
			s.test(pkg, name[:cut]).parent = true
		}
	}
	return t
}

// closePackage prints one package's line, and the output of what failed in it.
func (s *suite) closePackage(e event, whole *test) {
	s.packages++
	mark := map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "none"}[e.Action]
	fmt.Fprintf(s.out, "%s  %s  %.1fs\n", mark, e.Package, e.Elapsed)
	if e.Action != "fail" {
		return
	}
	s.failed = true
	for _, name := range slices.Sorted(maps.Keys(s.tests[e.Package])) {
		t := s.tests[e.Package][name]
		// A test without a result was running when the process died.
		if name != "" && t.seen && t.result != "pass" && t.result != "skip" {
			fmt.Fprintf(s.out, "\n--- %s %s\n%s", e.Package, name, t.output.String())
		}
	}
	fmt.Fprint(s.out, whole.output.String())
}

func (s *suite) totals() (passed, failed, skipped int) {
	for _, pkg := range s.order {
		for name, t := range s.tests[pkg] {
			switch {
			case name == "" || !t.seen:
			case t.result == "skip":
				skipped++
			case t.result == "pass" && !t.parent:
				passed++
			case t.result == "pass":
			case !t.parent || !s.childFailed(pkg, name):
				failed++
			}
		}
	}
	return passed, failed, skipped
}

// childFailed says whether a subtest explains its parent's failure.
func (s *suite) childFailed(pkg, parent string) bool {
	for name, t := range s.tests[pkg] {
		if strings.HasPrefix(name, parent+"/") && t.result != "pass" && t.result != "skip" {
			return true
		}
	}
	return false
}
