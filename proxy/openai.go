package proxy

// openAIShape is `{"error":{"message","type","param","code"}}`. SDKs need error to be
// an object and message to be a string, and take the class from the status.
type openAIShape struct{}

func (openAIShape) appendError(dst []byte, p *problem, id string) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = appendQuoted(dst, p.text(id))
	dst = append(dst, `,"type":`...)
	dst = appendQuoted(dst, openAIType(p.status))
	dst = append(dst, `,"param":null,"code":`...)
	dst = appendQuoted(dst, string(p.code))
	return append(dst, `}}`...)
}

// appendEvent writes a bare data line: the SDKs look for the member error in it.
func (s openAIShape) appendEvent(dst []byte, p *problem, id string) []byte {
	dst = append(dst, "data: "...)
	dst = s.appendError(dst, p, id)
	return append(dst, "\n\n"...)
}

func openAIType(status int) string {
	switch {
	case status == 429:
		return "rate_limit_error"
	case status == 403:
		return "permission_error"
	case status < 500:
		return "invalid_request_error"
	case status == 504:
		return "timeout"
	}
	return "server_error"
}
