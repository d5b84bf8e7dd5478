package proxy

import "github.com/valyala/fasthttp"

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
			x.plain(503, "not ready\n")
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
