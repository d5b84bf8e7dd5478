// Compiles one classifier: node build.mjs ENTRY.ts OUT.wasm
//
// It is the AssemblyScript compiler with the flags that the ABI needs and one
// extension: all utf8("...") go into one table of UTF-8 texts, each with its length in
// front, and become their places in it. Ordinary strings are UTF-16, twice as large, and
// would need a loop to convert; and one data segment is instantiated sooner than 200.
// The lists in says(utf8("...")) and tells(utf8("...")) are put together, one a line, and
// become their numbers: a classifier searches for all of them in one question.

import { readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [entry, out] = process.argv.slice(2);
if (!out) {
  console.error("usage: node build.mjs ENTRY.ts OUT.wasm");
  process.exit(2);
}

// The compiler comes from the node_modules of the directory that runs the build.
const asc = await import(pathToFileURL(join(process.cwd(), "node_modules/assemblyscript/dist/asc.js")));

const literal = /\butf8\(\s*("(?:[^"\\\n]|\\.)*"(?:\s*\+\s*"(?:[^"\\\n]|\\.)*")*)\s*,?\s*\)/g;
const listed = /\b(says|tells)\(\s*utf8\(\s*("(?:[^"\\\n]|\\.)*"(?:\s*\+\s*"(?:[^"\\\n]|\\.)*")*)\s*,?\s*\)\s*,?\s*\)/g;
const gathered = /\blistsOf\(\s*"(says|tells)"\s*,\s*(\d)\s*\)/g;
const piece = /"(?:[^"\\\n]|\\.)*"/g;
const imported = /\bfrom\s+"(\.[^"]*)"/g;

// The table of all texts of all files that the entry reaches, each once, in the order
// of their first use. It begins with two bytes of padding, so that no text is at 0.
const table = [0, 0];
const places = new Map();
const sources = new Map();

// The lists of each function, in groups of at most 64 and of what the ABI takes at once.
const most = { lists: 64, bytes: 4096, groups: 2 };
const groups = { says: [], tells: [] };
const numbers = { says: new Map(), tells: new Map() };

function textOf(pieces) {
  return pieces.match(piece).map((p) => JSON.parse(p)).join("");
}

function place(text) {
  if (!places.has(text)) {
    const bytes = new TextEncoder().encode(text);
    if (bytes.length > most.bytes) throw new Error(`a text of ${bytes.length} bytes is longer than the ABI allows: ${text.slice(0, 40)}`);
    places.set(text, table.length);
    table.push(bytes.length & 255, bytes.length >> 8, ...bytes);
  }
  return places.get(text);
}

function number(name, text) {
  if (text.includes("\n")) throw new Error(`a list of ${name}() has a line break in it: ${text.slice(0, 40)}`);
  if (!numbers[name].has(text)) {
    let last = groups[name].at(-1);
    if (!last || last.length === most.lists || new TextEncoder().encode([...last, text].join("\n")).length > most.bytes) {
      groups[name].push((last = []));
      if (groups[name].length > most.groups) throw new Error(`the lists of ${name}() are too many or too long: ${text.slice(0, 40)}`);
    }
    last.push(text);
    numbers[name].set(text, (groups[name].length - 1) * most.lists + last.length - 1);
  }
  return numbers[name].get(text);
}

async function collect(path) {
  if (sources.has(path)) return;
  const source = await readFile(path, "utf8");
  sources.set(path, "");
  const lines = (whole) => "\n".repeat(whole.split("\n").length - 1); // keep line numbers
  const replaced = source
    .replace(listed, (whole, name, pieces) => `${name}(${number(name, textOf(pieces))}${lines(whole)})`)
    .replace(literal, (whole, pieces) => place(textOf(pieces)) + lines(whole));
  const odd = replaced.match(/(?<!function )\b(says|tells)\((?!\s*[\d)])[^\n]{0,40}/);
  if (odd) throw new Error(`${path}: write the list in the call, as says(utf8("one|another")): ${odd[0]}`);
  sources.set(path, replaced);
  for (const [, name] of source.matchAll(imported)) await collect(join(dirname(path), name + ".ts"));
}

await collect(resolve(entry));
for (const [path, source] of sources) {
  sources.set(path, source.replace(gathered, (_whole, name, group) => place((groups[name][group] ?? []).join("\n"))));
}

const root = dirname(resolve(entry));
const { error, stderr } = await asc.main(
  [
    relative(root, resolve(entry)),
    "--outFile", "out.wasm",
    "--runtime", "stub", // no allocator, no collector
    "--optimizeLevel", "2", "--shrinkLevel", "2", "--noAssert",
    "--disable", "bulk-memory", // the host switches it off
    "--use", "abort=", // no import but the ABI's
  ],
  {
    // The compiler tries other names for an import, too; those are not there.
    readFile: async (name, base) => sources.get(resolve(base === "." ? root : resolve(root, base), name))?.replace("utf8Table()", `memory.data<u8>([${table}])`) ?? null,
    writeFile: async (_name, data) => writeFile(out, data),
    listFiles: async () => [],
  },
);
if (error) {
  console.error(stderr.toString());
  process.exit(1);
}
