//! The functions of Fourgate's classifier ABI, version 1, for Rust without its standard
//! library. The page "Classifier plugins" of Fourgate's manual explains each.
//!
//! Use it as a module of a `#![no_std]` crate of the type `cdylib`:
//!
//! ```ignore
//! #![no_std]
//! mod fourgate;
//! use fourgate::{answer, Class, Scope};
//!
//! #[no_mangle]
//! pub extern "C" fn classify() {
//!     answer(Class::Unknown, Scope::Request, "unrecognized", None);
//! }
//! ```
//!
//! Indexing, formatting and unwrapping bring panics and their texts into the module: a
//! panic is a trap, and the failure is unknown then.
#![allow(dead_code)]

/// What kind of failure it was.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Class {
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
    Ok = 12,
}

/// What is to blame.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Scope {
    None = 0,
    Request = 1,
    Key = 2,
    Model = 3,
    Channel = 4,
    Provider = 5,
}

/// How far the attempt had come. Numbers that a later host may add read as the first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    BeforeHeaders,
    BeforeOutput,
    AfterOutput,
}

/// How the upstream answered: not at all, with a whole body, with frames.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Network,
    Http,
    Sse,
}

/// The ways to read a duration: the whole text is one, or there is one in a sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum How {
    Value = 0,
    InText = 1,
}

/// The document that the failure is in: the body, or the last telling frame's data. A
/// frame's number or what [`json_at`] gave are documents, too.
pub const FAILING: i32 = -1;

/// Bits of [`flags`].
pub const STREAM: i32 = 1;
pub const CALLER_GONE: i32 = 2;
pub const NOT_STARTED: i32 = 4;

mod raw {
    #[link(wasm_import_module = "fourgate")]
    extern "C" {
        pub fn status() -> i32;
        pub fn endpoint() -> i32;
        pub fn phase() -> i32;
        pub fn transport() -> i32;
        pub fn body_end() -> i32;
        pub fn net_kind() -> i32;
        pub fn net_op() -> i32;
        pub fn flags() -> i32;
        pub fn model(buf: *mut u8, size: usize) -> i32;
        pub fn names_model(doc: i32, path: *const u8, len: usize) -> i32;
        pub fn header(name: *const u8, len: usize, buf: *mut u8, size: usize) -> i32;
        pub fn header_contains(name: *const u8, len: usize, phrases: *const u8, plen: usize) -> i32;
        pub fn header_matches(name: *const u8, len: usize, lists: *const u8, llen: usize) -> i64;
        pub fn header_duration(name: *const u8, len: usize, how: i32) -> i64;
        pub fn retry_after() -> i64;
        pub fn body(offset: i32, buf: *mut u8, size: usize) -> i32;
        pub fn frame_count() -> i32;
        pub fn frame(frame: i32, offset: i32, buf: *mut u8, size: usize) -> i32;
        pub fn contains(doc: i32, phrases: *const u8, len: usize) -> i32;
        pub fn json_state(doc: i32) -> i32;
        pub fn json_at(doc: i32, path: *const u8, len: usize) -> i32;
        pub fn json_kind(doc: i32, path: *const u8, len: usize) -> i32;
        pub fn json(doc: i32, path: *const u8, len: usize, buf: *mut u8, size: usize) -> i32;
        pub fn json_int(doc: i32, path: *const u8, len: usize) -> i64;
        pub fn json_is(doc: i32, path: *const u8, len: usize, words: *const u8, wlen: usize) -> i32;
        pub fn json_contains(doc: i32, path: *const u8, len: usize, phrases: *const u8, plen: usize) -> i32;
        pub fn json_matches(doc: i32, path: *const u8, len: usize, lists: *const u8, llen: usize) -> i64;
        pub fn json_duration(doc: i32, path: *const u8, len: usize, how: i32) -> i64;
        pub fn verdict(class: i32, scope: i32, reason: *const u8, len: usize, retry_after_ms: i64);
    }
}

fn length(n: i32) -> Option<usize> {
    if n < 0 { None } else { Some(n as usize) }
}

fn wait(ms: i64) -> Option<i64> {
    if ms < 0 { None } else { Some(ms) }
}

