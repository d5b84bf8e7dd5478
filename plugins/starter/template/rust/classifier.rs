#![no_std]

mod fourgate;

use fourgate::{answer, json_contains, retry_after, status, transport, Class, Scope, Transport, FAILING};

/// says searches the members in which this provider names what went wrong.
fn says(words: &str) -> bool {
    json_contains(FAILING, "error.code|error.type", words).is_some()
}

/// classify is called once for each failure. Codes say more than statuses: ask for them
/// first, and leave what you don't recognise unknown.
#[no_mangle]
pub extern "C" fn classify() {
    if transport() == Transport::Network {
        answer(Class::ProviderTransient, Scope::Channel, "network", None);
    } else if says("out_of_tokens|insufficient_quota") {
        answer(Class::KeyFault, Scope::Key, "billing", None);
    } else if says("model_not_found") {
        answer(Class::BadModel, Scope::Model, "not_found", None);
    } else if says("context_length") {
        answer(Class::BadRequest, Scope::Request, "context_length", None);
    } else {
        match status() {
            401 => answer(Class::KeyFault, Scope::Key, "invalid_credential", None),
            429 => answer(Class::RateLimited, Scope::Key, "requests", retry_after()),
            503 => answer(Class::ProviderTransient, Scope::Channel, "overloaded", retry_after()),
            _ => answer(Class::Unknown, Scope::Request, "unrecognized", None),
        }
    }
}
