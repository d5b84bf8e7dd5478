package gate

import (
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// With several choices asked for, one that has ended is no whole answer.
func TestEachChoiceMustEnd(t *testing.T) {
	t.Parallel()
	end := func(index string) string {
		return `data: {"model":"m","choices":[{"index":` + index + `,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	}
	f := func(name string, n int, in string, want bool) {
		t.Helper()
		s := NewStream(engine.OpenAIChat, acceptM)
		s.Expect(n)
		s.Feed([]byte(contentFrame))
		s.Pass([]byte(in))
		if s.Complete() != want {
			t.Errorf("%s: complete is %v, want %v", name, s.Complete(), want)
		}
	}
	f("none was asked for", 0, end("0"), true)
	f("one", 1, end("0"), true)
	f("two, one has ended", 2, end("0"), false)
	f("two, one has ended twice", 2, end("0")+end("0"), false)
	f("two, both have ended", 2, end("0")+end("1"), true)
	f("two, the end mark", 2, end("0")+doneFrame, true)
	f("nonsense", -7, end("0"), true)
}
