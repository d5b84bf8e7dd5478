package state

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/state/redistest"
)

// TestLiesInTheBackend do no more than they could if they were true, and what can't be
// true is counted and changes nothing.
func TestLiesInTheBackend(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	honest := newInstanceOfTests(t, server.URL()).up()
	quarantined := "fg:1:fact:channel_quarantined:g:a"
	for _, lie := range [][]string{
		{"SET", quarantined, "somebody"},                                                                // has no end
		{"SET", quarantined, strings.Repeat("x", 1000), "PX", "100000"},                                 // by no instance
		{"SET", quarantined, "\x01\xff", "PX", "100000"},                                                // nor this
		{"DEL", quarantined},                                                                            //
		{"RPUSH", quarantined, "1", "2"},                                                                // another type
		{"DEL", quarantined},                                                                            //
		{"SET", "fg:1:fact:channel_quarantined:g:a:b", "somebody", "PX", "100000"},                      // too many names
		{"SET", "fg:1:fact:channel_quarantined:g:%61", "somebody", "PX", "100000"},                      // a second spelling
		{"SET", "fg:1:fact:channel_disabled:g:a", "somebody", "PX", "100000"},                           // by hand only
		{"SET", "fg:1:fact:", "somebody", "PX", "100000"},                                               //
		{"SET", "fg:1:", "somebody", "PX", "100000"},                                                    //
		{"SET", "fg:1:fact:channel_quarantined:" + strings.Repeat("g", 3000) + ":a", "s", "PX", "9999"}, // as long as no key
		{"SET", "fg:2:fact:channel_quarantined:g:a", "somebody", "PX", "100000"},                        // another version
		{"SET", "fg:1:rates:somebody", "garbage", "PX", "100000"},
		{"SET", "fg:1:rates:somebody", "1001 group+g\n", "PX", "100000"}, // more than the rate admits
		{"SET", "fg:1:rates:somebody", "-5 group+g\n", "PX", "100000"},
		{"SET", "fg:1:rates:some body", "5 group+g\n", "PX", "100000"},
		{"HSET", "fg:1:rates:somebody2", "a", "b"},
		{"DEL", "fg:1:index"}, {"SET", "fg:1:index", "no index"},
	} {
		server.Do(lie...)
	}
	eventually(t, "the lies are counted", func() bool { return honest.counted("fourgate_state_errors_total", "value") >= 10 })
	if got := honest.aside(); got != "" || !honest.shared.Up() {
		t.Errorf("lies have set aside %q; up: %v", got, honest.shared.Up())
	}
	if got := honest.admits(5); got != 5 {
		t.Errorf("lies leave %d of 5 requests", got)
	}
	// More than a rate admits is no reason to disbelieve the other rates.
	server.Do("SET", "fg:1:rates:somebody3", "1001 group+g\n3 group+other\n4 group+nobody\n", "PX", "100000")
	eventually(t, "the other rate is heard", func() bool { return honest.heardRate("group other") == 3 })
	if got := honest.heardRate("group g"); got != 0 {
		t.Errorf("%d requests of the rate g are believed", got)
	}
	if got := honest.heardRate("group nobody"); got != 0 {
		t.Errorf("%d requests of a rate that isn't known here are kept", got)
	}
	// Another thing in the place of the index is mended by whoever tells next.
	honest.fails(cool)
	eventually(t, "the index is mended", func() bool { return server.Do("TYPE", "fg:1:index") == "zset" })
	newInstanceOfTests(t, server.URL()).up().has("key_cooled pamain*")
	// An end beyond all measure counts as the longest there is.
	server.Do("SET", quarantined, "somebody", "PX", "4611686018427387904")
	server.Do("ZADD", "fg:1:index", "9000000000000000", quarantined) // heard also after a lost connection
	honest.has("key_cooled pamain, channel_quarantined ga*")
	for _, a := range honest.standing.List(time.Now()) {
		if until := time.Until(a.Until); until > maxTTL {
			t.Errorf("%v is set aside for %v", a.Fact, until)
		}
	}
}

