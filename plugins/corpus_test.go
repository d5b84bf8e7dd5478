package plugins_test

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

const corpusFile = "testdata/corpus/failures.jsonl"

func readCorpus(t testing.TB) []plugins.Case {
	t.Helper()
	data, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := plugins.ReadCorpus(bytes.NewReader(data), corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func openHost(t testing.TB) *plugins.Host {
	t.Helper()
	host, err := plugins.Open(t.Context(), plugins.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return host
}

// builtins loads all built-in classifiers, with a timeout that a loaded test machine
// keeps too.
func builtins(t testing.TB, host *plugins.Host) map[string]engine.Classifier {
	t.Helper()
	all := map[string]engine.Classifier{}
	for _, name := range plugins.Builtins() {
		c, err := host.Load(t.Context(), plugins.Module{Name: name, Source: plugins.BuiltinPrefix + name, Timeout: plugins.MaxTimeout})
		if err != nil {
			t.Fatal(err)
		}
		all[name] = c
	}
	return all
}

// The least share of a provider's cases that must come out right. The rules were written
// with these cases in sight, so the floors guard against going back; they don't say how
// well other failures are read. TestBuiltinsOnOtherFailures asks that.
const (
	leastClass = 0.98
	leastScope = 0.97
	leastWait  = 0.97
)

type tally struct{ cases, class, scope, waits, wait int }

func (a *tally) add(w plugins.Expectation, s plugins.Score) {
	a.cases++
	for _, f := range []struct {
		right bool
		n     *int
	}{{s.Class, &a.class}, {s.Scope, &a.scope}} {
		if f.right {
			*f.n++
		}
	}
	if w.TestsWait {
		a.waits++
		if s.Wait {
			a.wait++
		}
	}
}

// TestBuiltinsOnCorpus holds what the built-in classifiers reach on the corpus. A miss
// is printed with what was said and what should have been.
func TestBuiltinsOnCorpus(t *testing.T) {
	t.Parallel()
	all := builtins(t, openHost(t))
	byProvider := map[string]*tally{}
	total := &tally{}
	for _, c := range readCorpus(t) {
		v := all[plugins.BuiltinFor(c.Provider)].Classify(c.Evidence)
		s := c.Want.Score(v)
		sum := byProvider[c.Provider]
		if sum == nil {
			sum = &tally{}
			byProvider[c.Provider] = sum
		}
		sum.add(c.Want, s)
		total.add(c.Want, s)
		if !s.Class || !s.Scope || !s.Wait {
			t.Logf("%s: got %v %v %v %v fault %q; want %v %v %v %v", c.ID, v.Class, v.Scope, v.Reason, v.RetryAfter, v.Fault,
				c.Want.Class, c.Want.Scope, c.Want.Reason, c.Want.RetryAfter)
		}
	}
	byProvider["all"] = total
	for _, p := range slices.Sorted(maps.Keys(byProvider)) {
		s := byProvider[p]
		t.Logf("%-14s cases %3d  class %3d  scope %3d  wait %d/%d", p, s.cases, s.class, s.scope, s.wait, s.waits)
		if below(s.class, s.cases, leastClass) || below(s.scope, s.cases, leastScope) || below(s.wait, s.waits, leastWait) {
			t.Errorf("%s is below its floor", p)
		}
	}
}

func below(right, of int, least float64) bool { return float64(right) < least*float64(of) }

func TestReadCorpusNamesTheLine(t *testing.T) {
	t.Parallel()
	const good = `{"id":"a","provider":"p","protocol":"openai.chat","transport":"http","status":500,"headers":{},"body":"","phase":"before_output","expect":{"class":"unknown","scope":"request"}}`
	f := func(text, want string) {
		t.Helper()
		_, err := plugins.ReadCorpus(strings.NewReader(text), "some.jsonl")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want one with %q", err, want)
		}
	}
	f(good+"\n"+good, "some.jsonl:2: the id \"a\" stands on line 1 already")
	f("{", "some.jsonl:1: the case is not valid")
	f(good+" {}", "something stands after the case")
	f(strings.Replace(good, `"status"`, `"stauts"`, 1), `unknown field "stauts"`)
	f(strings.Replace(good, `"http"`, `"fax"`, 1), `cannot read transport "fax"`)
	f(strings.Replace(good, `"unknown"`, `"bad"`, 1), `cannot read failure class "bad"`)
	f(strings.Replace(good, `"body":"",`, ``, 1), "needs a body")
	f(strings.Replace(good, `"request"}`, `"request","retry_after_ms":"7"}`, 1), "retry_after_ms")
	f("{\n"+good+"\n[", "some.jsonl:3:")
}
