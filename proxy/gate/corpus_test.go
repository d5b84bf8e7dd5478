package gate

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// corpusCase is the part of a case of the failure corpus that a gate can know.
type corpusCase struct {
	ID        string
	Protocol  string
	Transport string
	Headers   map[string]string
	Request   struct{ Model string }
	Body      string
	Frames    []string
	End       string
	Phase     string
	Expect    struct{ Class, Reason string }
}

func (c corpusCase) endpoint(t *testing.T) engine.Endpoint {
	t.Helper()
	e, err := engine.ParseEndpoint(c.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// accepts is what the case's channel accepts: everything, or the one model asked for.
func (c corpusCase) accepts() func(string) bool {
	if c.Request.Model == "" {
		return nil
	}
	return func(m string) bool { return m == c.Request.Model }
}

func corpus(t *testing.T) []corpusCase {
	t.Helper()
	f, err := os.Open("testdata/corpus.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []corpusCase
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c corpusCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

func TestCorpusStreams(t *testing.T) {
	t.Parallel()
	for _, c := range corpus(t) {
		if c.Transport != "sse" {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			s := NewStream(c.endpoint(t), c.accepts())
			for _, f := range c.Frames {
				s.Feed([]byte(f))
			}
			verdict := s.verdict
			if c.End == "eof" {
				verdict = s.End()
			}
			good := c.Expect.Class == "ok" || c.Expect.Class == "refusal"
			want := Discard
			switch {
			case good, c.Phase == "after_output":
				want = Commit
			case c.End != "eof":
				want = Wait // the transport's error makes the failure
			}
			if verdict != want {
				t.Fatalf("verdict is %v (%v), want %v", verdict, s.Finding(), want)
			}
			if want == Commit {
				if sound := s.Complete() && !s.Errored(); sound != good {
					t.Errorf("complete %v, errored %v, want a sound end: %v", s.Complete(), s.Errored(), good)
				}
				return
			}
			if got := strings.Join(toStrings(s.Frames()), ""); !strings.HasPrefix(strings.Join(c.Frames, ""), got) {
				t.Errorf("frames are %q, want the case's", got)
			}
			switch c.Expect.Class {
			case "schema_invalid":
				if s.Finding() != schemaInvalid(c.Expect.Reason) {
					t.Errorf("finding is %v, want %s", s.Finding(), c.Expect.Reason)
				}
			case "provider_transient":
				if c.Expect.Reason == "truncated" && s.Finding() != finding(engine.ClassProviderTransient, "truncated") {
					t.Errorf("finding is %v, want truncated", s.Finding())
				}
			}
		})
	}
}

func TestCorpusBodies(t *testing.T) {
	t.Parallel()
	for _, c := range corpus(t) {
		if c.Transport != "http" {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			a := Whole(c.endpoint(t), c.Headers["content-type"], []byte(c.Body), c.accepts())
			var want engine.Finding
			errorBody := false
			switch c.Expect.Class {
			case "ok", "refusal":
			case "schema_invalid":
				want = schemaInvalid(c.Expect.Reason)
			case "contract_violation":
				want = finding(engine.ClassContractViolation, c.Expect.Reason)
			default:
				errorBody = true
			}
			if a.Finding != want || a.ErrorBody != errorBody {
				t.Errorf("finding %v, error body %v; want %v, %v", a.Finding, a.ErrorBody, want, errorBody)
			}
		})
	}
}

func toStrings(bs [][]byte) (out []string) {
	for _, b := range bs {
		out = append(out, string(b))
	}
	return out
}
