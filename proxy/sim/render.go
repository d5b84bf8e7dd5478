package sim

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ending is what happens after the last byte of a timeline.
type ending uint8

const (
	keepAlive ending = iota
	closeFIN
	closeRST
	holdOpen // silence until the peer closes
)

// segment is one write, and the silence before it.
type segment struct {
	wait time.Duration
	data []byte
}

// timeline is everything that is done to one request: bytes, pauses, the end. It is
// made once for each query and fault, and never changed.
type timeline struct {
	segments []segment
	end      ending
	// dated is true if the bytes hold the time: such a timeline is made anew.
	dated bool
}

// render makes the timeline of a fault for a query.
func render(f *Fault, q query, now time.Time) *timeline {
	if f.Break == ErrorFrame && !q.streams() {
		// Where nothing streams, the error is the body of the 200.
		whole := *f
		whole.Kind, whole.Break, whole.At = ErrorBody200, Whole, BeforeHeaders
		whole.Status = cmp.Or(f.Status, http.StatusServiceUnavailable)
		f = &whole
	}
	p, status := bodyOf(f, q)
	w := &writer{
		f:      f,
		stream: p.streamed,
		line:   &timeline{dated: f.RetryAfterDate != 0},
	}
	w.chunked = w.stream || f.Break == Malformed
	w.add(f.Headers, nil)
	if !w.stream {
		w.wait += f.First
	}
	if f.Break != Whole && f.At == BeforeHeaders && f.Break != Truncated {
		if f.Break == Malformed {
			w.raw("this is no status line\r\n\r\n")
		}
		return w.finish()
	}
	sent, broken := cutParts(f, p)
	head := headOf(f, p.contentType, status, shapes[q.endpoint].headers(), now)
	switch {
	case bodiless(status):
		w.raw(head + "\r\n")
		return w.finish()
	case w.chunked:
		w.raw(head + "Transfer-Encoding: chunked\r\n\r\n")
	default:
		whole := sent
		if f.Break != End && f.Break != BrokenJSON {
			whole = p
		}
		length := whole.size()
		if f.Break == Truncated {
			length += truncatedBy
		}
		w.raw(head + "Content-Length: " + strconv.Itoa(length) + "\r\n\r\n")
	}
	w.body(sent)
	if broken {
		w.breakBody(shapes[q.endpoint], failure{
			status: f.Status, model: q.model, code: f.Code, typ: f.Type, message: f.Message, array: q.array(),
		})
	}
	if w.chunked && !abrupt(f.Break) {
		w.raw("0\r\n\r\n")
	}
	return w.finish()
}

// truncatedBy is how many bytes a truncated body lacks.
const truncatedBy = 100

// bodiless says whether HTTP allows no body under a status.
func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// abrupt says whether a break leaves the body without its end.
func abrupt(b Break) bool {
	return b == Cut || b == Reset || b == Stall || b == Malformed || b == Truncated
}

// bodyOf is the body that the fault's kind has, unbroken, and its status.
func bodyOf(f *Fault, q query) (parts, int) {
	s := shapes[q.endpoint]
	fail := failure{status: f.Status, model: q.model, code: f.Code, typ: f.Type, message: f.Message}
	status := f.Status
	if status == 0 || f.Break == ErrorFrame {
		status = http.StatusOK
	}
	switch f.Kind {
	case Error:
		return fixedBody(typeJSON, s.errorBody(fail)), status
	case ErrorBody200:
		fail.status = cmp.Or(fail.status, http.StatusInternalServerError)
		return fixedBody(typeJSON, s.errorBody(fail)), http.StatusOK
	case Body:
		return fixedBody(typeJSON, f.Body), status
	case Empty:
		return parts{contentType: typeJSON}, status
	case HTML:
		return fixedBody(typeHTML, htmlPage), status
	}
	a := &asked{query: q, kind: f.Kind}
	if q.endpoint == noEndpoint {
		status = http.StatusNotFound
	}
	a.pieces = piecesOf(f, f.Bytes)
	if q.streams() {
		p := s.(streamer).stream(a)
		p.streamed = true
		return p, status
	}
	p := s.whole(a)
	if f.Bytes > 0 {
		// The text makes up what the envelope lacks.
		a.pieces = piecesOf(f, 1)
		envelope := s.whole(a).size() - len(strings.Join(a.pieces, ""))
		a.pieces = piecesOf(f, max(f.Bytes-envelope, 1))
		p = s.whole(a)
	}
	return p, status
}

// htmlPage is what an edge sends when it can't reach the provider.
const htmlPage = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n" +
	"<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>edge</center>\r\n</body>\r\n</html>\r\n"

// fixedBody is a body without content of its own, in two halves so that it can break
// in the middle.
func fixedBody(contentType, body string) parts {
	half := len(body) / 2
	return parts{contentType: contentType, content: []string{body[:half]}, closing: []string{body[half:]}}
}

