package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseScript reads faults that are separated by commas or line ends, one a request,
// such as "status=503, cut after=3, ok". Spaces around a fault and empty lines mean
// nothing. The error names the fault's number, its words, and what can stand there.
func ParseScript(text string) ([]Fault, error) {
	var script []Fault
	for n := 1; ; n++ {
		item, rest, more, err := nextFault(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read fault %d of the script: %w", n, err)
		}
		if blank := strings.TrimSpace(item) == ""; !blank {
			f, err := ParseFault(item)
			if err != nil {
				return nil, fmt.Errorf("cannot read fault %d of the script: %w", n, err)
			}
			script = append(script, f)
		} else if more && text[len(item)] == ',' {
			return nil, fmt.Errorf("cannot read fault %d of the script: nothing stands before the comma; write ok for a normal answer", n)
		} else {
			n--
		}
		if !more {
			break
		}
		text = rest
	}
	if len(script) == 0 {
		return nil, errors.New("cannot read the script: it is empty; write ok for normal answers")
	}
	return script, nil
}

// nextFault splits text at the first comma or line end outside quotes.
func nextFault(text string) (item, rest string, more bool, err error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',', '\n':
			return text[:i], text[i+1:], true, nil
		case '"', '`':
			quoted, err := strconv.QuotedPrefix(text[i:])
			if err != nil {
				return "", "", false, unclosed(text[i:])
			}
			i += len(quoted) - 1
		}
	}
	return text, "", false, nil
}

func unclosed(at string) error {
	const shown = 24
	if len(at) > shown {
		at = at[:shown] + "…"
	}
	return fmt.Errorf("a quote is not closed at %s", at)
}

// ParseFault reads one fault: words separated by spaces, in any order.
//
//	ok, tool-call, refusal, content-filter, length, empty-answer   what is answered
//	status=503, json-error, body="…", empty, html                  or what stands in its place
//	cut, reset, stall, end, malformed, broken-json                 how it breaks, and where:
//	    before-headers, before-output, after=3, before-end
//	error-in-stream [after=3] [status=429]                         an error event inside a 200
//	truncated                                                      more was promised than is sent
//	retry-after=2, retry-after-ms=1500, retry-after-date=2s        with any of the above
//	code=…, type=…, message="…", header="Name: value"
//	model=other, chunks=50, bytes=1500, split=7, burst
//	slow, headers=2s, first=2s, gap=20ms, close, hangup
//	times=3, again
//
// A value may stand in quotes as in Go. A word that means nothing beside the others is
// an error.
func ParseFault(text string) (Fault, error) {
	words, err := splitWords(text)
	if err != nil {
		return Fault{}, err
	}
	r := reader{}
	for _, w := range words {
		if err := r.take(w); err != nil {
			return Fault{}, err
		}
	}
	return r.finish(strings.TrimSpace(text))
}

// word is one word of a fault: a name, and a value if there is a "=".
type word struct {
	name, value string
	valued      bool
}

func (w word) String() string {
	if w.valued {
		return w.name + "=" + quote(w.value)
	}
	return w.name
}

func splitWords(text string) ([]word, error) {
	var words []word
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, " \t\r\n") {
		end := strings.IndexAny(text, " \t\r\n=")
		if end < 0 {
			end = len(text)
		}
		w := word{name: text[:end]}
		text = text[end:]
		if strings.HasPrefix(text, "=") {
			w.valued, text = true, text[1:]
			if quoted, err := strconv.QuotedPrefix(text); err == nil {
				w.value, _ = strconv.Unquote(quoted) // a quoted prefix always unquotes
				text = text[len(quoted):]
				if text != "" && !strings.ContainsRune(" \t\r\n", rune(text[0])) {
					return nil, fmt.Errorf("a space must follow %s=%s", w.name, quoted)
				}
			} else if strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "`") {
				return nil, unclosed(text)
			} else {
				end := strings.IndexAny(text, " \t\r\n")
				if end < 0 {
					end = len(text)
				}
				w.value, text = text[:end], text[end:]
				if strings.ContainsAny(w.value, "\"`") {
					return nil, fmt.Errorf("put the whole value of %s= in quotes", w.name)
				}
			}
		}
		words = append(words, w)
	}
	if len(words) == 0 {
		return nil, errors.New("it is empty; write ok for a normal answer")
	}
	return words, nil
}

