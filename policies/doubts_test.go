package policies

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What compiles and never holds, or holds when nobody expects it, is found while checking.
func TestDoubts(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"kind": "quarantine_channel", "for_ms": 1, "after": 0}`: "after is 0, which is the same as 1: the first failure sets the channel aside",
		`{"kind": "quarantine_channel", "for_ms": 1, "after": 2}`: "",
		`{"after": 0}`:                                                                 "", // of something else
		`input.failure.class == "rate_limited"`:                                        "",
		`input.failure.class == "rate_limit"`:                                          `input.failure.class is never "rate_limit"`,
		`"before_header" == input.phase`:                                               `input.phase is never "before_header"`,
		`input.failure.class in {"denied", "Denied"}`:                                  `input.failure.class is never "Denied"`,
		`not input.failure.class in ["refused"]`:                                       `input.failure.class is never "refused"`,
		`input.failure.reason == "whatever"`:                                           "",
		`input.request.caller in {"batch"}`:                                            "",
		`input.failure.retry_after_ms < 2000`:                                          "input.failure.retry_after_ms may be null, which is less than every number: this holds then, too",
		`2000 >= input.failure.retry_after_ms`:                                         "input.failure.retry_after_ms may be null, which is less than every number: this holds then, too",
		`input.failure.retry_after_ms > 2000`:                                          "",
		"input.failure.retry_after_ms != null\n\tinput.failure.retry_after_ms < 2000":  "",
		"is_number(input.failure.retry_after_ms)\n\tinput.failure.retry_after_ms < 20": "",
		`input.failure.status < 500`:                                                   "",
	} {
		file := filepath.Join(t.TempDir(), "p.rego")
		text := "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"r\"} if {\n\t" + body + "\n}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Check(t.Context(), Options{Paths: []string{file}}, true)
		if err != nil || len(r.Problems) > 0 {
			t.Fatalf("%s: %v, %v", body, err, r.Problems)
		}
		got := ""
		for _, d := range r.Doubts {
			got += d.Message
			if d.Line < 4 || d.Hint == "" {
				t.Errorf("%s: no place or hint in %+v", body, d)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}
