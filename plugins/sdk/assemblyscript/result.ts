// The verdict while it is being found. Rules set it and return true; the end of the
// classification gives it once. The first values (unknown, request) are plain numbers, so
// that the module needs no code to set them when it is instantiated.

import { answer, Class, phase, Phase, Scope, Text, utf8 } from "./fourgate";

let klass: i32 = 0;
let blamed: i32 = 1;
let why: Text = 0;
let ms: i64 = -1;

/** be sets the verdict, without a wait. It returns true, so that a rule can end with it. */
export function be(c: i32, scope: i32, reason: Text): bool {
  return beFor(c, scope, reason, -1);
}

/** beFor sets the verdict with a wait in milliseconds, -1 for none. */
export function beFor(c: i32, scope: i32, reason: Text, wait: i64): bool {
  klass = c;
  blamed = scope;
  why = reason;
  ms = wait;
  return true;
}

/** give answers. After output every failure is partial, and its cause is the reason. */
export function give(): void {
  if (why == 0) why = utf8("unrecognized");
  if (phase() == Phase.AfterOutput && klass != Class.OK && klass != Class.Refusal && klass != Class.Cancelled && klass != Class.Partial) {
    klass = Class.Partial;
    blamed = Scope.None;
    ms = -1;
  }
  answer(klass, blamed, why, ms);
}