// reader collects the words of one fault.
type reader struct {
	f     Fault
	seen  []string
	kind  bool // a kind was named
	place bool // a place was named
}

// flags are the words without a value, beside the names of kinds, breaks and places.
var flags = []string{"slow", "burst", "close", "hangup", "again"}

// settings are the words with a value.
var settings = []string{
	"status", "after", "retry-after", "retry-after-ms", "retry-after-date", "code", "type", "message",
	"body", "header", "model", "chunks", "bytes", "split", "headers", "first", "gap", "times",
}

func (r *reader) take(w word) error {
	if w.name != "header" && slices.Contains(r.seen, w.name) {
		return fmt.Errorf("%s stands twice", w.name)
	}
	r.seen = append(r.seen, w.name)
	needs := slices.Contains(settings, w.name)
	switch {
	case needs && !w.valued:
		return fmt.Errorf("%s needs a value: %s=…", w.name, w.name)
	case needs:
		if err := r.set(w); err != nil {
			return fmt.Errorf("cannot use %s: %w", w, err)
		}
		return nil
	case w.valued && known(w.name):
		return fmt.Errorf("%s takes no value", w.name)
	}
	return r.plain(w)
}

// known says whether a name is a word without a value.
func known(name string) bool {
	return name != "" && (slices.Contains(kindNames[:], name) || slices.Contains(breakNames[:], name) ||
		slices.Contains(placeNames[:], name) || slices.Contains(flags, name))
}

func (r *reader) plain(w word) error {
	if i := slices.Index(kindNames[:], w.name); i >= 0 {
		return r.setKind(Kind(i))
	}
	if i := slices.Index(breakNames[:], w.name); i > 0 {
		if r.f.Break != Whole {
			return fmt.Errorf("%s and %s can't both happen", r.f.Break, w.name)
		}
		r.f.Break = Break(i)
		return nil
	}
	if i := slices.Index(placeNames[:], w.name); i >= 0 {
		return r.setPlace(Place(i))
	}
	switch w.name {
	case "slow": // says what headers=, first= and gap= do, for the reader's sake
	case "burst":
		r.f.Burst = true
	case "close":
		r.f.Close = true
	case "hangup":
		r.f.Hangup = true
	case "again":
		r.f.Again = true
	default:
		return fmt.Errorf("%q is no word of a fault; known are %s", w.name, vocabulary())
	}
	return nil
}

func vocabulary() string {
	words := slices.Concat(kindNames[:Error], kindNames[ErrorBody200:], breakNames[1:], flags)
	for _, s := range settings {
		words = append(words, s+"=")
	}
	words = append(words, placeNames[BeforeHeaders], placeNames[BeforeOutput], placeNames[BeforeEnd])
	slices.Sort(words)
	return strings.Join(slices.Compact(slices.DeleteFunc(words, func(w string) bool { return w == "body" })), " ")
}

func (r *reader) setKind(k Kind) error {
	if r.kind {
		return fmt.Errorf("%s and %s can't both be answered", r.f.Kind, k)
	}
	r.f.Kind, r.kind = k, true
	return nil
}

func (r *reader) setPlace(p Place) error {
	if r.place {
		return fmt.Errorf("%s and %s are two places", r.f.At, p)
	}
	r.f.At, r.place = p, true
	return nil
}

