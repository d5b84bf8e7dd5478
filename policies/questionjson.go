package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// maxQuestion bounds a question's JSON form in bytes; the largest real ones have some
// hundred channels' names.
const maxQuestion = 1 << 20

// paramsPath is the member of the input that belongs to the policy and not to a question.
const paramsPath = "params"

// AppendQuestion writes a question as the `input` of docs/policies.md, a JSON object on one
// line without its `params`, which are the policy's. The time of day is that of the clock
// that [engine.Question.Now] is on.
func AppendQuestion(b []byte, q *engine.Question) []byte {
	b = append(b, '{')
	var open []string // the objects that are being written
	for i, f := range facts() {
		path := strings.Split(f.path, ".")
		shared := 0
		for shared < len(open) && shared < len(path)-1 && open[shared] == path[shared] {
			shared++
		}
		for range open[shared:] {
			b = append(b, '}')
		}
		open = open[:shared]
		if i > 0 {
			b = append(b, ',')
		}
		for _, name := range path[shared : len(path)-1] {
			b = append(appendJSON(b, name), ':', '{')
			open = append(open, name)
		}
		b = append(appendJSON(b, path[len(path)-1]), ':')
		b = appendJSON(b, f.get(q))
	}
	for range open {
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendJSON writes a fact's value or a name.
func appendJSON(b []byte, v any) []byte {
	if list, ok := v.([]string); ok && list == nil {
		return append(b, "[]"...)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("BUG: a fact that JSON can't hold: " + err.Error())
	}
	return append(b, text...)
}

// ParseQuestion reads what [AppendQuestion] writes. Every fact must be there, and nothing
// else; only params, which are the policy's, may stand beside them and are not read, and
// failure.family and clock.weekday may be missing, because they follow from others. The
// error names everything that is wrong with its path.
//
// The time of day is in UTC, and a minute is the finest that there is.
func ParseQuestion(text []byte) (engine.Question, error) {
	q, assumed, err := ParsePartialQuestion(text, time.UTC)
	if err == nil && len(assumed) > 0 {
		err = fmt.Errorf("cannot read question: these facts are missing: %s", strings.Join(assumed, ", "))
	}
	if err != nil {
		return engine.Question{}, err
	}
	return q, nil
}

// ParsePartialQuestion reads a question of which facts may be missing. Those are assumed to
// be what they are when the first attempt of a plain chat request has failed before its
// headers, with a minute, two attempts and another channel left; `assumed` names them in the
// order of the documentation.
//
// Some missing facts follow from those that are there: the budget's time, the phase where
// there is a status, phase and completion of a partial failure, attempts_used from the
// attempt's number. The time of day
// is that of a clock in the location, nil for UTC as in [Options].
func ParsePartialQuestion(text []byte, location *time.Location) (q engine.Question, assumed []string, err error) {
	given, err := readTree(text)
	if err != nil {
		return engine.Question{}, nil, fmt.Errorf("cannot read question: %w", err)
	}
	if location == nil {
		location = time.UTC
	}
	q = plainQuestion()
	q.Now = time.Date(2026, time.January, 5, 12, 0, 0, 0, location) // a monday at noon
	all := facts()
	r := questionReader{q: &q, all: all, given: map[string]bool{}}
	r.checkNames("", given)
	for i := range all {
		r.read(&all[i], given)
	}
	if len(r.problems) > 0 {
		return engine.Question{}, nil, fmt.Errorf("cannot read question: %s", strings.Join(r.problems, "\n"))
	}
	r.conclude()
	for i := range all {
		if f := &all[i]; !r.given[f.path] && f.path != familyPath && f.path != weekdayPath {
			assumed = append(assumed, f.path)
		}
	}
	return q, assumed, nil
}

// plainQuestion holds what is assumed of missing facts.
func plainQuestion() engine.Question {
	return engine.Question{
		RequestID: "example", Caller: "anonymous",
		Contract:    engine.Contract{Model: "example-model", Endpoint: engine.OpenAIChat},
		Idempotency: engine.Idempotency{Effects: engine.EffectsNone},
		Seq:         1, Group: "example-group", Channel: "first", Provider: "example-provider", Key: "main", RouteAttempts: 1,
		AttemptsUsed: 1, AttemptsLeft: 2,
		Elapsed: time.Second, Remaining: 59 * time.Second, MinUseful: 2 * time.Second, Backoff: 100 * time.Millisecond,
		Time: true, RetryBudget: true, Same: true,
		Fallback: []string{"second"}, Substitute: []string{},
	}
}

// questionReader sets a question's facts from a tree and collects what is wrong.
type questionReader struct {
	q        *engine.Question
	all      []fact
	given    map[string]bool
	problems []string
}

func (r *questionReader) problem(path, format string, args ...any) {
	r.problems = append(r.problems, path+": "+fmt.Sprintf(format, args...))
}

// checkNames finds members that are no facts and lead to none.
func (r *questionReader) checkNames(above string, object map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		path := above + name
		if path == paramsPath {
			continue
		}
		switch r.place(path) {
		case leafFact:
		case parentOfFacts:
			inner, ok := object[name].(map[string]any)
			if !ok {
				r.problem(path, "it is %s; write an object", shown(object[name]))
				continue
			}
			r.checkNames(path+".", inner)
		default:
			r.problem(path, "there is no such fact%s", r.near(above, name))
		}
	}
}

type placeOfPath uint8

const (
	noFact placeOfPath = iota
	leafFact
	parentOfFacts
)

func (r *questionReader) place(path string) placeOfPath {
	for i := range r.all {
		switch {
		case r.all[i].path == path:
			return leafFact
		case strings.HasPrefix(r.all[i].path, path+"."):
			return parentOfFacts
		}
	}
	return noFact
}

// near proposes what a misspelt name may have meant: one beside it, or the same name
// elsewhere.
func (r *questionReader) near(above, name string) string {
	var beside []string
	for i := range r.all {
		path := r.all[i].path
		if rest, below := strings.CutPrefix(path, above); below {
			own, _, _ := strings.Cut(rest, ".")
			beside = append(beside, own)
		}
		if above != "" || strings.Contains(path, ".") {
			if last := path[strings.LastIndexByte(path, '.')+1:]; last == name {
				return fmt.Sprintf("; did you mean %q?", path)
			}
		}
	}
	return didYouMean(name, beside)
}

// read sets one fact, or says why it can't.
func (r *questionReader) read(f *fact, tree map[string]any) {
	var v any = tree
	for name := range strings.SplitSeq(f.path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return // checkNames has said so
		}
		if v, ok = object[name]; !ok {
			return
		}
	}
	if f.path == familyPath && !(r.given["failure.class"] && r.given["failure.scope"]) {
		r.problem(f.path, "it follows from class and scope; write those")
		return
	}
	if v == nil && !f.nullable {
		r.problem(f.path, "it is null; leave it out, or write a value")
		return
	}
	if list, ok := v.([]any); ok {
		v = textsOf(list)
	}
	if f.path == weekdayPath && r.given["clock.date"] && f.get(r.q) != v {
		r.problem(f.path, "it is %s, but %s is a %v; leave it out, it follows from the date", shown(v), r.q.Now.Format(time.DateOnly), f.get(r.q))
		return
	}
	if err := f.set(r.q, v); err != nil {
		r.problem(f.path, "%v", err)
		return
	}
	r.given[f.path] = true
}

