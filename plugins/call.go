package plugins

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/fourgate-dev/fourgate/engine"
)

// Limits of one classification.
const (
	maxDocs    = 8       // JSON texts: the failing one, frames, texts inside strings
	maxPath    = 512     // bytes of a path
	maxText    = 4 << 10 // bytes of the phrases of one search
	maxScratch = 64 << 10
)

// call is the state of one classification. One goroutine owns it. It is the context of
// the classification, too: the runtime gives the host functions the very context of the
// call, and nothing else by which one call could be told from another.
type call struct {
	ev    *engine.Evidence
	mem   api.Memory
	lists *phraseLists // of the module that asks
	sets  *phraseLists // and its lists of lists
	work
	now     time.Time // the response's date, read when it is first needed
	nowRead bool

	timer   *time.Timer // closes late at the deadline
	late    chan struct{}
	expired atomic.Bool

	docs    [maxDocs]jsonDoc
	origins [maxDocs]int32 // the frame that a document was made from, docFailing or docInside
	inside  [maxDocs]int32 // the handle of the string that holds the text
	used    int

	scratch  []byte                  // texts taken out of strings, one after the other
	lowered  [maxLowered + 1]lowered // the last one is for what isn't remembered
	lowers   int
	resolved [maxResolved]resolved
	resolves int

	failing  int32 // the number of the failing frame, once it is known
	searched bool  // it is known
	nested   int   // calls of the guest's functions that are open, if they are watched
	called   bool  // a host function was called
	wrote    bool  // a host function may have written into the guest's memory
	verdicts int
	nonsense bool
	answer   engine.Verdict
}

// docInside marks a document that was a string in another one.
const docInside = -2

func newCall() *call {
	c := &call{late: make(chan struct{})}
	c.timer = time.AfterFunc(MaxTimeout, func() {
		c.expired.Store(true)
		close(c.late)
	})
	c.timer.Stop()
	return c
}

// Deadline implements [context.Context].
func (c *call) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements [context.Context].
func (c *call) Done() <-chan struct{} { return c.late }

// Err implements [context.Context].
func (c *call) Err() error {
	if c.expired.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

type callKey struct{}

// Value implements [context.Context].
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return nil
}

func callOf(ctx context.Context) *call {
	if c, ok := ctx.(*call); ok {
		return c
	}
	c, ok := ctx.Value(callKey{}).(*call) // while an instance is made, the context is wrapped
	if !ok {
		panic(abuse("a host function was called outside a classification"))
	}
	return c
}

// abuse is a guest's breach of the ABI; it ends the classification as a trap.
type abuse string

func (a abuse) Error() string { return string(a) }

// reset begins a classification; its time runs from now on.
func (c *call) reset(ev *engine.Evidence, timeout time.Duration) {
	c.ev, c.mem = ev, nil
	c.work = work{time.Now().Add(timeout), workSlice}
	c.now, c.nowRead = time.Time{}, false
	c.used, c.verdicts, c.nonsense, c.searched = 0, 0, false, false
	c.nested, c.called, c.wrote = 0, false, false
	c.scratch, c.lowers, c.resolves = c.scratch[:0], 0, 0
	c.answer = engine.Verdict{}
	c.timer.Reset(timeout)
}

// end stops the clock and says whether the deadline was kept. A call that missed it must
// not be used again.
func (c *call) end() bool { return c.timer.Stop() }

// release drops every reference to the evidence, which lives only as long as the
// request.
func (c *call) release() {
	c.ev, c.mem, c.lists, c.sets = nil, nil, nil, nil
	for i := range c.docs {
		c.docs[i].text = nil
	}
}

// guestText returns a view of the guest's memory.
func (c *call) guestText(ptr, length uint64, limit uint32) []byte {
	p, n := uint32(ptr), uint32(length)
	if n > limit {
		panic(abuse(fmt.Sprintf("a text of %d bytes was passed; the limit is %d", n, limit)))
	}
	if n == 0 {
		return nil
	}
	c.spend(int(n))
	text, ok := c.mem.Read(p, n)
	if !ok {
		panic(abuse("a text was passed that lies outside the memory"))
	}
	return text
}

