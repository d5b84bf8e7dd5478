package ledger

import (
	"slices"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// query narrows the records down as far as SQL can without reading the JSON. The
// answer may hold records that don't match, and lacks none that do.
func (f Filter) query() (string, []any) {
	var (
		where []string
		args  []any
	)
	add := func(cond string, arg any) {
		where = append(where, cond)
		args = append(args, arg)
	}
	if f.RequestID != "" {
		add("request_id = ?", f.RequestID)
	}
	if !f.Since.IsZero() {
		// A key is the time of arrival or a little later.
		add("key >= ?", f.Since.UnixNano())
	}
	words := []string{f.Model, f.Caller, f.Channel, f.Terminal.String()}
	if f.Class != nil {
		words = append(words, f.Class.String())
	}
	for _, w := range words {
		if w != "" && plain(w) {
			add("instr(record, ?)", `"`+w+`"`)
		}
	}
	if f.Decided {
		where = append(where, `instr(record, '"decision":{')`)
	}
	if f.Disagreed {
		where = append(where, disagreed)
	}
	q := "SELECT record FROM records"
	if len(where) > 0 {
		q += " WHERE " + strings.Join(where, " AND ")
	}
	return q + " ORDER BY key DESC", args
}

// disagreed says that a record's request has a disagreement, of its own time: a caller may
// have used one id for several requests. Keys may be a little later than what they stand
// for, so a millisecond at both ends belongs to it.
const disagreed = `EXISTS (SELECT 1 FROM disagreements AS d WHERE d.request_id = records.request_id
	AND d.key >= records.key - 1000000
	AND (record ->> '$.terminal' IS NULL OR d.key <= records.key + (record ->> '$.elapsed_ms' + 1) * 1000000))`

// plain says whether every JSON encoder writes the text as it is.
func plain(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == ' ':
		default:
			return false
		}
	}
	return true
}

// match says whether the record has everything that the filter names.
func (f Filter) match(r *engine.Record) bool {
	switch {
	case f.RequestID != "" && f.RequestID != r.RequestID(),
		!f.Since.IsZero() && r.At().Before(f.Since),
		!f.Until.IsZero() && !r.At().Before(f.Until),
		f.Terminal != engine.TerminalNone && f.Terminal != r.Terminal(),
		f.Running && r.Terminal() != engine.TerminalNone,
		f.Model != "" && f.Model != r.Contract().Model,
		f.Caller != "" && f.Caller != r.Caller():
		return false
	}
	attempts := r.Attempts()
	if f.Decided && !slices.ContainsFunc(attempts, decided) {
		return false
	}
	if f.Channel == "" && f.Class == nil {
		return true
	}
	for i := range attempts {
		a := &attempts[i]
		if f.Channel != "" && f.Channel != a.Channel() {
			continue
		}
		if f.Class != nil && (!a.Failed() || *f.Class != a.Class()) {
			continue
		}
		return true
	}
	return false
}

func decided(a engine.AttemptRecord) bool {
	_, ok := a.Decision()
	return ok
}