/// The HTTP status, 0 if there was no response.
pub fn status() -> i32 { unsafe { raw::status() } }
/// The endpoint's number, 0 for one that callers can't speak.
pub fn endpoint() -> i32 { unsafe { raw::endpoint() } }
/// How far the attempt had come.
pub fn phase() -> Phase {
    match unsafe { raw::phase() } {
        1 => Phase::BeforeOutput,
        2 => Phase::AfterOutput,
        _ => Phase::BeforeHeaders,
    }
}
/// How the upstream answered.
pub fn transport() -> Transport {
    match unsafe { raw::transport() } {
        1 => Transport::Http,
        2 => Transport::Sse,
        _ => Transport::Network,
    }
}
/// How the body ended: 0 in order, 1 reset, 2 silence, 3 cancelled.
pub fn body_end() -> i32 { unsafe { raw::body_end() } }
/// The number of the network error's kind, 0 for none.
pub fn net_kind() -> i32 { unsafe { raw::net_kind() } }
/// The number of the operation that it interrupted, 0 for none.
pub fn net_op() -> i32 { unsafe { raw::net_op() } }
/// The bits [`STREAM`], [`CALLER_GONE`] and [`NOT_STARTED`].
pub fn flags() -> i32 { unsafe { raw::flags() } }
/// Writes as much of the contract's model as fits and returns its true length.
pub fn model(buf: &mut [u8]) -> Option<usize> { length(unsafe { raw::model(buf.as_mut_ptr(), buf.len()) }) }
/// Whether the value names the contract's model; None if one of them is not known.
pub fn names_model(doc: i32, path: &str) -> Option<bool> {
    length(unsafe { raw::names_model(doc, path.as_ptr(), path.len()) }).map(|n| n == 1)
}
/// Writes as much of a header's first value as fits and returns its true length.
pub fn header(name: &str, buf: &mut [u8]) -> Option<usize> {
    length(unsafe { raw::header(name.as_ptr(), name.len(), buf.as_mut_ptr(), buf.len()) })
}
/// The number of the first phrase of `a|b|c` that a header's value has.
pub fn header_contains(name: &str, phrases: &str) -> Option<usize> {
    length(unsafe { raw::header_contains(name.as_ptr(), name.len(), phrases.as_ptr(), phrases.len()) })
}
/// A bit for each list of phrases, one a line, of which a header's value has one.
pub fn header_matches(name: &str, lists: &str) -> u64 {
    unsafe { raw::header_matches(name.as_ptr(), name.len(), lists.as_ptr(), lists.len()) as u64 }
}
/// A header read as a wait in milliseconds.
pub fn header_duration(name: &str, how: How) -> Option<i64> {
    wait(unsafe { raw::header_duration(name.as_ptr(), name.len(), how as i32) })
}
/// The wait in milliseconds that the headers ask for.
pub fn retry_after() -> Option<i64> { wait(unsafe { raw::retry_after() }) }
/// Writes as much of the body from an offset as fits; returns how much there is.
pub fn body(offset: i32, buf: &mut [u8]) -> Option<usize> {
    length(unsafe { raw::body(offset, buf.as_mut_ptr(), buf.len()) })
}
/// How many frames there are.
pub fn frame_count() -> i32 { unsafe { raw::frame_count() } }
/// Writes as much of a raw frame from an offset as fits; returns how much there is.
pub fn frame(frame: i32, offset: i32, buf: &mut [u8]) -> Option<usize> {
    length(unsafe { raw::frame(frame, offset, buf.as_mut_ptr(), buf.len()) })
}
/// The number of the first phrase that a document's text has.
pub fn contains(doc: i32, phrases: &str) -> Option<usize> {
    length(unsafe { raw::contains(doc, phrases.as_ptr(), phrases.len()) })
}
/// 0 no JSON object or array, 1 whole, 2 cut, 3 wrong, 4 too long to be judged.
pub fn json_state(doc: i32) -> i32 { unsafe { raw::json_state(doc) } }
/// A handle of the value at a path, to be used as a document.
pub fn json_at(doc: i32, path: &str) -> Option<i32> {
    length(unsafe { raw::json_at(doc, path.as_ptr(), path.len()) }).map(|n| n as i32)
}
/// 0 null, 1 false, 2 true, 3 number, 4 string, 5 array, 6 object.
pub fn json_kind(doc: i32, path: &str) -> Option<usize> {
    length(unsafe { raw::json_kind(doc, path.as_ptr(), path.len()) })
}
/// Writes as much of a value's text as fits and returns its true length.
pub fn json(doc: i32, path: &str, buf: &mut [u8]) -> Option<usize> {
    length(unsafe { raw::json(doc, path.as_ptr(), path.len(), buf.as_mut_ptr(), buf.len()) })
}
/// A whole number, also one inside a string.
pub fn json_int(doc: i32, path: &str) -> Option<i64> {
    match unsafe { raw::json_int(doc, path.as_ptr(), path.len()) } {
        i64::MIN => None,
        n => Some(n),
    }
}
/// The number of the first word of `a|b|c` that one of the values is.
pub fn json_is(doc: i32, path: &str, words: &str) -> Option<usize> {
    length(unsafe { raw::json_is(doc, path.as_ptr(), path.len(), words.as_ptr(), words.len()) })
}
/// The number of the first phrase that one of the values has.
pub fn json_contains(doc: i32, path: &str, phrases: &str) -> Option<usize> {
    length(unsafe { raw::json_contains(doc, path.as_ptr(), path.len(), phrases.as_ptr(), phrases.len()) })
}
/// A bit for each list of phrases, one a line, of which one of the values has one.
pub fn json_matches(doc: i32, path: &str, lists: &str) -> u64 {
    unsafe { raw::json_matches(doc, path.as_ptr(), path.len(), lists.as_ptr(), lists.len()) as u64 }
}
/// A value read as a wait in milliseconds.
pub fn json_duration(doc: i32, path: &str, how: How) -> Option<i64> {
    wait(unsafe { raw::json_duration(doc, path.as_ptr(), path.len(), how as i32) })
}
/// Gives the verdict; call it exactly once. The reason has 1 to 64 bytes of `a-z0-9_`.
pub fn answer(class: Class, scope: Scope, reason: &str, retry_after_ms: Option<i64>) {
    let ms = retry_after_ms.unwrap_or(-1);
    unsafe { raw::verdict(class as i32, scope as i32, reason.as_ptr(), reason.len(), ms) }
}

/// Says for which version of the ABI the module was built.
#[no_mangle]
pub extern "C" fn fourgate_abi_1() {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
