package proxy

import (
	"fmt"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// A body is hashed when its request has failed and not before, and where the path says a
// part of the request, that part counts.
func TestWhatMakesARequestTheSame(t *testing.T) {
	t.Parallel()
	gone, ended := &engine.Gone{}, &engine.Ended{}
	hash := func(model string, stream bool, body string, ev engine.Event) [32]byte {
		x := &exchange{raw: []byte(body), route: route{model: model, stream: stream}}
		x.remember(ev)
		return x.request.BodyHash
	}
	if h := hash("", false, "{}", ended); h != [32]byte{} {
		t.Error("a whole answer costs a hash")
	}
	known := map[[32]byte]string{{}: "no hash at all"}
	for _, body := range []string{"{}", "{} ", ""} {
		for _, model := range []string{"", "m", "stream m", "m/s"} {
			for _, stream := range []bool{false, true} {
				if model == "" && stream {
					continue // the body says it
				}
				what := fmt.Sprintf("%q stream=%v %q", model, stream, body)
				h := hash(model, stream, body, gone)
				if other, ok := known[h]; ok {
					t.Errorf("%s is the same as %s", what, other)
				}
				known[h] = what
				if h != hash(model, stream, body, &engine.Failed{}) || h != hash(model, stream, body, &engine.Ended{Broken: &engine.Evidence{}}) {
					t.Errorf("%s isn't the same after another failure", what)
				}
			}
		}
	}
}

// BenchmarkIdentify is what a request costs more while failures are remembered.
func BenchmarkIdentify(b *testing.B) {
	for _, size := range []int{2 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			x := &exchange{raw: make([]byte, size), route: route{model: "gemini-2.5-pro"}}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				x.request.BodyHash = [32]byte{}
				x.identify()
			}
		})
	}
}
