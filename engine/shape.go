package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a [Shape]. A shape is a hint for a person who writes a classifier's rule: the
// error object of an unknown failure has some ten members.
const (
	maxShapeBytes = 1 << 10
	maxShapeRead  = 64 << 10 // bytes of a body that are looked at
	maxShapeDepth = 8
	maxShapeNames = 40 // headers, and members
)

// Shape is what can be told of an unknown failure without telling what it said: the
// status, how the answer ended, the names of its headers, and the names and types of the
// members of its JSON. No value of a header or a body is in it; members' names that don't
// look like a schema's words are hidden, and so are headers that not everybody has. Only [ShapeOf] and [ParseShape] make one; the zero value
// is no shape.
type Shape struct{ text string }

// ShapeForm is a shape taken apart, as its JSON has it.
type ShapeForm struct {
	Transport string   `json:"transport"`
	Status    int      `json:"status,omitempty"`
	End       string   `json:"end,omitempty"`      // how the body ended, if not in order
	NetKind   string   `json:"net_kind,omitempty"` // the network error, if there was one
	NetOp     string   `json:"net_op,omitempty"`
	Headers   []string `json:"headers,omitempty"` // lower-case names in order of the alphabet; "other" for any that is not well known
	Body      string   `json:"body"`              // empty, json, broken_json, html or text
	// Members are the paths of a JSON body with their types, such as "error.code string";
	// "[]" stands for each element of an array. In order of the alphabet.
	Members []string `json:"members,omitempty"`
	More    bool     `json:"more,omitempty"` // something was left out
}

// The kinds of a body.
const (
	bodyEmpty      = "empty"
	bodyJSON       = "json"
	bodyBrokenJSON = "broken_json"
	bodyHTML       = "html"
	bodyText       = "text"
)

// ShapeOf takes the shape of a failed attempt. It keeps no reference to ev.
func ShapeOf(ev *Evidence) Shape {
	f := ShapeForm{
		Transport: ev.Transport.String(), Status: ev.Status, NetKind: ev.NetKind.String(), NetOp: ev.NetOp.String(), Body: bodyEmpty,
	}
	if ev.End != EndEOF {
		f.End = ev.End.String()
	}
	for _, h := range ev.Headers {
		f.Headers = append(f.Headers, shapeHeader(h.Name))
	}
	f.Headers, f.More = canonical(f.Headers)
	f.body(failingText(ev))
	return f.shape()
}

// failingText is the body, or the data of the last frame that has JSON, else of the last
// one that has any.
func failingText(ev *Evidence) []byte {
	if ev.Transport != TransportSSE {
		return ev.Body
	}
	var last []byte
	for _, frame := range slices.Backward(ev.Frames) {
		data := frameData(frame)
		switch {
		case len(data) == 0 || string(data) == "[DONE]":
		case isJSON(data):
			return data
		case last == nil:
			last = data
		}
	}
	return last
}

// isJSON says whether a trimmed text begins as an object or an array.
func isJSON(text []byte) bool { return len(text) > 0 && (text[0] == '{' || text[0] == '[') }

// frameData is the text of a frame's data lines; a frame without any is its own data, as
// lines of NDJSON are.
func frameData(frame []byte) []byte {
	var data []byte
	event := false
	for line := range bytes.Lines(frame) {
		name, value, found := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		switch {
		case found && string(name) == "data":
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			event = true
		case found && (len(name) == 0 || string(name) == "event" || string(name) == "id" || string(name) == "retry"):
			event = true
		}
	}
	if !event {
		data = frame
	}
	return bytes.TrimSpace(data)
}

// body reads what kind of text it is, and the members if it is JSON.
func (f *ShapeForm) body(text []byte) {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		f.Body = bodyEmpty
	case isJSON(text):
		walk := shapeWalk{seen: map[string]bool{}}
		f.Body = bodyJSON
		if err := walk.value(json.NewDecoder(bytes.NewReader(text[:min(len(text), maxShapeRead)])), "", 0); err != nil {
			f.Body = bodyBrokenJSON
		}
		var cut bool
		f.Members, cut = canonical(walk.members)
		f.More = f.More || cut || walk.more
	case bytes.HasPrefix(text, []byte("<")):
		f.Body = bodyHTML
	default:
		f.Body = bodyText
	}
}

// shapeWalk collects the members of a JSON text.
type shapeWalk struct {
	members []string
	seen    map[string]bool
	more    bool
}

// value reads one value. The decoder checks the syntax; the depth is ours, so that a
// deeply nested text is no deep recursion.
func (w *shapeWalk) value(d *json.Decoder, path string, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	if !nested {
		w.add(path, token)
		return nil
	}
	if depth == maxShapeDepth {
		w.more = true
		return skipNested(d)
	}
	empty := true
	for d.More() {
		empty = false
		at := path + "[]"
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			at = strings.TrimPrefix(path+"."+shapeName(name), ".")
		}
		if err := w.value(d, at, depth+1); err != nil {
			return err
		}
	}
	if empty {
		w.add(path, token)
	}
	_, err = d.Token()
	return err
}

