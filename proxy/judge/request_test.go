package judge

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestModelStreamTools(t *testing.T) {
	t.Parallel()
	f := func(in string, model string, stream, tools bool) {
		t.Helper()
		b, fault := Request(engine.OpenAIChat, []byte(in))
		if fault != nil {
			t.Errorf("%s: refused: %s", in, fault.Message)
			return
		}
		if b.Model != model || b.Stream != stream || b.Tools != tools {
			t.Errorf("%s: %+v, want %q, stream %v, tools %v", in, b, model, stream, tools)
		}
		var token string
		if err := json.Unmarshal([]byte(in)[b.ModelStart:b.ModelEnd], &token); err != nil || token != model {
			t.Errorf("%s: the model's bytes are %q", in, in[b.ModelStart:b.ModelEnd])
		}
	}
	f(`{"model":"m"}`, "m", false, false)
	f(` { "messages" : [ { "model" : "n", "stream" : true } ] , "model" : "m" , "stream" : true } `, "m", true, false)
	f(`{"model":"m","stream":false,"tools":[]}`, "m", false, false)
	f(`{"model":"m","stream":null,"tools":null}`, "m", false, false)
	f(`{"model":"m","tools":[{"type":"function"}]}`, "m", false, true)
	f(`{"model":"m","functions":[{"name":"f"}]}`, "m", false, true)
	f(`{"m\u006fdel":"gpt\u002d4o\/x"}`, "gpt-4o/x", false, false)
	f(`{"model":"模型"}`, "模型", false, false)
	f(`{"model":"`+strings.Repeat("m", MaxModel)+`"}`, strings.Repeat("m", MaxModel), false, false)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := func(in string, reason Reason, offset int) {
		t.Helper()
		b, fault := Request(engine.OpenAIChat, []byte(in))
		switch {
		case fault == nil:
			t.Errorf("%.80q is accepted, want %s", in, reason)
		case fault.Reason != reason || fault.Offset != offset:
			t.Errorf("%.80q: %s at %d, want %s at %d", in, fault.Reason, fault.Offset, reason, offset)
		case b != Body{}:
			t.Errorf("%.80q: refused with a body", in)
		case strings.Contains(fault.Message, "SECRET") || !strings.HasSuffix(fault.Message, "."):
			t.Errorf("%.80q: message is %q", in, fault.Message)
		}
	}
	f(``, InvalidJSON, 0)
	f(`  `, InvalidJSON, 2)
	f(`[]`, WrongType, 0)
	f(`"SECRET"`, WrongType, 0)
	f(`{"model":"SECRET"`, InvalidJSON, 17)
	f(`{"model":'m'}`, InvalidJSON, 9)
	f("\xEF\xBB\xBF{}", InvalidJSON, 0)
	f(`{"model":"m"}{}`, TrailingBytes, 13)
	f("{\"model\":\"m\",\"a\":\"\xff\"}", NotUTF8, 18)
	f(`{"a":`+strings.Repeat("[", 600), TooDeep, 5+511)
	f(`{}`, MissingModel, 2)
	f(`{"model":""}`, MissingModel, 9)
	f(`{"model":null}`, WrongType, 9)
	f(`{"model":["m"]}`, WrongType, 9)
	f(`{"model":"a\nb"}`, BadModel, 9)
	f("{\"model\":\"a\u0085b\"}", BadModel, 9)
	f(`{"model":"a\ud800"}`, BadModel, 9)
	f(`{"model":"`+strings.Repeat("m", MaxModel+1)+`"}`, BadModel, 9)
	f(`{"model":"`+strings.Repeat("m", 10_000)+`"}`, BadModel, 9)
	f(`{"model":"m","stream":"true"}`, WrongType, 22)
	f(`{"model":"m","stream":1}`, WrongType, 22)
	f(`{"model":"a","model":"b"}`, DuplicateName, 13)
	f(`{"model":"a","m\u006fdel":"b"}`, DuplicateName, 13)
	f(`{"model":"a","messages":[{"content":"x","content":"y"}]}`, DuplicateName, 40)
	f(`{"model":"a","MODEL":"b"}`, AmbiguousName, 21)
	f(`{"model":"a","\u004dodel":"b"}`, AmbiguousName, 26)
	f(`{"model":"a","ſtream":true}`, AmbiguousName, 23)
	f(`{"model":"a","Store":true}`, AmbiguousName, 21)
	f(`{"model":"a","Web_Search_Options":{}}`, AmbiguousName, 34)
	f(`{"model":"a","tools":[{"type":"function","Type":"web_search"}]}`, AmbiguousName, 48)
}

