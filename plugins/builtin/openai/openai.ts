// OpenAI, Azure OpenAI and vendors that answer as OpenAI does.

import { settled } from "../../sdk/assemblyscript/classify";
import { give } from "../../sdk/assemblyscript/result";
import { judge } from "../../sdk/assemblyscript/rules";

export const fourgate_abi_1: i32 = 1;

export function classify(): void {
  if (!settled()) judge();
  give();
}
