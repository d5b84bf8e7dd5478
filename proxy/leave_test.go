package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy"
)

// A caller that leaves closes the upstream's connection and starts nothing more.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, request string
		upstream      string // what it has sent when the caller leaves
		seen          string // what the caller has got by then
		record        string
	}{
		{"before headers", wholeRequest, "", "", "cancelled 499 | ch1 cancelled before_headers"},
		{"within a whole answer", wholeRequest, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{", "", "cancelled 499 | ch1 cancelled before_output"},
		{"within an error", wholeRequest, "HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{", "", "cancelled 499 | ch1 cancelled before_output"},
		{"in the gate", streamRequest, streamHead + chunk(roleFrame), "", "cancelled 499 | ch1 cancelled before_output"},
		{"within the stream", streamRequest, streamHead + chunk(textFrame), textFrame, "cancelled 200 | ch1 cancelled after_output"},
	} {
		for _, how := range []string{"FIN", "RST"} {
			t.Run(c.name+", "+how, func(t *testing.T) {
				t.Parallel()
				reached := make(chan struct{}, 10)
				p := newProvider(t, func(conn net.Conn, n int) bool {
					ok := hang(c.upstream)(conn, n)
					reached <- struct{}{}
					return ok
				})
				g := setup{providers: []*provider{p, p}}.start(t)
				caller := g.dial(t)
				if _, err := io.WriteString(caller, rawPost("/v1/chat/completions", c.request)); err != nil {
					t.Fatal(err)
				}
				await(t, "the upstream call", reached)
				if c.seen != "" {
					readUntil(t, caller, c.seen)
				}
				if how == "RST" {
					_ = caller.(*net.TCPConn).SetLinger(0)
				}
				caller.Close()
				await(t, "closing the upstream's connection", p.left)
				if rec := g.ledger.next(t); rec != c.record {
					// Where in the response the attempt was is a race with its first bytes.
					if c.upstream == "" || c.seen != "" || rec != "cancelled 499 | ch1 cancelled before_headers" {
						t.Errorf("record %q, want %q", rec, c.record)
					}
				}
				if n := len(p.requests()); n != 1 {
					t.Errorf("%d upstream calls", n)
				}
			})
		}
	}
}

func TestCallerLeavesDuringBackoff(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(503, "application/json", `{}`))
	asked := make(chan struct{}, 1)
	later := func(*engine.Question) engine.Decision {
		asked <- struct{}{}
		return engine.Decision{Action: engine.Retry, Gates: passAll, Delay: engine.WaitOf(20 * time.Second)}
	}
	g := setup{providers: []*provider{p}, policy: later}.start(t)
	caller := g.dial(t)
	if _, err := io.WriteString(caller, rawPost("/v1/chat/completions", wholeRequest)); err != nil {
		t.Fatal(err)
	}
	await(t, "the question to the policy", asked)
	caller.Close()
	if rec := g.ledger.next(t); rec != "cancelled 499 | ch1 provider_transient before_output" {
		t.Errorf("record %q", rec)
	}
	if n := len(p.requests()); n != 1 {
		t.Errorf("%d upstream calls", n)
	}
}

// A caller that stays but stops reading doesn't hold the upstream's stream for ever.
func TestCallerStopsReading(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(c net.Conn, _ int) bool {
		frames := strings.Repeat(chunk(textFrame), 200)
		_, err := io.WriteString(c, streamHead)
		for err == nil {
			_, err = io.WriteString(c, frames)
		}
		return true
	})
	g := setup{providers: []*provider{p}, settings: proxy.Settings{CallerStall: 100 * time.Millisecond}}.start(t)
	caller := g.dial(t)
	if _, err := io.WriteString(caller, rawPost("/v1/chat/completions", streamRequest)); err != nil {
		t.Fatal(err)
	}
	await(t, "closing the upstream's connection", p.left)
	if rec := g.ledger.next(t); rec != "cancelled 200 | ch1 cancelled after_output" {
		t.Errorf("record %q", rec)
	}
}

func TestConnectionServesManyRequests(t *testing.T) {
	t.Parallel()
	p := newProvider(t, stream(textFrame, stopFrame, doneFrame), cutStream(textFrame), answer(400, "application/json", `{"error":{}}`), answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}}.start(t)
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	for i, want := range []string{textFrame + stopFrame + doneFrame, textFrame + "data: {\"error\"", `{"error":{}}`, "chat.completion"} {
		body := streamRequest
		if i == 3 {
			body = wholeRequest
		}
		resp, err := (&http.Client{Transport: transport}).Post("http://"+g.addr+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(got), want) || resp.Close {
			t.Errorf("answer %d: %v, %q, closes: %v", i, err, got, resp.Close)
		}
	}
}

func TestDrainLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}, 1), make(chan struct{})
	p := newProvider(t, func(c net.Conn, _ int) bool {
		_, _ = io.WriteString(c, streamHead+chunk(textFrame))
		reached <- struct{}{}
		<-release
		_, err := io.WriteString(c, chunk(stopFrame)+chunk(doneFrame)+"0\r\n\r\n")
		return err == nil
	})
	g := setup{providers: []*provider{p}}.start(t)
	caller := g.dial(t)
	if _, err := io.WriteString(caller, rawPost("/v1/chat/completions", streamRequest)); err != nil {
		t.Fatal(err)
	}
	await(t, "the upstream call", reached)
	down := make(chan error, 1)
	go func() { down <- g.server.Shutdown(context.Background()) }()
	for g.server.Ready() {
		time.Sleep(time.Millisecond)
	}
	close(release)
	readUntil(t, caller, doneFrame)
	select {
	case err := <-down:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the server doesn't end")
	}
	if _, err := net.Dial("tcp", g.addr); err == nil {
		t.Error("it still accepts callers")
	}
}

func TestDrainTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ request, sent, want string }{
		"before output": {wholeRequest, "", "HTTP/1.1 503 "},
		"in a stream":   {streamRequest, streamHead + chunk(textFrame), `"code":"fourgate_draining"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := make(chan struct{}, 1)
			p := newProvider(t, func(conn net.Conn, n int) bool {
				ok := hang(c.sent)(conn, n)
				reached <- struct{}{}
				return ok
			})
			g := setup{providers: []*provider{p}}.start(t)
			caller := g.dial(t)
			if _, err := io.WriteString(caller, rawPost("/v1/chat/completions", c.request)); err != nil {
				t.Fatal(err)
			}
			await(t, "the upstream call", reached)
			if c.sent != "" {
				readUntil(t, caller, textFrame)
			}
			now, cancel := context.WithCancel(context.Background())
			cancel()
			if err := g.server.Shutdown(now); err != nil {
				t.Error(err)
			}
			_ = caller.SetReadDeadline(time.Now().Add(patience))
			got, err := io.ReadAll(caller)
			if err != nil || !strings.Contains(string(got), c.want) {
				t.Errorf("%v, %q", err, got)
			}
			await(t, "closing the upstream's connection", p.left)
		})
	}
}