func TestEffects(t *testing.T) {
	t.Parallel()
	f := func(e engine.Endpoint, members string, want engine.Effects) {
		t.Helper()
		b, fault := Request(e, []byte(`{"model":"m"`+members+`}`))
		if fault != nil {
			t.Errorf("%v %s: refused: %s", e, members, fault.Message)
			return
		}
		if b.Effects != want || b.ReplaySafe != (want == engine.EffectsNone) {
			t.Errorf("%v %s: effects %v, replay safe %v; want %v", e, members, b.Effects, b.ReplaySafe, want)
		}
	}
	none, possible := engine.EffectsNone, engine.EffectsPossible

	f(engine.OpenAIChat, ``, none)
	f(engine.OpenAIChat, `,"n":3,"metadata":{"a":"b"},"store":false`, none)
	f(engine.OpenAIChat, `,"store":null`, none)
	f(engine.OpenAIChat, `,"store":true`, possible)
	f(engine.OpenAIChat, `,"store":"yes"`, possible)
	f(engine.OpenAIChat, `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`, none)
	f(engine.OpenAIChat, `,"tools":[{"function":{"type":"mcp"},"type":"custom"}]`, none)
	f(engine.OpenAIChat, `,"tools":[{"type":"function"},{"type":"web_search"}]`, possible)
	f(engine.OpenAIChat, `,"tools":[{"function":{}}]`, possible)
	f(engine.OpenAIChat, `,"tools":["function"]`, possible)
	f(engine.OpenAIChat, `,"tools":{}`, possible)
	f(engine.OpenAIChat, `,"functions":[{"name":"f"}]`, none)
	f(engine.OpenAIChat, `,"web_search_options":{}`, possible)
	f(engine.OpenAIChat, `,"web_search_options":null`, none)
	f(engine.OpenAIChat, `,"plugins":[{"id":"web"}]`, possible)
	f(engine.OpenAIChat, `,"plugins":[]`, none)
	f(engine.OpenAIChat, `,"search_parameters":{"mode":"auto"}`, possible)

	f(engine.AnthropicMessages, `,"tools":[{"name":"f","input_schema":{"type":"object"}}]`, none)
	f(engine.AnthropicMessages, `,"tools":[{"type":null,"name":"f"},{"type":"custom","name":"g"}]`, none)
	for _, client := range []string{"bash_20250124", "text_editor_20250728", "computer_20250124", "memory_20250818", "tool_search_tool_regex_20251119"} {
		f(engine.AnthropicMessages, `,"tools":[{"type":"`+client+`"}]`, none)
	}
	for _, server := range []string{"web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "mcp_toolset", "bash_", "later_20300101"} {
		f(engine.AnthropicMessages, `,"tools":[{"name":"f"},{"type":"`+server+`"}]`, possible)
	}
	f(engine.AnthropicMessages, `,"mcp_servers":[{"type":"url"}]`, possible)
	f(engine.AnthropicMessages, `,"mcp_servers":[]`, none)
	f(engine.AnthropicMessages, `,"container":"c_1"`, possible)
	f(engine.AnthropicMessages, `,"container":null`, none)
	f(engine.AnthropicMessages, `,"web_search_options":{}`, none)

	f(engine.OpenAIResponses, ``, possible)
	f(engine.OpenAIResponses, `,"store":null`, possible)
	f(engine.OpenAIResponses, `,"store":false`, none)
	f(engine.OpenAIResponses, `,"store":false,"background":true`, possible)
	f(engine.OpenAIEmbeddings, `,"input":"a"`, none)
	f(engine.OpenAIImages, `,"store":false`, possible)
	f(engine.OpenAIAudio, ``, possible)
	f(engine.GeminiGenerate, `,"tools":[{"functionDeclarations":[]}]`, none)
	f(engine.GeminiGenerate, `,"tools":[{"functionDeclarations":[]},{"googleSearch":{}}]`, possible)
}

