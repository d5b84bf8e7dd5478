package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// manuals are the documents that are held against the product, by their paths from here.
func manuals(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("found no manuals: %v", err)
	}
	texts := map[string]string{}
	for _, name := range append(names, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

var (
	markdownLink = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	codeSpan     = regexp.MustCompile("`[^`\n]+`")
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// prose is a manual without its fenced blocks; the lines keep their numbers.
func prose(text string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		fence := strings.HasPrefix(line, "```")
		if fence {
			fenced = !fenced
		}
		if fenced || fence {
			line = "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// anchorsOf are the names that headings get on the usual hosts of Markdown.
func anchorsOf(text string) []string {
	var anchors []string
	for _, m := range heading.FindAllStringSubmatch(prose(text), -1) {
		title := markdownLink.ReplaceAllStringFunc(m[1], func(l string) string { return l[1:strings.Index(l, "]")] })
		name := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		unique := name
		for n := 1; slices.Contains(anchors, unique); n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		anchors = append(anchors, unique)
	}
	return anchors
}

// TestLinksOfTheManuals wants each relative link to lead to a file that is there, and each
// anchor to a heading of it.
func TestLinksOfTheManuals(t *testing.T) {
	t.Parallel()
	for name, text := range manuals(t) {
		text = codeSpan.ReplaceAllString(prose(text), "``")
		for _, at := range markdownLink.FindAllStringSubmatchIndex(text, -1) {
			link := text[at[2]:at[3]]
			if err := follow(name, link); err != nil {
				t.Errorf("%s:%d: %s: %v", name, 1+strings.Count(text[:at[0]], "\n"), link, err)
			}
		}
	}
}

// follow says why a link of a manual leads nowhere. Links to other hosts aren't followed.
func follow(from, link string) error {
	if strings.Contains(link, "://") {
		return nil
	}
	path, anchor, hasAnchor := strings.Cut(link, "#")
	to := from
	if path != "" {
		to = filepath.Join(filepath.Dir(from), path)
	}
	if !hasAnchor {
		_, err := os.Stat(to)
		return err
	}
	text, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	if anchors := anchorsOf(string(text)); !slices.Contains(anchors, anchor) {
		return fmt.Errorf("no such heading, the headings are %q", anchors)
	}
	return nil
}

// TestCommandsOfTheManuals wants each command line that a manual shows to be one that the
// program understands: the command, its flags with their values, the number of arguments.
func TestCommandsOfTheManuals(t *testing.T) {
	t.Parallel()
	tried := 0
	for name, text := range manuals(t) {
		try := func(line string, at int, whole bool) {
			args, isCommand := strings.CutPrefix(line, "fourgate ")
			if !isCommand {
				return
			}
			tried++
			if err := understood(words(args), whole); err != nil {
				t.Errorf("%s:%d: fourgate %s: %v", name, at, args, err)
			}
		}
		for _, b := range blocksOf(text) {
			joined := strings.ReplaceAll(b.text, "\\\n", " ")
			for line := range strings.Lines(joined) {
				line = strings.TrimPrefix(strings.TrimSpace(line), "- run: ")
				try(strings.TrimPrefix(line, "$ "), b.line, true)
			}
		}
		for i, line := range strings.Split(prose(text), "\n") {
			for _, span := range codeSpan.FindAllString(line, -1) {
				try(strings.Trim(span, "`"), i+1, false)
			}
		}
	}
	if tried < 90 {
		t.Errorf("the manuals show %d command lines, expected 90 and more", tried)
	}
}

// words splits a line as a shell does, without what comes after the command: a comment,
// a redirection, an ampersand.
func words(line string) []string {
	var out []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range line + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ' && begun:
			out = append(out, word.String())
			word.Reset()
			begun = false
		case c == ' ':
		case !begun && strings.ContainsRune("#>&|", c):
			return out
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	return out
}

// understood says why a command line would be wrong usage. Nothing is run. Within a
// sentence it need not be whole: arguments may be missing.
func understood(args []string, whole bool) error {
	e := &env{
		stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		lookup: func(string) (string, bool) { return "", false }, now: time.Now,
	}
	root := &cobra.Command{Use: "fourgate"}
	for _, command := range commands {
		root.AddCommand(command(e))
	}
	cmd, rest, err := root.Find(longFlags(root, args))
	if err != nil {
		return err
	}
	if cmd == root {
		return errors.New("no such command")
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if !whole && cmd.Flags().NArg() == 0 {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestTheConfigurationOfTheReadme wants the first configuration that anybody sees to be
// valid, and without a warning.
func TestTheConfigurationOfTheReadme(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "fourgate.hcl")
	for _, b := range blocksOf(manuals(t)["../../README.md"]) {
		if b.language == "hcl" {
			if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var printed strings.Builder
	e := &env{
		args: []string{"validate", "-c", file}, stdin: strings.NewReader(""), stdout: io.Discard, stderr: &printed,
		lookup: func(string) (string, bool) { return "secret", true }, now: time.Now,
	}
	if code := run(t.Context(), e); code != exitOK || printed.Len() > 0 {
		t.Errorf("validate exits with %d: %s", code, printed.String())
	}
}

var (
	ownName    = regexp.MustCompile(`\bfourgate_[a-z0-9_]*[a-z0-9]\b`)
	quotedName = regexp.MustCompile(`"(fourgate_[a-z_]*[a-z])"`)
)

// TestNamesOfTheManuals wants each name that begins with fourgate_, of a metric or an
// error code, to be one that the program has, and each one of the program to be in a manual.
func TestNamesOfTheManuals(t *testing.T) {
	t.Parallel()
	program := namesOfTheProgram(t)
	documented := map[string]bool{}
	for name, text := range manuals(t) {
		for _, n := range ownName.FindAllString(text, -1) {
			documented[n] = true
			if !program[n] {
				t.Errorf("%s names %s, which the program doesn't have", name, n)
			}
		}
	}
	for n := range program {
		if !documented[n] {
			t.Errorf("no manual says anything of %s", n)
		}
	}
}

var errorCode = regexp.MustCompile(`(?m)^\t[cC]ode\w+ +(?:code )?= "([a-z_]+)"`)

// TestCodesOfTheManual wants each code of an error of the gateway's own to be in
// docs/wire.md, because applications test for them.
func TestCodesOfTheManual(t *testing.T) {
	t.Parallel()
	wire, found := manuals(t)["../../docs/wire.md"], 0
	for _, source := range []string{"../../proxy/errors.go", "../../engine/reply.go"} {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range errorCode.FindAllStringSubmatch(string(text), -1) {
			if found++; !strings.Contains(wire, "`"+m[1]+"`") {
				t.Errorf("docs/wire.md says nothing of the code %s", m[1])
			}
		}
	}
	if found < 25 {
		t.Errorf("found %d codes in the sources, expected 25 and more", found)
	}
}

// namesOfTheProgram are the quoted words of the product's sources that begin with fourgate_.
func namesOfTheProgram(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{
		"fourgate_abi_1": true, // an export of a plugin
		"fourgate_test":  true, // a package of tests
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range quotedName.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
