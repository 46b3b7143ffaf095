// node offline_page.mjs archive.html < [[path, body], ...]: prints what the page answers, without a browser.
// Not a call of the page is ["encode", text]: the embedding of a text, as base64 of float32.

import { readFileSync } from "node:fs";

const page = new URL("../src/rejoinder/serve/page/", import.meta.url);
const modules = {};

async function load(name) {
  if (modules[name]) return modules[name];
  let source = readFileSync(new URL(name, page), "utf8");
  for (const [, other] of source.matchAll(/from "\.\/([^"]+)"/g)) source = source.replace(`./${other}`, await load(other));
  return (modules[name] = `data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);
}

const { Archive, columnOf } = await import(await load("offline.js"));
const columns = {};
for (const [, name, kind, content] of readFileSync(process.argv[2], "utf8").matchAll(/data-column="(\w+)" data-kind="(\w+)">([^<]*)</g)) columns[name] = await columnOf(content, kind);
const archive = new Archive(columns);
archive.answers.encode = (text) => Buffer.from(Float32Array.from(archive.encoder.encode(text)).buffer).toString("base64");
const answers = JSON.parse(readFileSync(0, "utf8")).map(([path, body]) => {
  try {
    return archive.answers[path](body);
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(answers));
