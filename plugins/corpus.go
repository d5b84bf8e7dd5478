package plugins

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// maxCorpusLine bounds one case of a corpus.
const maxCorpusLine = 4 << 20

// Case is one line of a corpus: a failure and the verdict that it should get.
type Case struct {
	ID       string
	Provider string // which of a corpus' providers it comes from; see [BuiltinFor]
	Evidence *engine.Evidence
	Want     Expectation
}

// Expectation is the verdict that a case should get.
type Expectation struct {
	Class  engine.Class
	Also   []engine.Class // other classes that a careful reader could defend
	Scope  engine.Scope
	Reason engine.Reason
	// TestsWait says whether the wait is tested; RetryAfter is what it should be.
	TestsWait  bool
	RetryAfter engine.Wait
}

// corpusLine is the form of a case in the file. Every field is named, so that a
// misspelt one is an error and not a test that tests nothing.
type corpusLine struct {
	ID        string            `json:"id"`
	Provider  string            `json:"provider"`
	Protocol  string            `json:"protocol"`
	Transport string            `json:"transport"`
	Status    *int              `json:"status"`
	Headers   map[string]string `json:"headers"`
	Request   struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	} `json:"request"`
	Body    *string  `json:"body"`
	Frames  []string `json:"frames"`
	End     string   `json:"end"`
	Network *struct {
		Kind       string `json:"kind"`
		Message    string `json:"message"`
		Op         string `json:"op"`
		CallerGone bool   `json:"caller_gone"`
	} `json:"network_error"`
	Phase  string `json:"phase"`
	Expect struct {
		Class      string          `json:"class"`
		Reason     string          `json:"reason"`
		Scope      string          `json:"scope"`
		RetryAfter json.RawMessage `json:"retry_after_ms"`
		Also       []string        `json:"also"`
		Completion string          `json:"completion"`
		Family     string          `json:"seed_class"`
	} `json:"expect"`
	Basis  string `json:"basis"`
	Source string `json:"source"`
	Why    string `json:"why"`
}

// ReadCorpus reads a corpus, one JSON object a line. An error names the file, the line
// and the reason; all bad lines are reported at once.
func ReadCorpus(r io.Reader, file string) ([]Case, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxCorpusLine)
	var cases []Case
	var problems []error
	seen := map[string]int{}
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		c, err := readCase(lines.Bytes())
		if err == nil && seen[c.ID] > 0 {
			err = fmt.Errorf("the id %q stands on line %d already", c.ID, seen[c.ID])
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", file, n, err))
			continue
		}
		seen[c.ID] = n
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, fmt.Errorf("%s:%d: cannot read the line: %w", file, n+1, err))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("cannot read corpus: %w", errors.Join(problems...))
	}
	return cases, nil
}

func readCase(line []byte) (Case, error) {
	var l corpusLine
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return Case{}, fmt.Errorf("the case is not valid: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Case{}, errors.New("something stands after the case; write one object a line")
	}
	if l.ID == "" || l.Provider == "" {
		return Case{}, errors.New("the case has no id or no provider")
	}
	ev, err := l.evidence()
	if err != nil {
		return Case{}, fmt.Errorf("case %q: %w", l.ID, err)
	}
	want, err := l.want()
	if err != nil {
		return Case{}, fmt.Errorf("case %q: %w", l.ID, err)
	}
	return Case{ID: l.ID, Provider: l.Provider, Evidence: ev, Want: want}, nil
}

