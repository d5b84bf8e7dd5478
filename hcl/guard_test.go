package hcl

import (
	"strings"
	"testing"
)

// Sources that could overflow the stack of the recursive parser are refused before it
// sees them. Without the guard 60,000 open brackets end the process.
func TestGuard(t *testing.T) {
	t.Parallel()
	refused := func(filename, src, want string) {
		t.Helper()
		cfg, diags := Load(filename, inMemory(map[string]string{filename: src}))
		if cfg != nil || len(diags) != 1 || diags[0].Summary != want {
			t.Errorf("%.20q…: %v", src, diags)
		}
		if text := picture(t, diags); len(text) > 1000 {
			t.Errorf("%.20q…: the picture has %d bytes", src, len(text))
		}
		if filename == "x.hcl" {
			if out, diags := Format([]byte(src), filename); out != nil || !diags.HasErrors() || diags[0].Summary != want {
				t.Errorf("Format(%.20q…): %v", src, diags)
			}
		}
	}
	const deep, large = "Configuration is nested too deeply", "Configuration file is too large"
	for _, unit := range []string{"[", "{", "(", "a{", "\"${", "f(", "!", "-", "1+", "a?a:", "b?", "a[*]", "%{if a}"} {
		src := "a = " + strings.Repeat(unit, 20_000/len(unit))
		if strings.HasPrefix(unit, "%") {
			src = "a = \"" + strings.Repeat(unit, 20_000/len(unit))
		}
		refused("x.hcl", src, deep)
	}
	refused("x.hcl", "a = b"+strings.Repeat("[0]", 20_000), deep)
	refused("x.hcl", strings.Repeat("a {\n", 101), deep)
	refused("x.hcl", strings.Repeat("}", 1000)+strings.Repeat("[", 1000), deep)
	refused("x.hcl", "a = "+strings.Repeat("[ } ", 1000), deep)
	refused("x.hcl.json", strings.Repeat("}", 1000)+strings.Repeat("[", 1000), deep)
	refused("x.hcl", "a = <<X\n"+strings.Repeat("%{if a}", 20_000), deep)
	refused("x.hcl", strings.Repeat("#", maxFileBytes+1), large)
	refused("x.hcl.json", strings.Repeat("[", 20_000), deep)
	refused("x.hcl.json", strings.Repeat(`{"a":`, 20_000), deep)
	refused("x.hcl.json", `{"a":"`+strings.Repeat("${[", 20_000)+`"}`, deep)
	refused("x.hcl.json", `{"a":"`+strings.Repeat(`${\u005b`, 20_000)+`"}`, deep)
	refused("x.hcl.json", `{"a":"`+strings.Repeat("(", 20_000)+`"}`, deep)
	refused("x.hcl.json", `{"a":"`+strings.Repeat("!", 20_000)+`"}`, deep)
	refused("x.hcl.json", strings.Repeat(" ", maxFileBytes+1), large)
}

// Brackets in text and comments don't count, and neither do many shallow ones.
func TestGuardLetsPass(t *testing.T) {
	t.Parallel()
	passes := func(filename, src string) {
		t.Helper()
		if diag, ok := guard([]byte(src), filename); !ok {
			t.Errorf("%.30q…: %s", src, diag)
		}
	}
	passes("x.hcl", "# "+strings.Repeat("[", 1000))
	passes("x.hcl", "a = \""+strings.Repeat("[{(", 1000)+"\"")
	passes("x.hcl", strings.Repeat("a {\n  b = [1, 2, {}]\n}\n", 5000))
	passes("x.hcl.json", `{"a": "`+strings.Repeat("-", 500)+`"}`)
	passes("x.hcl.json", `[`+strings.Repeat(`{"a":[]},`, 5000)+`{}]`)
}
