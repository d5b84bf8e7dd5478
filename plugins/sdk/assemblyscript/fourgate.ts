// The functions of the classifier ABI, version 1, as AssemblyScript sees them.
// docs/plugins.md explains each; nothing here decides anything.
//
// A Text is the place of a piece of static text: two bytes of length, then UTF-8. Write
// it as utf8("..."): build.mjs puts the texts into one table, so a classifier holds no
// strings, allocates nothing and needs no runtime.

export type Text = usize;

/** utf8 never runs: build.mjs replaces each call by the text's place in the table. */
// @ts-ignore: decorator
@inline export function utf8(_text: string): Text { return 0; }

const texts: usize = utf8Table();

/**
 * listsOf is the text of all lists that are passed to the function of the given name, one
 * a line; like utf8(), it never runs. build.mjs collects them: where a call says
 * name(utf8("...")), the list's number takes its place.
 */
// @ts-ignore: decorator
@inline export function listsOf(_name: string, _group: i32): Text { return 0; }

// @ts-ignore: decorator
@inline function at(t: Text): usize { return texts + t + 2; }
// @ts-ignore: decorator
@inline function size(t: Text): u32 { return load<u16>(texts + t); }

export const enum Class {
  Unknown = 0,
  KeyFault = 1,
  RateLimited = 2,
  ProviderTransient = 3,
  BadModel = 4,
  BadRequest = 5,
  Denied = 6,
  SchemaInvalid = 7,
  ContractViolation = 8,
  Refusal = 9,
  Cancelled = 10,
  Partial = 11,
  OK = 12,
}

export const enum Scope {
  None = 0,
  Request = 1,
  Key = 2,
  Model = 3,
  Channel = 4,
  Provider = 5,
}

export const enum Endpoint {
  OpenAIChat = 1,
  OpenAIResponses = 2,
  OpenAICompletions = 3,
  OpenAIEmbeddings = 4,
  OpenAIImages = 5,
  OpenAIAudio = 6,
  AnthropicMessages = 7,
  GeminiGenerate = 8,
}

export const enum Phase {
  BeforeHeaders = 0,
  BeforeOutput = 1,
  AfterOutput = 2,
}

export const enum Transport {
  Network = 0,
  HTTP = 1,
  SSE = 2,
}

export const enum End {
  EOF = 0,
  Reset = 1,
  Idle = 2,
  Cancelled = 3,
}

export const enum Net {
  None = 0,
  TLSVerify = 8,
  TLSNotTLS = 9,
  HeaderTimeout = 10,
  DeadlineExceeded = 11,
  ContextCanceled = 12,
  IdleTimeout = 19,
}

export const enum Flag {
  Stream = 1,
  CallerGone = 2,
  NotStarted = 4,
}

export const enum Kind {
  Absent = -1,
  Null = 0,
  False = 1,
  True = 2,
  Number = 3,
  String = 4,
  Array = 5,
  Object = 6,
}

export const enum State {
  None = 0,
  Complete = 1,
  Truncated = 2,
  Bad = 3,
  Unjudged = 4,
}

/** The document that the failure is in: the body, or the last telling frame's data. */
export const Failing: i32 = -1;
/** What jsonInt answers when there is no whole number. */
export const NoInt: i64 = i64.MIN_VALUE;
/** Ways to read a duration. */
export const AsValue: i32 = 0;
export const InText: i32 = 1;

// @ts-ignore: decorator
@external("fourgate", "status") export declare function status(): i32;
// @ts-ignore: decorator
@external("fourgate", "endpoint") export declare function endpoint(): i32;
// @ts-ignore: decorator
@external("fourgate", "phase") export declare function phase(): i32;
// @ts-ignore: decorator
@external("fourgate", "transport") export declare function transport(): i32;
// @ts-ignore: decorator
@external("fourgate", "body_end") export declare function bodyEnd(): i32;
// @ts-ignore: decorator
@external("fourgate", "net_kind") export declare function netKind(): i32;
// @ts-ignore: decorator
@external("fourgate", "net_op") export declare function netOp(): i32;
// @ts-ignore: decorator
@external("fourgate", "flags") export declare function flags(): i32;
// @ts-ignore: decorator
@external("fourgate", "retry_after") export declare function retryAfter(): i64;
// @ts-ignore: decorator
@external("fourgate", "frame_count") export declare function frameCount(): i32;
// @ts-ignore: decorator
@external("fourgate", "json_state") export declare function jsonState(doc: i32): i32;

