package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// sdkView is what an application sees of one call.
type sdkView struct {
	Mode      string
	Text      string
	Finish    string
	Model     string
	RequestID string
	Error     string
	Status    int
	Code      string
	Type      string
	Message   string
}

// sdk runs one of the official SDKs for Node.js, unchanged, through the proxy.
func (r *rig) sdk(script string, modes ...string) []sdkView {
	r.t.Helper()
	var views []sdkView
	for line := range strings.Lines(node(r.t, script, append([]string{r.base, "model-1"}, modes...)...)) {
		var v sdkView
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			r.t.Fatalf("%v in %q", err, line)
		}
		views = append(views, v)
	}
	return views
}

func TestOfficialSDKsThroughTheProxy(t *testing.T) {
	t.Parallel()
	for _, s := range []struct{ script, finish, midStreamError, error503, error400 string }{
		{"openai.mjs", "stop", "APIError", "InternalServerError", "BadRequestError"},
		{"responses.mjs", "completed", "APIError", "InternalServerError", "BadRequestError"},
		{"anthropic.mjs", "end_turn", "APIError", "ServiceUnavailableError", "BadRequestError"},
		{"gemini.mjs", "STOP", "ApiError", "ApiError", "ApiError"},
	} {
		t.Run(s.script, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, everything, "", "a", "b", "c")

			// One channel is broken in turn; the application never notices.
			r.script("a", "status=503, error-in-stream, cut before-output, cut before-headers, ok")
			views := r.sdk(s.script, "whole", "stream", "stream", "whole", "whole", "stream")
			for i, v := range views {
				if v.Error != "" || v.Finish != s.finish || v.Text == "" {
					t.Errorf("call %d: the application sees %+v", i+1, v)
				}
				if v.Mode == "whole" && (v.Model != "model-1" || v.RequestID == "") {
					t.Errorf("call %d: model %q, request id %q", i+1, v.Model, v.RequestID)
				}
			}
			if calls := r.calls(); len(views) != 6 || calls != "a=6 b=4 c=0" {
				t.Errorf("%d calls of the application made %s upstream", len(views), calls)
			}

			// All are broken: one typed error, and the SDK doesn't call again.
			before := r.sim.Count("a")
			for _, ch := range r.upstream {
				r.script(ch, "status=503")
			}
			v := r.sdk(s.script, "whole")[0]
			if v.Error != s.error503 || v.Status != 503 || !strings.Contains(v.Message, "no route is left") {
				t.Errorf("the application sees %+v", v)
			}
			if n := r.sim.Count("a") - before; n != 1 {
				t.Errorf("the SDK called %d times; X-Should-Retry: false stops it at one", n)
			}

			// A stream breaks after output: a typed error, not a short answer.
			r.script("a", "cut after=3")
			v = r.sdk(s.script, "stream")[0]
			if v.Error != s.midStreamError || v.Text == "" || !strings.Contains(v.Message, "broke after a part of it was passed on") {
				t.Errorf("the application sees %+v", v)
			}

			// So does one that the upstream breaks with an event of its own.
			r.script("a", "error-in-stream after=3")
			v = r.sdk(s.script, "stream")[0]
			if v.Error != s.midStreamError || v.Text == "" || !strings.Contains(v.Message, "broke after") {
				t.Errorf("the application sees %+v", v)
			}

			// The caller's own mistake comes through as the provider said it.
			r.script("a", "status=400")
			if v = r.sdk(s.script, "whole")[0]; v.Error != s.error400 || v.Status != 400 {
				t.Errorf("the application sees %+v", v)
			}
		})
	}
}

func TestOfficialGoSDKThroughTheProxy(t *testing.T) {
	t.Parallel()
	r := newRig(t, trio, "", "a", "b", "c")
	client := openai.NewClient(option.WithBaseURL(r.base+"/v1"), option.WithAPIKey("none"))
	params := openai.ChatCompletionNewParams{
		Model: "model-1", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	}
	r.script("a", "status=503, error-in-stream, cut after=3")
	answer, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil || answer.Choices[0].Message.Content == "" {
		t.Errorf("got %+v, %v", answer, err)
	}
	read := func() (text string, err error) {
		stream := client.Chat.Completions.NewStreaming(t.Context(), params)
		defer stream.Close()
		for stream.Next() {
			if c := stream.Current().Choices; len(c) > 0 {
				text += c[0].Delta.Content
			}
		}
		return text, stream.Err()
	}
	if text, err := read(); err != nil || text == "" {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := read(); err == nil || text == "" {
		t.Errorf("a cut stream reads as whole: %q", text)
	}
	for _, ch := range r.upstream {
		r.script(ch, "status=503")
	}
	before := r.sim.Count("a")
	_, err = client.Chat.Completions.New(t.Context(), params)
	var typed *openai.Error
	if !errors.As(err, &typed) || typed.StatusCode != 503 || r.sim.Count("a")-before != 1 {
		t.Errorf("got %v after %d calls", err, r.sim.Count("a")-before)
	}
}
