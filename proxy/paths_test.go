package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	f := func(target string, want route) {
		t.Helper()
		if d := cmp.Diff(want, locate(target), cmp.AllowUnexported(route{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", target, d)
		}
	}
	endpoint := func(e engine.Endpoint, path string) route {
		return route{place: placeEndpoint, endpoint: e, path: path, protocol: e.Protocol()}
	}
	for path, e := range operations {
		f(path, endpoint(e, path))
		f("/openai"+path+"?x=1", endpoint(e, path))
		f("/anthropic"+path, endpoint(e, path))
	}
	gemini := func(model, operation string, stream, array bool) route {
		return route{
			place: placeEndpoint, endpoint: engine.GeminiGenerate, path: "/v1beta/models/", model: model, operation: operation,
			stream: stream, array: array, protocol: engine.ProtocolGemini,
		}
	}
	f("/v1beta/models/gemini-2.5-pro:generateContent", gemini("gemini-2.5-pro", "generateContent", false, false))
	f("/v1beta/models/m%3AgenerateContent?alt=sse", gemini("m", "generateContent", false, false))
	f("/v1beta/models/m:streamGenerateContent", gemini("m", "streamGenerateContent", true, true))
	f("/v1beta/models/m:streamGenerateContent?key=k&alt=sse", gemini("m", "streamGenerateContent", true, false))
	f("/v1beta/models/m:streamGenerateContent?alt=sse&alt=json", gemini("m", "streamGenerateContent", true, true))
	f("/v1beta/models/a:b:generateContent", gemini("a:b", "generateContent", false, false))

	none := route{protocol: engine.ProtocolGemini}
	for _, target := range []string{
		"/v1beta/models/:generateContent", "/v1beta/models/m:countTokens", "/v1beta/models/m", "/v1beta/models/a%2Fb:generateContent",
		"/v1beta/models/a%00b:generateContent", "/v1beta/models/%zz:generateContent", "/v1beta/tunedModels/m:generateContent",
		"/v1beta/models/" + strings.Repeat("m", 257) + ":generateContent",
	} {
		f(target, none)
	}
	f("/v1beta/models", route{place: placeModels, path: "/v1beta/models", protocol: engine.ProtocolGemini})
	f("/v1/models?limit=5", route{place: placeModels, path: "/v1/models"})
	f("/healthz?x", route{place: placeHealth})
	f("/v1/messages/count_tokens", route{protocol: engine.ProtocolAnthropic})
	f("/v1/images", route{})
	f("/openai/healthz", route{})
}

func TestUpstreamPath(t *testing.T) {
	t.Parallel()
	f := func(base, target, model, want string) {
		t.Helper()
		r := locate(target)
		if got := r.upstreamPath(versioned(base), model, target); got != want {
			t.Errorf("%s below %s: %s, want %s", target, base, got, want)
		}
	}
	f("https://x.example", "/v1/responses", "m", "/v1/responses")
	f("https://x.example/v1", "/openai/v1/images/edits", "m", "/images/edits")
	f("https://x.example/v1beta", "/v1beta/models/m:generateContent", "m", "/models/m:generateContent")
	f("https://x.example", "/v1beta/models/m:streamGenerateContent?alt=sse&key=SECRET&%6bey=SECRET", "other name/2", "/v1beta/models/other%20name%2F2:streamGenerateContent?alt=sse")
}

func FuzzLocate(f *testing.F) {
	f.Add("/v1beta/models/m%3AgenerateContent?alt=sse&key=k")
	f.Add("/openai/v1/images/edits?")
	f.Fuzz(func(t *testing.T, target string) {
		r := locate(target)
		if r.place != placeEndpoint {
			return
		}
		path := r.upstreamPath(false, r.model, target)
		again := locate(path)
		if again.endpoint != r.endpoint || again.model != r.model || again.operation != r.operation {
			t.Fatalf("%q goes upstream as %q, which is %+v", target, path, again)
		}
		if strings.ContainsAny(path, " \r\n") {
			t.Fatalf("%q goes upstream as %q", target, path)
		}
	})
}
