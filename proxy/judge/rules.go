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
}

// rulesOf returns the rules of an endpoint. Sources are the API references of OpenAI,
// Anthropic, Google, OpenRouter and xAI.
func rulesOf(e engine.Endpoint) rules {
	switch e {
	case engine.OpenAIChat:
		return rules{
			needsModel: true,
			outside: []string{
				"web_search_options",
				"plugins",           // OpenRouter: web search, file parsing
				"search_parameters", // xAI: live search
			},
			ownTools: []string{"function", "custom"},
		}
	case engine.AnthropicMessages:
		return rules{
			needsModel: true,
			outside: []string{
				"mcp_servers",
				"container", // holds files and skills between requests
			},
			// Those of the second kind are defined by Anthropic and run by the
			// application; searching for tools reads nothing but the request.
			ownTools:     []string{"custom"},
			ownFamilies:  []string{"bash_", "computer_", "memory_", "text_editor_", "tool_search_tool_"},
			untypedIsOwn: true,
		}
	case engine.OpenAIResponses:
		return rules{
			needsModel:      true,
			outside:         []string{"background", "conversation", "previous_response_id", "prompt"},
			ownTools:        []string{"function", "custom"},
			storesByDefault: true,
		}
	case engine.GeminiGenerate:
		return rules{
			ownTools:      []string{"functionDeclarations", "function_declarations"},
			toolsByMember: true,
		}
	case engine.OpenAIImages, engine.OpenAIAudio:
		return rules{needsModel: true, always: true}
	}
	return rules{needsModel: true, ownTools: []string{"function", "custom"}}
}
