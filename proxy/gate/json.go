package gate

import (
	"bytes"
	"strconv"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// The functions here read the value that a scanner stands at, to its end.

// truthy says whether a value means something: null, false, 0 and "" are how providers
// say that there is no error.
func truthy(s *strictjson.Scanner) bool {
	switch s.Peek() {
	case strictjson.String:
		return len(s.Text().Raw) > 0
	case strictjson.Number:
		return string(s.Raw()) != "0"
	case strictjson.True, strictjson.Object, strictjson.Array:
		s.Skip()
		return true
	}
	s.Skip()
	return false
}

// said says whether a value holds something that a caller would take as output: a text
// of at least one byte, at any depth. Numbers, flags, and the members that only label
// a part don't count.
func said(s *strictjson.Scanner) bool {
	found := false
	switch s.Peek() {
	case strictjson.String:
		return len(s.Text().Raw) > 0
	case strictjson.Object:
		s.Object(func(key strictjson.Text) {
			if !label(key) {
				found = said(s) || found
			}
		})
	case strictjson.Array:
		s.Array(func() { found = said(s) || found })
	default:
		s.Skip()
	}
	return found
}

// label says whether a member only says what a part is.
func label(key strictjson.Text) bool {
	switch string(key.Raw) {
	case "type", "id", "index", "format", "role", "object":
		return true
	}
	return false
}

// maxTokens is far above any count that is true, and keeps sums from overflowing.
const maxTokens = 1 << 50

// tokens reads a count; whatever is no whole number from 0 on is unknown.
func tokens(s *strictjson.Scanner) engine.Tokens {
	if s.Peek() != strictjson.Number {
		s.Skip()
		return engine.Tokens{}
	}
	n, err := strconv.ParseFloat(string(s.Raw()), 64)
	if err != nil || n < 0 || n > maxTokens || n != float64(int64(n)) {
		return engine.Tokens{}
	}
	return engine.TokensOf(int64(n))
}

// inside reads an object's member of that name with read, and skips the others.
func inside(s *strictjson.Scanner, name string, read func()) {
	s.Object(func(key strictjson.Text) {
		if key.Is(name) {
			read()
		}
	})
}

// named says whether a name is on a list.
func named(name []byte, list []string) bool {
	for _, l := range list {
		if string(name) == l {
			return true
		}
	}
	return false
}

// glanceMembers looks at a raw frame for members of any depth that speak of an end, an
// error or usage and are not null, by their names and without parsing. In a text, the
// quotes around such a name would be escaped, so no text passes for a member.
func glanceMembers(raw []byte) glance {
	found := pass
	for at := 0; ; {
		colon := bytes.IndexByte(raw[at:], ':')
		if colon < 0 {
			return found
		}
		end := at + colon - 1
		at += colon + 1
		for end > 0 && raw[end] == ' ' {
			end--
		}
		if end < 1 || raw[end] != '"' {
			continue
		}
		value := raw[at:]
		for len(value) > 0 && (value[0] == ' ' || value[0] == '\t') {
			value = value[1:]
		}
		if len(value) == 0 || value[0] == 'n' {
			continue
		}
		name := raw[:end]
		switch name[len(name)-1] {
		case 'r':
			if bytes.HasSuffix(name, []byte(`error`)) {
				return look
			}
		case 'n':
			if bytes.HasSuffix(name, []byte(`"finish_reason`)) {
				return look
			}
		case 'e':
			if bytes.HasSuffix(name, []byte(`"usage`)) {
				found = lastUsage
			} else if value[0] != '0' && bytes.HasSuffix(name, []byte(`"status_code`)) {
				return look
			}
		}
		if value[0] == '"' && bytes.HasPrefix(value, []byte(`"error"`)) {
			return look
		}
	}
}
