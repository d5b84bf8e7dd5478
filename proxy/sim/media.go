package sim

import "fmt"

// imagesShape is openai.images: one picture of one pixel, in base64.
type imagesShape struct{ openAIShape }

// onePixel is the smallest PNG: 1 by 1, transparent.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func (imagesShape) whole(*asked) parts {
	return parts{
		contentType: typeJSON,
		opening:     []string{`{"created":` + created + `,"data":[{"b64_json":"`},
		content:     []string{onePixel},
		closing: []string{fmt.Sprintf(`"}],"usage":{"input_tokens":%d,"output_tokens":1,"total_tokens":%d}}`,
			InputTokens, InputTokens+1)},
	}
}

// transcriptsShape is what openai.audio answers to speech: its text.
type transcriptsShape struct{ openAIShape }

func (transcriptsShape) whole(a *asked) parts {
	return parts{
		contentType: typeJSON,
		opening:     []string{`{"text":"`},
		content:     each(a.pieces, inner),
		closing: []string{fmt.Sprintf(`","usage":{"type":"tokens","input_tokens":%d,"output_tokens":%d,"total_tokens":%d}}`,
			InputTokens, len(a.pieces), InputTokens+len(a.pieces))},
	}
}

// speechShape is what openai.audio answers to text. Its bytes are no sound: nobody
// between the provider and the caller may look at them.
type speechShape struct{ openAIShape }

func (speechShape) whole(a *asked) parts {
	return parts{contentType: "audio/mpeg", content: a.pieces}
}
