package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

func pluginLearnCommand(e *env) *cobra.Command {
	var where ledgerFlags
	var asJSON bool
	var since moment
	cmd := &cobra.Command{
		Use: "learn -ledger DB", Short: "Make corpus lines of the unknown failures in a ledger", Args: args(cobra.NoArgs),
		Long: "Print one corpus line for each shape of unknown failure in a ledger, the most frequent first. A ledger\nkeeps no values, so the lines have placeholders: put in what the provider sends, and the verdict that\nthe failure should get. Then 'fourgate plugin test' runs them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := where.open(e, "")
			if err != nil {
				return err
			}
			defer r.Close()
			unknown := engine.ClassUnknown
			filter := ledger.Filter{Class: &unknown, Since: since.at(e.now())}
			var seen lessons
			var bad []error
			for record, err := range r.All(cmd.Context(), filter) {
				if err != nil {
					bad = append(bad, err)
					continue
				}
				seen.add(record)
			}
			if err := seen.write(e.stdout, asJSON); err != nil {
				return err
			}
			if seen.faulty > 0 {
				fmt.Fprintf(e.stderr, "fourgate: left out %s of which a classifier gave no verdict; 'fourgate ledger list' shows its faults\n", count(seen.faulty, "failure"))
			}
			if len(seen.list) == 0 && !asJSON {
				fmt.Fprintln(e.stderr, "fourgate: the ledger has no unknown failure with a shape")
			}
			return errors.Join(bad...)
		},
	}
	where.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with counts instead of corpus lines")
	cmd.Flags().Var(&since, "since", "only requests of the last such time, such as 24h, or since a time such as 2026-03-01T12:00:00Z")
	return cmd
}

// lesson is one shape of unknown failure at one provider and endpoint.
type lesson struct {
	provider string
	endpoint engine.Endpoint
	phase    engine.Phase
	shape    engine.Shape
	count    int
	last     time.Time
}

// lessons are the shapes that a ledger has.
type lessons struct {
	list   []*lesson
	index  map[lesson]*lesson
	faulty int // failures that no classifier gave a verdict on
}

func (l *lessons) add(r *engine.Record) {
	for i := range r.Attempts() {
		a := &r.Attempts()[i]
		if a.Class() != engine.ClassUnknown || a.Shape() == (engine.Shape{}) {
			continue
		}
		if a.ClassifierFault() != "" {
			l.faulty++ // unknown for want of a verdict: a rule may know it already
			continue
		}
		key := lesson{provider: a.Provider(), endpoint: a.Endpoint(), phase: a.Phase(), shape: a.Shape()}
		found := l.index[key]
		if found == nil {
			if l.index == nil {
				l.index = map[lesson]*lesson{}
			}
			copied := key
			found = &copied
			l.index[key] = found
			l.list = append(l.list, found)
		}
		found.count++
		if r.At().After(found.last) {
			found.last = r.At()
		}
	}
}

// write prints the lessons, the most frequent first.
func (l *lessons) write(w io.Writer, asJSON bool) error {
	slices.SortFunc(l.list, func(a, b *lesson) int {
		return cmp.Or(cmp.Compare(b.count, a.count), b.last.Compare(a.last), cmp.Compare(a.id(), b.id()))
	})
	type shapeForm struct {
		Count    int             `json:"count"`
		LastSeen time.Time       `json:"last_seen"`
		Shape    json.RawMessage `json:"shape"`
		Case     corpusCase      `json:"case"`
	}
	form := struct {
		Shapes []shapeForm `json:"shapes"`
	}{[]shapeForm{}}
	for _, x := range l.list {
		c := x.corpusCase()
		if asJSON {
			form.Shapes = append(form.Shapes, shapeForm{x.count, x.last.UTC(), json.RawMessage(x.shape.String()), c})
			continue
		}
		if err := encodePlain(w, c); err != nil {
			return err
		}
	}
	if asJSON {
		return encodePlain(w, form)
	}
	return nil
}

