package hcl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		"policy {\n  bundle {\n    url = \"https://me@example.com/p.tar.gz?sig=hunter2hunter2\"\n  }\n}",
		"policy {\n  bundle {\n    ur = \"https://example.com/p.tar.gz?sig=hunter2hunter2\"\n  }\n}",
		"provider \"a\" {\n  keys = [\"sk-hunter2hunter2\"]\n}",
		"caller \"a\" {\n  key_sha256 = \"hunter2hunter2\"\n}",
		"caller \"a\" {\n  key = \"hunter2hunter2\"\n}",
		"server {\n  admin_token = \"hunter2hunter2\"\n  listn = 1\n}",
		"server {\n  admin_tokn = \"hunter2hunter2\"\n}",
		"provider \"a\" {\n  key \"m\" {\n    value = \"a\"\n    \"hunter2hunter2\"\n  }\n}",
		"provider \"a {\n  key \"m { secret = \"hunter2hunter2\" }\n}",
		"server {\n  admin_token\n\"hunter2hunter2\"\n}",
		"server {\n  admin_token = \"a\" +\n\"hunter2hunter2\"\n}",
		"server {\n  admin_token = \"a\",\n\"hunter2hunter2\"\n}",
		"server {\n  admin_token = \"a\" // }\n  \"hunter2hunter2\"\n}",
		"server {\n  admin_token = (\"a}\" # )\n + \"hunter2hunter2\")\n}",
		"server {\n  listn = 1 # token: hunter2hunter2\n}",
		"server {\n  listn = { \"token\" = \"hunter2hunter2\" }\n}",
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
	for _, src := range []string{
		"server {\n  listen = \"127.0.0.1:1\"\n}\nroute_group \"g\" {\n  serves = \"x\"\n  auth = \"bearer\"\n}\n",
		"provider \"token-service\" {\n  auth = \"none\"\n}\n",
		"provider \"secret\" {\n  auth = \"none\"\n}\n",
		"route_group \"keys\" {\n  models = [\"token-1\"]\n}\n",
		"  channel \"a\" { provider = provider.secret_team }\n  channel \"b\" { provider = provider.key }\n",
	} {
		if got := string(mask([]byte(src))); got != src {
			t.Errorf("got:\n%s", got)
		}
	}
}

// A value that may be a secret is hidden to its end, however it is written, and the lines
// behind it are shown.
func TestMaskEndsWithTheValue(t *testing.T) {
	t.Parallel()
	const rest = "route_group \"g\" {\n  channel \"a\" { provider = provider.a }\n  budget {\n    deadline = \"4m\"\n  }\n}\n"
	shown := func(src, want string) {
		t.Helper()
		lines := strings.Split(string(mask([]byte(src+rest))), "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " ")
		}
		if diff := cmp.Diff(want+rest, strings.Join(lines, "\n")); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", src, diff)
		}
	}
	// Good syntax.
	shown("server {\n  admin_token = \"hunter2{\"\n  rpm = 1\n}\n", "server {\n  admin_token = \"***\n  rpm = 1\n}\n")
	shown("server {\n  admin_token = env(\"A\",\n    \"hunter2\",\n  )\n  rpm = 1\n}\n",
		"server {\n  admin_token = ***\n    ***\n  )\n  rpm = 1\n}\n")
	shown("server {\n  admin_token = <<EOT\nhunter2 (\nEOT\n  rpm = 1\n}\n", "server {\n  admin_token = ***\n***\n***\n  rpm = 1\n}\n")
	shown("# The secret (which see) is a token (\n", "# The secret ***\n")
	shown("provider \"a\" {\n  key \"m\" {\n    secret = \"hunter2\"\n  }\n  key \"n\" { secret = env(\"X\") }\n  auth = 1\n}\n",
		"provider \"a\" {\n  key \"m\" {\n    ***\n  }\n  key \"n\" { ***\n  auth = 1\n}\n")
	shown("provider \"a\" {\n  key = {\n    value = \"hunter2\"\n  }\n  auth = 1\n}\n",
		"provider \"a\" {\n  key = *\n    ***\n  }\n  auth = 1\n}\n")
	shown("server {\n  listen = env(\"THE_TOKEN\", \"hunter2\")\n  rpm = 1\n}\n", "server {\n  listen = env(\"THE_TOKEN\"***\n  rpm = 1\n}\n")
	shown("policy {\n  bundle {\n    public_key = <<EOT\n-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\nEOT\n    poll = 1\n  }\n}\n",
		"policy {\n  bundle {\n    public_key = <<EOT\n***\n***\n***\nEOT\n    poll = 1\n  }\n}\n")
	// Bad syntax: what was never closed ends with what is around it, or with the next block.
	shown("provider \"a\" {\n  key \"m\" { secret = env(\"hunter2\" }\n  auth = 1\n}\n", "provider \"a\" {\n  key \"m\" { ***\n  auth = 1\n}\n")
	shown("server {\n  admin_token = [\"hunter2\"\n  rpm = 1\n}\n", "server {\n  admin_token = ***\n  ***\n}\n")
	shown("provider \"a\" {\n  key \"m\" {\n    secret = \"hunter2\"\n", "provider \"a\" {\n  key \"m\" {\n    ***\n")
	shown("server {\n  admin_token =\n", "server {\n  admin_token =\n")
	shown("server {\n  admin_token = \"a\" +\n    \"hunter2\"\n  rpm = 1\n}\n", "server {\n  admin_token = \"***\n    ***\n  rpm = 1\n}\n")
	shown("server {\n  admin_token\n    \"hunter2\"\n  rpm = 1\n}\n", "server {\n  admin_token\n    ***\n  rpm = 1\n}\n")
}