// TestWhatIsTooLongIsPassedOver and loses no connection, which would be lost each time anew.
func TestWhatIsTooLongIsPassedOver(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("SETRANGE", "fg:1:rates:liar", fmt.Sprint(maxRatesBytes+10), "\n")
	server.Do("PEXPIRE", "fg:1:rates:liar", "100000")
	server.Do("ZADD", "fg:1:index", "9000000000000000", "fg:1:rates:liar")
	// Names of more than a message takes, one alone and all together.
	server.Do("EVAL", `redis.call('ZADD', KEYS[1], 8e15, string.rep('x', 2e6))
		for i = 1, 9000 do redis.call('ZADD', KEYS[1], 9e15, string.rep('y', 1000) .. i) end`, "1", "fg:1:index")
	honest := newInstanceOfTests(t, server.URL()).up()
	eventually(t, "the lie is counted", func() bool { return honest.counted("fourgate_state_errors_total", "value") >= 1 })
	honest.fails(cool)
	newInstanceOfTests(t, server.URL()).up().has("key_cooled pamain*")
	if n := honest.counted("fourgate_state_errors_total", "connection"); n != 0 {
		t.Errorf("%v connections were lost", n)
	}
}

// TestALiarCannotEmptyAPool that sets aside everything there is.
func TestALiarCannotEmptyAPool(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	honest, liar := newInstanceOfTests(t, server.URL()).up(), newInstanceOfTests(t, server.URL()).up()
	facts := 0
	for _, p := range liar.catalog.Providers() {
		key := p.Keys()[0]
		liar.shared.Share(engine.Fact{Kind: engine.FactKeyCooled, Provider: p.Name(), Key: key.Name(), KeyPrint: key.Print(), Until: time.Now().Add(time.Hour)})
		facts++
	}
	for _, ch := range liar.catalog.Groups()[0].Channels() {
		for _, kind := range []engine.FactKind{engine.FactChannelQuarantined, engine.FactModelEvicted, engine.FactBreakerOpen} {
			f := engine.Fact{Kind: kind, Group: "g", Channel: ch.Name(), Until: time.Now().Add(time.Hour)}
			if kind == engine.FactModelEvicted {
				f.Model = modelOfTests
			}
			liar.shared.Share(f)
			facts++
		}
	}
	eventually(t, "all lies are heard", func() bool { return len(honest.standing.List(time.Now())) == facts })
	if got := honest.admits(10); got != 10 {
		t.Errorf("%d of 10 requests get a chain", got)
	}
}

// TestABackendThatBreaksItsProtocol loses its connection, and the process goes on.
func TestABackendThatBreaksItsProtocol(t *testing.T) {
	t.Parallel()
	f := func(name, says string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, lied := liar(t, says)
			a := newInstanceOfTests(t, url)
			select {
			case <-lied:
			case <-time.After(waitLimit):
				t.Fatal("nobody listens to the liar")
			}
			eventually(t, "the liar is left", func() bool { return a.counted("fourgate_state_errors_total", "connection") >= 1 })
			a.fails(cool)
			a.has("key_cooled pamain")
		})
	}
	f("an answer to no question", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n")
	f("a string of a length beyond memory", "$9223372036854775807\r\n")
	f("a string of a negative length", "$-7\r\n")
	f("an array of a length beyond memory", "*2305843009213693952\r\n")
	f("a map of a negative length", "%-4\r\n")
	f("arrays in arrays", strings.Repeat("*1\r\n", 100_000))
	f("a push of one word", ">1\r\n$10\r\ninvalidate\r\n")
	f("a push of another kind", ">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n")
	f("an invalidation of a number", ">2\r\n$10\r\ninvalidate\r\n:5\r\n")
	f("not its protocol at all", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
	f("nothing", "")
	f("a line without an end", "+"+strings.Repeat("x", 1<<20))
}

// liar greets like a backend and says this to whatever comes next.
func liar(t *testing.T, says string) (url string, lied <-chan struct{}) {
	t.Helper()
	dir, err := os.MkdirTemp("", "liar")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	done, once := make(chan struct{}), sync.Once{}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			for {
				line, err := in.ReadString('\n')
				if err != nil || strings.HasPrefix(line, "TRACKING") {
					break
				}
			}
			fmt.Fprint(c, "%2\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n+OK\r\n")
			fmt.Fprint(c, says)
			once.Do(func() { close(done) })
			_, _ = in.WriteTo(nowhere{}) // until the other side leaves
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		_ = os.RemoveAll(dir)
	})
	return "unix://" + ln.Addr().String(), done
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// scanned reads a text in pieces of n bytes.
func scanned(text string, n int) (kinds string, err error) {
	s := scanner{message: func(kind byte) error {
		kinds += string(kind)
		return nil
	}}
	for p := []byte(text); len(p) > 0 && err == nil; {
		piece := p[:min(n, len(p))]
		err, p = s.scan(piece), p[len(piece):]
	}
	return kinds, err
}

