package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// check reads a whole text, with doubles refused.
func check(text []byte) *Fault {
	s := New(text, true)
	s.Skip()
	return s.End()
}

func TestFaults(t *testing.T) {
	t.Parallel()
	f := func(in string, code Code, offset int) {
		t.Helper()
		var want *Fault
		if code != 0 {
			want = &Fault{code, offset}
		}
		got := check([]byte(in))
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%.60q: fault is %v, want %v", in, got, want)
		}
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(last string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `"k%d":0,`, i)
		}
		return "{" + b.String() + last + ":0}"
	}

	for _, ok := range []string{
		`{}`, `[]`, `0`, `-0.5e+10`, `1E9`, `"a"`, `true`, `false`, `null`, " [ 1 , {\"a\" : [ ] } ]\r\n\t",
		`"\"\\\/\b\f\n\r\t\u00e9"`, `"\ud800"`, `"\udc00\ud800"`, `{"":{"":0}}`, `[{"a":1},{"a":1}]`,
		`"` + strings.Repeat("é", 40) + `"`, deep(MaxDepth), many(`"z"`), "\"\x7f\"",
	} {
		f(ok, 0, 0)
	}
	f(``, Truncated, 0)
	f(`{"a":1`, Truncated, 6)
	f(`{"a"`, Truncated, 4)
	f(`"abc`, Truncated, 4)
	f(`"\u12`, Truncated, 5)
	f(`tru`, Truncated, 3)
	f(`-`, Truncated, 1)
	f(`1.`, Truncated, 2)
	f(`[1,`, Truncated, 3)
	f(`{"a":1]`, Syntax, 6)
	f(`{a:1}`, Syntax, 1)
	f(`{"a" 1}`, Syntax, 5)
	f(`[1,]`, Syntax, 3)
	f(`{"a":1,}`, Syntax, 7)
	f(`[1 2]`, Syntax, 3)
	f(`trve`, Syntax, 2)
	f(`01`, Trailing, 1)
	f(`+1`, Syntax, 0)
	f(`.5`, Syntax, 0)
	f(`1e+x`, Syntax, 3)
	f(`NaN`, Syntax, 0)
	f(`"\x"`, Syntax, 2)
	f(`"\u00zz"`, Syntax, 5)
	f("\"a\nb\"", Syntax, 2)
	f("\"12345678\x009\"", Syntax, 9)
	f("\xEF\xBB\xBF{}", Syntax, 0)
	f(`{} {}`, Trailing, 3)
	f("[] \x00", Trailing, 3)
	f("\"abc\xff\"", NotUTF8, 4)
	f("\"\xed\xa0\x80\"", NotUTF8, 1)
	f(deep(MaxDepth+1), TooDeep, MaxDepth)
	f(strings.Repeat(`{"a":`, 100_000), TooDeep, 5*MaxDepth)
	f(`{"a":1,"a":2}`, Duplicate, 7)
	f(`{"a":1,"\u0061":2}`, Duplicate, 7)
	f(`[{"x":{"b":0,"b":0}}]`, Duplicate, 13)
	f(`{"\ud800":1,"\ufffd":2}`, Duplicate, 12)
	f(`{"\ud83d\ude00":1,"😀":2}`, Duplicate, 18)
	f(many(`"k0"`), Duplicate, len(many(""))-3)
	f(many(`"\u006b99"`), Duplicate, len(many(""))-3)
}

func TestReading(t *testing.T) {
	t.Parallel()
	s := New([]byte(` {"a":"x\u0079","skipped":[1,{"a":2}],"n":-1.5,"list":[true,"z"],"raw": {"k":1} }`), false)
	var got []string
	s.Object(func(key Text) {
		switch {
		case key.Is("a"), key.Is("n"):
			got = append(got, key.String()+"="+s.Text().String())
		case key.Is("list"):
			s.Array(func() { got = append(got, fmt.Sprintf("%c", s.Peek())) })
		case key.Is("raw"):
			got = append(got, string(s.Raw()))
		}
	})
	if fault := s.End(); fault != nil {
		t.Fatal(fault)
	}
	if joined := strings.Join(got, " "); joined != `a=xy n= t " {"k":1}` {
		t.Errorf("read %s", joined)
	}
}

func TestTextCompares(t *testing.T) {
	t.Parallel()
	if !(Text{[]byte(`m\u006fdel`), true}).Is("model") || (Text{[]byte("model"), false}).Is("mode") {
		t.Error("Is misreads a name")
	}
	for _, name := range []string{"STREAM", `\u017ftream`, "ſtream"} {
		if !(Text{[]byte(name), name[0] == '\\'}).EqualFold("stream") {
			t.Errorf("%s doesn't fold to stream", name)
		}
	}
}

func TestAllocations(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"hello, wörld"}],"a":{"b":{"c":[1,2,3]}}}`)
	if n := testing.AllocsPerRun(100, func() { check(body) }); n > 1 { // for the names
		t.Errorf("%v allocations, want 1", n)
	}
}

// slow says what a text should be by decoding it token by token.
func slow(text []byte) bool {
	if !json.Valid(text) || !utf8.Valid(text) {
		return false
	}
	type level struct {
		object, value bool
		names         map[string]bool
	}
	var stack []level
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err == io.EOF {
			return true
		} else if err != nil {
			return false
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if len(stack) > 0 {
			if top := &stack[len(stack)-1]; top.object {
				if !top.value {
					name := token.(string)
					if top.names[name] {
						return false
					}
					top.names[name], top.value = true, true
					continue
				}
				top.value = false
			}
		}
		if delim, ok := token.(json.Delim); ok {
			stack = append(stack, level{object: delim == '{', names: map[string]bool{}})
			if len(stack) > MaxDepth {
				return false
			}
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"\u0061\n",true,null],"b":{}}`, `{"a":0,"\u0061":1}`, "\"é\xff\"", `[[[`, `{"a":1`, ` 1 2`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fault := check(text)
		if want := slow(text); (fault == nil) != want {
			t.Fatalf("fault is %v, want accepted: %v", fault, want)
		}
		if fault != nil && (fault.Offset < 0 || fault.Offset > len(text)) {
			t.Fatalf("fault at %d of %d bytes", fault.Offset, len(text))
		}
		if fault != nil && fault.Code == Truncated && fault.Offset != len(text) {
			t.Fatalf("truncated at %d of %d bytes", fault.Offset, len(text))
		}
	})
}

func BenchmarkSkip(b *testing.B) {
	ascii := `"` + strings.Repeat("The quick brown fox jumps. ", 40_000) + `"`
	wide := `"` + strings.Repeat("Съешь ещё этих мягких булок. ", 20_000) + `"`
	lines := `"` + strings.Repeat(`a line of forty bytes, then a break....\n`, 25_000) + `"`
	for name, text := range map[string]string{"ascii": ascii, "wide": wide, "lines": lines} {
		in := []byte(text)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if check(in) != nil {
					b.Fatal("refused")
				}
			}
		})
		b.Run(name+" gjson.Valid", func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				gjson.ValidBytes(in)
			}
		})
	}
}

func TestWithoutStrictTheGrammarAloneCounts(t *testing.T) {
	t.Parallel()
	s := New([]byte("{\"a\":\"\xff\",\"a\":0}"), false)
	s.Skip()
	if fault := s.End(); fault != nil {
		t.Errorf("fault is %v, want none", fault)
	}
}