// encodePlain writes one line of JSON that a person is to edit: < and & as they are.
func encodePlain(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// corpusCase is a line of a corpus, in the order in which its README explains it.
type corpusCase struct {
	ID        string            `json:"id"`
	Provider  string            `json:"provider"`
	Protocol  string            `json:"protocol"`
	Transport string            `json:"transport"`
	Status    *int              `json:"status"`
	Headers   map[string]string `json:"headers"`
	Body      *string           `json:"body,omitempty"`
	Frames    []string          `json:"frames,omitempty"`
	End       string            `json:"end,omitempty"`
	Network   *networkCase      `json:"network_error,omitempty"`
	Phase     string            `json:"phase"`
	Expect    expectCase        `json:"expect"`
	Why       string            `json:"why"`
}

type networkCase struct {
	Kind string `json:"kind"`
	Op   string `json:"op"`
}

type expectCase struct {
	Class  string `json:"class"`
	Reason string `json:"reason"`
	Scope  string `json:"scope"`
}

// id is the same for the same shape, so that a second run of learn shows what is known.
func (x *lesson) id() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{x.provider, x.endpoint.String(), x.phase.String(), x.shape.String()}, "\n")))
	return "learn-" + hex.EncodeToString(sum[:5])
}

// placeholder stands for every text that the ledger didn't keep.
const placeholder = "?"

func (x *lesson) corpusCase() corpusCase {
	f := x.shape.Form()
	c := corpusCase{
		ID: x.id(), Provider: x.provider, Protocol: x.endpoint.String(), Transport: f.Transport, Headers: map[string]string{}, Phase: x.phase.String(),
		Expect: expectCase{engine.ClassUnknown.String(), "unrecognized", engine.ScopeRequest.String()},
		Why: fmt.Sprintf("Seen %s, last on %s. Put the values that the provider sends in place of each %q, then the class, reason and scope that it should get.",
			times(x.count), x.last.UTC().Format(time.DateOnly), placeholder),
	}
	if f.Status != 0 {
		c.Status = &f.Status
	}
	for _, name := range f.Headers {
		if name != engine.OtherHeader {
			c.Headers[name] = placeholder
		}
	}
	if _, there := c.Headers["content-type"]; there {
		c.Headers["content-type"] = contentType(f)
	}
	body := bodyOf(f)
	switch f.Transport {
	case engine.TransportHTTP.String():
		c.Body = &body
	case engine.TransportSSE.String():
		c.Frames, c.End = []string{}, cmp.Or(f.End, engine.EndEOF.String())
		if body != "" {
			c.Frames = append(c.Frames, "data: "+body+"\n\n")
		}
	}
	if f.NetKind != "" {
		c.Network = &networkCase{f.NetKind, cmp.Or(f.NetOp, engine.OpReadBody.String())}
	}
	return c
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func contentType(f engine.ShapeForm) string {
	switch {
	case f.Transport == engine.TransportSSE.String():
		return "text/event-stream"
	case strings.HasSuffix(f.Body, "json"):
		return "application/json"
	case f.Body == "html":
		return "text/html"
	}
	return "text/plain"
}

// bodyOf writes a body of the shape, with placeholders for its texts.
func bodyOf(f engine.ShapeForm) string {
	switch f.Body {
	case "empty":
		return ""
	case "html":
		return "<html>" + placeholder + "</html>"
	case "text":
		return placeholder
	}
	var root any
	for _, m := range f.Members {
		path, kind, nested := strings.Cut(m, " ")
		if !nested {
			path, kind = "", m
		}
		root = plant(root, strings.ReplaceAll(path, "[]", ".[]"), kind)
	}
	var b bytes.Buffer
	if err := encodePlain(&b, root); err != nil {
		panic("BUG: a body of maps and texts has no JSON: " + err.Error())
	}
	text := strings.TrimSpace(b.String())
	if f.Body == "broken_json" {
		text = strings.TrimRight(text, "}]")
		if root == nil { // cut before its first whole member
			text = "{"
		}
	}
	return text
}

// plant puts a value of a kind at a path, and makes what leads there. Where the shape has
// several kinds at one place, the first one stays.
func plant(at any, path, kind string) any {
	step, rest, _ := strings.Cut(strings.TrimPrefix(path, "."), ".")
	switch {
	case step == "" && at != nil:
		return at
	case step == "":
		return map[string]any{
			"null": nil, "string": placeholder, "number": 0, "boolean": false, "array": []any{}, "object": map[string]any{},
		}[kind]
	case step == "[]":
		list, ok := at.([]any)
		if !ok && at != nil {
			return at
		}
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = plant(list[0], rest, kind)
		return list
	}
	object, ok := at.(map[string]any)
	if !ok && at != nil {
		return at
	}
	if object == nil {
		object = map[string]any{}
	}
	object[step] = plant(object[step], rest, kind)
	return object
}
