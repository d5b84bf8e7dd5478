package plugins

import (
	"strings"
	"testing"
)

func find(text, phrases string) int32 {
	var s searchText
	s.prepare([]byte(text))
	return s.findAny(nil, newPhrases([]byte(phrases)))
}

func TestFindAny(t *testing.T) {
	t.Parallel()
	f := func(text, phrases string, want int32) {
		t.Helper()
		if got := find(text, phrases); got != want {
			t.Errorf("%q in %q: %d; want %d", phrases, text, got, want)
		}
	}
	f("the model is overloaded", "overloaded", 0)
	f("the model is overloaded", "busy|overloaded", 1)
	f("the model is overloaded", "busy", -1)
	f("the model is overloaded", "", -1)
	f("the model is overloaded", "|model", 1)
	f("model 'x' not found", "model*not found", 0)
	f("not found: model", "model*not found", -1)
	f("model a. model b not found", "model*b not", 0)
	f("model "+strings.Repeat("x", 200)+" not found", "model*not found", -1)
	f("a b c", "a*b*c", 0)
	f("a", "a*", 0)
	f("限额速率限制", "速率限制", 0)
}

func TestMatches(t *testing.T) {
	t.Parallel()
	f := func(text, lists string, want uint64) {
		t.Helper()
		var s searchText
		s.prepare([]byte(text))
		if got := s.matches(nil, newPhraseSet([]byte(lists))); got != want {
			t.Errorf("%q in %q: %b; want %b", lists, text, got, want)
		}
	}
	f("the model is overloaded", "busy|overloaded\nmodel\nnone\n\nthe*is", 0b10011)
	f("", "a\nb", 0)
	f("a", strings.Repeat("\n", 63)+"a\na", 1<<63)
}

func FuzzSearch(f *testing.F) {
	f.Add("model 'x' not found", "a|model*not found")
	f.Add("aaaaaaaab", "a*a*a*b")
	f.Fuzz(func(t *testing.T, text, phrases string) {
		got := find(text, phrases)
		if !strings.Contains(phrases, "*") {
			want := int32(-1)
			for i, p := range strings.Split(phrases, "|") {
				if p != "" && strings.Contains(text, p) {
					want = int32(i)
					break
				}
			}
			if got != want {
				t.Errorf("%q in %q: %d; want %d", phrases, text, got, want)
			}
		}
	})
}

func TestFrameData(t *testing.T) {
	t.Parallel()
	f := func(frame, want string) {
		t.Helper()
		if got := string(frameData(nil, []byte(frame))); got != want {
			t.Errorf("%q: %q; want %q", frame, got, want)
		}
	}
	f("data: {\"a\":1}\n\n", `{"a":1}`)
	f("event: error\r\ndata:{\"a\":1}\r\n\r\n", `{"a":1}`)
	f("data: {\ndata: }\n\n", "{\n}")
	f("data: a\ndata: b\ndata: c\n\n", "a\nb\nc")
	f(": keep-alive\n\n", "")
	f("event: ping\nid: 7\n\n", "")
	f("data: [DONE]\n\n", "[DONE]")
	f("{\"done\":true}\n", `{"done":true}`)
	f("<html></html>\n", "<html></html>")
	f("", "")
}

func FuzzFrameData(f *testing.F) {
	f.Add([]byte("event: x\ndata: a\n: c\ndata: b\n\n"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := string(frame)
		data := frameData(nil, frame)
		if len(data) > len(frame) {
			t.Errorf("%q gives %q, which is more", frame, data)
		}
		if string(frame) != before {
			t.Errorf("%q was changed", before)
		}
	})
}
