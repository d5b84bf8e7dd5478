package hcl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodProvider = `
provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("OPENAI_API_KEY") }
}
`

const goodGroup = `
route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
}
`

// The pictures that a person sees, for mistakes of different kinds.
func TestPictures(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"unknown_argument", "undefined_provider", "silent_substitution", "listen_public_without_callers",
		"secret_literal", "secret_unset", "duration_without_unit", "duplicate_provider", "later_store",
		"syntax_one_line_block", "unknown_key_argument", "base_url_with_password",
	} {
		_, diags := Load(filepath.Join("testdata", "invalid", name+".hcl"), testEnvironment())
		golden(t, filepath.Join("testdata", "pictures", name+".txt"), picture(t, diags))
	}
}

func TestPictureInColor(t *testing.T) {
	t.Parallel()
	_, diags := Load("testdata/invalid/unknown_strategy.hcl", testEnvironment())
	var out bytes.Buffer
	if err := WriteDiagnostics(&out, diags, true, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\x1b[31mError") || !strings.Contains(out.String(), "\x1b[1;4m\"costs\"") {
		t.Errorf("severity and source aren't coloured:\n%q", out.String())
	}
}

// A syntax error hides nothing of the other files, and what only seems to be missing
// because of it isn't reported.
func TestOtherFilesAfterSyntaxError(t *testing.T) {
	t.Parallel()
	cfg, diags := Load("testdata/broken", testEnvironment())
	if cfg != nil {
		t.Error("a configuration in spite of errors")
	}
	var got []string
	for _, d := range diags {
		got = append(got, fmt.Sprintf("%s:%d %s", filepath.Base(d.File), d.Line, d.Summary))
	}
	want := []string{
		"10-syntax.hcl:2 Invalid expression",
		"20-groups.hcl:4 Unknown word",
		"30-server.hcl:2 Not a size",
		"30-server.hcl:4 Defined twice",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One run reports the mistakes of every kind together, in the order of the file.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	_, diags := Load("x.hcl", inMemory(map[string]string{"x.hcl": `server {
  listn = "127.0.0.1:1"
  max_body = "1"
}
provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("UNSET") }
}
route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  evidence { mode = "warn" }
  channel "a" { provider = provider.opnai }
  channel "b" {
    provider = provider.openai
    send_as  = { "gpt-4o-2024-08-06" = "gpt-4o-mini" }
  }
}
`}))
	want := []string{
		"2 error: Unknown argument",
		"3 error: Not a size",
		"7 error: Missing secret",
		"12 error: Not supported by this version",
		"13 error: Reference to an undefined block",
		"16 error: Other model name without a statement",
	}
	if diff := cmp.Diff(want, found(diags)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, picture(t, diags))
	}
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	suggests := func(mistake, want string) {
		t.Helper()
		_, diags := Load("x.hcl", inMemory(map[string]string{"x.hcl": goodProvider + goodGroup + mistake}))
		if text := picture(t, diags); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	suggests(`servr {}`, `Did you mean "server"?`)
	suggests("server {\n  adminlisten = \"\"\n}", `Did you mean "admin_listen"?`)
	suggests("server {\n  zzz = 1\n}", `What may stand here: listen, admin_listen,`)
	suggests("ledger {\n  store = \"sqlit\"\n}", `Did you mean "sqlite"?`)
	suggests("provider \"b\" {\n  base_url = \"http://b\"\n  auth = \"none\"\n  classifier = classifier.gemini\n}",
		`Define it: classifier "gemini" { module = "builtin:gemini" }.`)
	suggests("caller \"a\" {\n  groups = [route_group.gpt-4]\n}", `Did you mean route_group.gpt-4o?`)
}

// A file that isn't there and a directory without files say so without a place.
func TestNothingToRead(t *testing.T) {
	t.Parallel()
	summaryOf := func(path string, env Environment) string {
		cfg, diags := Load(path, env)
		if cfg != nil || len(diags) != 1 {
			t.Fatalf("%s: %v", path, diags)
		}
		if text := picture(t, diags); !strings.Contains(text, path) {
			t.Errorf("the path isn't named:\n%s", text)
		}
		return diags[0].Summary
	}
	if got := summaryOf("no-such.hcl", Environment{}); got != "Cannot read the configuration" {
		t.Error(got)
	}
	if got := summaryOf(t.TempDir(), Environment{}); got != "Directory has no configuration" {
		t.Error(got)
	}
}

// JSON has the same rules and the same places.
func TestJSONMistakes(t *testing.T) {
	t.Parallel()
	mistake := func(text, want string) {
		t.Helper()
		_, diags := Load("x.hcl.json", inMemory(map[string]string{"x.hcl.json": text}))
		for _, got := range found(diags) {
			if got == want {
				return
			}
		}
		t.Errorf("no %q in:\n%s", want, picture(t, diags))
	}
	mistake("{\n\"servr\": {}}", "2 error: Unknown argument")
	mistake("[{\n\"servr\": {}}]", "2 error: Unknown argument")
	mistake("{\n\"server\": 5}", "2 error: Incorrect JSON value type")
	mistake("{\n\"telemetry\": {}}", "2 error: Not supported by this version")
	mistake("{\"server\": {\n\"listen\": [1]}}", "2 error: Wrong type of value")
	mistake("{\"provider\": {\"a\": {\"key\": {\"m\": {\n\"secret\": \"hunter2\"}}}}}", "2 error: Secret written into the configuration")
	mistake("{\"provider\": {\"a\": {\"key\": {\"m\": {\n\"secret\": \"env(\\\"UNSET\\\")\"}}}}}", "2 error: Missing secret")
	mistake("{\"route_group\": {\"g\": {\"channel\": {\"c\": {\n\"provider\": \"a b\"}}}}}", "2 error: Not a reference")
	mistake("{\"route_group\": {\"g\": {\"channel\": {\"c\": {\n\"provider\": \"provider.a\"}}}}}", "2 error: Reference to an undefined block")
	mistake("{\"route_group\": {\"g\": {\"channel\": {\"c\": {\n\"cost\": {\"inptu\": 1}}}}}}", "2 error: Unknown argument")
}

// docs/configuration.md names every block and every argument, and no other.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]*shape{
		"server": &serverShape, "server.tls": &serverTLSShape, "provider.tls": &providerTLSShape, "classifier": &classifierShape, "provider": &providerShape, "key": &keyShape,
		"timeouts": &timeoutsShape, "route_group": &groupShape, "channel": &channelShape, "cost": &costShape,
		"budget": &budgetShape, "backoff": &backoffShape, "breaker": &breakerShape, "caller": &callerShape,
		"policy": &policyShape, "bundle": &bundleShape, "policy.shadow": &policyShadowShape, "route_group.policy": &groupPolicyShape, "classifier.shadow": &classifierShadowShape, "retry_budget": &retryBudgetShape, "ledger": &ledgerShape,
	}
	heading := regexp.MustCompile("^#{2,4} `([a-z_.]+)`")
	row := regexp.MustCompile("^\\| `([a-z_0-9]+)` \\|")
	documented := map[string]map[string]bool{}
	current := ""
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") {
			current = ""
			if m := heading.FindStringSubmatch(line); m != nil {
				current = m[1]
				documented[current] = map[string]bool{}
			}
		} else if m := row.FindStringSubmatch(line); m != nil && current != "" {
			documented[current][m[1]] = true
		}
	}
	for name, shape := range sections {
		want := map[string]bool{}
		for _, attr := range shape.attrs {
			want[attr] = true
		}
		if diff := cmp.Diff(want, documented[name]); diff != "" {
			t.Errorf("%s (-language +documented):\n%s", name, diff)
		}
	}
}

