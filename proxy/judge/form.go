package judge

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/fourgate-dev/fourgate/engine"
)

// Bounds of a form. An edit of images has up to sixteen files and some twenty fields.
const (
	maxParts    = 256
	maxPartHead = 4 << 10 // bytes of one part's header lines
)

// IsForm says whether a Content-Type is that of an upload, for [Form] to read.
func IsForm(contentType string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(name), "multipart/form-data")
}

// Form reads the body of a multipart upload as [Request] reads JSON: the model, and
// whether a stream is asked for. What two parsers may take apart differently is refused:
// a part without a plain name, the boundary elsewhere than between parts, text before the
// first part or behind the last. Files are passed over and never copied.
//
// An upload does something outside the inference wherever its answer or its files may
// be kept, so it counts as no replay-safe request.
func Form(e engine.Endpoint, contentType string, body []byte) (Body, *Fault) {
	boundary, ok := boundaryOf(contentType)
	if !ok {
		return Body{}, fault(InvalidForm, 0, "The Content-Type of the upload has no usable boundary, or more than one.")
	}
	f := form{body: body, mark: []byte("--" + boundary)}
	if bad := f.read(); bad != nil {
		return Body{}, bad
	}
	if f.out.Model == "" && rulesOf(e).needsModel {
		return Body{}, fault(MissingModel, len(body), `The form has no field "model". Name the model that you want.`)
	}
	f.out.Effects = engine.EffectsPossible
	return f.out, nil
}

// form is the state of one Form.
type form struct {
	body, mark []byte
	at         int
	out        Body
	streamed   bool // the field "stream" was read
}

// part is one field or file.
type part struct {
	name    string
	file    bool
	plain   bool // its bytes are its text: no transfer encoding, no foreign character set
	content []byte
	start   int
}

func (f *form) invalid(message string) *Fault { return fault(InvalidForm, f.at, message) }

// read goes over the parts.
func (f *form) read() *Fault {
	if !bytes.HasPrefix(f.body, f.mark) {
		return f.invalid("The form does not begin with its boundary.")
	}
	f.at = len(f.mark)
	for range maxParts {
		rest := f.body[f.at:]
		switch {
		case bytes.HasPrefix(rest, []byte("--")):
			if rest = rest[2:]; len(rest) > 0 && string(rest) != "\r\n" {
				return f.invalid("The form goes on behind its last boundary.")
			}
			return nil
		case !bytes.HasPrefix(rest, []byte("\r\n")):
			return f.invalid("A boundary of the form is not on a line of its own.")
		}
		f.at += 2
		p, bad := f.next()
		if bad == nil {
			bad = f.take(&p)
		}
		if bad != nil {
			return bad
		}
	}
	return f.invalid("The form has too many parts.")
}

// next reads one part up to the boundary behind it.
func (f *form) next() (part, *Fault) {
	head := f.body[f.at:]
	end := bytes.Index(head[:min(len(head), maxPartHead)], []byte("\r\n\r\n"))
	if end < 0 {
		return part{}, f.invalid("A part of the form has no end of its header lines, or too many of them.")
	}
	p, ok := partHead(string(head[:end]))
	if !ok {
		return part{}, f.invalid(`A part of the form has no plain header lines with one Content-Disposition: form-data and one name.`)
	}
	p.start = f.at + end + len("\r\n\r\n")
	length := bytes.Index(f.body[p.start:], f.mark)
	if length < 0 {
		return part{}, f.invalid("The form ends in the middle of a part.")
	}
	f.at = p.start + length
	if length < 2 || string(f.body[f.at-2:f.at]) != "\r\n" {
		return part{}, f.invalid("The boundary of the form stands within a part.")
	}
	p.content = f.body[p.start : f.at-2]
	f.at += len(f.mark)
	return p, nil
}

// take reads a part that matters.
func (f *form) take(p *part) *Fault {
	name := strings.TrimSpace(p.name)
	switch {
	case p.name == "model":
		return f.model(p)
	case p.name == "stream":
		if f.streamed {
			return fault(DuplicateName, p.start, `The form has two fields of the name "stream". Send it once.`)
		}
		f.streamed = true
		switch strings.ToLower(string(p.content)) {
		case "true", "1":
			f.out.Stream = true
		case "false", "0", "":
		default:
			return fault(WrongType, p.start, `"stream" must be true or false.`)
		}
	case strings.EqualFold(name, "model"), strings.EqualFold(name, "stream"):
		return fault(AmbiguousName, p.start, `A name in the form differs only in case from "`+strings.ToLower(name)+`". Names are case-sensitive.`)
	}
	return nil
}

