package proxy

import (
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// place is what a path of the proxy leads to.
type place uint8

const (
	placeNone place = iota
	placeEndpoint
	placeModels
	placeHealth
	placeReady
)

// served names the paths in the answer to one that is not.
const served = "POST /v1/chat/completions, POST /v1/messages, GET /v1/models, GET /healthz and GET /readyz " +
	"(the /v1 paths also below /openai and /anthropic)"

// endpointPath is the path of an endpoint as callers and providers spell it.
func endpointPath(e engine.Endpoint) string {
	switch e {
	case engine.OpenAIChat:
		return "/v1/chat/completions"
	case engine.AnthropicMessages:
		return "/v1/messages"
	}
	return ""
}

// locate finds what a target leads to and the protocol its errors are in. The query
// is ignored, as official SDKs send one (anthropic's ?beta=true).
func locate(target string) (place, engine.Endpoint) {
	path, _, _ := strings.Cut(target, "?")
	switch path {
	case "/v1/chat/completions", "/openai/v1/chat/completions":
		return placeEndpoint, engine.OpenAIChat
	case "/v1/messages", "/anthropic/v1/messages":
		return placeEndpoint, engine.AnthropicMessages
	case "/v1/models", "/openai/v1/models", "/anthropic/v1/models":
		return placeModels, engine.EndpointNone
	case "/healthz":
		return placeHealth, engine.EndpointNone
	case "/readyz":
		return placeReady, engine.EndpointNone
	}
	return placeNone, engine.EndpointNone
}

// protocolOf guesses the protocol that errors for a target should be in, for requests
// of which nothing else is known.
func protocolOf(target string) engine.Protocol {
	switch {
	case strings.Contains(target, "/messages"), strings.HasPrefix(target, "/anthropic/"):
		return engine.ProtocolAnthropic
	case strings.HasPrefix(target, "/v1beta/"):
		return engine.ProtocolGemini
	}
	return engine.ProtocolOpenAI
}

// upstreamPath is what follows a provider's base URL. A base URL may or may not end in
// /v1: OpenAI's SDKs put the version there, Anthropic's don't, and both are understood.
// The caller's query goes along, as anthropic's ?beta=true must, but for a credential
// in it.
func upstreamPath(versioned bool, e engine.Endpoint, target string) string {
	path := endpointPath(e)
	if versioned {
		path = path[len("/v1"):]
	}
	_, query, found := strings.Cut(target, "?")
	if !found {
		return path
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if part != "" && name != "key" && name != "api-key" && name != "api_key" {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}
