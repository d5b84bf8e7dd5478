package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/state/redistest"
)

// half is a source of chance without any.
type half struct{}

func (half) Float64() float64 { return 0.5 }

// crowded is a standing of which n callers have sent a request within the last minute.
func crowded(b *testing.B, n int) *engine.Standing {
	b.Helper()
	s := specOfTests()
	s.Groups[0].RPM = 0
	key := func(i int) string { return fmt.Sprint("key-", i) }
	for i := range n {
		print := sha256.Sum256([]byte(key(i)))
		s.Callers = append(s.Callers, engine.CallerSpec{
			Name: fmt.Sprint("caller-", i), KeySHA256: hex.EncodeToString(print[:]), Groups: []string{"g"}, RPM: 100,
		})
	}
	c, problems := engine.NewCatalog(s)
	if c == nil {
		b.Fatalf("the specification is refused: %+v", problems)
	}
	standing := engine.NewStanding()
	for i := range n {
		caller, _ := c.Caller(key(i))
		req := &engine.Request{ID: "r", Caller: caller, Contract: engine.Contract{Model: modelOfTests, Endpoint: engine.OpenAIChat}, Arrived: time.Now()}
		if _, refusal := c.Route(time.Now(), standing, req, half{}); refusal != nil {
			b.Fatal(refusal.Message)
		}
	}
	return standing
}

// BenchmarkRateList is what telling the rates of 10,000 active callers costs, beside all
// requests.
func BenchmarkRateList(b *testing.B) {
	standing := crowded(b, 10_000)
	size := 0
	for b.Loop() {
		text, _ := rateList(standing, time.Now())
		size = len(text)
	}
	b.ReportMetric(float64(size), "bytes")
}

// BenchmarkHearing is the time from a fact in one instance to its arrival in another,
// through a real server.
func BenchmarkHearing(b *testing.B) {
	server := redistest.Start(b)
	one, other := newInstanceOfTests(b, server.URL()).up(), newInstanceOfTests(b, server.URL()).up()
	f := engine.Fact{Kind: engine.FactChannelQuarantined, Group: "g", Channel: "a", Lifted: true}
	for b.Loop() {
		f.Lifted, f.Until = !f.Lifted, time.Now().Add(time.Hour)
		want := "channel_quarantined ga*"
		if f.Lifted {
			want = ""
		}
		one.shared.Share(f)
		for other.aside() != want {
			time.Sleep(50 * time.Microsecond)
		}
	}
}
