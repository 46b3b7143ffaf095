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

/** A count with its noun, such as "1 reply" and "1,200 replies". */
export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Copies a text. Browsers have no `clipboard` on pages of other machines without TLS. */
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = element("textarea", {}, text);
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  return field.remove();
}

/** A button that copies a text. */
export function copyButton(text) {
  const button = element("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    await copy(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}

/** Saves a text as a file on the reader's machine. */
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Returns a function that calls `work(signal)` shortly after the last of several calls; its `now` calls it at once. */
export function following(work, milliseconds = 90) {
  let timer, running;
  const now = async () => {
    clearTimeout(timer);
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    try {
      await work(signal);
      if (!signal.aborted) show("fault", "");
    } catch (error) {
      if (error.name !== "AbortError" && !signal.aborted) fail(error);
    }
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(now, milliseconds);
  };
  return Object.assign(later, { now });
}

/** Stores what a part shows in the address, so that it can be opened again. Back leads to the previous state; everything
 * typed in one go is one step. */
export function keep(part, values, typed = false) {
  const kept = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  const address = kept.size ? `#${part}?${kept}` : `#${part}`;
  if (address === location.hash) return;
  if (typed && history.state?.typed) history.replaceState({ typed }, "", address);
  else history.pushState({ typed }, "", address);
}

/** The state stored in the address. */
export const kept = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

let onLocked = () => {};

export function whenLocked(callback) {
  onLocked = callback;
}

export function fail(error) {
  if (!(error instanceof Failure)) throw error;
  if (error.status === 401) onLocked();
  else show("fault", error.message);
}

/** Shows a sentence in a paragraph; an empty one hides it. */
export function show(id, sentence) {
  byId(id).hidden = !sentence;
  byId(id).textContent = sentence;
}

/** Warns of texts with mostly unknown words. Their names are the keys of `texts`. */
export async function noteUnknown(texts, signal) {
  const shares = await call("unknown", { inputs: Object.values(texts) }, signal, false);
  const names = Object.keys(texts).filter((_, index) => shares[index] > 0.5);
  show("unknown", names.length ? `The model knows few words of ${names.join(" and ")}, so the scores mean little.` : "");
}

/** Shows hits with a bar each, whose length is the score. */
export function showHits(id, hits) {
  byId(id).replaceChildren(
    ...hits.map((hit) => {
      const share = Math.max(0, Math.min(1, hit.score));
      const bar = svg("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" });
      bar.append(svg("rect", { class: "rail", width: 100, height: 4 }), svg("rect", { class: "fill", width: 100 * share, height: 4 }));
      return element("li", {}, element("span", { class: "text" }, hit.text), element("span", { class: "value" }, numberOf(hit.score)), bar, ...knownOf(hit));
    }),
  );
}

const QUOTED = 120;

/** Known facts about a hit: for a message, who wrote it, when and where, and what it answers. */
function knownOf({ id, about = {}, answered }) {
  const { time, author, source, link } = about;
  if (!author && !source) return id === undefined || id === null ? [] : [element("span", { class: "hint" }, `id ${id}`)];
  const minute = time === undefined ? "" : new Date(1000 * time).toISOString().slice(0, 16).replace("T", " ");
  const where = element("span", { class: "hint about" }, [minute, author, source && `in ${source}`].filter(Boolean).join(" · "));
  if (/^https?:\/\//.test(link ?? "")) where.append(" · ", element("a", { href: link, rel: "noreferrer", target: "_blank" }, "open"));
  if (!answered) return [where];
  const quote = answered.length > QUOTED ? `${answered.slice(0, QUOTED)}…` : answered;
  return [where, element("span", { class: "hint about" }, `in answer to: ${quote}`)];
}