// phrasesOf returns the list of phrases that the guest names.
func (c *call) phrasesOf(ptr, length uint64) *phrases {
	return c.lists.of(&c.work, c.guestText(ptr, length, maxText), newPhrases)
}

// phraseSetOf returns the lists of phrases, one a line, that the guest names.
func (c *call) phraseSetOf(ptr, length uint64) *phrases {
	return c.sets.of(&c.work, c.guestText(ptr, length, maxText), newPhraseSet)
}

// guestBuffer returns the part of the guest's memory that a host function may write.
func (c *call) guestBuffer(ptr, size uint64) []byte {
	p, n := uint32(ptr), uint32(size)
	if n == 0 {
		return nil
	}
	c.wrote = true
	buf, ok := c.mem.Read(p, n)
	if !ok {
		panic(abuse("a buffer was passed that lies outside the memory"))
	}
	return buf
}

// copyWork is how many bytes are copied in the time in which one is compared.
const copyWork = 16

func give(stack []uint64, n int32) { stack[0] = api.EncodeI32(n) }

// giveText copies as much of text as fits and answers with its true length.
func (c *call) giveText(stack []uint64, text string, ptr, size uint64) {
	c.spend(copy(c.guestBuffer(ptr, size), text) / copyWork)
	give(stack, int32(min(len(text), math.MaxInt32)))
}

// giveWait answers with a wait in whole milliseconds, rounded up.
func giveWait(stack []uint64, d time.Duration, ok bool) {
	if !ok {
		stack[0] = api.EncodeI64(absent)
		return
	}
	stack[0] = api.EncodeI64(int64((d + time.Millisecond - 1) / time.Millisecond))
}

func (c *call) status(stack []uint64)     { give(stack, int32(c.ev.Status)) }
func (c *call) endpoint(stack []uint64)   { stack[0] = codeOf(abiEndpoints[:], c.ev.Contract.Endpoint) }
func (c *call) phase(stack []uint64)      { stack[0] = codeOf(abiPhases[:], c.ev.Phase) }
func (c *call) transport(stack []uint64)  { stack[0] = codeOf(abiTransports[:], c.ev.Transport) }
func (c *call) bodyEnd(stack []uint64)    { stack[0] = codeOf(abiBodyEnds[:], c.ev.End) }
func (c *call) netKind(stack []uint64)    { stack[0] = codeOf(abiNetKinds[:], c.ev.NetKind) }
func (c *call) netOp(stack []uint64)      { stack[0] = codeOf(abiNetOps[:], c.ev.NetOp) }
func (c *call) frameCount(stack []uint64) { give(stack, int32(len(c.ev.Frames))) }

func (c *call) flags(stack []uint64) {
	stack[0] = 0
	if c.ev.Stream {
		stack[0] |= flagStream
	}
	if c.ev.CallerGone {
		stack[0] |= flagCallerGone
	}
	if c.ev.NotStarted {
		stack[0] |= flagNotStarted
	}
}

func (c *call) model(stack []uint64) {
	if c.ev.Contract.Model == "" {
		give(stack, absent)
		return
	}
	c.giveText(stack, c.ev.Contract.Model, stack[0], stack[1])
}

// headerValue returns the named header's first value.
func (c *call) headerValue(ptr, length uint64) (string, bool) {
	name := c.guestText(ptr, length, maxPath)
	for _, h := range c.ev.Headers {
		c.spend(1)
		if len(h.Name) == len(name) {
			c.spend(len(name))
			if strings.EqualFold(h.Name, string(name)) {
				return h.Value, true
			}
		}
	}
	return "", false
}

func (c *call) header(stack []uint64) {
	value, ok := c.headerValue(stack[0], stack[1])
	if !ok {
		give(stack, absent)
		return
	}
	c.giveText(stack, value, stack[2], stack[3])
}

func (c *call) headerContains(stack []uint64) {
	text, ok := c.headerText(stack[0], stack[1])
	if !ok {
		give(stack, absent)
		return
	}
	give(stack, text.findAny(&c.work, c.phrasesOf(stack[2], stack[3])))
}

func (c *call) headerMatches(stack []uint64) {
	text, ok := c.headerText(stack[0], stack[1])
	if !ok {
		stack[0] = 0
		return
	}
	stack[0] = text.matches(&c.work, c.phraseSetOf(stack[2], stack[3]))
}