// piecesOf makes the content of a fault's kind.
func piecesOf(f *Fault, size int) []string {
	n := f.Chunks
	if n == 0 {
		n = DefaultChunks
	}
	switch f.Kind {
	case ToolCall:
		return argumentPieces(n, size)
	case Refusal:
		return []string{"I ", "can ", "not ", "help ", "with ", "that."}
	case ContentFilter, EmptyAnswer:
		return nil
	}
	return textPieces(n, size)
}

func (p parts) size() int {
	n := 0
	for _, list := range [][]string{p.opening, p.content, p.closing} {
		for _, s := range list {
			n += len(s)
		}
	}
	return n
}

// cutParts leaves what is sent before the break, and says whether there is one.
func cutParts(f *Fault, p parts) (parts, bool) {
	if f.Break == Whole || f.Break == Truncated {
		return p, false
	}
	switch f.At {
	case BeforeOutput:
		p.content, p.closing = nil, nil
		if !p.streamed {
			p.opening = nil // of a whole body every byte is output
		}
	case AfterContent:
		p.content, p.closing = p.content[:min(f.After, len(p.content))], nil
	case BeforeEnd:
		p.closing = p.closing[:max(len(p.closing)-1, 0)]
	}
	return p, true
}

// headOf is the status line and the headers, without those that frame the body.
func headOf(f *Fault, contentType string, status int, own []Field, now time.Time) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + strconv.Itoa(status) + " " + reasonPhrase(status) + "\r\n")
	line := func(name, value string) {
		if value != "" {
			b.WriteString(name + ": " + value + "\r\n")
		}
	}
	if get(f.Header, "Content-Type") == "" {
		line("Content-Type", contentType)
	}
	for _, h := range own {
		line(h.Name, h.Value)
	}
	line("retry-after", f.RetryAfter)
	line("retry-after-ms", f.RetryAfterMS)
	if f.RetryAfterDate != 0 {
		// A date has whole seconds; rounding up keeps the wait at least as long.
		line("Date", now.UTC().Format(http.TimeFormat))
		line("retry-after", now.Add(f.RetryAfterDate+time.Second-1).UTC().Format(http.TimeFormat))
	}
	for _, h := range f.Header {
		line(h.Name, h.Value)
	}
	if f.Close {
		line("Connection", "close")
	}
	return b.String()
}

func reasonPhrase(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Status"
}

// writer collects a timeline.
type writer struct {
	f               *Fault
	line            *timeline
	stream, chunked bool
	wait            time.Duration // before the next byte
	open            bool          // the last segment takes more bytes
}

// raw adds bytes to the write that is being collected.
func (w *writer) raw(s string) { w.add(0, []byte(s)) }

// add adds bytes after a silence.
func (w *writer) add(wait time.Duration, data []byte) {
	w.wait += wait
	if len(data) == 0 {
		return
	}
	if w.wait == 0 && w.open {
		last := &w.line.segments[len(w.line.segments)-1]
		last.data = append(last.data, data...)
		return
	}
	w.line.segments = append(w.line.segments, segment{w.wait, data})
	w.wait, w.open = 0, true
}

// flush ends the write that is being collected, so that a reader may see it alone.
func (w *writer) flush() {
	if w.stream && !w.f.Burst {
		w.open = false
	}
}

// piece adds one frame, or one piece of a whole body.
func (w *writer) piece(s string) {
	size := len(s)
	if w.chunked && w.f.Split > 0 {
		size = w.f.Split
	}
	for len(s) > 0 {
		part := s[:min(size, len(s))]
		s = s[len(part):]
		if w.chunked {
			part = strconv.FormatInt(int64(len(part)), 16) + "\r\n" + part + "\r\n"
		}
		w.raw(part)
		w.flush()
	}
}

func (w *writer) body(p parts) {
	// The opening frames leave with the headers, as a server's first flush does.
	for _, s := range p.opening {
		w.piece(s)
	}
	if w.stream {
		w.wait += w.f.First
	}
	for i, s := range p.content {
		if i > 0 {
			w.wait += w.f.Gap
		}
		w.piece(s)
	}
	for _, s := range p.closing {
		w.piece(s)
	}
}

// breakBody adds the bytes of those breaks that have some.
func (w *writer) breakBody(s shape, fail failure) {
	switch w.f.Break {
	case Malformed:
		w.raw("this is no chunk size\r\n")
	case BrokenJSON:
		switch {
		case fail.array:
			w.piece(`{"candidates":[{`)
		case w.stream:
			w.piece("data: {\"id\":\"sim\",\"choices\":[{\n\n")
		}
	case ErrorFrame:
		fail.status = cmp.Or(fail.status, http.StatusServiceUnavailable)
		w.piece(s.(streamer).errorFrame(fail)) // render leaves it to what streams
	}
}

// finish says how the connection goes on.
func (w *writer) finish() *timeline {
	switch {
	case w.f.Break == Reset:
		w.line.end = closeRST
	case w.f.Break == Stall:
		w.line.end = holdOpen
	case abrupt(w.f.Break), w.f.Close, w.f.Hangup:
		w.line.end = closeFIN
	}
	if w.wait > 0 { // a pause before an end without bytes, as in "cut before-headers headers=2s"
		w.line.segments = append(w.line.segments, segment{wait: w.wait})
	}
	return w.line
}