// In JSON a secret's property is hidden, and its neighbours aren't.
func TestMaskOfJSON(t *testing.T) {
	t.Parallel()
	src := "{\n\"server\": {\n  \"admin_token\": \"hunter2\",\n  \"listen\": \"x\"\n},\n\"provider\": {\"a\": {\n  \"key\":\n  {\"m\": \"hunter2\"},\n  \"auth\": \"none\"\n}}\n}\n"
	want := "{\n\"server\": {\n  \"admin_token\": \"***\n  \"listen\": \"x\"\n},\n\"provider\": {\"a\": {\n  \"key\":\n  ***\n  \"auth\": \"none\"\n}}\n}\n"
	var got []string
	for _, line := range strings.Split(string(mask([]byte(src))), "\n") {
		got = append(got, strings.TrimRight(line, " "))
	}
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The language's own words, but for those of credentials, aren't taken for misspelt ones.
func TestSensitiveWords(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range []shape{
		rootShape, serverShape, serverTLSShape, classifierShape, classifierShadowShape, providerShape, keyShape, providerTLSShape, timeoutsShape,
		groupShape, channelShape, costShape, budgetShape, backoffShape, breakerShape, callerShape, policyShape, bundleShape, retryBudgetShape, ledgerShape,
	} {
		for _, name := range s.names() {
			if isSensitive(name) {
				got = append(got, name)
			}
		}
	}
	if diff := cmp.Diff([]string{"admin_token", "secret", "key_sha256", "token"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Who reviews a policy has none of the secrets of the configuration that it is for.
func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	const text = `provider "p" {
  base_url = "https://p.example"
  auth     = "bearer"
  key "a" { secret = env("NOBODY_HAS_IT") }
  key "b" { secret = file("/nobody/has/it") }
}
route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  channel "c" { provider = provider.p }
}
`
	env := inMemory(map[string]string{"x.hcl": text, "bad.hcl": strings.Replace(text, `env("NOBODY_HAS_IT")`, `"sk-written-down"`, 1)})
	if _, diags := Load("x.hcl", env); len(diags) != 2 {
		t.Errorf("with secrets: want both missing:\n%s", picture(t, diags))
	}
	env.WithoutSecrets = true
	cfg, diags := Load("x.hcl", env)
	if len(diags) != 0 || len(cfg.Catalog.Providers()[0].Keys()) != 2 {
		t.Errorf("without: want two keys and no problem:\n%s", picture(t, diags))
	}
	if _, diags = Load("bad.hcl", env); !diags.HasErrors() {
		t.Error("a secret in the configuration is overlooked")
	}
}
