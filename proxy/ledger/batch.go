package ledger

import (
	"unsafe"

	"github.com/fourgate-dev/fourgate/engine"
)

// batch is what will be written in one transaction. All text lies in one buffer, so
// that a record costs no allocation.
type batch struct {
	text     []byte
	rows     []row
	closings int // rows that hold a finished request
	others   []other
	changes  []changeRow

	fate *fate // nil as long as nobody waits
}

// fate is what became of a batch's first try. It outlives the batch.
type fate struct {
	known chan struct{}
	err   error // set before known is closed
}

// row is one record: its key, and where its id and its JSON lie in the text.
type row struct {
	key           int64
	id, json, end int
	again         bool // an earlier batch has the request's opening
	closing       bool
}

// other is one disagreement: its key, and where its request's id and its JSON lie in the
// text.
type other struct {
	key           int64
	id, json, end int
}

// changeRow is one change: its key and its JSON.
type changeRow struct {
	key  int64
	json string
}

// maxSpareText is the largest buffer that an empty batch keeps; one that grew in an
// outage is left to the garbage collector.
const maxSpareText = 4 << 20

// add puts a record in a new row and returns its index.
func (b *batch) add(key int64, again bool, r *engine.Record) int {
	b.rows = append(b.rows, row{key: key, again: again})
	b.set(len(b.rows)-1, r)
	return len(b.rows) - 1
}

// set puts a record in row i. The text that the row had before stays behind unused;
// it is at most what the opening of the same request took.
func (b *batch) set(i int, r *engine.Record) {
	w := &b.rows[i]
	w.id = len(b.text)
	b.text = append(b.text, r.RequestID()...)
	w.json = len(b.text)
	b.text = r.AppendJSON(b.text)
	w.end = len(b.text)
}

// close marks row i as a finished request.
func (b *batch) close(i int) {
	b.rows[i].closing = true
	b.closings++
}

// fields returns what is bound for row i. The strings alias the batch's text: they
// are valid until the next change to the batch, and the driver copies them before.
func (b *batch) fields(i int) (key int64, id, json string) {
	w := b.rows[i]
	return w.key, alias(b.text[w.id:w.json]), alias(b.text[w.json:w.end])
}

// addOther puts a disagreement in.
func (b *batch) addOther(key int64, d *engine.Disagreement) {
	o := other{key: key, id: len(b.text)}
	b.text = append(b.text, d.RequestID...)
	o.json = len(b.text)
	b.text = d.AppendJSON(b.text)
	o.end = len(b.text)
	b.others = append(b.others, o)
}

// other returns what is bound for disagreement i, as fields does for a row.
func (b *batch) other(i int) (key int64, id, json string) {
	o := b.others[i]
	return o.key, alias(b.text[o.id:o.json]), alias(b.text[o.json:o.end])
}

// empty says that there is nothing to write.
func (b *batch) empty() bool { return len(b.rows) == 0 && len(b.others) == 0 && len(b.changes) == 0 }

func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// wait returns where the batch's fate will be known. Only for a batch that is still
// being filled.
func (b *batch) wait() *fate {
	if b.fate == nil {
		b.fate = &fate{known: make(chan struct{})}
	}
	return b.fate
}

// settle tells those who wait, the first time that it is called.
func (b *batch) settle(err error) {
	if b.fate != nil {
		b.fate.err = err
		close(b.fate.known)
		b.fate = nil
	}
}

// reset empties the batch for its next use.
func (b *batch) reset() {
	if cap(b.text) > maxSpareText {
		b.text, b.rows, b.others = nil, nil, nil
	}
	*b = batch{text: b.text[:0], rows: b.rows[:0], others: b.others[:0], changes: b.changes[:0]}
}
