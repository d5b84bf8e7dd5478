// Any provider: errors shaped like OpenAI's, and what proxies and networks do.

import { Class, jsonAt, jsonIs, Scope, utf8 } from "../../sdk/assemblyscript/fourgate";
import { found, root } from "../../sdk/assemblyscript/failure";
import { settled } from "../../sdk/assemblyscript/classify";
import { be, give } from "../../sdk/assemblyscript/result";
import { judge } from "../../sdk/assemblyscript/rules";

export const fourgate_abi_1: i32 = 1;

export function classify(): void {
  if (!settled() && !gateway()) judge();
  give();
}

/** gateway: Cloudflare's AI Gateway refuses with numbers in an array of errors. */
function gateway(): bool {
  if (jsonAt(root, utf8("error.0.code")) < 0) return false;
  if (jsonIs(found, utf8("code"), utf8("2003"))) return be(Class.Denied, Scope.Request, utf8("rate_limit"));
  return jsonIs(found, utf8("code"), utf8("2016|2017")) && be(Class.Denied, Scope.Request, utf8("policy"));
}
