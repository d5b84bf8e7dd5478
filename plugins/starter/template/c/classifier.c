#include "fourgate.h"

/* The members in which this provider names what went wrong. */
#define CODES "error.code|error.type"

/* classify is called once for each failure. Codes say more than statuses: ask for them
 * first, and leave what you don't recognise unknown. */
FG_CLASSIFIER {
    if (fg_transport() == FG_NETWORK)
        fg_answer(FG_PROVIDER_TRANSIENT, FG_SCOPE_CHANNEL, "network", FG_NO_WAIT);
    else if (fg_json_contains(FG_FAILING, CODES, "out_of_tokens|insufficient_quota"))
        fg_answer(FG_KEY_FAULT, FG_SCOPE_KEY, "billing", FG_NO_WAIT);
    else if (fg_json_contains(FG_FAILING, CODES, "model_not_found"))
        fg_answer(FG_BAD_MODEL, FG_SCOPE_MODEL, "not_found", FG_NO_WAIT);
    else if (fg_json_contains(FG_FAILING, CODES, "context_length"))
        fg_answer(FG_BAD_REQUEST, FG_SCOPE_REQUEST, "context_length", FG_NO_WAIT);
    else if (fg_status() == 401)
        fg_answer(FG_KEY_FAULT, FG_SCOPE_KEY, "invalid_credential", FG_NO_WAIT);
    else if (fg_status() == 429)
        fg_answer(FG_RATE_LIMITED, FG_SCOPE_KEY, "requests", fg_retry_after());
    else if (fg_status() == 503)
        fg_answer(FG_PROVIDER_TRANSIENT, FG_SCOPE_CHANNEL, "overloaded", fg_retry_after());
    else
        fg_answer(FG_UNKNOWN, FG_SCOPE_REQUEST, "unrecognized", FG_NO_WAIT);
}
