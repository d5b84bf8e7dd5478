package hcl

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fourgate-dev/fourgate/engine"
)

// compareConfigs looks at everything but the catalog, which engine's tests cover.
func compareConfigs(want, got *Config) string {
	return cmp.Diff(want, got,
		cmpopts.IgnoreFields(Config{}, "Catalog", "Files"),
		cmp.Comparer(func(a, b engine.Secret) bool { return a.Reveal() == b.Reveal() }),
		cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() }))
}

// load returns a configuration that must be without any diagnostic.
func load(t *testing.T, path string, env Environment) *Config {
	t.Helper()
	cfg, diags := Load(path, env)
	if len(diags) > 0 {
		t.Fatalf("%s:\n%s", path, picture(t, diags))
	}
	return cfg
}

func fullConfig(dir string) *Config {
	paths := []string{filepath.Join(dir, "policies"), "/etc/fourgate/policies"}
	berlin, newYork := time.FixedZone("Europe/Berlin", 0), time.FixedZone("America/New_York", 0)
	limits := map[string]any{"hops": json.Number("3"), "ratio": json.Number("0.5")}
	moreHops := map[string]any{"hops": json.Number("4")}
	params := func(onNetwork bool, limits any, more ...string) map[string]any {
		p := map[string]any{"retry_on_network": onNetwork, "limits": limits, "classes": []any{"rate_limited", nil}}
		for _, name := range more {
			p[name] = "x"
		}
		return p
	}
	return &Config{
		Server: Server{
			Listen: "127.0.0.1:9000", AdminListen: "127.0.0.1:9001", MaxBody: 8 << 20,
			DebugHeaders: true, DrainTimeout: 10 * time.Second,
		},
		Classifiers: []Classifier{
			{Name: "openai", Module: "builtin:openai", Timeout: 2 * time.Millisecond, MemoryBytes: 4 << 20},
			{
				Name: "house", Module: filepath.Join(dir, "modules/house.wasm"),
				SHA256:  "0000000000000000000000000000000000000000000000000000000000000001",
				Timeout: 25 * time.Millisecond, MemoryBytes: 16 << 20,
			},
		},
		Spec: engine.Spec{
			Providers: []engine.ProviderSpec{
				{
					Name: "openai", BaseURL: "https://api.openai.com/v1", Classifier: "openai", Auth: engine.AuthBearer,
					Keys: []engine.KeySpec{
						{Name: "main", Secret: engine.NewSecret(theSecret)},
						{Name: "spare", Secret: engine.NewSecret(theSecret)},
					},
					Limits: engine.Limits{
						Connect: time.Second, TLS: 3 * time.Second, Headers: 20 * time.Second, Gate: 10 * time.Second, Idle: time.Minute,
					},
					TLS:          engine.TLSSpec{ServerName: "api.openai.com"},
					GateFallback: true,
				},
				{
					Name: "azure_east", BaseURL: "https://east.example.com/openai", Classifier: "house", Auth: engine.AuthAPIKey,
					Keys: []engine.KeySpec{{Name: "main", Secret: engine.NewSecret("fallback-key")}},
					Limits: engine.Limits{
						Connect: 5 * time.Second, TLS: 5 * time.Second, Headers: 20 * time.Second, Gate: 30 * time.Second, Idle: 2 * time.Minute,
					},
				},
			},
			Groups: []engine.GroupSpec{
				{
					Name: "gpt-4o", Models: []string{"gpt-4o-2024-08-06"}, Endpoints: []engine.Endpoint{engine.OpenAIChat},
					Strategy: engine.StrategyCost, MaxHops: 2, RPM: 60,
					Hold: engine.Hold{Complete: true, Max: 1 << 20, KeepAlive: 15 * time.Second}, OnGate: engine.GateCommits,
					Channels: []engine.ChannelSpec{
						{
							Name: "openai", Provider: "openai", Priority: 1, Weight: 3, Labels: map[string]string{"region": "us", "tier": "gold"},
							Cost: engine.Cost{Given: true, Input: 2.5, Output: 10, CachedInput: 1.25, CachedInputGiven: true},
						},
						{
							Name: "azure-east", Provider: "azure_east",
							SendAs: map[string]string{"gpt-4o-2024-08-06": "prod-4o"},
							Serves: "gpt-4o-2024-08-06", AnswersAs: []string{"gpt-4o"},
							Cost: engine.Cost{Given: true, Input: 2.5, Output: 10},
						},
					},
					Budget: engine.BudgetSpec{
						Attempts: 4, PerRoute: 2, Deadline: 90 * time.Second, MinUseful: 3 * time.Second,
						BackoffBase: 100 * time.Millisecond, BackoffMax: 2 * time.Second,
					},
					Breaker: engine.BreakerSpec{
						Mode: engine.BreakerConsecutive, Failures: 5, Window: 5 * time.Minute,
						OpenFor: 30 * time.Second, HalfOpenProbes: 3,
					},
					HealthCheck: engine.HealthCheckSpec{Interval: 5 * time.Second, Timeout: time.Second, Path: "/v1/models"},
				},
				{
					Name: "gpt-4.1", Models: []string{"gpt-4.1-2025-04-14"}, Endpoints: []engine.Endpoint{engine.OpenAIChat},
					Channels: []engine.ChannelSpec{{Name: "openai", Provider: "openai"}},
					Budget: engine.BudgetSpec{
						Attempts: 3, PerRoute: 2, Deadline: 70 * time.Second, MinUseful: 2 * time.Second,
						BackoffBase: 200 * time.Millisecond, BackoffMax: 5 * time.Second,
					},
					Breaker: engine.BreakerSpec{
						Mode: engine.BreakerWindow, Failures: 3, Window: 5 * time.Minute, OpenFor: time.Minute,
					},
				},
			},
			Callers: []engine.CallerSpec{{
				Name: "team-a", RPM: 300, Groups: []string{"gpt-4o", "gpt-4.1"},
				KeySHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
				Budget:    engine.CallerBudget{Attempts: 2, Deadline: 45 * time.Second},
			}},
			RetryBudget: engine.RetryBudgetSpec{Ratio: 0.2, Floor: 0, Cap: 50},
		},
		Policy: Policy{
			Paths: paths, Query: "data.house.decision", Timeout: 20 * time.Millisecond, Location: berlin, Params: params(true, limits),
			Shadow: &Policy{
				Paths: paths, Query: "data.house.next", Timeout: 20 * time.Millisecond, Location: newYork,
				Params: params(true, moreHops),
			},
		},
		GroupPolicies: map[string]Policy{
			"gpt-4o": {
				Paths: paths, Query: "data.house.decision", Timeout: 30 * time.Millisecond, Location: berlin, Params: params(false, limits, "extra"),
				Shadow: &Policy{
					Paths: paths, Query: "data.house.next", Timeout: 30 * time.Millisecond, Location: newYork,
					Params: params(false, moreHops, "extra"),
				},
			},
			"gpt-4.1": {
				Profile: "kunavo", Query: "data.fourgate.decision", Timeout: 20 * time.Millisecond, Location: time.UTC,
				Shadow: &Policy{
					Profile: "ccrelay", Query: "data.fourgate.decision", Timeout: 40 * time.Millisecond, Location: time.UTC,
				},
			},
		},
		Ledger: Ledger{
			Store: "sqlite", Path: filepath.Join(dir, "data/ledger.db"), Durability: "sync", Retention: 24 * time.Hour,
		},
		State: State{Backend: "redis", URL: engine.NewSecret("rediss://cache.example.com:6380/1"), Prefix: "house:", OnOutage: "refuse", Breakers: true},
	}
}

