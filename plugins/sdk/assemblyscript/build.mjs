// Compiles one classifier: node build.mjs ENTRY.ts OUT.wasm
//
// It is the AssemblyScript compiler with the flags that the ABI needs and one
// extension: utf8("...") becomes the address of static UTF-8 text with its length in
// front. Ordinary strings are UTF-16, twice as large, and would need a loop to convert.

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

function staticText(source) {
  return source.replace(literal, (whole, pieces) => {
    const text = pieces.match(piece).map((p) => JSON.parse(p)).join("");
    const bytes = [...new TextEncoder().encode(text)];
    if (bytes.length > 4096) throw new Error(`a text of ${bytes.length} bytes is longer than the ABI allows: ${text.slice(0, 40)}`);
    const lines = "\n".repeat(whole.split("\n").length - 1); // keep line numbers
    return `memory.data<u8>([${bytes.length & 255},${bytes.length >> 8},${bytes.join(",")}])${lines}`;
  });
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
    readFile: async (name, base) => {
      try {
        return staticText(await readFile(resolve(base === "." ? root : resolve(root, base), name), "utf8"));
      } catch (problem) {
        if (problem.code === "ENOENT" || problem.code === "EISDIR") return null; // the compiler tries other names
        throw problem;
      }
    },
    writeFile: async (_name, data) => writeFile(out, data),
    listFiles: async () => [],
  },
);
if (error) {
  console.error(stderr.toString());
  process.exit(1);
}
