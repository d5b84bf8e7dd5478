package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// large is a configuration of 1,000 groups with ten channels each, 10,000 provider keys
// and 10,000 callers, half of whom may use every group.
func large() engine.Spec {
	const groups, each, callers = 1000, 10, 10_000
	s := spec(1)
	provider, group := s.Providers[0], s.Groups[0]
	s.Providers, s.Groups = nil, nil
	var all []string
	for i := range groups {
		p := provider
		p.Name, p.Keys = fmt.Sprintf("p%d", i), nil
		g := group
		g.Name, g.Models, g.Channels, g.RPM = fmt.Sprintf("g%d", i), []string{fmt.Sprintf("model-%d", i)}, nil, 600
		g.Breaker = engine.BreakerSpec{Mode: engine.BreakerWindow, Failures: 3, Window: time.Minute, OpenFor: time.Minute}
		for k := range each {
			p.Keys = append(p.Keys, engine.KeySpec{Name: fmt.Sprintf("k%d", k), Secret: engine.NewSecret(fmt.Sprintf("secret %d of %d", k, i))})
			g.Channels = append(g.Channels, engine.ChannelSpec{
				Name: fmt.Sprintf("c%d", k), Provider: fmt.Sprintf("p%d", (i+k)%groups),
				SendAs: map[string]string{g.Models[0]: "its-own-name"}, Serves: g.Models[0],
			})
		}
		s.Providers, s.Groups, all = append(s.Providers, p), append(s.Groups, g), append(all, g.Name)
	}
	for i := range callers {
		sum := sha256.Sum256(fmt.Append(nil, "key ", i))
		c := engine.CallerSpec{Name: fmt.Sprintf("caller-%d", i), KeySHA256: hex.EncodeToString(sum[:]), Groups: all, RPM: 300}
		if i%2 == 0 {
			c.Groups = []string{s.Groups[i%groups].Name, s.Groups[(i+1)%groups].Name}
		}
		s.Callers = append(s.Callers, c)
	}
	return s
}

// begin makes a catalog and a standing of it.
func begin(tb testing.TB, s engine.Spec) (*engine.Catalog, *engine.Standing) {
	c, problems := engine.NewCatalog(s)
	if c == nil {
		tb.Fatal(problems[0])
	}
	st := engine.NewStanding()
	st.Adopt(c)
	return c, st
}

// TestALargeConfigurationIsSmall isn't parallel: it measures the heap.
func TestALargeConfigurationIsSmall(t *testing.T) {
	s := large()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	c, st := begin(t, s)
	const limit = 100 << 20
	if took := int64(heap()) - int64(before); took > limit {
		t.Errorf("the catalog and its standing take %d MiB, at most %d", took>>20, limit>>20)
	} else {
		t.Logf("the catalog and its standing take %d MiB", took>>20)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(st)
}

// BenchmarkLargeConfiguration checks 1,000 groups, 10,000 channels, 10,000 keys and 10,000
// callers, and makes their names known to a standing.
func BenchmarkLargeConfiguration(b *testing.B) {
	s := large()
	b.ReportAllocs()
	for b.Loop() {
		begin(b, s)
	}
}
