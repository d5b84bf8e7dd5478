// The rules that hold for every provider, in the order of their weight: what was
// declared by an operator, money, long windows, what the request does wrong, what the
// provider lacks, the model, short limits, the key, and last the bare status. Codes come
// before words in each of them.

import { headerContains, Class, jsonAt, jsonIs, jsonKind, Kind, Scope, utf8 } from "./fourgate";
import { bare, code, codeIs, found, resetWait, root, says, tells, wait } from "./failure";
import { be, beFor } from "./result";

const hour: i64 = 3600000;

/** judge finds the verdict on the error that locate() found. */
export function judge(): bool {
  return operator() || region() || money() || longWindow() || tooLarge() || context() || content() ||
    tools() || loading() || capacity() || model() || rateLimit() || key() || client() || server() || byStatus();
}

/** operator: a gateway in the path refused by a rule that its operator set. */
function operator(): bool {
  if (says(utf8("guardrail_budget|budget_exceeded")) || tells(utf8("budget has been exceeded|guardrail budget"))) {
    return be(Class.Denied, Scope.Request, utf8("budget"));
  }
  if (tells(utf8("crossed tpm|max parallel request limit"))) return be(Class.Denied, Scope.Request, utf8("rate_limit"));
  if (says(utf8("model_access_denied|hooks_failed|guardrail")) ||
      tells(utf8("injection patterns|guardrail check|security configuration|not allowed to access model"))) {
    return be(Class.Denied, Scope.Request, utf8("policy"));
  }
  return false;
}

function region(): bool {
  return (says(utf8("unsupported_country|region_restricted")) ||
    tells(utf8("country, region|location is not supported|in your region|in your country|region is not supported"))) &&
    be(Class.KeyFault, Scope.Channel, utf8("region"));
}

/** money: no balance, unpaid, a spend cap, under whatever status. */
export function money(): bool {
  if (says(utf8("in_flight"))) return false; // a limit on what runs at once, though it speaks of budgets
  if (code == 402 || codeIs(utf8("1113|1008")) ||
      says(utf8("insufficient_quota|insufficient_user_quota|insufficient_balance|insufficient_funds|credit_balance|billing|" +
        "payment_required|arrearage|exceeded_current_quota|spend_limit|spending_limit")) ||
      tells(utf8("insufficient balance|insufficient credit|insufficient fund|insufficient quota|credit balance|" +
        "requires more credits|can only afford|available credits|included credits|spending limit|spend limit|" +
        "payment method|payment information|past invoices|past due|overdue payment|quota is not enough|" +
        "api usage limits|extra usage is required|credit limit exceeded|out of credits|in good standing|" +
        "outstanding balance|credits expired|balance is not enough|not enough balance|top up your|recharge your|余额不足|额度不足|欠费|充值")) ||
      (tells(utf8("exceeded your current quota")) && !says(utf8("resource_exhausted")))) {
    return be(Class.KeyFault, Scope.Key, utf8("billing"));
  }
  return false;
}

/** longWindow: a quota of many hours, which is as good as a dead key for now. */
function longWindow(): bool {
  if (code != 429 && !says(utf8("limit|quota|throttl"))) return false;
  if (codeIs(utf8("1308|1310|1316|1317")) || says(utf8("byday|bymonth")) ||
      tells(utf8("per day|per-day|/ day|/day|(tpd)|(rpd)|daily limit|daily quota|daily usage|per 86400s|per month|/ month|/month|" +
        "monthly limit|monthly token|monthly request|monthly quota|monthly usage|daily token|daily request|tpd rate|rpd rate|per week|weekly limit|weekly usage|weekly/monthly"))) {
    return beFor(Class.KeyFault, Scope.Key, utf8("rate_limit_key"), waitOrReset(false, false));
  }
  return false;
}

function waitOrReset(tokens: bool, requests: bool): i64 {
  const ms = wait();
  return ms >= 0 ? ms : resetWait(tokens, requests);
}

