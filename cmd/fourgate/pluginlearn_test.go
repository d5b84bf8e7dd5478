package main

import (
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// TestLearnLeavesOutFaults: what is unknown because a classifier gave no verdict teaches
// nothing.
func TestLearnLeavesOutFaults(t *testing.T) {
	t.Parallel()
	const shape = `"shape":{"transport":"http","status":418,"body":"json","members":["error.code string"]}`
	record, err := engine.ParseRecord([]byte(`{"request_id":"r","at":"2026-03-01T12:00:00Z","attempts":[` +
		`{"seq":1,"status":418,"class":"unknown","scope":"none",` + shape + `},` +
		`{"seq":2,"status":418,"class":"unknown","scope":"none","classifier_fault":"timeout",` + shape + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var l lessons
	l.add(record)
	if len(l.list) != 1 || l.list[0].count != 1 || l.faulty != 1 {
		t.Errorf("%d lessons and %d faults; want one of each", len(l.list), l.faulty)
	}
}

func TestBodyOf(t *testing.T) {
	t.Parallel()
	f := func(want, body string, members ...string) {
		t.Helper()
		if got := bodyOf(engine.ShapeForm{Body: body, Members: members}); got != want {
			t.Errorf("%s with %q: %s; want %s", body, members, got, want)
		}
	}
	f("{", "broken_json")
	f(`{"error":{"code":"?"`, "broken_json", "error.code string")
	f(`{"error":{"code":"?"}}`, "json", "error.code string")
	f("", "empty")
}