func TestGeminiNeedsNoModel(t *testing.T) {
	t.Parallel()
	b, fault := Request(engine.GeminiGenerate, []byte(`{"contents":[]}`))
	if want := (Body{ReplaySafe: true, Effects: engine.EffectsNone}); fault != nil || b != want {
		t.Errorf("%+v, %v; want %+v", b, fault, want)
	}
}

func TestJSONCountsFirst(t *testing.T) {
	t.Parallel()
	_, fault := Request(engine.OpenAIChat, []byte(`{"model":1,`))
	if fault == nil || fault.Reason != InvalidJSON {
		t.Errorf("fault is %+v, want %s", fault, InvalidJSON)
	}
}

// slow judges a body that is JSON without doubles by decoding it: whether it is
// accepted, and what is read.
func slow(body []byte) (model string, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return "", false
	}
	read := slices.Concat(rulesOf(engine.OpenAIChat).outside, everywhere[:])
	for name := range members {
		for _, r := range read {
			if name != r && strings.EqualFold(name, r) {
				return "", false
			}
		}
	}
	var tools []map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(members["tools"], &list) == nil {
		for _, l := range list {
			var tool map[string]json.RawMessage
			if json.Unmarshal(l, &tool) == nil {
				tools = append(tools, tool)
			}
		}
	}
	for _, tool := range tools {
		for name := range tool {
			if name != "type" && strings.EqualFold(name, "type") {
				return "", false
			}
		}
	}
	switch string(members["stream"]) {
	case "", "true", "false", "null":
	default:
		return "", false
	}
	if m := members["model"]; len(m) == 0 || m[0] != '"' || json.Unmarshal(m, &model) != nil {
		return "", false
	}
	control := strings.ContainsFunc(model, func(c rune) bool {
		return c < ' ' || c >= 0x7F && c < 0xA0 || c == utf8.RuneError
	})
	return model, model != "" && len(model) <= MaxModel && !control
}

