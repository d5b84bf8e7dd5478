package proxy

import "strconv"

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
func (s openAIShape) appendEvent(dst []byte, p *problem, id string, at streamPlace) []byte {
	dst = append(at.separate(dst), "data: "...)
	dst = s.appendError(dst, p, id)
	return append(dst, "\n\n"...)
}

// responsesShape has an error event of its own: `{"type":"error","code","message","param",
// "sequence_number"}`. The SDKs look for the member error in it as well.
type responsesShape struct{ openAIShape }

func (s responsesShape) appendEvent(dst []byte, p *problem, id string, at streamPlace) []byte {
	dst = append(at.separate(dst), `event: error`+"\n"+`data: {"type":"error","code":`...)
	dst = appendQuoted(dst, string(p.code))
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, p.text(id))
	dst = append(dst, `,"param":null,"sequence_number":`...)
	dst = strconv.AppendInt(dst, int64(at.events), 10) // they count from 0
	dst = append(dst, ',')
	dst = append(dst, s.appendError(nil, p, id)[1:]...)
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
