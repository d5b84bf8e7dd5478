package sim

// failure is an error that a provider reports, before it takes its protocol's shape.
type failure struct {
	status             int
	model              string
	code, typ, message string // empty: as the status has it
	array              bool   // as an element of an array rather than an event
}

// openAIErrors are OpenAI's errors by status.
var openAIErrors = map[int]failure{
	400: {typ: "invalid_request_error", message: "We could not read the JSON body of your request."},
	401: {typ: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided: sk-sim****. See your account page for your keys."},
	402: {typ: "insufficient_quota", code: "insufficient_quota", message: "Insufficient balance. Add credits to go on."},
	403: {typ: "invalid_request_error", message: "You have insufficient permissions for this operation."},
	404: {typ: "invalid_request_error", code: "model_not_found"},
	408: {typ: "server_error", message: "Request timed out."},
	409: {typ: "invalid_request_error", message: "The request conflicts with another one."},
	413: {typ: "invalid_request_error", message: "The request is too large."},
	422: {typ: "invalid_request_error", message: "The request was well-formed, but it can't be processed."},
	429: {typ: "requests", code: "rate_limit_exceeded", message: "Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1."},
	500: {typ: "server_error", message: "The server had an error while processing your request."},
	502: {typ: "server_error", message: "Bad gateway."},
	503: {typ: "server_error", message: "The engine is currently overloaded, please try again later."},
	504: {typ: "server_error", message: "The request timed out on the server."},
	529: {typ: "server_error", message: "The engine is currently overloaded, please try again later."},
}

// anthropicErrors are Anthropic's errors by status.
var anthropicErrors = map[int]failure{
	400: {typ: "invalid_request_error", message: "messages: at least one message is required"},
	401: {typ: "authentication_error", message: "invalid x-api-key"},
	402: {typ: "billing_error", message: "Your credit balance is too low."},
	403: {typ: "permission_error", message: "Your API key has no permission to use this resource."},
	404: {typ: "not_found_error"},
	408: {typ: "timeout_error", message: "The request timed out."},
	413: {typ: "request_too_large", message: "The request exceeds the maximum size."},
	429: {typ: "rate_limit_error", message: "This request would exceed your rate limit for requests per minute."},
	500: {typ: "api_error", message: "Internal server error"},
	502: {typ: "api_error", message: "Bad gateway"},
	503: {typ: "overloaded_error", message: "Overloaded"},
	504: {typ: "timeout_error", message: "The request timed out while it was processed."},
	529: {typ: "overloaded_error", message: "Overloaded"},
}

// geminiErrors are Google's errors by status; typ is the name of the RPC status.
var geminiErrors = map[int]failure{
	400: {typ: "INVALID_ARGUMENT", message: "Invalid JSON payload received."},
	401: {typ: "UNAUTHENTICATED", message: "The request has invalid authentication credentials."},
	403: {typ: "PERMISSION_DENIED", message: "The caller does not have permission."},
	404: {typ: "NOT_FOUND"},
	429: {typ: "RESOURCE_EXHAUSTED", message: "Resource has been exhausted (e.g. check quota)."},
	500: {typ: "INTERNAL", message: "An internal error has occurred."},
	503: {typ: "UNAVAILABLE", message: "The model is overloaded. Please try again later."},
	504: {typ: "DEADLINE_EXCEEDED", message: "Deadline expired before the operation could complete."},
}

// fill completes a failure from a protocol's table. A status that isn't there takes
// the words of 400 or of 500.
func (f failure) fill(table map[int]failure, missing string) failure {
	t, ok := table[f.status]
	switch {
	case ok:
	case f.status >= 500:
		t = table[500]
	default:
		t = table[400]
	}
	if f.code == "" {
		f.code = t.code
	}
	if f.typ == "" {
		f.typ = t.typ
	}
	if f.message == "" {
		if f.message = t.message; f.message == "" {
			f.message = missing
		}
	}
	return f
}

// orNull is s as a JSON string, and null if there is none.
func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return quoted(s)
}
