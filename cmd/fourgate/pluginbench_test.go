package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/plugins/starter"
)

// BenchmarkStarter is one classification by the starter of each language, one after the
// other as most failures come.
func BenchmarkStarter(b *testing.B) {
	for _, lang := range starter.Languages() {
		b.Run(lang.Name, func(b *testing.B) {
			vars := toolchain(b, lang)
			dir := filepath.Join(b.TempDir(), "acme")
			mustFourgate(b, nil, "plugin", "new", "-lang", lang.Name, dir)
			mustFourgate(b, vars, "plugin", "build", dir)
			host, err := plugins.Open(b.Context(), plugins.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = host.Close(context.WithoutCancel(b.Context())) }()
			m := plugins.Module{Name: lang.Name, Source: filepath.Join(dir, starter.Module), Timeout: plugins.MaxTimeout}
			found, err := host.Inspect(b.Context(), m)
			if err != nil {
				b.Fatal(err)
			}
			m.SHA256, m.Profile = found.SHA256, found.Profile
			classifier, err := host.Load(b.Context(), m)
			if err != nil {
				b.Fatal(err)
			}
			ev := &engine.Evidence{
				Transport: engine.TransportHTTP, Status: 429, Phase: engine.BeforeOutput,
				Headers: engine.Headers{{Name: "content-type", Value: "application/json"}, {Name: "retry-after", Value: "1.5"}},
				Body:    []byte(`{"error":{"message":"Rate limit reached for requests. Please slow down, and try again in a while.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`),
			}
			b.ReportAllocs()
			for b.Loop() {
				if v := classifier.Classify(ev); v.Class != engine.ClassRateLimited {
					b.Fatalf("got %+v", v)
				}
			}
		})
	}
}
