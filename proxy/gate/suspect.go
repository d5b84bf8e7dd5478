package gate

import "bytes"

// maxSuspect bounds what is held of an event that may become an error.
const maxSuspect = 64 << 10

// errorBeginnings are how an event with an error begins. Read only. An error that begins
// otherwise is known once its event is whole: most come in one piece.
var errorBeginnings = [...]string{
	"event: error", "event:error",
	"event: response.failed", "event:response.failed",
	`data: {"error"`, `data:{"error"`, `data: {"type":"error"`, `data:{"type":"error"`, `data: {"type": "error"`,
	`data: {"type":"response.failed"`, `data: {"object":"error"`, `data: [{"error"`,
}

// suspicion is what the beginning of an event says of it.
type suspicion uint8

const (
	unsuspicious suspicion = iota
	perhaps                // too short to tell
	suspicious             // it begins as an error does
)

// suspect looks at the beginning of an event that has not ended.
func suspect(open []byte) suspicion {
	for _, b := range errorBeginnings {
		switch {
		case len(open) >= len(b) && string(open[:len(b)]) == b:
			return suspicious
		case len(open) < len(b) && string(open) == b[:len(open)]:
			return perhaps
		}
	}
	return unsuspicious
}

// suspectElement is [suspect] for an element of an array, which may be indented.
func suspectElement(open []byte) suspicion {
	const begins = `{"error"`
	n := 0
	for _, c := range elementOf(open) {
		if n < 2 && bytes.IndexByte([]byte(" \t\r\n"), c) >= 0 {
			continue
		}
		if c != begins[n] {
			return unsuspicious
		}
		if n++; n == len(begins) {
			return suspicious
		}
	}
	return perhaps
}