/** tooLarge: bytes, or one request above a whole window; waiting never helps. */
function tooLarge(): bool {
  return (says(utf8("request_too_large|tokens_limit_reached|payload_too_large")) ||
    tells(utf8("request too large|request body too large|exceeds the maximum size|payload too large|entity too large"))) &&
    be(Class.BadRequest, Scope.Request, utf8("payload_too_large"));
}

function context(): bool {
  return (says(utf8("context_length|exceed_context|context_window")) ||
    tells(utf8("maximum context|context length|context window|context size|prompt is too long|input is too long|" +
      "tokens in the prompt|reduce the length of|上下文长度|" +
      "token count*exceeds|max_new_tokens`*must be|too many input tokens"))) &&
    be(Class.BadRequest, Scope.Request, utf8("context_length"));
}

/** content: the provider refuses the input. */
function content(): bool {
  return (says(utf8("content_policy|content_filter|content_moderation|invalid_prompt|data_inspection|responsibleai|" +
      "moderation_|cyber_policy|bio_policy|safety_policy|usage_policy|sensitive_content")) ||
    tells(utf8("flagged|safety system|safety policy|safety reasons|content management policy|content policy|usage policy|" +
      "inappropriate content|unsafe request|new_sensitive|content exists risk|high risk|敏感|违规"))) &&
    be(Class.BadRequest, Scope.Request, utf8("content_policy"));
}

/** tools: the model wrote a tool call or JSON that the provider could not read. */
function tools(): bool {
  if (says(utf8("json_validate_failed"))) return be(Class.SchemaInvalid, Scope.Model, utf8("malformed_output"));
  return says(utf8("tool_use_failed|malformed_function_call")) &&
    be(Class.SchemaInvalid, Scope.Model, utf8("malformed_tool_call"));
}

function loading(): bool {
  if (tells(utf8("currently loading|is loading|is starting up|model is not ready|warming up|being loaded|cold start")) || says(utf8("modelnotready|model_loading|scaling_up|cold_start"))) {
    return beFor(Class.ProviderTransient, Scope.Model, utf8("model_loading"), wait());
  }
  return tells(utf8("loading model")) && be(Class.ProviderTransient, Scope.Channel, utf8("model_loading"));
}

/** capacity: the provider is full, 429 included. Whose fault it is, the words say. */
function capacity(): bool {
  if (!says(utf8("overloaded|no_capacity|nocapacity|capacity_e|queue_exceeded|model_capacity|server_busy|resource_unavailable")) &&
      !codeIs(utf8("3040|3505|1305|1312")) &&
      !tells(utf8("overloaded|no capacity|at capacity|capacity exceeded|capacity temporarily|over capacity|high demand|high traffic|" +
        "too busy|server busy|available model provider|no deployments available|no slot available|pending requests|more system memory|" +
        "enough resources|insufficient capacity|insufficient resources|degraded function|负载"))) {
    return false;
  }
  if (tells(utf8("rate limit exceeded:|rate limit reached for"))) return false; // a limit comes first, a word on demand after it
  let scope = Scope.Provider;
  if (tells(utf8("no deployments|no slot|server busy|pending requests"))) scope = Scope.Channel;
  else if (says(utf8("no_capacity|nocapacity|capacity_exhausted")) ||
      tells(utf8("model is|this model|for model|model requires|available model|capacity temporarily|is currently over capacity|degraded function"))) scope = Scope.Model;
  return beFor(Class.ProviderTransient, scope, utf8("overloaded"), wait());
}

