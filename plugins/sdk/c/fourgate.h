/* The functions of Fourgate's classifier ABI, version 1, for C and C++. The page
 * "Classifier plugins" of Fourgate's manual explains each. Nothing here needs a library.
 *
 * A module exports classify, says for which ABI it was built, and answers once:
 *
 *     #include "fourgate.h"
 *     FG_CLASSIFIER {
 *         if (fg_json_contains(FG_FAILING, "error.code", "insufficient_quota"))
 *             fg_answer(FG_KEY_FAULT, FG_SCOPE_KEY, "billing", FG_NO_WAIT);
 *         else
 *             fg_answer(FG_UNKNOWN, FG_SCOPE_REQUEST, "unrecognized", FG_NO_WAIT);
 *     }
 *
 * Texts that are named in a call (paths, names, phrases, reasons) are string literals, so
 * that their lengths are known to the compiler.
 */
#ifndef FOURGATE_H
#define FOURGATE_H

#include <stdint.h>

#ifdef __cplusplus
#define FG_C extern "C"
#else
#define FG_C extern
#endif

#define FG_EXPORT(name) FG_C __attribute__((export_name(#name), visibility("default")))
#define FG_IMPORT(name) FG_C __attribute__((import_module("fourgate"), import_name(#name)))

/* FG_CLASSIFIER begins the function that is called once for each failure. */
#define FG_CLASSIFIER                                  \
    FG_EXPORT(fourgate_abi_1) void fourgate_abi_1(void); \
    void fourgate_abi_1(void) {}                       \
    FG_EXPORT(classify) void classify(void);           \
    void classify(void)

typedef enum {
    FG_UNKNOWN = 0,
    FG_KEY_FAULT = 1,
    FG_RATE_LIMITED = 2,
    FG_PROVIDER_TRANSIENT = 3,
    FG_BAD_MODEL = 4,
    FG_BAD_REQUEST = 5,
    FG_DENIED = 6,
    FG_SCHEMA_INVALID = 7,
    FG_CONTRACT_VIOLATION = 8,
    FG_REFUSAL = 9,
    FG_CANCELLED = 10,
    FG_PARTIAL = 11,
    FG_OK = 12
} fg_class;

typedef enum {
    FG_SCOPE_NONE = 0,
    FG_SCOPE_REQUEST = 1,
    FG_SCOPE_KEY = 2,
    FG_SCOPE_MODEL = 3,
    FG_SCOPE_CHANNEL = 4,
    FG_SCOPE_PROVIDER = 5
} fg_scope;

enum { FG_BEFORE_HEADERS = 0, FG_BEFORE_OUTPUT = 1, FG_AFTER_OUTPUT = 2 };         /* fg_phase */
enum { FG_NETWORK = 0, FG_HTTP = 1, FG_SSE = 2 };                                  /* fg_transport */
enum { FG_END_EOF = 0, FG_END_RESET = 1, FG_END_IDLE = 2, FG_END_CANCELLED = 3 };  /* fg_body_end */
enum { FG_STREAM = 1, FG_CALLER_GONE = 2, FG_NOT_STARTED = 4 };                    /* bits of fg_flags */
enum { FG_JSON_NONE = 0, FG_JSON_WHOLE = 1, FG_JSON_CUT = 2, FG_JSON_BAD = 3, FG_JSON_LONG = 4 }; /* fg_json_state */
enum { FG_AS_VALUE = 0, FG_IN_TEXT = 1 };                                          /* ways to read a duration */

/* The document that the failure is in: the body, or the last telling frame's data. */
#define FG_FAILING (-1)
/* No wait, in milliseconds. */
#define FG_NO_WAIT ((int64_t)-1)
/* What fg_json_int answers when there is no whole number. */
#define FG_NO_INT INT64_MIN

FG_IMPORT(status) int32_t fg_status(void);
FG_IMPORT(endpoint) int32_t fg_endpoint(void);
FG_IMPORT(phase) int32_t fg_phase(void);
FG_IMPORT(transport) int32_t fg_transport(void);
FG_IMPORT(body_end) int32_t fg_body_end(void);
FG_IMPORT(net_kind) int32_t fg_net_kind(void);
FG_IMPORT(net_op) int32_t fg_net_op(void);
FG_IMPORT(flags) int32_t fg_flags(void);
FG_IMPORT(retry_after) int64_t fg_retry_after(void);
FG_IMPORT(frame_count) int32_t fg_frame_count(void);
FG_IMPORT(json_state) int32_t fg_json_state(int32_t doc);

/* These give a text: as much as fits into the buffer, and its true length; -1 for none. */
FG_IMPORT(model) int32_t fg_model(char *buf, uint32_t size);
FG_IMPORT(body) int32_t fg_body(uint32_t offset, char *buf, uint32_t size);
FG_IMPORT(frame) int32_t fg_frame(int32_t frame, uint32_t offset, char *buf, uint32_t size);

