package hcl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// however returns every way in which Load shows a configuration's diagnostics.
func however(t *testing.T, diags Diagnostics) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(picture(t, diags))
	if err := WriteDiagnostics(&out, diags, true, 0); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, "%v\n%+v\n", diags, diags)
	for _, d := range diags {
		out.WriteString(d.String() + "\n")
	}
	if err := json.NewEncoder(&out).Encode(diags); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A secret that somebody wrote into the configuration, in whatever wrong way, isn't
// shown by any diagnostic about it or about its neighbours.
func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`provider "a" { secret = "hunter2hunter2" }`,
		"provider \"a\" {\n  key \"m\" { secret = \"hunter2hunter2\" }\n}",
		"provider \"a\" {\n  key \"m\" { secret = \"hunter2hunter2\n}\n}",
		"provider \"a\" {\n  key \"m\" { secret \"hunter2hunter2\" }\n}",
		"provider \"a\" {\n  key \"m\" { secret = hunter2hunter2 }\n}",
		"provider \"a\" {\n  key \"m\" {\n    secert = \"hunter2hunter2\"\n  }\n}",
		"provider \"a\" {\n  key \"m\" {\n    value = \"a}b hunter2hunter2\"\n  }\n}",
		"provider \"a\" {\n  key \"m\" {\n    secret = <<EOT\nhunter2hunter2\nEOT\n  }\n}",
		"provider \"a\" {\n  key \"m\" {\n    secret = <<EOT\nhunter2hunter2 ${\nEOT\n  }\n}",
		"provider \"a\" {\n  key \"m\" {\n    secret = [\n\"hunter2hunter2\"\n]\n  }\n}",
		"provider \"a\" {\n  key \"m\" {\n    secret =\n\"hunter2hunter2\"\n  }\n}",
		"provider \"a\" {\n  key \"m\" { secret = env(\"UNSET\", \"hunter2hunter2 x\") }\n}",
		"provider \"a\" {\n  key \"m\" { secret = env(\"EMPTY\", hunter2hunter2) }\n}",
		"provider \"a\" {\n  key \"m\" { secret = base64(\"hunter2hunter2\") }\n}",
		"provider \"a\" {\n  key \"m\" { secret = \"${env(\"X\")}hunter2hunter2\" }\n}",
		"provider \"a\" {\n  key \"m\" { secret = env(\"hunter2hunter2\") }\n}",
		"provider \"a\" {\n  key \"m\" { secret = file(\"hunter2hunter2\") }\n}",
		"provider \"a\" {\n  api_key = \"hunter2hunter2\"\n}",
		"provider \"a\" {\n  key = \"hunter2hunter2\"\n}",
		"provider \"a\" {\n  key = { secret = \"hunter2hunter2\" }\n}",
		"provider \"a\" {\n  base_url = \"https://me:hunter2hunter2@example.com:port\"\n}",
		"provider \"a\" {\n  keys = [\"sk-hunter2hunter2\"]\n}",
		"caller \"a\" {\n  key_sha256 = \"hunter2hunter2\"\n}",
		"caller \"a\" {\n  key = \"hunter2hunter2\"\n}",
		"server {\n  admin_token = \"hunter2hunter2\"\n  listn = 1\n}",
		"server {\n  admin_tokn = \"hunter2hunter2\"\n}",
		"server {\n  admin_token = true ? \"hunter2hunter2\" : \"\"\n}",
	} {
		for _, src := range []string{text, text + "\n}", "x = \n" + text, goodProvider + text} {
			_, diags := Load("x.hcl", inMemory(map[string]string{"x.hcl": src}))
			if !diags.HasErrors() {
				t.Errorf("accepted:\n%s", src)
			}
			if shown := however(t, diags); strings.Contains(shown, "hunter2") {
				t.Errorf("the secret of\n%s\nis shown:\n%s", src, shown)
			}
		}
	}
	for _, text := range []string{
		`{"provider": {"a": {"key": {"m": {"secret": "hunter2hunter2"}}}}}`,
		`{"provider": {"a": {"key": {"m": {"secret": "${hunter2hunter2}"}}}}}`,
		`{"provider": {"a": {"key": {"m": {"secret": "hunter2hunter2("}}}}}`,
		`{"provider": {"a": {"key": {"m": {"secret": ["hunter2hunter2"]}}}}}`,
		`{"provider": {"a": {"key": {"m": {"secret": hunter2hunter2}}}}}`,
		`{"provider": {"a": {"key": {"m": {"secert": "hunter2hunter2"}}}}}`,
		`{"provider": {"a": {"key": {"m": "hunter2hunter2"}}}}`,
		`{"provider": {"a": {"key": "hunter2hunter2"}}}`,
		`{"server": {"admin_token": "hunter2hunter2", "listn": 1}}`,
		`{"caller": {"a": {"key_sha256": "hunter2hunter2"}}}`,
	} {
		for _, src := range []string{text, strings.ReplaceAll(text, ": ", ":\n"), text + "x"} {
			_, diags := Load("x.hcl.json", inMemory(map[string]string{"x.hcl.json": src}))
			if !diags.HasErrors() {
				t.Errorf("accepted:\n%s", src)
			}
			if shown := however(t, diags); strings.Contains(shown, "hunter2") {
				t.Errorf("the secret of\n%s\nis shown:\n%s", src, shown)
			}
		}
	}
}

// The value of a secret that was read isn't shown either, by the configuration's
// formatters and by Format's diagnostics.
func TestSecretStaysInsideTheConfiguration(t *testing.T) {
	t.Parallel()
	cfg := load(t, "testdata/valid/full.hcl", testEnvironment())
	for _, shown := range []string{fmt.Sprintf("%v", cfg.Spec), fmt.Sprintf("%+v", *cfg), fmt.Sprintf("%#v", *cfg)} {
		if strings.Contains(shown, theSecret) {
			t.Errorf("a formatter shows a secret:\n%s", shown)
		}
	}
	_, diags := Format([]byte("provider \"a\" {\n  key \"m\" { secret = \"hunter2hunter2\n"), "x.hcl")
	if shown := however(t, diags); !diags.HasErrors() || strings.Contains(shown, "hunter2") {
		t.Errorf("Format shows a secret:\n%s", shown)
	}
}

// The length of a masked secret can't be told from the picture.
func TestMaskHidesLength(t *testing.T) {
	t.Parallel()
	shown := func(secret string) string {
		_, diags := Load("x.hcl", inMemory(map[string]string{
			"x.hcl": fmt.Sprintf("server {\n  admin_token = %q\n}\n", secret),
		}))
		return picture(t, diags)
	}
	if short, long := shown("abc"), shown(strings.Repeat("abc", 50)); short != long {
		t.Errorf("pictures differ:\n%s\n%s", short, long)
	}
}

// What isn't near a secret stays readable.
func TestMaskLeavesTheRest(t *testing.T) {
	t.Parallel()
	src := "server {\n  listen = \"127.0.0.1:1\"\n}\nroute_group \"g\" {\n  serves = \"x\"\n  auth = \"bearer\"\n}\n"
	if got := string(mask([]byte(src))); got != src {
		t.Errorf("got:\n%s", got)
	}
}
