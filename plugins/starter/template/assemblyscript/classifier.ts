import { Class, Scope, utf8 } from "./sdk/fourgate";
import { says } from "./sdk/failure";
import { settled } from "./sdk/classify";
import { be, give } from "./sdk/result";
import { judge } from "./sdk/rules";

export const fourgate_abi_1: i32 = 1;

/**
 * classify is called once for each failure. settled() decides what is no error object,
 * judge() has the general rules; yours come first.
 */
export function classify(): void {
  if (!settled() && !mine()) judge();
  give();
}

function mine(): bool {
  return says(utf8("out_of_tokens")) && be(Class.KeyFault, Scope.Key, utf8("billing"));
}