func TestScannerCountsMessages(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		for n := 1; n <= len(text); n++ {
			if got, err := scanned(text, n); err != nil || got != want {
				t.Errorf("%q in pieces of %d: messages %q, error %v, want %q", text, n, got, err, want)
			}
		}
	}
	f("+OK\r\n-ERR no\r\n:-12\r\n:9223372036854775807\r\n_\r\n#t\r\n,1.5\r\n(123\r\n", "+-::_#,(")
	f("$5\r\nab\r\nc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n", "$$__*")
	f("*2\r\n*1\r\n:1\r\n%1\r\n$1\r\na\r\n~0\r\n+OK\r\n", "*+")
	f(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n+OK\r\n>2\r\n+invalidate\r\n_\r\n", ">+>")
	for _, bad := range []string{
		"\r\n", "+OK\n", "$5\r\nabcdefg", "$3\r\nabc\rx", "#x\r\n", "_x\r\n", ":\r\n", ":1x\r\n", "$1048578\r\n", ";4\r\n", "|1\r\n", "$?\r\n", "*1\r\n>2\r\n",
		">2\r\n$10\r\ninvalidates\r\n", ">2\r\n$10\r\ninvalidatX\r\n", ">2\r\n*1\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n*1\r\n", ":1-1\r\n", "$1000000000000000000\r\n",
	} {
		if _, err := scanned(bad, 1); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add("+OK\r\n*2\r\n$1\r\na\r\n:1\r\n", 3)
	f.Add(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n", 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = max(1, n%64)
		whole, wholeErr := scanned(text, len(text)+1)
		parts, partsErr := scanned(text, n)
		if whole != parts || fmt.Sprint(wholeErr) != fmt.Sprint(partsErr) {
			t.Errorf("whole: %q, %v; in pieces of %d: %q, %v", whole, wholeErr, n, parts, partsErr)
		}
	})
}

func TestAddressNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := func(url, want string) {
		t.Helper()
		a, err := parseAddress(url)
		got := a.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	f("redis://localhost", "redis://localhost:6379/0")
	f("rediss://user:secret@cache.example:6380/3", "rediss://cache.example:6380/3")
	f("valkey://[::1]:7000?db=2", "redis://[::1]:7000/2")
	f("unix://:secret@/run/redis.sock?db=1", "unix:///run/redis.sock?db=1")
	f("redis://user:sec%ret@host", "escape special characters")
	f("redis://user:secret#x@host", "escape special characters")
	f("http://secret@host", "unknown scheme")
	f("redis://:secret@/0", "names no host")
	f("redis://host/secret", "names no database")
	f("redis://host?skip_verify=secret", "parameters that are not known")
	f("unix://relative", "no absolute path")
}

func TestCleanIsForPeople(t *testing.T) {
	t.Parallel()
	for text, want := range map[error]string{
		fmt.Errorf("cannot connect: %w", context.DeadlineExceeded):                                      "cannot connect: no answer within 1s",
		errors.New("OOM command not allowed. script: c4ff4bcfbace53e8c5f502bce6ff, on @user_script:5."): "OOM command not allowed",
	} {
		if got := (address{}).clean(text); got != want {
			t.Errorf("%v: got %q, want %q", text, got, want)
		}
	}
}

func TestCleanHidesAndBounds(t *testing.T) {
	t.Parallel()
	a := address{password: "pw"}
	if got := a.clean(errors.New("bad pw\n\x1b[31m" + strings.Repeat("é", 300))); !strings.HasPrefix(got, "bad ***  [31m") || len(got) > maxWhy+8 {
		t.Errorf("%q", got)
	}
}
