// Anthropic's own API and what sits in front of it.

import { Class, Scope, utf8 } from "../../sdk/assemblyscript/fourgate";
import { tells } from "../../sdk/assemblyscript/failure";
import { settled } from "../../sdk/assemblyscript/classify";
import { be, give } from "../../sdk/assemblyscript/result";
import { judge } from "../../sdk/assemblyscript/rules";

export const fourgate_abi_1: i32 = 1;

export function classify(): void {
  if (!settled() && !extra()) judge();
  give();
}

/** extra: a long prompt needs a paid option; other requests with the key go on working. */
function extra(): bool {
  return tells(utf8("extra usage is required")) && be(Class.KeyFault, Scope.Request, utf8("billing"));
}
