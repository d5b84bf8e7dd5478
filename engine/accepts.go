package engine

import (
	"slices"
	"strings"
)

// Accepts says whether an answer that names the model answered is an answer from the
// contract's model: its exact name, a dated snapshot of it, the provider's own name for
// it, or a name that the channel declares in answers_as. An answer that names no model
// is accepted.
func (c *Channel) Accepts(model, answered string) bool {
	if answered == "" || answered == model || snapshotOf(model, answered) {
		return true
	}
	if as, ok := c.spec.SendAs[model]; ok && (answered == as || snapshotOf(as, answered)) {
		return true
	}
	return model == c.spec.Serves && slices.Contains(c.spec.AnswersAs, answered)
}

// snapshotOf says whether full is base with a date behind it: "-2024-08-06", as OpenAI
// writes snapshots, or "-20241022" or "@20241022", as Anthropic and Vertex do.
func snapshotOf(base, full string) bool {
	tail, ok := strings.CutPrefix(full, base)
	if !ok || len(tail) == 0 || tail[0] != '-' && tail[0] != '@' {
		return false
	}
	digits := strings.ReplaceAll(tail[1:], "-", "")
	if len(digits) != 8 || len(tail) != 9 && (len(tail) != 11 || tail[5] != '-' || tail[8] != '-') {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return digits >= "20150101" && digits[4:6] >= "01" && digits[4:6] <= "12" && digits[6:] >= "01" && digits[6:] <= "31"
}
