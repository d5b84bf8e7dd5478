package hcl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A diagnostic that was made elsewhere is drawn with the line of its file, or without any.
func TestIllustrate(t *testing.T) {
	t.Parallel()
	env := inMemory(map[string]string{
		"a.rego":   "package a\n\n# the token (see below\ndäs := http.send({\"x\": 1})\n",
		"a.hcl":    "server {\n  admin_token = \"hunter2\"\n}\n",
		"big.rego": strings.Repeat("# \n", maxSourceBytes),
		"min.rego": strings.Repeat("#", maxSourceLine+1),
	})
	draws := func(d Diagnostic, want string) {
		t.Helper()
		d.Summary, d.Detail = "Wrong", "So it is."
		diags := Diagnostics{d}
		diags.Illustrate(env)
		if diff := cmp.Diff("Error: Wrong\n\n"+want+"\nSo it is.\n\n", picture(t, diags)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	draws(Diagnostic{File: "a.rego", Line: 4, Column: 8}, "  on a.rego line 4, column 8:\n   4: däs := http.send({\"x\": 1})\n")
	draws(Diagnostic{File: "a.rego", Line: 3, Column: 1}, "  on a.rego line 3, column 1:\n   3: # the token (see below\n")
	draws(Diagnostic{File: "a.rego", Line: 4, Column: 999}, "  on a.rego line 4, column 999:\n   4: däs := http.send({\"x\": 1})\n")
	draws(Diagnostic{File: "a.rego", Line: 9, Column: 1}, "  on a.rego line 9, column 1:\n")
	draws(Diagnostic{File: "a.rego", Line: 2, Column: 1}, "  on a.rego line 2, column 1:\n")
	draws(Diagnostic{File: "gone.rego", Line: 2, Column: 1}, "  on gone.rego line 2, column 1:\n")
	draws(Diagnostic{File: "big.rego", Line: 2, Column: 1}, "  on big.rego line 2, column 1:\n")
	draws(Diagnostic{File: "min.rego", Line: 1, Column: 1}, "  on min.rego line 1, column 1:\n")
	draws(Diagnostic{File: "a.hcl", Line: 2, Column: 3}, "  on a.hcl line 2, column 3:\n   2:   admin_token = \"***\n")

	diags := Diagnostics{{Summary: "Wrong", Detail: "So it is.", File: "a.rego", Line: 4, Column: 8}}
	diags.Illustrate(env)
	var out strings.Builder
	if err := WriteDiagnostics(&out, diags, true, 0); err != nil || !strings.Contains(out.String(), "däs := \x1b[1;4mhttp\x1b[0m.send") {
		t.Errorf("the word isn't marked: %q, %v", out.String(), err)
	}
	// The real file system has bounds, too.
	diags = Diagnostics{{File: "/dev/zero", Line: 1}, {File: "testdata", Line: 1}, {File: "source_test.go", Line: 1}}
	diags.Illustrate(Environment{})
	if diags[0].source != nil || diags[1].source != nil || diags[2].source == nil {
		t.Error("a device or a directory has a source, or a file has none")
	}
}

// A file that is too large to be read has a place and no line.
func TestNoSource(t *testing.T) {
	t.Parallel()
	_, diags := Load("x.hcl", inMemory(map[string]string{"x.hcl": strings.Repeat("#\n", maxFileBytes)}))
	if text := picture(t, diags); len(diags) != 1 || strings.Contains(text, "not available") || !strings.Contains(text, "on x.hcl line 1, column 1:") {
		t.Errorf("%s", text)
	}
}

func TestDetailsAreWrittenAsAPersonWrites(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"max_hops_above_channels": "the group has 1.", "second_attempt_unreachable": "may wait 4m for",
	} {
		_, diags := Load("testdata/warning/"+path+".hcl", testEnvironment())
		if text := picture(t, diags); !strings.Contains(text, want) || strings.Contains(text, "m0s") {
			t.Errorf("no %q, or m0s:\n%s", want, text)
		}
	}
}
