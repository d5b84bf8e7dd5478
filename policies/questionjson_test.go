package policies

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// Facts and fields are two views of one input: what a tool writes is what a policy sees.
func TestFactsAreTheFields(t *testing.T) {
	t.Parallel()
	var have, want []string
	for _, f := range facts() {
		have = append(have, f.path)
	}
	for _, f := range fields() {
		want = append(want, strings.Join(f.path, "."))
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("paths (-fields +facts):\n%s", diff)
	}
	q := failed(t)
	q.Now = time.Date(2026, 11, 30, 22, 15, 0, 0, time.UTC)
	byPath := map[string]fact{}
	for _, f := range facts() {
		byPath[f.path] = f
	}
	for _, f := range fields() {
		seen := f.value(&q, q.Now).String()
		path := strings.Join(f.path, ".")
		if got := string(appendJSON(nil, byPath[path].get(&q))); strings.ReplaceAll(seen, ", ", ",") != got {
			t.Errorf("%s: the policy sees %s, the tools write %s", path, seen, got)
		}
	}
}

func TestQuestionRoundTrip(t *testing.T) {
	t.Parallel()
	f := func(change func(*engine.Question)) {
		t.Helper()
		want := failed(t)
		change(&want)
		text := AppendQuestion(nil, &want)
		if !json.Valid(text) {
			t.Fatalf("no JSON: %s", text)
		}
		got, err := ParseQuestion(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again := AppendQuestion(nil, &got); string(again) != string(text) {
			t.Errorf("wrote %s\nthen  %s", text, again)
		}
	}
	f(func(*engine.Question) {})
	f(func(q *engine.Question) { *q = engine.Question{Seq: 1, RouteAttempts: 1, Contract: q.Contract} })
	f(func(q *engine.Question) {
		q.Idempotency.Key = "k\"\n"
		q.Fallback, q.Substitute = []string{"a", "b\\"}, []string{"mini"}
		changeFailure(q, func(p *failureParts) { p.wait = engine.WaitOf(0) })
	})
	f(func(q *engine.Question) {
		changeFailure(q, func(p *failureParts) {
			p.class, p.phase, p.completion, p.wait = engine.ClassPartial, engine.AfterOutput, engine.CompletionPartial, engine.WaitOf(time.Minute)
		})
	})
}

// A question is read strictly, and everything wrong with it is said at once.
func TestQuestionProblems(t *testing.T) {
	t.Parallel()
	f := func(text string, want ...string) {
		t.Helper()
		_, _, err := ParsePartialQuestion([]byte(text), time.UTC)
		if err == nil {
			t.Errorf("%s: no error, want %q", text, want)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s:\n got %v\nwant %s", text, err, w)
			}
		}
	}
	f(``, "it is empty; write an object")
	f(" \n", "it is empty")
	f(`{"request":`, "it ends in the middle")
	f(`{"request": {"id": "a`, "it ends in the middle")
	f(`[]`, "write an object")
	f(`{} {}`, "something after the object")
	f(`{"phase":"before_output","phase":"before_output"}`, "phase: it is there twice")
	f(`{"failure":{"class":"ok","class":"ok"}}`, "failure.class: it is there twice")
	f(`{"failure":{"clas":"ok"}}`, `failure.clas: there is no such fact; did you mean "class"?`)
	f(`{"class":"ok"}`, `class: there is no such fact; did you mean "failure.class"?`)
	f(`{"failure":"ok"}`, `failure: it is "ok"; write an object`)
	f(`{"failure":{"class":"rate_limit"}}`, `failure.class: "rate_limit" is none of its words; did you mean "rate_limited"?`)
	f(`{"failure":{"class":"x"}}`, `use one of unknown, key_fault`)
	f(`{"failure":{"class":null}}`, `failure.class: it is null`)
	f(`{"failure":{"status":"503"}}`, `failure.status: it is "503"; write a whole number from 0 to 999`)
	f(`{"failure":{"status":5.5}}`, `it is 5.5`)
	f(`{"failure":{"status":-1}}`, `it is -1`)
	f(`{"failure":{"retry_after_ms":1e99}}`, `it is 1e99`)
	f(`{"failure":{"reason":"No!"}}`, `failure.reason: cannot read reason`)
	f(`{"failure":{"class":"ok","scope":"none","family":"KEY_FAULT"}}`, `class ok with scope none is of the family NONE`)
	f(`{"failure":{"family":"NONE"}}`, `failure.family: it follows from class and scope`)
	f(`{"attempt":{"seq":0}}`, "from 1")
	f(`{"request":{"stream":1}}`, "request.stream: it is 1; write true or false")
	f(`{"request":{"idempotency":{"key":""}}}`, "write null if the caller sent no key")
	f(`{"routes":{"fallback":"a"}}`, `routes.fallback: it is "a"; write a list of texts`)
	f(`{"routes":{"fallback":["a",1]}}`, `write a list of texts`)
	f(`{"clock":{"hour":24}}`, "clock.hour: it is 24; write a whole number from 0 to 23")
	f(`{"clock":{"date":"30.11.2026"}}`, `clock.date: it is "30.11.2026"; write a date such as 2026-11-30`)
	f(`{"clock":{"date":"2026-11-30","weekday":"sunday"}}`, `2026-11-30 is a monday`)
	f(`{"clock":{"weekday":"sundy"}}`, `did you mean "sunday"?`)
	f(`{"a":1,"budget":{"time":0},"phase":"late"}`, "a: there is no such fact", "budget.time: it is 0", `phase: "late"`)
	f(`{"params":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`, "nested deeper")
	f(`{"params":"`+strings.Repeat("x", maxQuestion)+`"}`, "the limit is")
}