// skipNested passes over what is left of an array or object.
func skipNested(d *json.Decoder) error {
	for open := 1; open > 0; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
	}
	return nil
}

func (w *shapeWalk) add(path string, token json.Token) {
	kind := "null"
	switch token := token.(type) {
	case string:
		kind = "string"
	case float64:
		kind = "number"
	case bool:
		kind = "boolean"
	case json.Delim:
		kind = "object"
		if token == '[' {
			kind = "array"
		}
	}
	member := strings.TrimPrefix(path+" "+kind, " ")
	switch {
	case w.seen[member]:
	case len(w.members) == maxShapeNames:
		w.more = true
	default:
		w.seen[member] = true
		w.members = append(w.members, member)
	}
}

// canonical sorts names, each once, and says whether some were left out.
func canonical(names []string) ([]string, bool) {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxShapeNames {
		return names[:maxShapeNames], true
	}
	return names, false
}

// shape writes the form within its bound: members go first, then headers.
func (f ShapeForm) shape() Shape {
	for {
		text, err := json.Marshal(f)
		if err != nil {
			return Shape{}
		}
		if len(text) <= maxShapeBytes {
			return Shape{string(text)}
		}
		f.More = true
		if len(f.Members) > 0 {
			f.Members = f.Members[:len(f.Members)-1]
		} else {
			f.Headers = f.Headers[:len(f.Headers)-1]
		}
	}
}

// ParseShape reads a shape's JSON back. A text that [ShapeOf] can't have written is
// refused, and names that it wouldn't keep are hidden, so that nothing comes in by this way
// either.
func ParseShape(text string) (Shape, error) {
	var f ShapeForm
	if len(text) > maxShapeBytes {
		return Shape{}, fmt.Errorf("cannot read shape: it has %d bytes; the limit is %d", len(text), maxShapeBytes)
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return Shape{}, fmt.Errorf("cannot read shape: %w", err)
	}
	if err := f.check(); err != nil {
		return Shape{}, fmt.Errorf("cannot read shape: %w", err)
	}
	f.hide()
	return f.shape(), nil
}

// hide hides what names of a checked form [ShapeOf] wouldn't keep.
func (f *ShapeForm) hide() {
	for i, name := range f.Headers {
		f.Headers[i] = shapeHeader(name)
	}
	for i, m := range f.Members {
		path, kind, nested := strings.Cut(m, " ")
		if !nested {
			continue
		}
		steps := strings.Split(path, ".")
		for k, step := range steps {
			name := strings.TrimRight(step, "[]")
			if name != "" {
				steps[k] = shapeName(name) + step[len(name):]
			}
		}
		f.Members[i] = strings.Join(steps, ".") + " " + kind
	}
	f.Headers, _ = canonical(f.Headers)
	f.Members, _ = canonical(f.Members)
}

func (f *ShapeForm) check() error {
	if _, err := ParseTransport(f.Transport); err != nil {
		return err
	}
	for _, w := range []struct {
		text string
		err  func(string) error
	}{
		{f.End, func(s string) error { _, err := ParseBodyEnd(s); return err }},
		{f.NetKind, func(s string) error { _, err := ParseNetKind(s); return err }},
		{f.NetOp, func(s string) error { _, err := ParseNetOp(s); return err }},
	} {
		if w.text != "" {
			if err := w.err(w.text); err != nil {
				return err
			}
		}
	}
	if !slices.Contains([]string{bodyEmpty, bodyJSON, bodyBrokenJSON, bodyHTML, bodyText}, f.Body) {
		return fmt.Errorf("%q is no kind of body", f.Body)
	}
	if len(f.Headers) > maxShapeNames || len(f.Members) > maxShapeNames {
		return fmt.Errorf("it has more than %d names", maxShapeNames)
	}
	for _, m := range f.Members {
		_, kind, found := strings.Cut(m, " ")
		if !found {
			kind = m
		}
		if !slices.Contains([]string{"null", "string", "number", "boolean", "array", "object"}, kind) {
			return fmt.Errorf("%q is no type", kind)
		}
	}
	return nil
}

// Form takes the shape apart; the zero shape has the zero form.
func (s Shape) Form() ShapeForm {
	var f ShapeForm
	if s.text != "" {
		if err := json.Unmarshal([]byte(s.text), &f); err != nil {
			panic("BUG: a shape holds no JSON: " + err.Error())
		}
	}
	return f
}

// String returns the shape's JSON, the same for failures of the same shape; it is empty
// for the zero shape.
func (s Shape) String() string { return s.text }
