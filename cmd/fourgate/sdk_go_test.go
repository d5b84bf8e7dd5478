package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// goCalls are one SDK's two ways to call, and the status of its typed error.
type goCalls struct {
	whole, stream func() (text string, err error)
	status        func(err error) int
}

// The official SDKs for Go: a broken channel goes unnoticed, a broken stream is an error and
// never a short answer, and exhaustion is one typed error after one call.
func TestOfficialGoSDKs(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(t *testing.T, base string) goCalls{
		"openai responses":   openAIResponsesCalls,
		"anthropic messages": anthropicCalls,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, everything, "", "a", "b", "c")
			calls := connect(t, r.base)
			r.script("a", "status=503, error-in-stream, cut before-output, ok, ok, cut after=3, error-in-stream after=3")
			for i, call := range []func() (string, error){calls.whole, calls.stream, calls.stream, calls.whole, calls.stream} {
				if text, err := call(); err != nil || text == "" {
					t.Errorf("call %d: got %q, %v", i+1, text, err)
				}
			}
			for range 2 {
				if text, err := calls.stream(); err == nil || text == "" || !strings.Contains(err.Error(), "broke after") {
					t.Errorf("a broken stream reads as %q, %v", text, err)
				}
			}
			if n := r.calls(); n != "a=7 b=3 c=0" {
				t.Errorf("the upstreams were called %s", n)
			}
			for _, ch := range r.upstream {
				r.script(ch, "status=503")
			}
			_, err := calls.whole()
			if status := calls.status(err); status != 503 || r.sim.Count("a") != 8 {
				t.Errorf("got %v after %d calls", err, r.sim.Count("a")-7)
			}
		})
	}
}

func openAIResponsesCalls(t *testing.T, base string) goCalls {
	client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("none"))
	params := responses.ResponseNewParams{
		Model: "model-1", Store: openai.Bool(false), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")},
	}
	return goCalls{
		whole: func() (string, error) {
			answer, err := client.Responses.New(t.Context(), params)
			if err != nil {
				return "", err
			}
			return answer.OutputText(), nil
		},
		stream: func() (text string, err error) {
			stream := client.Responses.NewStreaming(t.Context(), params)
			defer stream.Close()
			for stream.Next() {
				if e := stream.Current(); e.Type == "response.output_text.delta" {
					text += e.Delta
				}
			}
			return text, stream.Err()
		},
		status: func(err error) int {
			var typed *openai.Error
			if !errors.As(err, &typed) {
				return 0
			}
			return typed.StatusCode
		},
	}
}

func anthropicCalls(t *testing.T, base string) goCalls {
	client := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("none"))
	params := anthropic.MessageNewParams{
		Model: "model-1", MaxTokens: 64, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	}
	return goCalls{
		whole: func() (string, error) {
			answer, err := client.Messages.New(t.Context(), params)
			if err != nil {
				return "", err
			}
			return answer.Content[0].Text, nil
		},
		stream: func() (text string, err error) {
			stream := client.Messages.NewStreaming(t.Context(), params)
			defer stream.Close()
			for stream.Next() {
				text += stream.Current().Delta.Text
			}
			return text, stream.Err()
		},
		status: func(err error) int {
			var typed *anthropic.Error
			if !errors.As(err, &typed) {
				return 0
			}
			return typed.StatusCode
		},
	}
}
