package proxy

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
)

const plainHead = "Host: x\r\nAuthorization: Bearer k1\r\nx-api-key: k2\r\nContent-Type: application/json\r\nUser-Agent: OpenAI/JS\r\n" +
	"X-Stainless-Retry-Count: 2\r\nX-Stainless-Timeout: 600\r\nContent-Length: 12\r\n\r\n"

func TestHead(t *testing.T) {
	t.Parallel()
	var h head
	raw := "Host: x\r\nAuthorization: bearer k1\r\nX-Api-Key:k2\r\nContent-Length: 12 \r\nAccept: */*\r\nOpenAI-Beta: p\r\n" +
		"Idempotency-Key: \"a b\"\r\nanthropic-beta: one\r\nAnthropic-Beta: two\r\ntraceparent: nonsense\r\nX-Request-Id: no/slash\r\n" +
		"Connection: keep-alive, OpenAI-Beta\r\nX-Fourgate-Attempt: 3\r\nCookie: c\r\n\r\n"
	if fault := h.read("POST", "/v1/messages?beta=true", "HTTP/1.1", raw); fault != "" {
		t.Fatal(fault)
	}
	if diff := cmp.Diff([]engine.Header{{Name: "Accept", Value: "*/*"}, {Name: "Idempotency-Key", Value: `"a b"`}, {Name: "anthropic-beta", Value: "one"}, {Name: "anthropic-beta", Value: "two"}}, h.forward); diff != "" {
		t.Errorf("goes upstream (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"k1", "k2"}, h.credentials); diff != "" || h.contentLength != 12 || h.requestID != "" {
		t.Errorf("%s %+v", diff, h)
	}
}

func TestHeadAllocatesNothing(t *testing.T) {
	h := new(head)
	if n := testing.AllocsPerRun(100, func() { h.read("POST", "/v1/messages", "HTTP/1.1", plainHead) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHead(b *testing.B) {
	h := new(head)
	b.ReportAllocs()
	for b.Loop() {
		h.read("POST", "/v1/messages", "HTTP/1.1", plainHead)
	}
}

// A head that passes is one that net/http reads in the same way.
func FuzzHead(f *testing.F) {
	f.Add("POST", "/v1/messages", "HTTP/1.1", plainHead)
	f.Add("POST", "/", "HTTP/1.0", "Transfer-Encoding: chunked\r\n\r\n")
	f.Add("POST", "/", "HTTP/1.1", "Host: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n")
	f.Add("POST", "/", "HTTP/1.1", "Host: x\r\nA: b\r\n c\r\n\r\n")
	f.Fuzz(func(t *testing.T, method, target, version, raw string) {
		if !isToken(method) || !strings.HasSuffix(raw, "\r\n\r\n") || strings.Count(raw, "\r\n\r\n") != 1 {
			return // fasthttp gives no other
		}
		var h head
		if h.read(method, target, version, raw) != "" {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " " + version + "\r\n" + raw)))
		if err != nil {
			if strings.Contains(err.Error(), "Host") || strings.Contains(err.Error(), "invalid URL") || strings.Contains(err.Error(), "parse") {
				return // the path is looked up as it is, and the host is never used
			}
			t.Fatalf("net/http refuses what passed: %v", err)
		}
		if length := int64(h.contentLength); r.ContentLength != length {
			t.Errorf("the body has %d bytes, net/http says %d", length, r.ContentLength)
		}
		for _, field := range h.forward {
			if !isToken(field.Name) || strings.ContainsAny(field.Value, "\r\n\x00") {
				t.Errorf("%q goes upstream", field)
			}
		}
	})
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, sdk string
		want        engine.Wait
	}{
		{"", "", engine.Wait{}},
		{"30", "600", engine.WaitOf(30 * time.Second)},
		{"", "1.5", engine.WaitOf(1500 * time.Millisecond)},
		{"NOT_GIVEN", "None", engine.Wait{}},
		{"-1", "0", engine.Wait{}},
		{"nan", "inf", engine.Wait{}},
		{"1e300", "20", engine.WaitOf(20 * time.Second)},
	} {
		if got := timeLimit(c.server, c.sdk); got != c.want {
			t.Errorf("%q and %q give %v, want %v", c.server, c.sdk, got, c.want)
		}
	}
}

func TestSaneKey(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"abc"`: "abc", "abc": "abc", "": "", "a\x01": "", "é": "", strings.Repeat("x", 256): "", `"`: `"`,
	} {
		if got := saneKey(in); got != want {
			t.Errorf("%q is read as %q, want %q", in, got, want)
		}
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": true,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": false,
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": false,
		"": false,
	} {
		if saneTraceparent(in) != want {
			t.Errorf("%q: %v", in, !want)
		}
	}
}

type half struct{}

func (half) Float64() float64 { return 0.5 }

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_800_000_000_000)
	a, b := newID(at, half{}), newID(at.Add(time.Millisecond), half{})
	if len(a) != 26 || a >= b || !saneID(a) {
		t.Errorf("%s, %s", a, b)
	}
}

func BenchmarkMetrics(b *testing.B) {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.attempts.of(attemptLabels{group: "g", channel: "c", action: "first", class: "ok", phase: "after_output"}).Inc()
	}
}