FG_IMPORT(header) int32_t fg_raw_header(const char *, uint32_t, char *, uint32_t);
FG_IMPORT(header_contains) int32_t fg_raw_header_contains(const char *, uint32_t, const char *, uint32_t);
FG_IMPORT(header_matches) int64_t fg_raw_header_matches(const char *, uint32_t, const char *, uint32_t);
FG_IMPORT(header_duration) int64_t fg_raw_header_duration(const char *, uint32_t, int32_t);
FG_IMPORT(names_model) int32_t fg_raw_names_model(int32_t, const char *, uint32_t);
FG_IMPORT(contains) int32_t fg_raw_contains(int32_t, const char *, uint32_t);
FG_IMPORT(json_at) int32_t fg_raw_json_at(int32_t, const char *, uint32_t);
FG_IMPORT(json_kind) int32_t fg_raw_json_kind(int32_t, const char *, uint32_t);
FG_IMPORT(json) int32_t fg_raw_json(int32_t, const char *, uint32_t, char *, uint32_t);
FG_IMPORT(json_int) int64_t fg_raw_json_int(int32_t, const char *, uint32_t);
FG_IMPORT(json_is) int32_t fg_raw_json_is(int32_t, const char *, uint32_t, const char *, uint32_t);
FG_IMPORT(json_contains) int32_t fg_raw_json_contains(int32_t, const char *, uint32_t, const char *, uint32_t);
FG_IMPORT(json_matches) int64_t fg_raw_json_matches(int32_t, const char *, uint32_t, const char *, uint32_t);
FG_IMPORT(json_duration) int64_t fg_raw_json_duration(int32_t, const char *, uint32_t, int32_t);
FG_IMPORT(verdict) void fg_raw_verdict(int32_t, int32_t, const char *, uint32_t, int64_t);

/* A literal and its length; anything but a literal doesn't compile. */
#define FG_TEXT(s) "" s, (uint32_t)(sizeof("" s) - 1)

/* A header's first value, as a text. */
#define fg_header(name, buf, size) fg_raw_header(FG_TEXT(name), buf, size)
/* Whether a header's value has one of the phrases "a|b|c". */
#define fg_header_contains(name, phrases) (fg_raw_header_contains(FG_TEXT(name), FG_TEXT(phrases)) >= 0)
/* A header read as a wait in milliseconds, or FG_NO_WAIT. */
#define fg_header_duration(name, how) fg_raw_header_duration(FG_TEXT(name), how)
/* 1 if the value names the contract's model, 0 if another, -1 if that is not known. */
#define fg_names_model(doc, path) fg_raw_names_model(doc, FG_TEXT(path))
/* Whether a document's text has one of the phrases. */
#define fg_contains(doc, phrases) (fg_raw_contains(doc, FG_TEXT(phrases)) >= 0)
/* A handle of the value at a path, to be used as a document; -1 for none. */
#define fg_json_at(doc, path) fg_raw_json_at(doc, FG_TEXT(path))
/* 0 null, 1 false, 2 true, 3 number, 4 string, 5 array, 6 object; -1 for none. */
#define fg_json_kind(doc, path) fg_raw_json_kind(doc, FG_TEXT(path))
/* A value as a text. */
#define fg_json(doc, path, buf, size) fg_raw_json(doc, FG_TEXT(path), buf, size)
/* A whole number, also one inside a string, or FG_NO_INT. */
#define fg_json_int(doc, path) fg_raw_json_int(doc, FG_TEXT(path))
/* Whether one of the values is one of the words "a|b|c". */
#define fg_json_is(doc, path, words) (fg_raw_json_is(doc, FG_TEXT(path), FG_TEXT(words)) >= 0)
/* Whether one of the values has one of the phrases. */
#define fg_json_contains(doc, path, phrases) (fg_raw_json_contains(doc, FG_TEXT(path), FG_TEXT(phrases)) >= 0)
/* A bit for each list of phrases, one a line ("a|b\nc|d"), of which a value has one. */
#define fg_json_matches(doc, path, lists) fg_raw_json_matches(doc, FG_TEXT(path), FG_TEXT(lists))
/* The same of a header's value. */
#define fg_header_matches(name, lists) fg_raw_header_matches(FG_TEXT(name), FG_TEXT(lists))
/* A value read as a wait in milliseconds, or FG_NO_WAIT. */
#define fg_json_duration(doc, path, how) fg_raw_json_duration(doc, FG_TEXT(path), how)
/* The verdict; give it exactly once. */
#define fg_answer(klass, scope, reason, retry_after_ms) fg_raw_verdict(klass, scope, FG_TEXT(reason), retry_after_ms)

#endif