// Every argument arrives where it belongs, in native syntax and in JSON.
func TestEveryArgument(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"testdata/valid/full.hcl", "testdata/json/full.hcl.json"} {
		got := load(t, path, testEnvironment())
		if diff := compareConfigs(fullConfig(filepath.Dir(path)), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if got.Catalog == nil {
			t.Errorf("%s: no catalog", path)
		}
	}
}

// What is left out has the documented default.
func TestDefaults(t *testing.T) {
	t.Parallel()
	want := &Config{
		Server: Server{
			Listen: "127.0.0.1:8080", AdminListen: "", MaxBody: 32 << 20, DrainTimeout: 30 * time.Second,
		},
		Classifiers: []Classifier{{
			Name: "builtin:generic", Module: "builtin:generic", Timeout: 250 * time.Millisecond, MemoryBytes: 16 << 20,
		}},
		Spec: engine.Spec{
			Providers: []engine.ProviderSpec{{
				Name: "openai", BaseURL: "https://api.openai.com/v1", Classifier: "builtin:generic", Auth: engine.AuthBearer,
				Keys: []engine.KeySpec{{Name: "main", Secret: engine.NewSecret(theSecret)}},
				Limits: engine.Limits{
					Connect: 5 * time.Second, TLS: 5 * time.Second, Headers: 240 * time.Second, Gate: 30 * time.Second, Idle: 120 * time.Second,
				},
			}},
			Groups: []engine.GroupSpec{{
				Name: "gpt-4o", Models: []string{"gpt-4o-2024-08-06"}, Endpoints: []engine.Endpoint{engine.OpenAIChat},
				Channels: []engine.ChannelSpec{{Name: "openai", Provider: "openai"}},
				Budget: engine.BudgetSpec{
					Attempts: 3, PerRoute: 2, Deadline: 60 * time.Second, MinUseful: 2 * time.Second,
					BackoffBase: 200 * time.Millisecond, BackoffMax: 5 * time.Second,
				},
				Breaker: engine.BreakerSpec{
					Mode: engine.BreakerWindow, Failures: 3, Window: 5 * time.Minute, OpenFor: time.Minute,
				},
			}},
			RetryBudget: engine.RetryBudgetSpec{Ratio: 0.1, Floor: 0.1, Cap: 100},
		},
		Policy: Policy{Query: "data.fourgate.decision", Timeout: 250 * time.Millisecond, Location: time.UTC},
		Ledger: Ledger{
			Store: "sqlite", Path: "testdata/valid/fourgate.db", Durability: "batch", Retention: 720 * time.Hour,
		},
		State: State{Backend: "memory"},
	}
	got := load(t, "testdata/valid/minimal.hcl", testEnvironment())
	if diff := compareConfigs(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A directory is read as one configuration, whatever the syntax of its files.
func TestDirectory(t *testing.T) {
	t.Parallel()
	cfg := load(t, "testdata/directory", testEnvironment())
	want := []string{
		filepath.Join("testdata", "directory", "10-providers.hcl"),
		filepath.Join("testdata", "directory", "20-groups.hcl.json"),
	}
	if diff := cmp.Diff(want, cfg.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if len(cfg.Spec.Providers) != 1 || len(cfg.Spec.Groups) != 1 {
		t.Errorf("got %d providers and %d groups", len(cfg.Spec.Providers), len(cfg.Spec.Groups))
	}
}

// The example configurations load with no environment at all.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/examples/*.hcl")
	if err != nil || len(files) != 4 {
		t.Fatalf("found %d examples: %v", len(files), err)
	}
	for _, path := range files {
		load(t, path, Environment{})
	}
}
