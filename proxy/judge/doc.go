// Package judge reads a caller's request body once, strictly, and says what the engine
// must know of it: the model, whether a stream is asked for, whether there are tools,
// and what a repetition could do outside the inference.
//
// The body goes upstream byte for byte, so whatever a provider might read otherwise than
// we do is refused: two members of one name, at any depth and after unescaping; names
// that differ only in case from one that is read here; bytes that are no UTF-8. Nothing
// else of the body is looked at, kept or copied, and no message repeats any of it.
//
// The package does no I/O and knows no caller, channel or policy. The proxy calls it
// before it asks the engine for a chain:
//
//	b, fault := judge.Request(engine.OpenAIChat, body)
//	if fault != nil {
//		return badRequest(fault.Message)
//	}
//	contract := engine.Contract{Model: b.Model, Endpoint: engine.OpenAIChat}
//
// An upload is read by [Form] in the same way.
//
// Where a channel sends the model under another name, the bytes from ModelStart to
// ModelEnd are replaced, and no others.
package judge
