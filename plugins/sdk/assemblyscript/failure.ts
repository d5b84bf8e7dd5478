// Where an error stands in a document, and how to ask about it. Providers put errors
// into a dozen shapes: an object or a string under "error", an array around everything,
// an event, a member of a choice, a JSON text inside a string of another provider's
// envelope. After locate() the questions below work on all of them.

import { contains, headerContains, headerMatches, jsonAt, jsonContains, jsonDuration, jsonInt, jsonIs, jsonKind, jsonMatches, jsonState, listsOf, NoInt, Kind, State, status, AsValue, InText, headerDuration, retryAfter, Text, utf8 } from "./fourgate";

/** root is the whole document, found the error value in it; -1 if there is none. */
export let root: i32 = -1;
export let found: i32 = -1;
/** bare is set when the error is a mere string with no code beside it. */
export let bare: bool = false;
/** text is set when the error is a string, beside is where else codes stand, or -1. */
let text: bool = false;
let beside: bool = false;
let amazon: bool = false;
/** The status that counts: the HTTP one if it is an error, else the one in the body. */
export let code: i32 = 0;

/** locate looks for an error in a document and says whether there is one. */
export function locate(doc: i32): bool {
  known = 0;
  found = -1;
  bare = false;
  code = status() >= 400 ? status() : 0;
  root = jsonAt(doc, utf8(""));
  if (root < 0) return false;
  found = jsonAt(root, utf8("error.0|error|errors.0|response.error|0.error|choices.0.error"));
  if (found >= 0) {
    const kind = jsonKind(found, utf8(""));
    if (kind < Kind.Number) { // error: false says that there is none
      found = -1;
      return false;
    }
    bare = kind == Kind.String && jsonAt(root, utf8("code|type|error_type")) < 0;
  } else if (jsonIs(root, utf8("headers.:message-type"), utf8("exception|error"))) {
    found = jsonAt(root, utf8("payload"));
  } else if (jsonContains(root, utf8("base_resp.status_code"), utf8("1|2|3|4|5|6|7|8|9"))) {
    found = jsonAt(root, utf8("base_resp"));
  } else if (status() >= 400 || jsonIs(root, utf8("object|type"), utf8("error"))) {
    found = root;
  }
  if (found < 0) return false;
  beside = found != root && jsonAt(root, besides()) >= 0;
  amazon = headerContains(utf8("x-amzn-errortype"), utf8("exception|error"));
  // Another provider's error inside a string says more than its envelope.
  const inner = jsonAt(found, utf8("message.@json.error|message.@json|metadata.raw.@json.error|metadata.raw.@json|@json.error"));
  if (inner >= 0) {
    found = inner;
    beside = true;
  }
  text = jsonKind(found, utf8("")) == Kind.String;
  if (code == 0) {
    code = between(jsonInt(found, utf8("code|status|status_code")));
    if (code == 0) code = between(jsonInt(root, utf8("error.code|code|status|statusCode")));
  }
  return true;
}

function between(n: i64): i32 { return n >= 400 && n < 600 ? <i32>n : 0; }

function besides(): Text {
  return utf8("code|type|error_type|error.code|error.type|availability.code|error.availability.code|headers.:exception-type");
}

// What was found is asked about dozens of times, so all lists are searched for at once, up
// to 64 of them in a group, when the first one of the group is asked for.
let known: i32 = 0; // a bit for each group below that has been searched for
let saysFirst: i64 = 0;
let saysMore: i64 = 0;
let tellsFirst: i64 = 0;
let tellsMore: i64 = 0;

/**
 * says searches the codes and types of an error: the words that programs read. The list is
 * written in the call, as utf8() of a literal; see listsOf().
 */
export function says(list: i32): bool {
  if (list < 64) {
    if ((known & 1) == 0) {
      saysFirst = saying(listsOf("says", 0));
      known |= 1;
    }
    return ((saysFirst >> list) & 1) != 0;
  }
  if ((known & 2) == 0) {
    saysMore = saying(listsOf("says", 1));
    known |= 2;
  }
  return ((saysMore >> (list - 64)) & 1) != 0;
}

function saying(lists: Text): i64 {
  let all: i64 = 0;
  if (!text) all = jsonMatches(found, utf8("code|type|status|reason|error_type|details.*.reason|innererror.code|metadata.error_type|metadata.limit_source|availability.code"), lists);
  if (beside) all |= jsonMatches(root, besides(), lists);
  if (amazon) all |= headerMatches(utf8("x-amzn-errortype"), lists);
  return all;
}

/** tells searches the sentences of an error: the words that people read. It is called as says() is. */
export function tells(list: i32): bool {
  if (list < 64) {
    if ((known & 4) == 0) {
      tellsFirst = telling(listsOf("tells", 0));
      known |= 4;
    }
    return ((tellsFirst >> list) & 1) != 0;
  }
  if ((known & 8) == 0) {
    tellsMore = telling(listsOf("tells", 1));
    known |= 8;
  }
  return ((tellsMore >> (list - 64)) & 1) != 0;
}

function telling(lists: Text): i64 {
  return jsonMatches(found, text ? utf8("") : utf8("message|Message|msg|status_msg|detail|detail.0.msg|message.detail|metadata.raw|title"), lists);
}

/** codeIs compares the error's code as a whole: for numbers, which stand in others. */
export function codeIs(words: Text): bool {
  return jsonIs(found, utf8("code|type|status_code"), words) || jsonIs(root, utf8("code"), words);
}

/** wait is what the wire tells to wait, in the corpus' order of trust, or -1. */
export function wait(): i64 {
  let ms = retryAfter();
  if (ms < 0) ms = jsonDuration(found, utf8("details.*.retryDelay|retry_after|estimated_time|metadata.retry_after|availability.retry_after"), AsValue);
  if (ms < 0) ms = jsonDuration(root, utf8("retry_after|estimated_time|error.availability.retry_after|availability.retry_after|error.metadata.headers.Retry-After"), AsValue);
  if (ms < 0) ms = jsonDuration(found, utf8("message|msg|detail|metadata.raw"), InText);
  if (ms < 0 && jsonKind(found, utf8("")) == Kind.String) ms = jsonDuration(found, utf8(""), InText);
  return ms;
}

/** resetWait is the time until the limit that was hit is full again, or -1. */
export function resetWait(tokens: bool, requests: bool): i64 {
  let ms: i64 = -1;
  if (tokens) {
    ms = headerDuration(utf8("x-ratelimit-reset-tokens"));
    if (ms < 0) ms = headerDuration(utf8("x-ratelimit-reset-tokens-minute"));
  } else if (requests) {
    ms = headerDuration(utf8("x-ratelimit-reset-requests"));
    if (ms < 0) ms = headerDuration(utf8("x-ratelimit-reset-requests-minute"));
  }
  if (ms < 0) ms = headerDuration(utf8("x-ratelimit-reset"));
  if (ms < 0) ms = jsonDuration(root, utf8("error.metadata.headers.X-RateLimit-Reset"), AsValue);
  return ms;
}
