// One classification from the first question to the verdict. A classifier's entry file
// exports a module of its own rules and calls begin(), its rules and finish(); see
// builtin/generic/generic.ts for the shortest one.

import { bodyEnd, Class, contains, End, Failing, Flag, flags, frameCount, headerContains, jsonAt, jsonState, Net, netKind, retryAfter, Scope, State, status, Transport, transport, utf8 } from "./fourgate";
import { found, locate } from "./failure";
import { ended, whole } from "./answer";
import { be, beFor } from "./result";

/**
 * settled decides everything that needs no rule about errors, and says whether it did.
 * If it did not, locate() has found an error for the rules to judge.
 */
export function settled(): bool {
  if ((flags() & Flag.CallerGone) != 0) return be(Class.Cancelled, Scope.None, utf8("caller_cancelled"));
  if (transport() == Transport.Network) return network();
  if (transport() == Transport.SSE) return stream();
  if (jsonState(Failing) != State.None) {
    if (locate(Failing)) return false;
    return body();
  }
  return page();
}

/** network: no answer, or one that was cut off. */
function network(): bool {
  const kind = netKind();
  if (kind == Net.TLSVerify || kind == Net.TLSNotTLS) return be(Class.ProviderTransient, Scope.Channel, utf8("tls"));
  if (kind == Net.HeaderTimeout || kind == Net.DeadlineExceeded || kind == Net.IdleTimeout || kind == Net.ContextCanceled || bodyEnd() == End.Idle) {
    return be(Class.ProviderTransient, Scope.Channel, utf8("timeout"));
  }
  return be(Class.ProviderTransient, Scope.Channel, utf8("network"));
}

/** stream: the last frames say whether it failed or ended. */
function stream(): bool {
  if (locate(Failing)) return false;
  const frames = frameCount();
  // Four at the end are looked at. They are written out because a module without a loop
  // needs no watch over its deadline, and is faster for that.
  const said = telling(frames - 1) || telling(frames - 2) || telling(frames - 3) || telling(frames - 4);
  if (said) return found < 0;
  if (bodyEnd() != End.EOF || netKind() != Net.None) return network();
  if (frames > 0) {
    if (contains(Failing, utf8("<html|<!doctype"))) return be(Class.ProviderTransient, Scope.Channel, utf8("edge_error"));
    if (jsonState(Failing) == State.Bad) return be(Class.SchemaInvalid, Scope.Channel, utf8("bad_json"));
    if (!data && contains(Failing, utf8("[done]"))) return be(Class.SchemaInvalid, Scope.Channel, utf8("empty_answer"));
  }
  return be(Class.ProviderTransient, Scope.Channel, utf8("truncated"));
}

let data: bool = false;

/** telling: a frame with an error, which locate() has found then, or an ending. */
function telling(i: i32): bool {
  const root = i < 0 ? -1 : jsonAt(i, utf8(""));
  if (root < 0) return false;
  data = true;
  return locate(i) || ended(root);
}

/** body: JSON without an error in it. */
function body(): bool {
  if (bodyEnd() != End.EOF || netKind() != Net.None) return network();
  if (status() >= 400) return page();
  const state = jsonState(Failing);
  if (state == State.Truncated) return be(Class.SchemaInvalid, Scope.Channel, utf8("truncated_json"));
  if (state == State.Bad) return be(Class.SchemaInvalid, Scope.Channel, utf8("bad_json"));
  return whole(jsonAt(Failing, utf8("")));
}

/** page: an answer that is no JSON, or says nothing: HTML, text, emptiness. */
function page(): bool {
  const s = status();
  if (s < 400) {
    if (bodyEnd() != End.EOF || netKind() != Net.None) return network();
    if (s >= 300) return be(Class.Unknown, Scope.Channel, utf8("redirect"));
    if (contains(Failing, utf8("<html|<!doctype"))) return be(Class.SchemaInvalid, Scope.Channel, utf8("html_body"));
    return be(Class.SchemaInvalid, Scope.Channel, headerContains(utf8("content-length"), utf8("0")) || !contains(Failing, utf8(" |e|a|o|i|1|0")) ? utf8("empty_body") : utf8("wrong_content_type"));
  }
  if (s == 401) return be(Class.KeyFault, Scope.Key, utf8("invalid_credential"));
  if (s == 402) return be(Class.KeyFault, Scope.Key, utf8("billing"));
  if (s == 413) return be(Class.BadRequest, Scope.Request, utf8("payload_too_large"));
  if (s == 429) return beFor(Class.RateLimited, Scope.Channel, utf8("unspecified"), retryAfter());
  if (s == 408 || s == 504 || s == 524) return beFor(Class.ProviderTransient, Scope.Channel, utf8("timeout"), retryAfter());
  if (s >= 499) {
    const full = s == 529 || (s == 503 && !contains(Failing, utf8("<html|<!doctype|upstream connect")));
    return beFor(Class.ProviderTransient, Scope.Channel, full ? utf8("overloaded") : utf8("edge_error"), retryAfter());
  }
  if (contains(Failing, utf8("upstream connect|disconnect/reset"))) return be(Class.ProviderTransient, Scope.Channel, utf8("edge_error"));
  if (s == 403 && contains(Failing, utf8("<html|<!doctype|just a moment|access denied|cloudflare|captcha|error code: 1"))) {
    return be(Class.ProviderTransient, Scope.Channel, utf8("edge_blocked"));
  }
  if (s == 403) return be(Class.KeyFault, Scope.Key, utf8("permission"));
  return be(Class.Unknown, s == 404 || s == 405 ? Scope.Channel : Scope.Request, utf8("unrecognized"));
}