/** model: this channel does not serve it, whatever the status says. */
function model(): bool {
  if (says(utf8("iam_permission_denied"))) return false; // it speaks of the model, too, to hide whether it is there
  if (says(utf8("brownout"))) return be(Class.BadModel, Scope.Provider, utf8("retired"));
  if (says(utf8("decommissioned|model_deprecated|model_retired")) ||
      tells(utf8("model*decommissioned|model*deprecated|model*end of life|model*been retired|marked by provider as legacy"))) {
    return be(Class.BadModel, Scope.Model, utf8("retired"));
  }
  if (tells(utf8("no endpoints found|no endpoints available|no available channel|无可用渠道|by any provider|no allowed providers"))) {
    return be(Class.BadModel, Scope.Model, utf8("no_endpoint"));
  }
  if (says(utf8("deploymentnotfound"))) return be(Class.BadModel, Scope.Model, utf8("not_deployed"));
  if (says(utf8("model_not_found|modelnotfound|invalid_model|unknown_model|model_not_supported")) || codeIs(utf8("1211|1214|5007")) ||
      tells(utf8("model*does not exist|model*not found|model*not exist|not found the model|unknown model|no such model|invalid model|not a valid model|" +
        "unsupported model|model is not supported|not a supported model|model is not available|模型不存在|" +
        "model identifier is invalid|function *not found for account")) ||
      (code == 404 && tells(utf8("model:|models/|model ")))) {
    return be(Class.BadModel, Scope.Model, tells(utf8("not have access to model")) ? utf8("no_access") : utf8("not_found"));
  }
  if (says(utf8("model_permission|model_terms")) || tells(utf8("无权访问模型|requires terms acceptance|access to model|access to the model|access to this model|to sample from this model|model access is denied|model*is blocked|be verified to"))) {
    return be(Class.BadModel, Scope.Model, utf8("no_access"));
  }
  return (says(utf8("operationnotsupported")) || tells(utf8("on-demand throughput|does not work with the specified model|not a chat model|not servable in"))) &&
    be(Class.BadModel, Scope.Model, utf8("not_supported"));
}

/** rateLimit: a limit of our account that waiting mends, unless the wait is long. */
export function rateLimit(): bool {
  if (code != 429 && !codeIs(utf8("1302|1303|1002|1039|1041")) &&
      !says(utf8("rate_limit|ratelimit|rate_limited|too_many_requests|throttl|limit_requests|resource_exhausted|quotaexceeded|in_flight")) &&
      !tells(utf8("rate limit|rate-limited|rate limited|too many requests|too many tokens|速率限制|请求过多|频率|并发"))) {
    return false;
  }
  if (says(utf8("shared_pool")) || tells(utf8("rate-limited upstream|shared pool"))) {
    return beFor(Class.RateLimited, Scope.Provider, utf8("shared_pool"), wait());
  }
  const tokens = says(utf8("token|allocationquota")) ||
    tells(utf8("tokens per|token rate|too many tokens|(tpm)|input tokens|output tokens|token limit|token quota|tpm limit"));
  const requests = says(utf8("limit_requests|request_rate|requests_per")) || codeIs(utf8("requests|1302|1002")) ||
    tells(utf8("requests per|(rpm)|request rate|call rate|too many requests|queries per|max request|requests rate|for requests|pace your|rpm limit|请求过多|频率"));
  const running = says(utf8("in_flight|concurren")) || tells(utf8("concurren|in-flight|parallel request|并发"));
  const reason = tokens ? utf8("tokens") : running ? utf8("concurrency") : requests ? utf8("requests") : utf8("unspecified");
  // A limit that belongs to one deployment, or a mere string from something in front of
  // the API, says nothing about the key.
  const scope = bare || headerContains(utf8("policy-id"), utf8("deployment")) || tells(utf8("pricing tier|exceeded token rate|call rate")) || jsonAt(root, utf8("statusCode")) >= 0 ? Scope.Channel : Scope.Key;
  const ms = waitOrReset(tokens, requests);
  if (ms > hour) return beFor(Class.KeyFault, scope, utf8("rate_limit_key"), ms);
  return beFor(Class.RateLimited, scope, reason, ms);
}

