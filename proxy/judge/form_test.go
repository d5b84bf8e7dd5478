package judge

import (
	"bytes"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

const formType = "multipart/form-data; boundary=B"

// formOf puts parts, each its header lines and its content, into a form.
func formOf(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--B\r\n" + p + "\r\n")
	}
	return b.String() + "--B--\r\n"
}

func field(name, value string) string {
	return `Content-Disposition: form-data; name="` + name + `"` + "\r\n\r\n" + value
}

const audioFile = `Content-Disposition: form-data; name="file"; filename="a \"odd\".mp3"` + "\r\nContent-Type: audio/mpeg\r\n\r\nID3\x00\xff\r\n--\r\n"

var plainFile = strings.ReplaceAll(audioFile, `\"odd\"`, "odd")

func TestFormAccepted(t *testing.T) {
	t.Parallel()
	f := func(contentType, in, model string, stream bool) {
		t.Helper()
		b, fault := Form(engine.OpenAIAudio, contentType, []byte(in))
		if fault != nil {
			t.Errorf("%q is refused: %s", in, fault.Message)
			return
		}
		at := strings.LastIndex(in, model+"\r\n")
		want := Body{Model: model, ModelStart: at, ModelEnd: at + len(model), BareModel: true, Stream: stream, Effects: engine.EffectsPossible}
		if d := cmp.Diff(want, b); d != "" {
			t.Errorf("%q (-want +got):\n%s", in, d)
		}
	}
	f(formType, formOf(field("model", "whisper-1"), plainFile), "whisper-1", false)
	f(formType, formOf(plainFile, field("stream", "true"), field("model", "gpt-4o-transcribe")), "gpt-4o-transcribe", true)
	f(formType, formOf(field("stream", "False"), field("model", "m")), "m", false)
	f(`Multipart/Form-Data; charset=utf-8; boundary="B"`, strings.TrimSuffix(formOf(field("model", "é")), "\r\n"), "é", false)
	f(formType, formOf("content-disposition: form-data; name=model\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nm"), "m", false)
}

func TestFormRefused(t *testing.T) {
	t.Parallel()
	f := func(name, contentType, in string, reason Reason) {
		t.Helper()
		b, fault := Form(engine.OpenAIImages, contentType, []byte(in))
		switch {
		case fault == nil:
			t.Errorf("%s: accepted, want %s", name, reason)
		case fault.Reason != reason:
			t.Errorf("%s: %s (%s), want %s", name, fault.Reason, fault.Message, reason)
		case b != Body{}:
			t.Errorf("%s: refused with a body", name)
		case strings.Contains(fault.Message, "SECRET") || !strings.HasSuffix(fault.Message, "."):
			t.Errorf("%s: message is %q", name, fault.Message)
		}
	}
	good := formOf(field("model", "m"))
	f("no boundary", "multipart/form-data", good, InvalidForm)
	f("two boundaries", formType+"; boundary=C", good, InvalidForm)
	f("boundary that is none", `multipart/form-data; boundary="B"x`, good, InvalidForm)
	f("long boundary", "multipart/form-data; boundary="+strings.Repeat("B", 71), good, InvalidForm)
	f("empty", formType, "", InvalidForm)
	f("preamble", formType, "hello\r\n"+good, InvalidForm)
	f("epilogue", formType, good+"x", InvalidForm)
	f("cut in a part", formType, good[:len(good)-8], InvalidForm)
	f("cut in a head", formType, "--B\r\nContent-Disp", InvalidForm)
	f("boundary with something behind it", formType, strings.Replace(good, "--B\r\n", "--B \r\n", 1), InvalidForm)
	f("boundary in a part", formType, formOf(field("model", "m"), field("prompt", "x\n--B\nContent-Disposition: form-data; name=model")), InvalidForm)
	f("no name", formType, formOf("Content-Disposition: form-data\r\n\r\nm"), InvalidForm)
	f("two names", formType, formOf(`Content-Disposition: form-data; name="a"; name="model"`+"\r\n\r\nm"), InvalidForm)
	f("encoded name", formType, formOf(`Content-Disposition: form-data; name*=utf-8''model`+"\r\n\r\nm"), InvalidForm)
	f("escaped name", formType, formOf(`Content-Disposition: form-data; name="mod\el"`+"\r\n\r\nm"), InvalidForm)
	f("escaped quote in a file's name", formType, formOf(field("model", "m"), audioFile), InvalidForm)
	f("two dispositions", formType, formOf("Content-Disposition: form-data; name=a\r\n"+field("model", "m")), InvalidForm)
	f("folded head", formType, formOf("Content-Disposition: form-data;\r\n name=\"model\"\r\n\r\nm"), InvalidForm)
	f("no head", formType, "--B\r\n\r\nm\r\n--B--", InvalidForm)
	f("too many parts", formType, formOf(append(make([]string, 0), strings.Split(strings.Repeat(field("a", "1")+"\x01", maxParts+1), "\x01")...)...), InvalidForm)
	f("no model", formType, formOf(field("prompt", "SECRET")), MissingModel)
	f("empty model", formType, formOf(field("model", "")), MissingModel)
	f("two models", formType, formOf(field("model", "a"), field("model", "b")), DuplicateName)
	f("two cases", formType, formOf(field("model", "a"), field("Model", "b")), AmbiguousName)
	f("a space in the name", formType, formOf(field("model", "a"), field("model ", "b")), AmbiguousName)
	f("model as a file", formType, formOf(`Content-Disposition: form-data; name="model"; filename="SECRET"`+"\r\n\r\nm"), WrongType)
	f("encoded model", formType, formOf("Content-Transfer-Encoding: base64\r\n"+field("model", "bQ==")), WrongType)
	f("model of another alphabet", formType, formOf("Content-Type: text/plain; charset=utf-16\r\n"+field("model", "m")), WrongType)
	f("long model", formType, formOf(field("model", strings.Repeat("m", MaxModel+1))), BadModel)
	f("model with a line end", formType, formOf(field("model", "a\r\nb")), BadModel)
	f("stream that is neither", formType, formOf(field("model", "m"), field("stream", "maybe")), WrongType)
	f("two streams", formType, formOf(field("model", "m"), field("stream", "true"), field("stream", "false")), DuplicateName)
}

// FuzzForm holds that the standard library reads the same one model in what is accepted.
func FuzzForm(f *testing.F) {
	f.Add([]byte(formOf(field("model", "m"), plainFile)), formType)
	f.Add([]byte(formOf(field("model", "m"), field("stream", "true"))), `multipart/form-data; boundary="B"`)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		b, fault := Form(engine.OpenAIAudio, contentType, body)
		if fault != nil {
			return
		}
		if got := string(body[b.ModelStart:b.ModelEnd]); got != b.Model {
			t.Fatalf("model is %q at %q", b.Model, got)
		}
		boundary, _ := boundaryOf(contentType)
		models := 0
		for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
			p, err := r.NextRawPart()
			if err != nil {
				break
			}
			if strings.EqualFold(p.FormName(), "model") {
				models++
				var text bytes.Buffer
				if _, err := text.ReadFrom(p); err != nil || text.String() != b.Model {
					t.Fatalf("the standard library reads %q, %v; here it is %q", &text, err, b.Model)
				}
			}
		}
		if models != 1 {
			t.Fatalf("the standard library reads %d models in %q", models, body)
		}
	})
}
