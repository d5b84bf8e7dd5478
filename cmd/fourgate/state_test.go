package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/proxy/sim"
	"github.com/fourgate-dev/fourgate/proxy/state/redistest"
)

// TestProcessesShareWhatTheyLearn runs three processes: what one has learned of a failing
// channel, the others leave out.
func TestProcessesShareWhatTheyLearn(t *testing.T) {
	t.Parallel()
	const keys = 8
	f := newFleet(t, sharedGroups(keys+2, stateBlock))
	f.redis.Start()
	first, second := f.start(), f.start()
	first.up()
	second.up()
	learns := func(i int, metric string) time.Duration {
		t.Helper()
		model := fmt.Sprintf("m%d", i)
		if got := first.ask(model); got.status != 200 {
			t.Fatalf("%s: got %d %s", model, got.status, got.body)
		}
		begun := time.Now()
		second.looks("/metrics", metric)
		took := time.Since(begun)
		if got := second.ask(model); got.status != 200 {
			t.Errorf("%s elsewhere: got %d %s", model, got.status, got.body)
		}
		if calls := f.sim.Count(fmt.Sprintf("a%d", i)); calls != 1 {
			t.Errorf("%s: the failing channel got %d calls, want 1", model, calls)
		}
		return took
	}
	var took []time.Duration
	for i := range keys {
		f.sim.Channel(fmt.Sprintf("a%d", i)).Accept("another key")
		took = append(took, learns(i, fmt.Sprintf(`fourgate_key_cooling{key="main",provider="a%d"} 1`, i)))
	}
	slices.Sort(took)
	t.Logf("a key that cools in one process is left out by another after %v (median of %d, at most %v)", took[keys/2], keys, took[keys-1])
	f.script(fmt.Sprintf("a%d", keys), "status=404 code=model_not_found")
	learns(keys, `fourgate_state_facts_total{direction="heard",kind="model_evicted"} 1`)
	f.script(fmt.Sprintf("a%d", keys+1), "model=another")
	learns(keys+1, fmt.Sprintf(`fourgate_channel_out{channel="a",group="g%d",why="quarantined"} 1`, keys+1))
	third := f.start() // which comes later and knows all the same
	third.looks("/metrics", `fourgate_key_cooling{key="main",provider="a0"} 1`)
	third.ask("m0")
	if calls := f.sim.Count("a0"); calls != 1 {
		t.Errorf("the failing channel got %d calls, want 1", calls)
	}
}

func (f *fleet) script(channel, text string) {
	f.t.Helper()
	faults, err := sim.ParseScript(text)
	if err != nil {
		f.t.Fatal(err)
	}
	f.sim.Channel(channel).Script(faults...)
}

// TestProcessesShareARate of which two send more than it admits.
func TestProcessesShareARate(t *testing.T) {
	t.Parallel()
	const rpm, tries = 60, 75
	f := newFleet(t, strings.Replace(sharedGroups(1, stateBlock), "1000000", fmt.Sprint(rpm), 1))
	f.redis.Start()
	members := []*member{f.start(), f.start()}
	admitted := 0
	for _, m := range members {
		m.up()
	}
	for range tries {
		for _, m := range members {
			switch got := m.ask("m0"); got.status {
			case 200:
				admitted++
			case 429:
			default:
				t.Fatalf("got %d %s", got.status, got.body)
			}
		}
		time.Sleep(10 * time.Millisecond) // the callers' own pace: 200 a second together
	}
	t.Logf("two processes admit %d of %d requests at %d a minute", admitted, 2*tries, rpm)
	if admitted < rpm || admitted >= 2*rpm {
		t.Errorf("two processes admit %d requests, want about %d", admitted, rpm)
	}
}

// load sends requests to members until it is ended.
type load struct {
	stop    chan struct{}
	wg      sync.WaitGroup
	sent    atomic.Int64
	failed  atomic.Pointer[string]
	mu      sync.Mutex
	slowest time.Duration
}

func (l *load) send(m *member, model string) {
	defer l.wg.Done()
	client := &http.Client{Timeout: waitLimit, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		begun := time.Now()
		resp, err := client.Post(m.base+"/v1/chat/completions", "application/json", strings.NewReader(chat(model, false)))
		what := ""
		if err != nil {
			what = err.Error()
		} else {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				what = fmt.Sprintf("%d %s", resp.StatusCode, body)
			}
		}
		if what != "" {
			l.failed.CompareAndSwap(nil, &what)
		}
		l.sent.Add(1)
		l.mu.Lock()
		l.slowest = max(l.slowest, time.Since(begun))
		l.mu.Unlock()
		time.Sleep(2 * time.Millisecond) // a caller's own pace, which leaves the machine to others
	}
}

// lap returns the slowest request since the last lap.
func (l *load) lap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	slowest := l.slowest
	l.slowest = 0
	return slowest
}

