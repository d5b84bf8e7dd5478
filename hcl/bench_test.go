package hcl

import (
	"fmt"
	"strings"
	"testing"
)

// A large configuration: 200 groups of five channels over five providers.
func BenchmarkLoad(b *testing.B) {
	var src strings.Builder
	for p := range 5 {
		fmt.Fprintf(&src, "provider \"p%d\" {\n  base_url = \"https://p%d.example.com/v1\"\n  key \"main\" { secret = env(\"OPENAI_API_KEY\") }\n}\n", p, p)
	}
	for g := range 200 {
		fmt.Fprintf(&src, "route_group \"g%d\" {\n  models    = [\"m%d\"]\n  endpoints = [\"openai.chat\"]\n  strategy  = \"cost\"\n", g, g)
		for c := range 5 {
			fmt.Fprintf(&src, "  channel \"c%d\" {\n    provider = provider.p%d\n    cost     = { input = %d, output = 10 }\n  }\n", c, c, c)
		}
		src.WriteString("}\n")
	}
	env := inMemory(map[string]string{"x.hcl": src.String()})
	b.SetBytes(int64(src.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if cfg, diags := Load("x.hcl", env); cfg == nil {
			b.Fatal(diags)
		}
	}
}