func (l *corpusLine) evidence() (*engine.Evidence, error) {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	ev := &engine.Evidence{Provider: l.Provider, Stream: l.Request.Stream}
	ev.Contract.Model = l.Request.Model
	// Protocols that callers of Fourgate can't speak (a provider's own ones) stand in a
	// corpus too; a classifier sees no endpoint then.
	ev.Contract.Endpoint, _ = engine.ParseEndpoint(l.Protocol)
	var err error
	ev.Transport, err = engine.ParseTransport(l.Transport)
	note(err)
	known := err == nil
	ev.Phase, err = engine.ParsePhase(l.Phase)
	note(err)
	if l.Status != nil {
		ev.Status = *l.Status
		if ev.Status != 0 && (ev.Status < 100 || ev.Status > 999) {
			note(fmt.Errorf("status is %d; use 100 to 999, or null where there was no response", ev.Status))
		}
	}
	names := make([]string, 0, len(l.Headers))
	for name := range l.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ev.Headers = append(ev.Headers, engine.Header{Name: name, Value: l.Headers[name]})
	}
	if known && ev.Transport != engine.TransportHTTP && l.Body != nil {
		note(fmt.Errorf("the transport %q has no body; leave it out", l.Transport))
	}
	if known && ev.Transport != engine.TransportSSE && len(l.Frames) > 0 {
		note(fmt.Errorf("the transport %q has no frames; leave them out", l.Transport))
	}
	switch ev.Transport {
	case engine.TransportHTTP:
		if l.Body == nil {
			note(errors.New("an http case needs a body, even an empty one"))
		} else {
			ev.Body = []byte(*l.Body)
		}
	case engine.TransportSSE:
		if l.Frames == nil {
			note(errors.New("an sse case needs frames, even none"))
		}
		for _, f := range l.Frames {
			ev.Frames = append(ev.Frames, []byte(f))
		}
		ev.End, err = engine.ParseBodyEnd(l.End)
		note(err)
		ev.Stream = true
	case engine.TransportNetwork:
		if l.Network == nil {
			note(errors.New("a network case needs a network_error"))
		}
	}
	if l.Network != nil {
		ev.NetKind, err = engine.ParseNetKind(l.Network.Kind)
		note(err)
		ev.NetOp, err = engine.ParseNetOp(l.Network.Op)
		note(err)
		ev.CallerGone = l.Network.CallerGone
	}
	return ev, errors.Join(errs...)
}

func (l *corpusLine) want() (Expectation, error) {
	var w Expectation
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	var err error
	w.Class, err = engine.ParseClass(l.Expect.Class)
	note(err)
	w.Scope, err = engine.ParseScope(l.Expect.Scope)
	note(err)
	if l.Expect.Reason != "" {
		w.Reason, err = engine.ParseReason(l.Expect.Reason)
		note(err)
	}
	for _, name := range l.Expect.Also {
		c, err := engine.ParseClass(name)
		note(err)
		w.Also = append(w.Also, c)
	}
	if raw := l.Expect.RetryAfter; raw != nil {
		w.TestsWait = true
		if string(raw) != "null" {
			var ms int64
			if err := json.Unmarshal(raw, &ms); err != nil || ms < 0 || ms > int64(maxWait/time.Millisecond) {
				note(fmt.Errorf("retry_after_ms is %s; use a whole number of at most %d (366 days), or null", raw, maxWait/time.Millisecond))
			} else {
				w.RetryAfter = engine.WaitOf(time.Duration(ms) * time.Millisecond)
			}
		}
	}
	return w, errors.Join(errs...)
}

// Score says how a verdict compares with what a case expects.
type Score struct{ Class, Scope, Wait bool }

// Score compares a verdict with the expectation. The class counts as right if it is the
// expected one or one of the others that can be defended; an untested wait is right.
func (w Expectation) Score(v engine.Verdict) Score {
	return Score{
		Class: v.Fault == "" && (v.Class == w.Class || slices.Contains(w.Also, v.Class)),
		Scope: v.Scope == w.Scope,
		Wait:  !w.TestsWait || v.RetryAfter == w.RetryAfter,
	}
}

// BuiltinFor returns the name of the built-in classifier for one of a corpus'
// providers.
func BuiltinFor(provider string) string {
	switch provider {
	case "openai", "azure":
		return "openai"
	case "anthropic":
		return "anthropic"
	case "gemini", "vertex":
		return "gemini"
	}
	return "generic"
}
