// What all parts of the page share: elements, lists of lines, and calls that follow typing.

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
        if (!signal.aborted) tell("");
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
  else tell(error.message);
}

/** Shows a sentence on what went wrong; none hides it. */
function tell(sentence) {
  const fault = byId("fault");
  fault.hidden = !sentence;
  fault.textContent = sentence;
}

/** Shows hits with a bar each. `share` is from 0 to 1. */
export function showHits(id, hits, score) {
  byId(id).replaceChildren(
    ...hits.map((hit) => {
      const share = Math.max(0, Math.min(1, hit.share));
      const bar = svg("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" });
      bar.append(svg("rect", { class: "rail", width: 100, height: 4 }), svg("rect", { class: "fill", width: 100 * share, height: 4 }));
      return element("li", {}, element("span", { class: "text" }, hit.text), element("span", { class: "value" }, score(hit)), bar);
    }),
  );
}

/** Lets a text file be opened, or dropped on a card, in place of a list. */
export function takeFiles(most) {
  const read = async (file, id) => {
    if (file.size > most) {
      tell(`${file.name} has ${file.size.toLocaleString("en")} bytes; at most ${most.toLocaleString("en")} can be sent.`);
      return;
    }
    byId(id).value = (await file.text()).replaceAll("\r", "");
    byId(id).dispatchEvent(new Event("input"));
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

export { call };
