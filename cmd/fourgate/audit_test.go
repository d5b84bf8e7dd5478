package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

// TestLedgerMatchesTheUpstreams sends requests through three channels that fail at
// random, some of them left by their callers, and audits the ledger: one record for each
// request, one attempt for each call that an upstream has counted, and no secret in the
// answers, the log or the database. Each decision has its question, and a candidate policy
// is asked alongside; neither may tell of callers more than words and numbers.
func TestLedgerMatchesTheUpstreams(t *testing.T) {
	t.Parallel()
	const requests, callers, keyOfCallers = 240, 8, "order-of-a-patient-"
	rnd := rand.New(rand.NewPCG(7, 7))
	r := newRig(t, withCandidate(t), "", "a", "b", "c")
	faults := []string{
		"ok times=3", "status=503", "status=500", "status=529", "error-in-stream", "cut before-headers", "cut before-output", "reset before-output",
		"cut after=2", "status=400", "refusal", "tool-call", "truncated", "status=408", "slow first=20ms",
	}
	for _, ch := range r.upstream {
		var script []string
		for range 60 {
			script = append(script, faults[rnd.IntN(len(faults))])
		}
		r.script(ch, strings.Join(script, ", ")+" again")
	}
	var mu sync.Mutex
	var answers bytes.Buffer
	var wg sync.WaitGroup
	for worker := range callers {
		seeded := rand.New(rand.NewPCG(8, uint64(worker)))
		wg.Go(func() {
			for i := range requests / callers {
				body := chat("model-1", seeded.IntN(2) == 0)
				patience := waitLimit
				if seeded.IntN(8) == 0 {
					patience = time.Duration(1+seeded.IntN(5)) * time.Millisecond
				}
				client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
				req, err := http.NewRequest(http.MethodPost, r.base+"/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Idempotency-Key", fmt.Sprintf("%s%d-%d", keyOfCallers, worker, i))
				resp, err := client.Do(req)
				if err != nil {
					continue // its caller has left
				}
				mu.Lock()
				_, _ = answers.ReadFrom(resp.Body) // a caller that leaves gets a part
				_ = resp.Header.Write(&answers)
				mu.Unlock()
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
	log := r.proxy.stderr
	if code := r.proxy.end(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, log)
	}

	reader, err := ledger.OpenReader(r.ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	attempts, unsure := map[string]int{}, map[string]int{}
	questions, disagreements := 0, 0
	terminals := map[engine.Terminal]int{}
	for rec, err := range reader.All(t.Context(), ledger.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		terminals[rec.Terminal()]++
		for i, a := range rec.Attempts() {
			if q, asked := rec.Question(i); asked && q.Idempotency.Key != "" {
				questions++
			}
			if a.Cancelled() && a.Timing().Sent == 0 {
				unsure[a.Channel()]++ // its caller left before all of it was on the wire
			} else {
				attempts[a.Channel()]++
			}
			if !a.Ended() {
				t.Errorf("request %s is over and its attempt %d open", rec.RequestID(), a.Seq())
			}
		}
	}
	for _, ch := range r.upstream {
		if n := r.sim.Count(ch); n < attempts[ch] || n > attempts[ch]+unsure[ch] {
			t.Errorf("channel %s was called %d times and the ledger has %d attempts", ch, n, attempts[ch])
		}
	}
	for _, end := range []engine.Terminal{engine.TerminalSuccess, engine.TerminalPartial, engine.TerminalPolicyStop} {
		if terminals[end] == 0 {
			t.Errorf("no request ended as %s: %v", end, terminals)
		}
	}
	if terminals[engine.TerminalNone] > 0 {
		t.Errorf("%d requests have no end", terminals[engine.TerminalNone])
	}
	for d, err := range reader.Disagreements(t.Context(), ledger.DisagreementFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := reader.Get(t.Context(), d.RequestID); err != nil || len(rec.Attempts()) < d.Seq {
			t.Errorf("the candidate disagrees about attempt %d of request %s, which there isn't: %v", d.Seq, d.RequestID, err)
		}
		disagreements++
	}
	if questions == 0 || disagreements == 0 {
		t.Errorf("the ledger has %d questions and %d disagreements", questions, disagreements)
	}
	stored, err := os.ReadFile(r.ledger)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string][]byte{"the answers": answers.Bytes(), "the log": []byte(log.String()), "the ledger": stored} {
		if bytes.Contains(text, []byte(secretOfTests)) {
			t.Errorf("the upstreams' key is in %s", where)
		}
		if where != "the answers" && bytes.Contains(text, []byte("hello")) {
			t.Errorf("the prompt is in %s", where)
		}
		if bytes.Contains(text, []byte(keyOfCallers)) {
			t.Errorf("a caller's Idempotency-Key is in %s", where)
		}
	}
	t.Logf("calls %s; ended as %v", r.calls(), terminals)
}
