// Answers without an error in them: a good one that only looked like a failure, one
// that a filter stopped, one that is none.

import { Class, endpoint, Endpoint, Failing, jsonAt, jsonContains, jsonIs, jsonKind, Kind, namesModel, phase, Phase, Scope, utf8 } from "./fourgate";
import { be } from "./result";

/** whole judges a JSON answer of status 2xx. */
export function whole(root: i32): bool {
  const anthropic = jsonIs(root, utf8("type"), utf8("message"));
  const openai = jsonContains(root, utf8("object"), utf8("chat.completion|text_completion"));
  if (endpoint() == Endpoint.AnthropicMessages ? openai : anthropic && endpoint() > 0) {
    return be(Class.SchemaInvalid, Scope.Channel, utf8("wrong_protocol"));
  }
  if (namesModel(root, utf8("model")) == 0) return be(Class.ContractViolation, Scope.Channel, utf8("model_mismatch"));
  if (blocked(root) || ended(root)) return true;
  if (jsonKind(root, utf8("candidates")) == Kind.Array) return be(Class.SchemaInvalid, Scope.Model, utf8("empty_answer"));
  if (jsonKind(root, utf8("choices")) == Kind.Array || anthropic) return be(Class.SchemaInvalid, Scope.Channel, utf8("empty_answer"));
  if (jsonAt(root, utf8("data.0|output.0|embedding|embeddings|message.content|text|done|0.generated_text|generated_text")) >= 0) {
    return be(Class.OK, Scope.None, utf8("complete"));
  }
  return be(Class.SchemaInvalid, Scope.Channel, utf8("missing_fields"));
}

/** blocked: the input was refused, and the answer says so instead of an error. */
function blocked(root: i32): bool {
  return jsonAt(root, utf8("promptFeedback.blockReason|0.promptFeedback.blockReason")) >= 0 &&
    be(Class.BadRequest, Scope.Request, utf8("content_policy"));
}

/** ended reads how an answer or a frame says that the answer ended; false if it doesn't. */
export function ended(root: i32): bool {
  if (blocked(root)) return true;
  const path = utf8("choices.0.finish_reason|stop_reason|delta.stop_reason|response.incomplete_details.reason|incomplete_details.reason|" +
    "candidates.0.finishReason|0.candidates.0.finishReason|stopReason|payload.stopReason|delta.finish_reason|done_reason|" +
    "response.status|status");
  if (jsonAt(root, path) < 0) return false;
  if (jsonIs(root, path, utf8("in_progress|queued"))) return false;
  if (jsonIs(root, path, utf8("malformed_function_call|unexpected_tool_call"))) return be(Class.SchemaInvalid, Scope.Model, utf8("malformed_tool_call"));
  if (jsonIs(root, path, utf8("content_filter|content_filtered|guardrail_intervened|safety|recitation|spii|prohibited_content|blocklist|image_safety|sensitive"))) {
    return be(Class.Refusal, Scope.None, utf8("content_filter"));
  }
  if (jsonIs(root, path, utf8("refusal")) || jsonKind(root, utf8("choices.0.message.refusal")) == Kind.String) {
    return be(Class.Refusal, Scope.None, utf8("model_refusal"));
  }
  if (jsonIs(root, path, utf8("error|error_toxic|timeout|failed"))) {
    const late = jsonIs(root, path, utf8("timeout"));
    return be(Class.ProviderTransient, Scope.Provider, late ? utf8("timeout") : utf8("server_error"));
  }
  const length = jsonIs(root, path, utf8("length|max_tokens|max_output_tokens|model_length"));
  return be(Class.OK, Scope.None, length ? utf8("length") : utf8("complete"));
}