// textsOf is the list as texts, or itself if it has something else in it.
func textsOf(list []any) any {
	texts := make([]string, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return list
		}
		texts[i] = text
	}
	return texts
}

// conclude sets missing facts that follow from given ones.
func (r *questionReader) conclude() {
	q, missing := r.q, func(path string) bool { return !r.given[path] }
	if q.Failure.Status() != 0 && missing("phase") {
		changeFailure(q, func(p *failureParts) { p.phase = engine.BeforeOutput })
	}
	if q.Failure.Class() == engine.ClassPartial && missing("phase") {
		changeFailure(q, func(p *failureParts) { p.phase = engine.AfterOutput })
	}
	if q.Failure.Phase() == engine.AfterOutput && missing("failure.completion") {
		changeFailure(q, func(p *failureParts) { p.completion = engine.CompletionPartial })
	}
	if missing("budget.attempts_used") {
		q.AttemptsUsed = q.Seq
	}
	if missing("budget.time") {
		q.Time = q.Remaining > 0 && q.Remaining >= q.MinUseful
	}
	if (q.AttemptsLeft == 0 || !q.Time) && missing("routes.same") {
		q.Same = false
	}
	if q.AttemptsLeft == 0 && missing("routes.fallback") {
		q.Fallback = []string{}
	}
}

// readTree reads one JSON object. A name that comes twice is an error: which of the two a
// reader takes is anybody's guess.
func readTree(text []byte) (map[string]any, error) {
	if len(text) > maxQuestion {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", len(text), maxQuestion)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New(`it is empty; write an object, such as {"failure": {"class": "rate_limited"}}`)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readValue(d, "", 0)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it ends in the middle; a text, a list or an object is still open")
	case err != nil:
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is something after the object; write one question")
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %s; write an object", shown(v))
	}
	return object, nil
}

// maxDepth bounds nesting; facts are three deep, params may be a little deeper.
const maxDepth = 32

func readValue(d *json.Decoder, path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: it is nested deeper than %d", path, maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, ok := key.(string)
			if !ok {
				return nil, fmt.Errorf("%s: a name is missing", path)
			}
			inner := strings.TrimPrefix(path+"."+name, ".")
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("%s: it is there twice", inner)
			}
			if object[name], err = readValue(d, inner, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := readValue(d, path, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}

func notAWord(text string, words []string) error {
	if near := didYouMean(text, words); near != "" {
		return fmt.Errorf("%q is none of its words%s", text, near)
	}
	return fmt.Errorf("%q is none of its words; use one of %s", text, strings.Join(words, ", "))
}

// didYouMean is the end of a message that proposes the nearest of the candidates, empty if
// none is near.
func didYouMean(text string, candidates []string) string {
	meant := nearest(text, candidates)
	if meant == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", meant)
}
