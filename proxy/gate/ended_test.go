package gate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/gate"
)

// The end mark is found where its event ends, however the stream is cut into reads, and
// nothing before it passes for one.
func TestEnded(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		endpoint engine.Endpoint
		marked   bool
	}{
		"chat_text": {engine.OpenAIChat, true}, "chat_crlf": {engine.OpenAIChat, true}, "chat_two": {engine.OpenAIChat, true},
		"chat_unmarked": {engine.OpenAIChat, false}, "completions_text": {engine.OpenAICompletions, true},
		"messages_text": {engine.AnthropicMessages, true}, "messages_unnamed": {engine.AnthropicMessages, true},
		"responses_text": {engine.OpenAIResponses, true}, "gemini_text": {engine.GeminiGenerate, false},
	} {
		text, err := os.ReadFile(filepath.Join("..", "testdata", "streams", file+".sse"))
		if err != nil {
			t.Fatal(err)
		}
		for size := 1; size <= len(text); size += 1 + size/3 {
			s := gate.NewStream(c.endpoint, nil)
			for at := 0; at < len(text); at += size {
				if s.Ended() {
					t.Errorf("%s in pieces of %d: ended before byte %d", file, size, at)
				}
				if s.Feed(text[at:min(at+size, len(text))]) == gate.Commit {
					s.Pass(nil)
				}
			}
			if s.Ended() != c.marked || !s.Complete() {
				t.Errorf("%s in pieces of %d: ended is %v, complete %v", file, size, s.Ended(), s.Complete())
			}
		}
	}
}
