package proxy

// anthropicShape is `{"type":"error","error":{"type","message"},"request_id"}`. The
// literal "type":"error" is what clients recognise it by.
type anthropicShape struct{}

func (anthropicShape) appendError(dst []byte, p *problem, id string) []byte {
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = appendQuoted(dst, anthropicType(p.status))
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, p.text(id))
	dst = append(dst, `,"details":{"error_code":`...)
	dst = appendQuoted(dst, string(p.code))
	dst = append(dst, `}},"request_id":`...)
	dst = appendQuoted(dst, id)
	return append(dst, '}')
}

// appendEvent names the event, which is the only thing that Anthropic's SDKs act on.
func (s anthropicShape) appendEvent(dst []byte, p *problem, id string, at streamPlace) []byte {
	dst = append(at.separate(dst), "event: error\ndata: "...)
	dst = s.appendError(dst, p, id)
	return append(dst, "\n\n"...)
}

// anthropicType never returns overloaded_error: it is the one type that some clients
// answer with a retry of a stream, and exhaustion must not be multiplied.
func anthropicType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404, 405:
		return "not_found_error"
	case 409:
		return "conflict_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 504:
		return "timeout_error"
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}
