package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// DisagreementFilter chooses disagreements. Every field that is set must match.
type DisagreementFilter struct {
	Of    *engine.Record // about attempts of this request
	Since time.Time      // the attempt had failed then or later
	Group string         // of the attempt
}

// Disagreements yields where candidate policies disagreed with the one that decides, one
// by one, the newest first. Errors are those of [Reader.All]. A file that an older
// Fourgate has written has none.
func (r *Reader) Disagreements(ctx context.Context, f DisagreementFilter) iter.Seq2[engine.Disagreement, error] {
	return func(yield func(engine.Disagreement, error) bool) {
		if r.version < withDisagreements {
			return
		}
		query, args := f.query()
		rows, err := r.db.QueryContext(ctx, query, args...)
		if err != nil {
			yield(engine.Disagreement{}, explain("read", r.path, err))
			return
		}
		defer rows.Close()
		var body sql.RawBytes
		for rows.Next() {
			if err := rows.Scan(&body); err != nil {
				yield(engine.Disagreement{}, explain("read", r.path, err))
				return
			}
			d, err := engine.ParseDisagreement(body)
			if err != nil {
				err = fmt.Errorf("cannot read a disagreement of ledger %q: %w; "+
					"it was changed by hand or written by another version", r.path, err)
			} else if !f.match(&d) {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(engine.Disagreement{}, explain("read", r.path, err))
		}
	}
}

func (f DisagreementFilter) query() (string, []any) {
	var where []string
	var args []any
	if f.Of != nil {
		where, args = append(where, "request_id = ?"), append(args, f.Of.RequestID())
	}
	if !f.Since.IsZero() {
		where, args = append(where, "key >= ?"), append(args, f.Since.UnixNano())
	}
	q := "SELECT disagreement FROM disagreements"
	if len(where) > 0 {
		q += " WHERE " + strings.Join(where, " AND ")
	}
	return q + " ORDER BY key DESC", args
}

func (f DisagreementFilter) match(d *engine.Disagreement) bool {
	switch {
	case !f.Since.IsZero() && d.At.Before(f.Since),
		f.Group != "" && f.Group != d.Group,
		f.Of != nil && !during(f.Of, d.At):
		return false
	}
	return true
}

// during says whether a time lies in a request's life. The record's own times are rounded
// to microseconds.
func during(r *engine.Record, at time.Time) bool {
	if at.Before(r.At()) {
		return false
	}
	return r.Terminal() == engine.TerminalNone || !at.After(r.At().Add(r.Elapsed()+time.Microsecond))
}