// headerText returns the named header's value, to be searched before the next question.
func (c *call) headerText(ptr, length uint64) (*searchText, bool) {
	value, ok := c.headerValue(ptr, length)
	if !ok {
		return nil, false
	}
	text := append(c.take(0), value[:min(len(value), maxSearch)]...)
	c.spend(prepareWork * len(text))
	lower(text)
	l := &c.lowered[maxLowered].searchText
	l.prepare(text)
	return l, true
}

func (c *call) headerDuration(stack []uint64) {
	value, ok := c.headerValue(stack[0], stack[1])
	var d time.Duration
	if ok {
		d, ok = c.read(value, uint32(stack[2]))
	}
	giveWait(stack, d, ok)
}

// durationWork is the work of looking for a duration at one byte.
const durationWork = 8

// read reads a duration in one of the ways of the ABI.
func (c *call) read(text string, how uint32) (time.Duration, bool) {
	text = text[:min(len(text), maxSearch)]
	c.spend(durationWork * len(text))
	switch how {
	case durationValue:
		return readWait(text, c.date())
	case durationText:
		low := append(c.take(0), text...)
		lower(low)
		return textWait(low)
	}
	panic(abuse(fmt.Sprintf("durations can't be read in the way %d; use 0 or 1", how)))
}

// date returns the response's own time, the zero time if it has none.
func (c *call) date() time.Time {
	if !c.nowRead {
		c.nowRead = true
		if text, ok := c.ev.Headers.Get("date"); ok {
			if at, err := time.Parse(time.RFC1123, strings.TrimSpace(text)); err == nil {
				c.now = at
			}
		}
	}
	return c.now
}

func (c *call) retryAfter(stack []uint64) {
	c.spend(2*len(c.ev.Headers) + durationWork*maxPath)
	if text, ok := c.ev.Headers.Get("retry-after-ms"); ok {
		text = strings.TrimSpace(text[:min(len(text), maxPath)])
		if whole, billionths, rest, ok := decimal([]byte(text)); ok && len(rest) == 0 && whole < int64(maxWait/time.Millisecond) {
			d := time.Duration(whole)*time.Millisecond + time.Duration((billionths+999)/1000)
			giveWait(stack, d, true)
			return
		}
	}
	text, ok := c.ev.Headers.Get("retry-after")
	var d time.Duration
	if ok {
		d, ok = readWait(text[:min(len(text), maxPath)], c.date())
	}
	giveWait(stack, d, ok)
}

func window(stack []uint64, c *call, text []byte, offset, ptr, size uint64) {
	off := int32(uint32(offset))
	if off < 0 || int(off) > len(text) {
		give(stack, absent)
		return
	}
	rest := text[off:]
	c.spend(copy(c.guestBuffer(ptr, size), rest) / copyWork)
	give(stack, int32(min(len(rest), math.MaxInt32)))
}

func (c *call) body(stack []uint64) {
	window(stack, c, c.ev.Body, stack[0], stack[1], stack[2])
}

func (c *call) frame(stack []uint64) {
	i := int32(uint32(stack[0]))
	if i < 0 || int(i) >= len(c.ev.Frames) {
		give(stack, absent)
		return
	}
	window(stack, c, c.ev.Frames[i], stack[1], stack[2], stack[3])
}

// verdict takes the guest's answer. Anything that is no answer makes it nonsense.
func (c *call) verdict(stack []uint64) {
	c.verdicts++
	class, scope := uint32(stack[0]), uint32(stack[1])
	wait := int64(stack[4])
	if int(class) >= len(abiClasses) || int(scope) >= len(abiScopes) || uint32(stack[3]) > maxPath ||
		wait < absent || wait > int64(maxWait/time.Millisecond) {
		c.nonsense = true
		return
	}
	reason, err := engine.ParseReason(string(c.guestText(stack[2], stack[3], maxPath)))
	if err != nil {
		c.nonsense = true
		return
	}
	c.answer = engine.Verdict{Class: abiClasses[class], Scope: abiScopes[scope], Reason: reason}
	if wait >= 0 {
		c.answer.RetryAfter = engine.WaitOf(time.Duration(wait) * time.Millisecond)
	}
}