// A few facts make a question: the others are assumed, and said to be.
func TestPartialQuestion(t *testing.T) {
	t.Parallel()
	f := func(text string, check func(*engine.Question) bool, notAssumed ...string) {
		t.Helper()
		q, assumed, err := ParsePartialQuestion([]byte(text), time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if !check(&q) {
			t.Errorf("%s: got %s", text, AppendQuestion(nil, &q))
		}
		for _, path := range notAssumed {
			for _, a := range assumed {
				if a == path {
					t.Errorf("%s: %s was given and is said to be assumed", text, path)
				}
			}
		}
		if _, err := ParseQuestion([]byte(text)); err == nil || !strings.Contains(err.Error(), "missing: "+assumed[0]) {
			t.Errorf("%s: as a whole question: %v", text, err)
		}
	}
	f(`{}`, func(q *engine.Question) bool {
		return q.Seq == 1 && q.AttemptsLeft == 2 && q.Same && q.Time && len(q.Fallback) == 1 && !q.Idempotency.ReplaySafe
	})
	f(`{"failure":{"class":"rate_limited","status":429},"params":{"x":1}}`, func(q *engine.Question) bool {
		return q.Failure.Class() == engine.ClassRateLimited && q.Failure.Status() == 429 && q.Failure.Phase() == engine.BeforeOutput
	}, "failure.class", "failure.status")
	f(`{"failure":{"class":"partial"}}`, func(q *engine.Question) bool {
		return q.Failure.Phase() == engine.AfterOutput && q.Failure.Completion() == engine.CompletionPartial
	}, "failure.class")
	f(`{"budget":{"attempts_left":0}}`, func(q *engine.Question) bool { return !q.Same && len(q.Fallback) == 0 }, "budget.attempts_left")
	f(`{"budget":{"remaining_ms":5,"min_useful_ms":6}}`, func(q *engine.Question) bool { return !q.Time && !q.Same }, "budget.remaining_ms")
	f(`{"clock":{"weekday":"friday","hour":23}}`, func(q *engine.Question) bool {
		return q.Now.Weekday() == time.Friday && q.Now.Hour() == 23
	}, "clock.hour")
	f(`{"attempt":{"seq":2}}`, func(q *engine.Question) bool { return q.AttemptsUsed == 2 }, "attempt.seq")
}

func FuzzParsePartialQuestion(f *testing.F) {
	q := plainQuestion()
	f.Add(AppendQuestion(nil, &q))
	f.Add([]byte(`{"failure":{"class":"rate_limited","retry_after_ms":1000},"params":{"a":[1,{"b":null}]}}`))
	f.Add([]byte(`{"routes":{"fallback":["a","\ud800"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		q, _, err := ParsePartialQuestion(text, time.UTC)
		if err != nil {
			if !reflect.DeepEqual(q, engine.Question{}) {
				t.Error("an unreadable question isn't empty")
			}
			return
		}
		form := AppendQuestion(nil, &q)
		back, err := ParseQuestion(form)
		if err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, form)
		}
		if again := AppendQuestion(nil, &back); string(again) != string(form) {
			t.Fatalf("wrote %s\nthen  %s", form, again)
		}
	})
}

func ExampleAppendQuestion() {
	q := plainQuestion()
	fmt.Printf("%.72s…\n", AppendQuestion(nil, &q))
	// Output: {"request":{"id":"example","caller":"anonymous","endpoint":"openai.chat"…
}
