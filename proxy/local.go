package proxy

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/fourgate-dev/fourgate/engine"
)

// serveOther answers the paths that the proxy serves by itself, and those that it
// doesn't serve.
func (x *exchange) serveOther(where place) {
	if where == placeNone {
		x.refuse(&problem{status: 404, code: codeUnknownPath,
			message: "this path is not served; served are " + served})
		return
	}
	if m := x.head.method; m != fasthttp.MethodGet && m != fasthttp.MethodHead {
		x.refuse(&problem{status: 405, code: codeWrongMethod, allow: "GET, HEAD",
			message: "this path is served for GET, not for " + m})
		return
	}
	switch where {
	case placeHealth:
		x.plain(200, "ok\n")
	case placeReady:
		if x.server.Ready() {
			x.plain(200, "ready\n")
		} else {
			x.plain(503, "draining\n")
		}
	case placeModels:
		if x.head.anthropicVersion {
			x.shape = anthropicShape{}
		}
		if p := x.authenticate(); p != nil {
			x.refuse(p)
			return
		}
		x.models()
	}
}

func (x *exchange) plain(status int, text string) {
	r := &x.ctx.Response
	r.SetStatusCode(status)
	r.Header.SetContentType("text/plain; charset=utf-8")
	x.stamp()
	r.SetBodyString(text)
}

// models lists what the caller may use, each model once, in the order of its groups:
// in Anthropic's shape for callers that send anthropic-version, in OpenAI's otherwise.
func (x *exchange) models() {
	type model struct{ name, group string }
	var list []model
	known := map[string]bool{}
	for _, g := range x.caller.Groups() {
		for _, name := range g.Models() {
			if !known[name] && (!x.head.anthropicVersion || serves(g, engine.AnthropicMessages)) {
				known[name] = true
				list = append(list, model{name, g.Name()})
			}
		}
	}
	var b []byte
	if x.head.anthropicVersion {
		b = append(b, `{"data":[`...)
		for i, m := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"type":"model","id":`...)
			b = appendQuoted(b, m.name)
			b = append(b, `,"display_name":`...)
			b = appendQuoted(b, m.name)
			b = append(b, `,"created_at":"1970-01-01T00:00:00Z"}`...)
		}
		b = append(b, `],"has_more":false,"first_id":`...)
		b = appendEdge(b, len(list) > 0, func() string { return list[0].name })
		b = append(b, `,"last_id":`...)
		b = appendEdge(b, len(list) > 0, func() string { return list[len(list)-1].name })
		b = append(b, '}')
	} else {
		b = append(b, `{"object":"list","data":[`...)
		for i, m := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"id":`...)
			b = appendQuoted(b, m.name)
			b = append(b, `,"object":"model","created":`...)
			b = strconv.AppendInt(b, 0, 10)
			b = append(b, `,"owned_by":`...)
			b = appendQuoted(b, m.group)
			b = append(b, '}')
		}
		b = append(b, `]}`...)
	}
	r := &x.ctx.Response
	r.SetStatusCode(200)
	r.Header.SetContentType("application/json")
	x.stamp()
	r.SetBodyRaw(b)
}

func appendEdge(b []byte, some bool, id func() string) []byte {
	if !some {
		return append(b, "null"...)
	}
	return appendQuoted(b, id())
}

func serves(g *engine.Group, want engine.Endpoint) bool {
	for _, e := range g.Endpoints() {
		if e == want {
			return true
		}
	}
	return false
}
