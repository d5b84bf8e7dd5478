package matrix

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
)

type htmlWriter interface{ WriteHTML(w io.Writer) error }

func pageOf(t *testing.T, r htmlWriter) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	tableCell = regexp.MustCompile(`<td class="[^"]*"(?: data-kind="[a-z]*")? rowspan="(\d+)" colspan="(\d+)"`)
	reaches   = regexp.MustCompile(`(?i)\b(src|href|action)=|@import|url\(|<link|<iframe|<img|fetch\(`)
)

// A page is well-formed, reaches for nothing, and each of its maps has all cells of a class.
func checkPage(t *testing.T, html string, maps int) {
	t.Helper()
	if found := reaches.FindString(html); found != "" {
		t.Errorf("the page reaches outside with %q", found)
	}
	cells := 0
	for _, m := range tableCell.FindAllStringSubmatch(html, -1) {
		rows, _ := strconv.Atoi(m[1])
		columns, _ := strconv.Atoi(m[2])
		cells += rows * columns
	}
	if cells != maps*perClass {
		t.Errorf("the tiles hold %d cells, want those of %d classes", cells, maps)
	}
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	open := []string{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			open = append(open, token.Name.Local)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != token.Name.Local {
				t.Fatalf("</%s> closes %v", token.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("not closed: %v", open)
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	m := matrixOf(t, policies.Options{})
	m.Revision, m.Sources = "abc123", map[string]string{m.Answers[0].Decision.Rule: "rule & <text>"}
	html := pageOf(t, m)
	checkPage(t, html, len(classes))
	for _, want := range []string{
		`<html lang="en">`, "revision <span class=\"mono\">abc123", `scope="rowgroup"`, `scope="colgroup"`, "prefers-color-scheme: dark", "@media print",
		"builtin:decision.rego:", "request.caller", "rule &amp; &lt;text&gt;", "72 cells, 10.3 %",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(html, "<section"); n != len(classes) {
		t.Errorf("%d maps", n)
	}
}

func TestPageOfSomeCells(t *testing.T) {
	t.Parallel()
	set, err := policies.Load(context.Background(), policies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	answers, err := Ask(context.Background(), set, Default(), []engine.Class{engine.ClassKeyFault}, nil)
	if err != nil || len(answers) != perClass {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	m := &Matrix{Facts: Default(), Answers: Only(answers, []engine.Action{engine.Fallback})}
	checkPage(t, pageOf(t, m), 1)
}

func TestDiffPage(t *testing.T) {
	t.Parallel()
	from, to := matrixOf(t, policies.Options{}), matrixOf(t, policies.Options{Profile: "kunavo"})
	html := pageOf(t, Compare(from, to, nil))
	checkPage(t, html, 2)
	if !strings.Contains(html, "Rules of A") || !strings.Contains(html, "caller_mistake") || strings.Contains(html, "data-show={{") {
		t.Error("the page lacks its rules or reasons")
	}
	checkPage(t, pageOf(t, Compare(from, from, nil)), 0)
}

// What a policy's author writes is text in the page and nothing else.
func TestPageEscapes(t *testing.T) {
	t.Parallel()
	const evil = `"><script>alert(1)</script>`
	m := asked(t, evil, always(engine.Decision{
		Action: engine.Fallback, Channel: evil, Rule: evil + ":1", Why: evil,
	}))
	m.Revision = evil
	if err := m.Facts.Set("request.caller=" + evil); err != nil {
		t.Fatal(err)
	}
	m.Sources = map[string]string{evil + ":1": evil}
	faulty := asked(t, evil, always(engine.Decision{Fault: evil, Why: evil, Rule: evil}))
	for _, r := range []htmlWriter{m, Compare(m, faulty, nil)} {
		html := pageOf(t, r)
		if strings.Contains(html, "<script>alert") || strings.Count(html, "<script>") != 1 {
			t.Error("text of a policy has become markup")
		}
	}
}
