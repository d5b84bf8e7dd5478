package gate

import (
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

const (
	benchChat = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"m","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	benchText = "event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}` + "\n\n"
)

func BenchmarkFeedFirst(b *testing.B) {
	run := func(name string, e engine.Endpoint, frame string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			chunk := []byte(frame)
			for b.Loop() {
				if NewStream(e, acceptM).Feed(chunk) != Commit {
					b.Fatal("not decisive")
				}
			}
		})
	}
	run("chat", engine.OpenAIChat, benchChat)
	run("messages", engine.AnthropicMessages, benchText)
}

func BenchmarkPass(b *testing.B) {
	run := func(name string, e engine.Endpoint, frame string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			chunk := []byte(frame)
			s := NewStream(e, nil)
			s.Feed(chunk)
			for b.Loop() {
				s.Pass(chunk)
			}
		})
	}
	run("chat", engine.OpenAIChat, benchChat)
	run("messages", engine.AnthropicMessages, benchText)
}

func TestPassAllocatesNothing(t *testing.T) {
	for e, frame := range map[engine.Endpoint]string{engine.OpenAIChat: benchChat, engine.AnthropicMessages: benchText} {
		s := NewStream(e, nil)
		chunk := []byte(frame)
		s.Feed(chunk)
		if n := testing.AllocsPerRun(100, func() { s.Pass(chunk) }); n != 0 {
			t.Errorf("%v: %v allocations a chunk, want none", e, n)
		}
	}
}

func BenchmarkWhole(b *testing.B) {
	body := []byte(`{"model":"m","choices":[{"message":{"role":"assistant","content":"` + string(make1500()) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		Whole(engine.OpenAIChat, "application/json", body, acceptM)
	}
}

func make1500() []byte {
	text := make([]byte, 1500)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	return text
}
