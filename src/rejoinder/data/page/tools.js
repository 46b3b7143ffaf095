// Shared by all parts of the page: elements, lists of lines, and calls that follow typing.

import { Failure, call } from "./api.js";

export const byId = (id) => document.getElementById(id);

/** Creates an element with attributes and children; SVG below an SVG parent uses `svg`. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function linesOf(id) {
  return byId(id).value.split("\n").map((line) => line.trim()).filter(Boolean);
}

export function countOf(id, lines, most) {
  const cut = lines.length > most ? `, the first ${most.toLocaleString("en")} are read` : "";
  byId(id).textContent = `${lines.length.toLocaleString("en")} ${lines.length === 1 ? "line" : "lines"}${cut}`;
}

/** A number with two digits, a minus sign, and no negative zero. */
export function numberOf(value) {
  const text = value.toFixed(2);
  return Number(text) === 0 ? "0.00" : text.replace("-", "−");
}

/** Returns a function that calls `work(signal)` shortly after the last of several calls. */
export function following(work, milliseconds = 90) {
  let timer, running;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      running?.abort();
      running = new AbortController();
      const { signal } = running;
      try {
        await work(signal);
        if (!signal.aborted) show("fault", "");
      } catch (error) {
        if (error.name !== "AbortError" && !signal.aborted) fail(error);
      }
    }, milliseconds);
  };
}

let onLocked = () => {};

export function whenLocked(callback) {
  onLocked = callback;
}

function fail(error) {
  if (!(error instanceof Failure)) throw error;
  if (error.status === 401) onLocked();
  else show("fault", error.message);
}

/** Shows a sentence in a paragraph; an empty one hides it. */
export function show(id, sentence) {
  byId(id).hidden = !sentence;
  byId(id).textContent = sentence;
}

/** Says which texts have mostly unknown words. Their names are the keys of `texts`. */
export async function noteUnknown(texts, signal) {
  const shares = await call("unknown", { inputs: Object.values(texts) }, signal, false);
  const names = Object.keys(texts).filter((_, index) => shares[index] > 0.5);
  show("unknown", names.length ? `The model knows few words of ${names.join(" and ")}, so the scores mean little.` : "");
}

/** Shows hits with a bar each, as long as the score. */
export function showHits(id, hits) {
  byId(id).replaceChildren(
    ...hits.map((hit) => {
      const share = Math.max(0, Math.min(1, hit.score));
      const bar = svg("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" });
      bar.append(svg("rect", { class: "rail", width: 100, height: 4 }), svg("rect", { class: "fill", width: 100 * share, height: 4 }));
      const name = hit.id === undefined ? [] : [element("span", { class: "hint" }, `id ${hit.id}`)];
      return element("li", {}, element("span", { class: "text" }, hit.text), element("span", { class: "value" }, numberOf(hit.score)), bar, ...name);
    }),
  );
}

const DOCUMENTS = [
  [/^From \S+.*\r?\n(?:[>\w-]+:|\s)/, "a mailbox (mbox)"],
  [/^\s*<(?:!doctype|html|\?xml)\b/i, "HTML or XML"],
  [/^%PDF-/, "a PDF document"],
  [/^PK\x03\x04/, "a zip archive"],
  [/\0/, "a binary file"],
];

/** What a file is if its lines are not texts. `rejoinder search` refuses the same files. */
function otherThanLines(name, text) {
  const table = /\.(csv|tsv|jsonl|ndjson|parquet)$/i.exec(name);
  if (table) return `a table (.${table[1]}), which rejoinder search --columns reads`;
  if (/^\s*[{[]/.test(text) && [text, text.split("\n", 1)[0]].some(isJson)) return "JSON";
  return DOCUMENTS.find(([pattern]) => pattern.test(text))?.[1];
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Lets the reader open a text file, or drop it on a card, to replace a list. */
export function takeFiles(most) {
  const read = async (file, id) => {
    if (file.size > most) {
      return show("fault", `${file.name} has ${file.size.toLocaleString("en")} bytes; at most ${most.toLocaleString("en")} can be sent.`);
    }
    const bytes = await file.arrayBuffer();
    const other = otherThanLines(file.name, new TextDecoder("latin1").decode(bytes));
    if (other) return show("fault", `${file.name} is ${other}. Open a file of lines of text here, one text per line.`);
    try {
      byId(id).value = new TextDecoder("utf-8", { fatal: true }).decode(bytes).replaceAll("\r", "");
    } catch {
      return show("fault", `${file.name} is not UTF-8 text; save it as UTF-8, and open it again.`);
    }
    return byId(id).dispatchEvent(new Event("input"));
  };
  for (const input of document.querySelectorAll("[data-file]"))
    input.addEventListener("change", () => input.files[0] && read(input.files[0], input.dataset.file));
  for (const card of document.querySelectorAll("[data-drop]")) {
    card.addEventListener("dragover", (event) => {
      event.preventDefault();
      card.classList.add("over");
    });
    card.addEventListener("dragleave", () => card.classList.remove("over"));
    card.addEventListener("drop", (event) => {
      card.classList.remove("over");
      const [file] = event.dataTransfer.files;
      if (!file) return;
      event.preventDefault();
      read(file, card.dataset.drop);
    });
  }
}
