// Compiles one classifier: node build.mjs ENTRY.ts OUT.wasm
//
// It is the AssemblyScript compiler with the flags that the ABI needs and one
// extension: all utf8("...") go into one table of UTF-8 texts, each with its length in
// front, and become their places in it. Ordinary strings are UTF-16, twice as large, and
// would need a loop to convert; and one data segment is instantiated sooner than 200.

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
const piece = /"(?:[^"\\\n]|\\.)*"/g;
const imported = /\bfrom\s+"(\.[^"]*)"/g;

// The table of all texts of all files that the entry reaches, each once, in the order
// of their first use. It begins with two bytes of padding, so that no text is at 0.
const table = [0, 0];
const places = new Map();
const sources = new Map();

async function collect(path) {
  if (sources.has(path)) return;
  const source = await readFile(path, "utf8");
  sources.set(path, "");
  const replaced = source.replace(literal, (whole, pieces) => {
    const text = pieces.match(piece).map((p) => JSON.parse(p)).join("");
    if (!places.has(text)) {
      const bytes = new TextEncoder().encode(text);
      if (bytes.length > 4096) throw new Error(`a text of ${bytes.length} bytes is longer than the ABI allows: ${text.slice(0, 40)}`);
      places.set(text, table.length);
      table.push(bytes.length & 255, bytes.length >> 8, ...bytes);
    }
    return places.get(text) + "\n".repeat(whole.split("\n").length - 1); // keep line numbers
  });
  sources.set(path, replaced);
  for (const [, name] of source.matchAll(imported)) await collect(join(dirname(path), name + ".ts"));
}

await collect(resolve(entry));

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