func (r *reader) set(w word) (err error) {
	f := &r.f
	switch w.name {
	case "status":
		f.Status, err = number(w.value, 200, 599)
	case "after":
		if err = r.setPlace(AfterContent); err == nil {
			f.After, err = number(w.value, 1, maxChunks)
		}
	case "retry-after":
		f.RetryAfter, err = w.value, headerValue(w.value)
	case "retry-after-ms":
		f.RetryAfterMS, err = w.value, headerValue(w.value)
	case "retry-after-date":
		f.RetryAfterDate, err = delay(w.value)
	case "code":
		f.Code, err = w.value, nonempty(w.value)
	case "type":
		f.Type, err = w.value, nonempty(w.value)
	case "message":
		f.Message, err = w.value, nonempty(w.value)
	case "body":
		f.Body = w.value
		err = r.setKind(Body)
	case "header":
		name, value, _ := strings.Cut(w.value, ":")
		value = strings.TrimSpace(value)
		if err = headerName(name); err == nil {
			err = headerValue(value)
		}
		f.Header = append(f.Header, Field{name, value})
	case "model":
		f.Model, err = w.value, nonempty(w.value)
	case "chunks":
		f.Chunks, err = number(w.value, 1, maxChunks)
	case "bytes":
		f.Bytes, err = number(w.value, 1, maxBytes)
	case "split":
		f.Split, err = number(w.value, 1, maxBytes)
	case "headers":
		f.Headers, err = delay(w.value)
	case "first":
		f.First, err = delay(w.value)
	case "gap":
		f.Gap, err = delay(w.value)
	case "times":
		f.Times, err = number(w.value, 2, 1_000_000)
	}
	return err
}

// finish checks the words against each other and fills in what follows from them.
func (r *reader) finish(text string) (Fault, error) {
	f := r.f
	if f.Status != 0 && !r.kind && f.Break != ErrorFrame {
		f.Kind = Error
	}
	if f.Break == ErrorFrame && !r.place {
		f.At, r.place = BeforeOutput, true
	}
	bad := func(format string, a ...any) (Fault, error) {
		return Fault{}, fmt.Errorf("%q: "+format, append([]any{text}, a...)...)
	}
	fixed := f.Kind >= Error
	switch {
	case f.Kind == Error && f.Status == 0:
		return bad("a status needs its number: status=503")
	case f.Status != 0 && f.Kind != Error && f.Kind != Body && f.Kind != ErrorBody200 && f.Kind != Empty && f.Kind != HTML && f.Break != ErrorFrame:
		return bad("a status can't stand beside %s, which is an answer of status 200", f.Kind)
	case f.Break == Whole && r.place:
		return bad("a place needs what happens there: cut, reset, stall, end, malformed, broken-json or error-in-stream")
	case f.Break == Truncated && r.place:
		return bad("truncated takes no place; use cut with one")
	case f.Break != Whole && f.Break != Truncated && !r.place:
		return bad("say where: before-headers, before-output, after=3 or before-end")
	case f.At == BeforeHeaders && (f.Break == End || f.Break == BrokenJSON || f.Break == ErrorFrame):
		return bad("%s needs response headers; use before-output, after=3 or before-end", f.Break)
	case f.Break == ErrorFrame && fixed:
		return bad("error-in-stream needs an answer that streams, not %s", f.Kind)
	case fixed && (f.Model != "" || f.Chunks != 0 || f.Bytes != 0):
		return bad("model, chunks and bytes belong to an answer, not to %s", f.Kind)
	case !fixed && f.Break != ErrorFrame && (f.Code != "" || f.Type != "" || f.Message != ""),
		f.Kind > ErrorBody200 && (f.Code != "" || f.Type != "" || f.Message != ""):
		return bad("code, type and message belong to an error: status=, json-error or error-in-stream")
	case f.RetryAfter != "" && f.RetryAfterDate != 0:
		return bad("retry-after and retry-after-date are the same header")
	}
	return f, nil
}

func number(s string, low, high int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("it must be a whole number from %d to %d", low, high)
	}
	return n, nil
}

func delay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > maxDelay {
		return 0, fmt.Errorf("it must be a time such as 20ms or 2s, at most %s", maxDelay)
	}
	return d, nil
}

func nonempty(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	return nil
}

// headerName accepts RFC 9110's token, and none of the names that frame the body: the
// simulator writes those itself.
func headerName(s string) error {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("()<>@,;:\\\"/[]?={}", c) >= 0 {
			return errors.New(`write header="Name: value"`)
		}
	}
	switch strings.ToLower(s) {
	case "":
		return errors.New(`write header="Name: value"`)
	case "content-length", "transfer-encoding", "connection":
		return errors.New("this header is the simulator's own; use close, truncated or malformed")
	}
	return nil
}

// headerValue refuses what would end the header line.
func headerValue(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	if strings.ContainsAny(s, "\r\n\x00") {
		return errors.New("a header's value has no line end")
	}
	return nil
}