// @ts-ignore: decorator
@external("fourgate", "names_model") declare function names_model(doc: i32, path: usize, pathLen: u32): i32;
// @ts-ignore: decorator
@external("fourgate", "header_contains") declare function header_contains(name: usize, nameLen: u32, text: usize, textLen: u32): i32;
// @ts-ignore: decorator
@external("fourgate", "header_matches") declare function header_matches(name: usize, nameLen: u32, lists: usize, listsLen: u32): i64;
// @ts-ignore: decorator
@external("fourgate", "header_duration") declare function header_duration(name: usize, nameLen: u32, how: i32): i64;
// @ts-ignore: decorator
@external("fourgate", "contains") declare function contains_(doc: i32, text: usize, textLen: u32): i32;
// @ts-ignore: decorator
@external("fourgate", "json_at") declare function json_at(doc: i32, path: usize, pathLen: u32): i32;
// @ts-ignore: decorator
@external("fourgate", "json_kind") declare function json_kind(doc: i32, path: usize, pathLen: u32): i32;
// @ts-ignore: decorator
@external("fourgate", "json_int") declare function json_int(doc: i32, path: usize, pathLen: u32): i64;
// @ts-ignore: decorator
@external("fourgate", "json_is") declare function json_is(doc: i32, path: usize, pathLen: u32, text: usize, textLen: u32): i32;
// @ts-ignore: decorator
@external("fourgate", "json_contains") declare function json_contains(doc: i32, path: usize, pathLen: u32, text: usize, textLen: u32): i32;
// @ts-ignore: decorator
@external("fourgate", "json_matches") declare function json_matches(doc: i32, path: usize, pathLen: u32, lists: usize, listsLen: u32): i64;
// @ts-ignore: decorator
@external("fourgate", "json_duration") declare function json_duration(doc: i32, path: usize, pathLen: u32, how: i32): i64;
// @ts-ignore: decorator
@external("fourgate", "verdict") declare function verdict_(klass: i32, scope: i32, reason: usize, reasonLen: u32, retryAfterMs: i64): void;

/** namesModel: 1 if the value names the contract's model, 0 if another, -1 if unknown. */
export function namesModel(doc: i32, path: Text): i32 { return names_model(doc, at(path), size(path)); }
/** headerContains says whether a header's value has one of the phrases. */
export function headerContains(name: Text, phrases: Text): bool { return header_contains(at(name), size(name), at(phrases), size(phrases)) >= 0; }
/** headerDuration reads a header as a wait in milliseconds, -1 if there is none. */
export function headerDuration(name: Text): i64 { return header_duration(at(name), size(name), AsValue); }
/** contains searches a document's text as it stands. */
export function contains(doc: i32, phrases: Text): bool { return contains_(doc, at(phrases), size(phrases)) >= 0; }
/** jsonAt returns a handle of the first value that is there and not null, or -1. */
export function jsonAt(doc: i32, path: Text): i32 { return json_at(doc, at(path), size(path)); }
/** jsonKind returns a value's Kind. */
export function jsonKind(doc: i32, path: Text): i32 { return json_kind(doc, at(path), size(path)); }
/** jsonInt returns a whole number, also one inside a string, or NoInt. */
export function jsonInt(doc: i32, path: Text): i64 { return json_int(doc, at(path), size(path)); }
/** jsonIs says whether one of the values equals one of the words. */
export function jsonIs(doc: i32, path: Text, words: Text): bool { return json_is(doc, at(path), size(path), at(words), size(words)) >= 0; }
/** jsonContains says whether one of the values has one of the phrases. */
export function jsonContains(doc: i32, path: Text, phrases: Text): bool { return json_contains(doc, at(path), size(path), at(phrases), size(phrases)) >= 0; }
/** jsonMatches returns a bit for each list, one a line, of which a phrase is in one of the values. */
export function jsonMatches(doc: i32, path: Text, lists: Text): i64 { return json_matches(doc, at(path), size(path), at(lists), size(lists)); }
/** headerMatches does the same with a header's value. */
export function headerMatches(name: Text, lists: Text): i64 { return header_matches(at(name), size(name), at(lists), size(lists)); }
/** jsonDuration reads a value as a wait in milliseconds, -1 if there is none. */
export function jsonDuration(doc: i32, path: Text, how: i32): i64 { return json_duration(doc, at(path), size(path), how); }
/** answer gives the verdict; call it exactly once. retryAfterMs is -1 for none. */
export function answer(klass: i32, scope: i32, reason: Text, retryAfterMs: i64): void { verdict_(klass, scope, at(reason), size(reason), retryAfterMs); }
