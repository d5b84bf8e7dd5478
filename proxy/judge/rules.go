package judge

import "github.com/fourgate-dev/fourgate/engine"

// everywhere are the members that are read at every endpoint. Read only.
var everywhere = [...]string{"model", "stream", "tools", "functions", "store"}

// rules say what to make of an endpoint's members. Lists are read only.
type rules struct {
	needsModel bool
	// outside are members that let the provider act outside the inference.
	outside []string
	// ownTools are the types of tools that the application runs itself, and
	// ownFamilies the beginnings of dated types. Every other tool is the provider's.
	ownTools, ownFamilies []string
	untypedIsOwn          bool // a tool without type is the application's
	toolsByMember         bool // a tool's kind is the name of its member
	storesByDefault       bool // answers are stored unless "store" is false
	always                bool // a media job: something outside is always possible
	streamFormat          bool // "stream_format" asks for a stream, too

	// limits are members that bound the output in tokens, and cache one that is about a
	// prompt cache.
	limits []string
	cache  string
	nested bool // the limit is within "generationConfig"
}

// The rules of the endpoints. Read only. Sources are the API references of OpenAI,
// Anthropic, Google, OpenRouter and xAI.
var (
	chatRules = rules{
		needsModel: true,
		outside: []string{
			"web_search_options",
			"plugins",           // OpenRouter: web search, file parsing
			"search_parameters", // xAI: live search
		},
		ownTools: []string{"function", "custom"},
		limits:   []string{"max_completion_tokens", "max_tokens"},
		cache:    "prompt_cache_key",
	}
	messagesRules = rules{
		needsModel: true,
		outside: []string{
			"mcp_servers",
			"container", // holds files and skills between requests
		},
		// The families are defined by Anthropic and run by the application; searching
		// for tools reads nothing but the request.
		ownTools:     []string{"custom"},
		ownFamilies:  []string{"bash_", "computer_", "memory_", "text_editor_", "tool_search_tool_"},
		untypedIsOwn: true,
		limits:       []string{"max_tokens"},
		cache:        "cache_control",
	}
	responsesRules = rules{
		needsModel:      true,
		outside:         []string{"background", "conversation", "previous_response_id", "prompt"},
		ownTools:        []string{"function", "custom"},
		storesByDefault: true,
		limits:          []string{"max_output_tokens"},
		cache:           "prompt_cache_key",
	}
	geminiRules = rules{
		ownTools:      []string{"functionDeclarations", "function_declarations"},
		toolsByMember: true,
		nested:        true,
		cache:         "cachedContent",
	}
	mediaRules = rules{needsModel: true, always: true, streamFormat: true}
	otherRules = rules{needsModel: true, ownTools: []string{"function", "custom"}, limits: []string{"max_tokens"}}
)

// rulesOf returns the rules of an endpoint.
func rulesOf(e engine.Endpoint) *rules {
	switch e {
	case engine.OpenAIChat:
		return &chatRules
	case engine.AnthropicMessages:
		return &messagesRules
	case engine.OpenAIResponses:
		return &responsesRules
	case engine.GeminiGenerate:
		return &geminiRules
	case engine.OpenAIImages, engine.OpenAIAudio:
		return &mediaRules
	}
	return &otherRules
}
