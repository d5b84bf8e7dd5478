package engine

// Endpoint is one protocol operation that a caller can ask for. It is half of a
// [Contract].
type Endpoint uint8

// The endpoints of the public surface. The zero value is no endpoint.
const (
	EndpointNone Endpoint = iota
	OpenAIChat
	OpenAIResponses
	OpenAICompletions
	OpenAIEmbeddings
	OpenAIImages
	OpenAIAudio
	AnthropicMessages
	GeminiGenerate
)

var endpointNames = [...]string{
	"", "openai.chat", "openai.responses", "openai.completions", "openai.embeddings",
	"openai.images", "openai.audio", "anthropic.messages", "gemini.generate",
}

// Protocol is the family of wire shapes that an endpoint speaks: it decides what an
// error looks like.
type Protocol uint8

// The three protocols. The zero value is OpenAI's, which most callers understand.
const (
	ProtocolOpenAI Protocol = iota
	ProtocolAnthropic
	ProtocolGemini
)

// Protocol returns the protocol that callers of this endpoint speak.
func (e Endpoint) Protocol() Protocol {
	switch e {
	case AnthropicMessages:
		return ProtocolAnthropic
	case GeminiGenerate:
		return ProtocolGemini
	}
	return ProtocolOpenAI
}

// Contract is what a caller asked for: exactly this model over exactly this endpoint.
type Contract struct {
	Model    string
	Endpoint Endpoint
}

func (e Endpoint) String() string { return name(endpointNames[:], e) }

// ParseEndpoint reads an endpoint's name, such as "openai.chat".
func ParseEndpoint(s string) (Endpoint, error) {
	return parse[Endpoint]("endpoint", endpointNames[:], s)
}