func (f *form) model(p *part) *Fault {
	name := string(p.content[:min(len(p.content), MaxModel+1)])
	switch {
	case f.out.Model != "":
		return fault(DuplicateName, p.start, `The form has two fields of the name "model". Send it once.`)
	case p.file || !p.plain:
		return fault(WrongType, p.start, `"model" must be a plain field: no file, no encoding.`)
	case name == "":
		return fault(MissingModel, p.start, `"model" is empty. Name the model that you want.`)
	case len(name) > MaxModel:
		return fault(BadModel, p.start, `"model" is longer than 256 bytes.`)
	case !utf8.ValidString(name) || !printable(name):
		return fault(BadModel, p.start, `"model" has a control character or is no UTF-8.`)
	}
	f.out.Model, f.out.ModelStart, f.out.ModelEnd, f.out.BareModel = name, p.start, p.start+len(name), true
	return nil
}

// partHead reads a part's header lines, the last without its line end.
func partHead(text string) (p part, ok bool) {
	p.plain = true
	named := 0
	for line := range strings.SplitSeq(text, "\r\n") {
		name, value, found := strings.Cut(line, ":")
		if !found || !isToken(name) || strings.ContainsAny(value, "\r\n\x00") {
			return p, false
		}
		switch value = strings.TrimSpace(value); strings.ToLower(name) {
		case "content-disposition":
			named++
			if !p.disposition(value) {
				return p, false
			}
		case "content-transfer-encoding":
			p.plain = false
		case "content-type":
			kind, charset, _ := strings.Cut(strings.ToLower(value), ";")
			charset = strings.Trim(strings.TrimPrefix(strings.TrimSpace(charset), "charset="), `"`)
			p.plain = p.plain && strings.TrimSpace(kind) == "text/plain" && (charset == "" || charset == "utf-8")
		}
	}
	return p, named == 1
}

// disposition reads form-data; name="…"; filename="…".
func (p *part) disposition(value string) bool {
	kind, rest, _ := strings.Cut(value, ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "form-data") {
		return false
	}
	names := 0
	whole := parameters(rest, func(name, value string) bool {
		switch name {
		case "name":
			names++
			p.name = value
			return !strings.Contains(value, `\`)
		case "name*":
			return false
		case "filename", "filename*":
			p.file = true
		}
		return true
	})
	return whole && names == 1
}

// boundaryOf finds the boundary in a Content-Type.
func boundaryOf(contentType string) (string, bool) {
	_, rest, _ := strings.Cut(contentType, ";")
	boundary := ""
	whole := parameters(rest, func(name, value string) bool {
		if name != "boundary" {
			return name != "boundary*"
		}
		first := boundary == ""
		boundary = value
		return first
	})
	// RFC 2046 section 5.1.1.
	if !whole || len(boundary) < 1 || len(boundary) > 70 || strings.HasSuffix(boundary, " ") {
		return "", false
	}
	for i := range len(boundary) {
		c := boundary[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("'()+_,-./:=? ", c) >= 0) {
			return "", false
		}
	}
	return boundary, true
}

// parameters reads a list of name=value, the names in lower case. It says whether the
// list is well-formed and each was taken. A quote that may or may not be escaped makes it
// ill-formed.
func parameters(list string, take func(name, value string) bool) bool {
	for list = strings.TrimSpace(list); list != ""; list = strings.TrimSpace(list) {
		name, rest, found := strings.Cut(list, "=")
		if name = strings.ToLower(strings.TrimSpace(name)); !found || !isToken(name) {
			return false
		}
		var value string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			if value, rest, found = strings.Cut(quoted, `"`); !found || strings.HasSuffix(value, `\`) {
				return false
			}
			if rest = strings.TrimSpace(rest); rest != "" && rest[0] != ';' {
				return false
			}
			list = strings.TrimPrefix(rest, ";")
		} else {
			value, list, _ = strings.Cut(rest, ";")
			if value = strings.TrimSpace(value); value == "" || strings.ContainsAny(value, "\" \t") {
				return false
			}
		}
		if !take(name, value) {
			return false
		}
	}
	return true
}

// isToken says whether s is a token of RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}
