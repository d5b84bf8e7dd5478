// Gemini's API and Vertex AI: google.rpc.Status with its typed details.

import { AsValue, Class, jsonContains, jsonDuration, Scope, utf8 } from "../../sdk/assemblyscript/fourgate";
import { found, says, tells, wait } from "../../sdk/assemblyscript/failure";
import { settled } from "../../sdk/assemblyscript/classify";
import { be, beFor, give } from "../../sdk/assemblyscript/result";
import { judge } from "../../sdk/assemblyscript/rules";

export const fourgate_abi_1: i32 = 1;

export function classify(): void {
  if (!settled() && !quota()) judge();
  give();
}

/** quota reads the limit that was hit from the name of the quota. */
function quota(): bool {
  if (!says(utf8("resource_exhausted"))) return false;
  if (tells(utf8("limit: 0,"))) return be(Class.BadModel, Scope.Model, utf8("no_access"));
  if (tells(utf8("resource exhausted. please try again"))) return beFor(Class.RateLimited, Scope.Provider, utf8("shared_pool"), wait());
  const id = utf8("details.*.violations.0.quotaId");
  if (jsonContains(found, id, utf8("perday"))) return be(Class.KeyFault, Scope.Key, utf8("rate_limit_key"));
  if (jsonContains(found, id, utf8("token"))) return beFor(Class.RateLimited, Scope.Key, utf8("tokens"), wait());
  return jsonContains(found, id, utf8("request")) && beFor(Class.RateLimited, Scope.Key, utf8("requests"), wait());
}
