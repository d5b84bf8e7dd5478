package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// The policy that docs/policies.md shows does what the text says.
func TestDocumentedPolicy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "docs", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```rego\n")
	policy, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("docs/policies.md shows no policy")
	}
	set := load(t, Options{}, policy)
	q := failed(t)
	q.Failure = failure(t, engine.ClassRateLimited, engine.ScopeKey, "requests", 429)
	if got := set.Decide(&q); got.Action != engine.Fallback {
		t.Errorf("got %+v, want the default policy's fallback", got)
	}
	q.Caller = "batch"
	if got := set.Decide(&q); got.Action != engine.Abort || got.Reason.String() != "batch_waits" {
		t.Errorf("got %+v, want the abort of the documented rule", got)
	}
}
