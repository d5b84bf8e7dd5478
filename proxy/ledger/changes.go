package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Changes yields the changes since a time, the zero time for all, one by one, the newest
// first. Errors are those of [Reader.All]. A file that an older Fourgate has written has
// none.
func (r *Reader) Changes(ctx context.Context, since time.Time) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if r.version < withChanges {
			return
		}
		var from int64
		if !since.IsZero() {
			from = since.UnixNano()
		}
		rows, err := r.db.QueryContext(ctx, "SELECT change FROM changes WHERE key >= ? ORDER BY key DESC", from)
		if err != nil {
			yield(Change{}, explain("read", r.path, err))
			return
		}
		defer rows.Close()
		var body sql.RawBytes
		for rows.Next() {
			if err := rows.Scan(&body); err != nil {
				yield(Change{}, explain("read", r.path, err))
				return
			}
			var c Change
			err := json.Unmarshal(body, &c)
			if err != nil {
				err = fmt.Errorf("cannot read a change of ledger %q: %w; it was changed by hand or written by another version", r.path, err)
			}
			if !yield(c, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Change{}, explain("read", r.path, err))
		}
	}
}
