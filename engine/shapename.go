package engine

import (
	"slices"
	"strings"
)

// OtherHeader stands in a [Shape] for every header that isn't well known: its name could
// tell whose gateway it was.
const OtherHeader = "other"

// hiddenName stands for a member's name that could itself be content: a key of a map from
// ids, questions or secrets to something.
const hiddenName = "?"

// Bounds of a member's name.
const (
	maxShapeName     = 32 // bytes
	maxShapeDigits   = 2  // in one name: a longer number is an id
	maxShapeWord     = 16 // letters without a '_' or a capital between them
	maxShapeCapitals = 3  // in a row, as in "requestID"
)

// secretPrefixes begin keys and tokens that look like words otherwise.
var secretPrefixes = []string{"sk_", "pk_", "rk_", "gsk_", "xai_", "hf_", "ghp_", "gho_", "npm_", "whsec_"}

// shapeName returns a member's name if it looks like the words of a schema, so that it
// carries no value: lower case, snake_case or camelCase, such as "error", "retry_after" or
// "maxTokens", or one of these behind "@" or "_" ("@type", "__type"). Sentences, ids, keys
// and passphrases have blanks, hyphens, digits or capitals in other places. A secret that
// is one plain word can't be told from a name.
func shapeName(name string) string {
	word := strings.TrimLeft(name, "@_")
	if len(name) > maxShapeName || len(name)-len(word) > 2 || word == "" || word[0] < 'a' || word[0] > 'z' || word[len(word)-1] == '_' {
		return hiddenName
	}
	if slices.ContainsFunc(secretPrefixes, func(p string) bool { return strings.HasPrefix(word, p) }) {
		return hiddenName
	}
	digits, letters, capitals, camel := 0, 0, 0, false
	for i := range len(word) {
		switch c := word[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z':
			letters++
			capitals = 0
		case c >= 'A' && c <= 'Z':
			if capitals == 0 { // a word ends here; one letter in front of a capital is no word
				if letters < 2 {
					return hiddenName
				}
				letters = 0
			}
			letters++
			capitals++
			camel = true
		case c == '_' && word[i-1] != '_':
			letters, capitals = 0, 0
		default:
			return hiddenName
		}
		if letters > maxShapeWord || capitals > maxShapeCapitals || digits > maxShapeDigits {
			return hiddenName
		}
	}
	if camel && letters < 2 || camel && strings.Contains(word, "_") {
		return hiddenName
	}
	return name
}

// Headers that say something about a failure and nothing about whose it was: those of HTTP,
// of content networks and gateways, and of the providers.
var (
	knownHeaders = []string{
		"age", "allow", "alt-svc", "cache-control", "connection", "date", "etag", "expires", "grpc-message", "grpc-status",
		"keep-alive", "last-modified", "location", "pragma", "request-id", "server", "server-timing", "strict-transport-security",
		"trailer", "transfer-encoding", "upgrade", "vary", "via", "warning", "www-authenticate", "x-cache", "x-content-type-options",
		"x-powered-by", "x-should-retry",
	}
	knownHeaderPrefixes = []string{
		"access-control-", "anthropic-", "apim-", "azureml-", "cf-", "content-", "openai-", "proxy-", "ratelimit", "retry-after",
		"x-amz-", "x-amzn-", "x-envoy-", "x-goog-", "x-kong-", "x-ms-", "x-openai-", "x-ratelimit-", "x-request-id",
	}
)

// maxShapeHeader bounds a header's name, in bytes.
const maxShapeHeader = 48

// shapeHeader returns a header's name in lower case if it is a well-known one.
func shapeHeader(name string) string {
	name = strings.ToLower(name)
	if slices.Contains(knownHeaders, name) {
		return name
	}
	if len(name) > maxShapeHeader || !slices.ContainsFunc(knownHeaderPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return OtherHeader
	}
	digits := 0
	for _, c := range []byte(name) {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c == '-':
		default:
			return OtherHeader
		}
	}
	if digits > maxShapeDigits {
		return OtherHeader
	}
	return name
}
