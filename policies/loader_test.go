package policies

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// Sets that differ in params alone share what was compiled, and each answers by its own.
func TestLoaderCompilesOnce(t *testing.T) {
	t.Parallel()
	var l Loader
	sets := make([]*Set, 20)
	var wg sync.WaitGroup
	for i := range sets {
		wg.Go(func() {
			set, err := l.Load(t.Context(), Options{
				Modules: map[string]string{"bundle/p.rego": answering(`{"action": "retry", "reason": "r", "delay_ms": data.params.ms}`)},
				Params:  map[string]any{"ms": i}, Timeout: patient,
			})
			if err != nil {
				t.Error(err)
				return
			}
			sets[i] = set
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for i, set := range sets {
		q := failed(t)
		if delay, _ := set.Decide(&q).Delay.Get(); delay != time.Duration(i)*time.Millisecond {
			t.Errorf("set %d waits %v", i, delay)
		}
		if set.program != sets[0].program {
			t.Errorf("set %d was compiled by itself", i)
		}
	}
	runtime.KeepAlive(sets)
}

// Another query, profile or text is another program.
func TestLoaderKeepsProgramsApart(t *testing.T) {
	t.Parallel()
	var l Loader
	seen := map[*program]string{}
	for name, opts := range map[string]Options{
		"default": {}, "profile": {Profile: "kunavo"}, "query": {Query: "data.fourgate.standard.decision"},
		"text":  {Modules: map[string]string{"p": region}},
		"place": {Modules: map[string]string{"q": region}},
	} {
		set, err := l.Load(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if other, found := seen[set.program]; found {
			t.Errorf("%s and %s share a program", name, other)
		}
		seen[set.program] = name
	}
}

// A knob is checked for every set, also where the program is there already.
func TestLoaderChecksParamsEveryTime(t *testing.T) {
	t.Parallel()
	var l Loader
	first, err := l.Load(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load(t.Context(), Options{Params: map[string]any{"cool_max_mss": 1}}); err == nil || !strings.Contains(err.Error(), "did you mean cool_max_ms?") {
		t.Errorf("got %v, want the unknown param refused", err)
	}
	runtime.KeepAlive(first)
}

func TestRevision(t *testing.T) {
	t.Parallel()
	revision := func(opts Options) string {
		t.Helper()
		set, err := Load(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		return set.Revision()
	}
	text := map[string]string{"a.rego": region}
	same := revision(Options{Modules: text})
	if got := revision(Options{Paths: []string{writePolicy(t, region)}, Timeout: time.Second, Memory: 1}); got != same || len(got) != 12 {
		t.Errorf("the same policy elsewhere has the revision %s, not %s", got, same)
	}
	seen := map[string]bool{same: true}
	for i, opts := range []Options{
		{}, {Profile: "kunavo"}, {Modules: text, Params: map[string]any{"a": 1}}, {Modules: text, Params: map[string]any{"a": 2}},
		{Modules: text, Data: map[string]any{"a": 1}}, {Modules: text, Query: "data.fourgate.standard.decision"},
		{Modules: map[string]string{"a.rego": region + "\n# changed\n"}},
		{Modules: text, Location: time.FixedZone("CET", 3600)},
	} {
		r := revision(opts)
		if seen[r] {
			t.Errorf("policy %d has the revision %s of another one", i, r)
		}
		seen[r] = true
	}
}

func TestBundlesDataIsData(t *testing.T) {
	t.Parallel()
	q := failed(t)
	data := map[string]any{"acme": map[string]any{"word": "from_data"}}
	set, err := Load(t.Context(), Options{Data: data, Timeout: patient, Modules: map[string]string{
		"bundle:acme/p.rego": "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": data.acme.word}\n",
	}})
	if err != nil {
		t.Fatal(err)
	}
	data["acme"] = nil
	if got := set.Decide(&q); got.Reason.String() != "from_data" || got.Rule != "bundle:acme/p.rego:3" {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(map[string]any{}, set.Params()); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedDataAndFiles(t *testing.T) {
	t.Parallel()
	f := func(name string, opts Options, want string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := problemsOf(t, opts)
			if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
				t.Errorf("problems %v, want one with %q", problems, want)
			}
		})
	}
	many := map[string]string{}
	for i := range maxFiles + 1 {
		many[fmt.Sprint(i, ".rego")] = fmt.Sprintf("package acme.p%d\n", i)
	}
	large := map[string]string{}
	for i := range maxText/maxFile + 1 {
		large[fmt.Sprint(i, ".rego")] = fmt.Sprintf("package acme.p%d\n%s", i, strings.Repeat("#", maxFile-100))
	}
	acme := map[string]string{"p.rego": "package acme\n\nx := 1\n"}
	f("params", Options{Data: map[string]any{"params": 1}}, `data below "params"`)
	f("our own packages", Options{Data: map[string]any{"fourgate": map[string]any{}}}, `data below "fourgate"`)
	f("where a rule is", Options{Modules: acme, Data: map[string]any{"acme": map[string]any{"x": 1}}}, "p.rego:3:1: conflicting rule for data path acme/x")
	f("a long text in params", Options{Modules: acme, Params: map[string]any{"x": []any{"y", strings.Repeat("x", maxDatum+1)}}}, `"x" has a text of 8193 bytes, the limit is 8192`)
	f("a long name in data", Options{Modules: acme, Data: map[string]any{"x": map[string]any{strings.Repeat("x", maxDatum+1): 1}}}, `cannot use policy data: "x" has a text of 8193 bytes`)
	f("long params", Options{Modules: acme, Params: map[string]any{"x": strings.Repeat("x", maxParams)}}, "the limit is 262144")
	f("many files", Options{Modules: many}, "cannot use more than 1000 policy files")
	f("much text", Options{Modules: large}, "cannot use more than 8388608 bytes")
	f("huge file", Options{Modules: map[string]string{"p.rego": strings.Repeat("#", maxFile+1)}}, "p.rego: cannot use a policy file of 1048577 bytes")
	f("name of our own", Options{Modules: map[string]string{"builtin:knobs.rego": "package fourgate.knobs\n"}}, "cannot use a policy file whose name begins with builtin:")
	f("unreadable profile", Options{Profile: "../gates"}, "cannot find policy profile")
}

func TestParamsCanBeSeen(t *testing.T) {
	t.Parallel()
	set := load(t, Options{Params: map[string]any{"same_route_retry": "first", "pass_through_status": []int{402}}})
	if got := fmt.Sprint(set.Params()); got != "map[pass_through_status:[402] same_route_retry:first]" {
		t.Errorf("got %s", got)
	}
}

// Cold and remembered answers of both entry points, and many groups.

func BenchmarkRouteCold(b *testing.B) {
	set := load(b, Options{Memory: -1}, region)
	q := routed()
	b.ReportAllocs()
	for b.Loop() {
		set.Route(&q)
	}
}

func BenchmarkRouteRemembered(b *testing.B) {
	set := load(b, Options{}, region)
	q := routed()
	set.Route(&q)
	b.ReportAllocs()
	for b.Loop() {
		set.Route(&q)
	}
}

// BenchmarkLoadShared loads a group's own params over a policy that is compiled already.
func BenchmarkLoadShared(b *testing.B) {
	var l Loader
	kept, err := l.Load(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := l.Load(b.Context(), Options{Params: map[string]any{"cool_max_ms": i}}); err != nil {
			b.Fatal(err)
		}
	}
	runtime.KeepAlive(kept)
}

// BenchmarkThousandGroups asks the sets of a thousand groups in turn and says what one of
// them keeps in memory.
func BenchmarkThousandGroups(b *testing.B) {
	const groups = 1000
	var l Loader
	var before, after runtime.MemStats
	kept := make([]*Set, groups)
	for i := range kept {
		if i == 1 { // the first one pays for what is shared
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		set, err := l.Load(b.Context(), Options{Params: map[string]any{"cool_max_ms": i}})
		if err != nil {
			b.Fatal(err)
		}
		kept[i] = set
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	q := failed(b)
	for _, set := range kept {
		if d := set.Decide(&q); d.Action != engine.Fallback {
			b.Fatal(d)
		}
	}
	i := 0
	for b.Loop() {
		kept[i%groups].Decide(&q)
		i++
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/groups, "B/set")
}