// FuzzRequest holds that a body is accepted if encoding/json and the rules of this
// package, read slowly, accept it. Doubles and depth are the scanner's to prove.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","stream":true,"tools":[{"type":"function"}],"messages":[{"role":"user","content":"é\n"}]}`,
		`{"model":"m","Model":"n"}`, `{"m\u006fdel":"\u0041"}`, `{"model":"m","tools":[{"TYPE":1}]}`, `{"stream":0,"model":"\ud800"}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for e := range engine.GeminiGenerate + 1 {
			if _, fault := Request(e, body); fault != nil && (fault.Offset < 0 || fault.Offset > len(body)) {
				t.Fatalf("%v: fault at %d of %d bytes", e, fault.Offset, len(body))
			}
		}
		b, fault := Request(engine.OpenAIChat, body)
		if fault != nil {
			switch fault.Reason {
			case DuplicateName, TooDeep, NotUTF8:
				return
			}
		}
		model, ok := slow(body)
		if (fault == nil) != ok {
			t.Fatalf("fault is %+v, want accepted: %v", fault, ok)
		}
		if fault == nil && (b.Model != model || !json.Valid(body) || gjson.GetBytes(body, "model").Str != model) {
			t.Fatalf("model is %q, want %q", b.Model, model)
		}
	})
}

func TestAllocations(t *testing.T) {
	body := chatBody(4 << 10)
	n := testing.AllocsPerRun(100, func() { _, _ = Request(engine.OpenAIChat, body) })
	if n > 2 { // the model's name, and memory for names of members
		t.Errorf("%v allocations, want 2", n)
	}
}

func TestSpliceOfModel(t *testing.T) {
	t.Parallel()
	body := chatBody(300)
	b, fault := Request(engine.OpenAIChat, body)
	if fault != nil {
		t.Fatal(fault)
	}
	got := string(body[:b.ModelStart]) + `"prod"` + string(body[b.ModelEnd:])
	want := strings.Replace(string(body), `"gpt-4o-2024-08-06"`, `"prod"`, 1)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("spliced body (-want +got):\n%s", d)
	}
}

// chatBody makes a conversation of about this many bytes.
func chatBody(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"gpt-4o-2024-08-06","stream":true,"temperature":0.2,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}],"messages":[{"role":"system","content":"Be brief."}`)
	for b.Len() < size {
		b.WriteString(`,{"role":"user","content":"` + strings.Repeat("Tell me about the weather there. ", 6) + `\n"}`)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func BenchmarkRequest(b *testing.B) {
	bodies := map[string][]byte{
		"4kB": chatBody(4 << 10),
		"1MB": []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("The quick brown fox. ", 50_000) + `"}]}`),
	}
	for name, body := range bodies {
		run := func(how string, f func()) {
			b.Run(name+" "+how, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					f()
				}
			})
		}
		run("judge", func() {
			if _, fault := Request(engine.OpenAIChat, body); fault != nil {
				b.Fatal(fault.Message)
			}
		})
		run("gjson", func() {
			if !gjson.ValidBytes(body) {
				b.Fatal("invalid")
			}
			gjson.ParseBytes(body).ForEach(func(_, _ gjson.Result) bool { return true })
		})
		run("encoding/json", func() {
			var into struct {
				Model  string
				Stream bool
				Tools  []struct{ Type string }
			}
			if err := json.Unmarshal(body, &into); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func TestWhatTellsThePrice(t *testing.T) {
	t.Parallel()
	f := func(e engine.Endpoint, in string, output int64, cached bool) {
		t.Helper()
		b, fault := Request(e, []byte(in))
		if fault != nil {
			t.Errorf("%s: refused: %s", in, fault.Message)
			return
		}
		if b.MaxOutput != output || b.Cached != cached {
			t.Errorf("%s: %d tokens of output, cached %v, want %d and %v", in, b.MaxOutput, b.Cached, output, cached)
		}
	}
	f(engine.OpenAIChat, `{"model":"m"}`, 0, false)
	f(engine.OpenAIChat, `{"model":"m","max_tokens":100}`, 100, false)
	f(engine.OpenAIChat, `{"model":"m","max_completion_tokens":4096,"prompt_cache_key":"k"}`, 4096, true)
	f(engine.OpenAIChat, `{"model":"m","max_tokens":null,"prompt_cache_key":null}`, 0, false)
	f(engine.OpenAIChat, `{"model":"m","max_tokens":"100"}`, 0, false)
	f(engine.OpenAIChat, `{"model":"m","max_tokens":1.5}`, 0, false)
	f(engine.OpenAIChat, `{"model":"m","max_tokens":99999999999999999999}`, 0, false)
	f(engine.OpenAIChat, `{"model":"m","max_tokens":-4}`, 0, false)
	f(engine.OpenAIChat, `{"model":"m","messages":[{"max_tokens":5}]}`, 0, false)
	f(engine.OpenAICompletions, `{"model":"m","max_tokens":7}`, 7, false)
	f(engine.OpenAIResponses, `{"model":"m","max_output_tokens":9}`, 9, false)
	f(engine.OpenAIResponses, `{"model":"m","max_tokens":9}`, 0, false)
	f(engine.AnthropicMessages, `{"model":"m","max_tokens":1024,"cache_control":{"type":"ephemeral"}}`, 1024, true)
	f(engine.GeminiGenerate, `{"generationConfig":{"temperature":1,"maxOutputTokens":64},"cachedContent":"cachedContents/1"}`, 64, true)
	f(engine.GeminiGenerate, `{"generation_config":{"max_output_tokens":65}}`, 65, false)
	f(engine.GeminiGenerate, `{"generationConfig":7}`, 0, false)
}
