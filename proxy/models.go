package proxy

import (
	"slices"

	"github.com/fourgate-dev/fourgate/engine"
)

// listed is one model that the caller may use.
type listed struct{ name, group string }

// models lists what the caller can use now, each model once, in the order of its groups
// and in the shape of the caller's protocol. A model for which every channel is set aside
// is not on it.
func (x *exchange) models() {
	now := x.snapshot.Catalog.Available(x.now(), x.server.around.Standing, x.caller)
	list := func(want engine.Endpoint) []listed { return modelsOf(now, x.caller.Groups(), want) }
	var b []byte
	switch {
	case x.route.path == geminiModelsPath:
		b = appendGeminiModels(b, list(engine.GeminiGenerate))
	case x.head.anthropicVersion:
		b = appendAnthropicModels(b, list(engine.AnthropicMessages))
	default:
		b = appendOpenAIModels(b, list(engine.EndpointNone))
	}
	r := &x.ctx.Response
	r.SetStatusCode(200)
	r.Header.SetContentType("application/json")
	x.stamp()
	r.SetBodyRaw(b)
}

// modelsOf collects the models of contracts over an endpoint, or over any, each with the
// first of the groups that serves it.
func modelsOf(now []engine.Contract, groups []*engine.Group, want engine.Endpoint) []listed {
	var list []listed
	known := map[string]bool{}
	for _, c := range now {
		if known[c.Model] || want != engine.EndpointNone && c.Endpoint != want {
			continue
		}
		known[c.Model] = true
		for _, g := range groups {
			if slices.Contains(g.Models(), c.Model) && slices.Contains(g.Endpoints(), c.Endpoint) {
				list = append(list, listed{c.Model, g.Name()})
				break
			}
		}
	}
	return list
}

func appendOpenAIModels(b []byte, list []listed) []byte {
	b = append(b, `{"object":"list","data":[`...)
	for i, m := range list {
		b = appendQuoted(append(comma(b, i), `{"id":`...), m.name)
		b = appendQuoted(append(b, `,"object":"model","created":0,"owned_by":`...), m.group)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

func appendAnthropicModels(b []byte, list []listed) []byte {
	b = append(b, `{"data":[`...)
	for i, m := range list {
		b = appendQuoted(append(comma(b, i), `{"type":"model","id":`...), m.name)
		b = appendQuoted(append(b, `,"display_name":`...), m.name)
		b = append(b, `,"created_at":"1970-01-01T00:00:00Z"}`...)
	}
	b = append(b, `],"has_more":false,"first_id":`...)
	if len(list) == 0 {
		return append(b, `null,"last_id":null}`...)
	}
	b = appendQuoted(b, list[0].name)
	b = appendQuoted(append(b, `,"last_id":`...), list[len(list)-1].name)
	return append(b, '}')
}

func appendGeminiModels(b []byte, list []listed) []byte {
	b = append(b, `{"models":[`...)
	for i, m := range list {
		b = appendQuoted(append(comma(b, i), `{"name":`...), modelPrefix+m.name)
		b = appendQuoted(append(b, `,"displayName":`...), m.name)
		b = append(b, `,"supportedGenerationMethods":["generateContent","streamGenerateContent"]}`...)
	}
	return append(b, `]}`...)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}
