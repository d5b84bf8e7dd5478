package plugins

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestWorkEnds shows that nothing that a host function does at length goes on behind the
// deadline.
func TestWorkEnds(t *testing.T) {
	t.Parallel()
	late := func() *work { return &work{deadline: time.Now().Add(-time.Second), left: workSlice} }
	f := func(name string, do func(w *work)) {
		t.Helper()
		do(nil)
		defer func() {
			if recover() == nil {
				t.Errorf("%s: it went on to its end", name)
			}
		}()
		do(late())
	}
	var s searchText
	s.prepare(bytes.Repeat([]byte("a"), maxSearch))
	many := newPhrases([]byte(strings.Repeat("a*b|", 1000)))
	f("many phrases", func(w *work) { s.findAny(w, many) })
	f("lists of phrases", func(w *work) { s.matches(w, newPhraseSet([]byte(strings.Repeat("a*b|", 1000)))) })
	f("a phrase with many parts", func(w *work) { s.findAny(w, newPhrases([]byte(strings.Repeat("a*", 500)+"b"))) })
	text := []byte(`["` + strings.Repeat(`\n`, 1<<15) + `"` + strings.Repeat(",[]", 1<<14) + `]`)
	f("a JSON text", func(w *work) { new(jsonDoc).index(w, text) })
	f("escapes", func(w *work) { unescape(w, make([]byte, len(text)), text) })
	f("lines of a frame", func(w *work) { frameData(w, bytes.Repeat([]byte("data: x\n"), 1<<14)) })
	f("comments of a frame", func(w *work) { frameData(w, bytes.Repeat([]byte(":\n"), 1<<14)) })
}