/** key: the credential or the account behind it. */
function key(): bool {
  if (tells(utf8("provide an api key|missing subscription key|missing authentication|no api key|missing api key|api key is required|no authorization header|unregistered callers"))) {
    return be(Class.KeyFault, Scope.Channel, utf8("invalid_credential"));
  }
  if (says(utf8("referrer_blocked|ip_address_blocked|app_blocked")) || tells(utf8("firewall|virtual network|temporarily blocked|request not allowed|ip address"))) {
    return (code == 401 || code == 403) && be(Class.KeyFault, Scope.Channel, utf8("permission"));
  }
  if (tells(utf8("insufficient permission|missing scopes|deactivated|suspended|has been disabled|has been restricted|not authorized to"))) {
    return be(Class.KeyFault, Scope.Key, utf8("permission"));
  }
  if (code == 401 || says(utf8("invalid_api_key|wrong_api_key|api_key_invalid|authentication_error|unauthenticated|expired_key|token_not_found|" +
        "expiredtoken|invalidsignature|unrecognizedclient")) || codeIs(utf8("1004|2049")) ||
      tells(utf8("invalid api key|incorrect api key|api key not valid|api key expired|api key*leaked|api key*invalid|api key is valid|invalid x-api-key|" +
        "invalid api token|wrong api key|authentication fail|authorization failed|token has expired|token*is expired|request signature|login fail"))) {
    return be(Class.KeyFault, bare && jsonIs(found, utf8(""), utf8("unauthorized")) ? Scope.Channel : Scope.Key, utf8("invalid_credential"));
  }
  if (says(utf8("permission_error|permission_denied|accessdenied|consumer_suspended|request_forbidden")) || code == 403) {
    return be(Class.KeyFault, Scope.Key, utf8("permission"));
  }
  return false;
}

/** client: the caller's request is at fault. */
function client(): bool {
  if (code >= 500 && code != 501) return false;
  if (says(utf8("unsupported_parameter|unsupported_value|extra_forbidden|not_supported_error")) ||
      tells(utf8("unsupported parameter|unsupported value|extra inputs|unknown name|unknown field|unknown parameter|cannot find field|" +
        "does not support|not supported with this model|unrecognized request argument|unexpected keyword"))) {
    return be(Class.BadRequest, Scope.Request, utf8("unsupported_parameter"));
  }
  if (code == 413) return be(Class.BadRequest, Scope.Request, utf8("payload_too_large"));
  if (code == 408 || code == 499) return false;
  if (code == 422 || says(utf8("invalid_request|invalid_argument|invalid_image|invalid_message|badrequest|bad_request|validation|missing_required|bad request|wrong_api_format|not_found_error|failed_precondition")) ||
      tells(utf8("invalid request|invalid param|invalid argument|missing required|field required"))) {
    return be(Class.BadRequest, Scope.Request, utf8("invalid_request"));
  }
  return false;
}

/** server: the provider or the way to it is in trouble. */
function server(): bool {
  if (code == 408 || code == 504 || code == 524 || says(utf8("timeout|deadline_exceeded")) ||
      (code != 400 && tells(utf8("timed out|timeout|deadline expired")))) {
    const scope = says(utf8("modeltimeout")) ? Scope.Model : bare ? Scope.Channel : Scope.Provider;
    return beFor(Class.ProviderTransient, scope, utf8("timeout"), wait());
  }
  const own = tells(utf8("cuda|enginecore|running the model|out of memory|incomplete generation")) || says(utf8("generation"));
  if (own || code >= 499 || says(utf8("server_error|api_error|internal|unavailable|modelstreamerror|cancelled")) || tells(utf8("upstream connect|server error"))) {
    const reason = code == 503 || code == 529 || says(utf8("unavailable")) ? utf8("overloaded") : utf8("server_error");
    return beFor(Class.ProviderTransient, own || bare ? Scope.Channel : says(utf8("modelstreamerror")) ? Scope.Model : Scope.Provider, reason, wait());
  }
  return false;
}

/** byStatus: nothing was said that a rule knows. */
function byStatus(): bool {
  if (code == 410) return be(Class.BadModel, Scope.Model, utf8("retired"));
  if (code == 400 && !bare && (jsonKind(found, utf8("message")) == Kind.String || jsonAt(root, utf8("code")) >= 0)) {
    return be(Class.BadRequest, Scope.Request, utf8("invalid_request"));
  }
  return be(Class.Unknown, code == 404 || code == 405 ? Scope.Channel : Scope.Request, utf8("unrecognized"));
}