// docs/configuration.md says the bounds that Load enforces.
func TestDocumentedBounds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(block, argument, value, detail, documented string) {
		t.Helper()
		_, diags := Load("x.hcl", inMemory(map[string]string{"x.hcl": fmt.Sprintf(block, argument+" = "+value)}))
		if shown := picture(t, diags); !strings.Contains(shown, detail) {
			t.Errorf("no %q in:\n%s", detail, shown)
		}
		row := regexp.MustCompile("(?m)^\\| `" + argument + "` \\|.*" + regexp.QuoteMeta(documented))
		if !row.Match(text) {
			t.Errorf("no %q for %s in the documentation", documented, argument)
		}
	}
	const retry, breaker = "retry_budget {\n%s\n}", "route_group \"g\" {\nbreaker {\n%s\n}\n}"
	refuses(retry, "ratio", "1.1", "between 0 and 1.", "; 0 to 1 |")
	refuses(retry, "floor", "1001", "between 0 and 1000.", "; 0 to 1000 |")
	refuses(retry, "cap", "-1", "between 0 and 1000000.", "; 0 to 1,000,000 |")
	refuses("caller \"c\" {\nbudget {\n%s\n}\n}", "max_cost_usd", "0", "between 0.000001 and 10000.", "; 0.000001 to 10,000 |")
	refuses(breaker, "failures", "0", "between 1 and 10000.", "; 1 to 10,000 |")
	refuses(breaker, "half_open_probes", "101", "between 0 and 100.", "; 0 to 100 |")
	refuses(breaker, "window", `"0s"`, "between 1ms and 24h.", "; `\"1ms\"` to `\"24h\"` |")
	refuses(breaker, "open_for", `"25h"`, "between 1ms and 24h.", "; `\"1ms\"` to `\"24h\"` |")
}

// The examples of docs/configuration.md are what Load reads.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?ms)^```(hcl|json)\n(.*?)^```$")
	examples := fence.FindAllStringSubmatch(string(text), -1)
	if len(examples) < 8 {
		t.Fatalf("found %d examples", len(examples))
	}
	complete := 0
	for _, example := range examples {
		name := "x." + strings.Replace(example[1], "json", "hcl.json", 1)
		cfg, diags := Load(name, inMemory(map[string]string{name: example[2]}))
		if cfg != nil {
			complete++
		}
		for _, d := range diags {
			switch d.Summary {
			case "No route group", "Reference to an undefined block", "Missing secret", "Unused classifier", "Unused provider",
				"File cannot be read":
				// An example of one block lacks the others, and the files.
			default:
				t.Errorf("%s:\n%s", d, example[2])
			}
		}
	}
	if complete != 2 {
		t.Errorf("%d examples are complete, want the smallest configuration in both syntaxes", complete)
	}
}