// TestNoRequestFailsForTheBackend that is absent, killed, hung, flushed, restarted, slow and
// lying while two processes serve.
func TestNoRequestFailsForTheBackend(t *testing.T) {
	t.Parallel()
	const healthy = "m5" // of the load; the others each have a channel whose key fails
	f := newFleet(t, sharedGroups(6, stateBlock))
	link := redistest.Slow(t, f.redis, 0)
	f.backend = link.URL()
	for i := range 5 {
		f.sim.Channel(fmt.Sprintf("a%d", i)).Accept("another key")
	}
	members := []*member{f.start(), f.start()} // nothing to share with yet
	l := &load{stop: make(chan struct{})}
	for _, m := range members {
		l.wg.Add(1)
		go l.send(m, healthy)
	}
	all := func(what string, do func(m *member)) {
		t.Helper()
		for _, m := range members {
			do(m)
		}
		t.Logf("%s: %d requests so far, the slowest since then took %v", what, l.sent.Load(), l.lap())
	}
	shares := func(i int) {
		t.Helper()
		members[0].ask(fmt.Sprintf("m%d", i))
		members[1].looks("/metrics", fmt.Sprintf(`fourgate_key_cooling{key="main",provider="a%d"} 1`, i))
	}
	all("absent", (*member).down)
	f.redis.Start()
	all("started", (*member).up)
	shares(0)
	f.redis.Kill()
	all("killed", (*member).down)
	members[0].ask("m1") // learned during the outage
	f.redis.Start()
	all("started again", (*member).up)
	shares(1)
	f.redis.Suspend()
	all("hung", (*member).down)
	late := f.start() // nor does a start wait for it
	if got := late.ask(healthy); got.status != http.StatusOK {
		t.Errorf("a process that starts meanwhile: got %d %s", got.status, got.body)
	}
	f.redis.Resume()
	all("resumed", (*member).up)
	f.redis.Do("FLUSHALL")
	late.looks("/metrics", `fourgate_key_cooling{key="main",provider="a1"} 1`)
	shares(2)
	all("flushed", (*member).up)
	link.Delay(200 * time.Millisecond)
	shares(3)
	all("slow", (*member).up)
	link.Delay(2 * time.Second)
	all("too slow", (*member).down)
	link.Delay(0)
	all("fast again", (*member).up)
	for _, lie := range [][]string{
		{"SET", "fg:1:fact:channel_quarantined:g5:a", "garbage\x01"},
		{"RPUSH", "fg:1:fact:model_evicted:g5:a:m5", "another type"},
		{"SET", "fg:1:rates:liar", "1 group+g5\n1 group+g5\n", "PX", "60000"},
		{"SET", "fg:1:index", "no index"},
	} {
		f.redis.Do(lie...)
	}
	shares(4)
	all("lying", (*member).up)
	close(l.stop)
	l.wg.Wait()
	if what := l.failed.Load(); what != nil {
		t.Errorf("of %d requests at least one failed: %s", l.sent.Load(), *what)
	}
	for _, m := range members {
		if n := strings.Count(m.log.String(), "shared state is"); n != 8 {
			t.Errorf("the log has %d lines about the shared state, want one for each of 8 changes:\n%s", n, m.log)
		}
	}
}

// TestRefusesWithoutTheBackend where that is configured, and not where the switch is off.
func TestRefusesWithoutTheBackend(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sharedGroups(1, strings.Replace(stateBlock, "breakers = true", `on_outage = "refuse"`, 1)))
	m := f.runs()
	got := m.ask("m0")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `"shared_state_down"`) || got.header.Get("Retry-After") == "" {
		t.Errorf("got %d %v %s", got.status, got.header, got.body)
	}
	m.looks("/readyz?verbose", "shared state: requests are refused; unix://")
	m.log.await(t, "shared state is down: requests are refused until it is back")
	m.looks("/api/chain?model=m0", `"refused":"the shared state is down, and on_outage is`)
	off := f.runs(hcl.SharedStateSwitch, "off")
	if got := off.ask("m0"); got.status != http.StatusOK {
		t.Errorf("switched off: got %d %s", got.status, got.body)
	}
	off.looks("/readyz?verbose", "shared state: none")
	off.log.await(t, "shared state is switched off")
	f.redis.Start()
	m.up()
	if got := m.ask("m0"); got.status != http.StatusOK {
		t.Errorf("with the backend: got %d %s", got.status, got.body)
	}
}

// TestALiarTakesNoPoolAway that says of each channel that it is out.
func TestALiarTakesNoPoolAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sharedGroups(1, stateBlock))
	f.redis.Start()
	m := f.runs()
	m.up()
	for _, channel := range []string{"a", "b"} {
		for _, key := range []string{"channel_quarantined:g0:" + channel, "model_evicted:g0:" + channel + ":m0", "breaker_open:g0:" + channel} {
			f.redis.Do("SET", "fg:1:fact:"+key, "liar", "PX", "9000000000000000000")
			// Whoever loses its connection meanwhile hears of it by the index.
			f.redis.Do("ZADD", "fg:1:index", "9000000000000000", "fg:1:fact:"+key)
		}
	}
	f.redis.Do("SET", "fg:1:rates:liar", "1000001 group+g0\n", "PX", "60000") // more than the rate admits
	m.looks("/metrics", `fourgate_channel_out{channel="b",group="g0",why="quarantined"} 1`)
	for range 5 {
		if got := m.ask("m0"); got.status != http.StatusOK {
			t.Errorf("got %d %s", got.status, got.body)
		}
	}
}
