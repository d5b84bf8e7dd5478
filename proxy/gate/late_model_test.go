package gate

import (
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// A stream that a limit has committed before it named a model is watched for the name:
// nothing of another model's goes out, however the bytes come.
func TestAnotherModelAfterACommitByALimit(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 7, 1000} {
		s := NewStream(engine.OpenAIChat, acceptM)
		s.Feed([]byte(": waiting\n\n"))
		out := string(s.Release())
		for rest := []byte(otherContent + finishFrame + doneFrame); len(rest) > 0; {
			n := min(size, len(rest))
			out += string(s.Pass(rest[:n]))
			rest = rest[n:]
		}
		out += string(s.Leftover())
		if out != ": waiting\n\n" || !s.Errored() || !s.Withheld() || s.Finding().Class != engine.ClassContractViolation {
			t.Errorf("in pieces of %d: errored %v, withheld %v, finding %v, the caller got %q", size, s.Errored(), s.Withheld(), s.Finding(), out)
		}
		good := NewStream(engine.OpenAIChat, acceptM)
		good.Feed([]byte(": waiting\n\n"))
		got := string(good.Release())
		in := roleFrame + contentFrame + finishFrame + doneFrame
		for rest := []byte(in); len(rest) > 0; {
			n := min(size, len(rest))
			got += string(good.Pass(rest[:n]))
			rest = rest[n:]
		}
		if !strings.HasSuffix(got, in) || good.Errored() || !good.Complete() {
			t.Errorf("in pieces of %d: the right model's stream became %q", size, got)
		}
	}
}
