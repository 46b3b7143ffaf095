// Suggests replies to a message, from replies to similar past messages.

import { call } from "./api.js";
import { bylineOf } from "./message.js";
import { byId, copyButton, element, following, keep, kept, noteUnknown, plural, svg } from "./tools.js";

const SHOWN = 5, EXAMPLES = 6, QUOTED = 160;
/** Confidence from which a reply counts as possible rather than a guess. */
const POSSIBLE = 0.1;

export function startSuggest({ authors, found }) {
  byId("suggest-author").append(...authors.map(([name, many]) => element("option", { value: name }, `${name} (${many.toLocaleString("en")})`)));
  byId("suggest-author").closest("label").hidden = !authors.length;
  const update = following(suggest, 250);
  for (const id of ["suggest-message", "suggest-author"]) {
    byId(id).addEventListener("input", () => {
      keepMessage(id === "suggest-message");
      update();
    });
  }
  if (found.includes("asked")) showExamples(update);
  return () => {
    if (!read) begin();
    const values = kept(), message = byId("suggest-message");
    if (message.value !== (values.get("q") ?? "")) message.value = values.get("q") ?? "";
    byId("suggest-author").value = values.get("author") ?? "";
    update();
  };
}

const keepMessage = (typed = false) => keep("suggest", { q: byId("suggest-message").value, author: byId("suggest-author").value }, typed);

/** Lets the server read the past replies while the reader writes a message. */
async function begin() {
  read = true;
  await call("suggest", { message: "Hello", top_k: 1 }, undefined, false).catch(() => (read = false));
}

/** Questions to try: those asked most often. */
async function showExamples(update) {
  const questions = await call("asked", undefined, undefined, false);
  const buttons = questions.filter((one) => one.text.length < 90 && one.replied).slice(0, EXAMPLES).map((one) => {
    const button = element("button", { type: "button" }, one.text);
    button.addEventListener("click", () => {
      byId("suggest-message").value = one.text;
      keepMessage();
      update();
    });
    return element("li", {}, button);
  });
  byId("suggest-examples").replaceChildren(...buttons);
  byId("suggest-try").hidden = !buttons.length;
}

let read = false;

async function suggest(signal) {
  const message = byId("suggest-message").value.trim(), author = byId("suggest-author").value;
  const list = byId("suggest-list"), note = byId("suggest-note");
  if (!message) {
    list.replaceChildren();
    byId("suggest-doubt").hidden = true;
    note.textContent = "";
    return undefined;
  }
  list.setAttribute("aria-busy", "true");
  const slow = setTimeout(() => (note.textContent = "Reading the past replies …"), 400);
  const begun = performance.now();
  let answer;
  try {
    answer = await call("suggest", { message, top_k: SHOWN, ...(author && { author }) }, signal);
  } finally {
    clearTimeout(slow);
    list.removeAttribute("aria-busy");
  }
  draw(answer, Math.max(1, Math.round(performance.now() - begun)));
  return noteUnknown({ "the message": message }, signal);
}

function draw({ suggestions, threshold, is_good: isGood }, milliseconds) {
  byId("suggest-doubt").hidden = isGood !== false || !suggestions.length;
  byId("suggest-doubt").textContent = "Similar messages got different replies: check which message each reply answered.";
  byId("suggest-note").textContent = suggestions.length ? `${plural(suggestions.length, "reply", "replies")}, in ${milliseconds} ms` : "No reply was found.";
  byId("suggest-list").replaceChildren(...suggestions.map((one, index) => itemOf(one, index, threshold)));
}

const percent = (chance) => `${Math.round(100 * chance)} %`;

function itemOf(one, index, threshold) {
  const { confidence } = one;
  const good = confidence !== null && threshold !== null && confidence >= threshold;
  const item = element("li", good ? { class: "good" } : {});
  const head = element("div", { class: "hit-head" }, bylineOf(one));
  if (one.alike > 1) head.firstChild.append(element("span", { class: "chip" }, `${one.alike} were answered so`));
  head.append(copyButton(one.reply));
  item.append(head, element("p", { class: "text", dir: "auto" }, one.reply));
  if (confidence !== null) item.append(meterOf(confidence, good ? "likely" : confidence >= POSSIBLE ? "possible" : "a guess"));
  if (one.answered) item.append(element("p", { class: "answered" }, element("span", { class: "hint" }, "answered "), one.answered.length > QUOTED ? `${one.answered.slice(0, QUOTED)}…` : one.answered));
  return item;
}

function meterOf(confidence, word) {
  const bar = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
  bar.append(svg("rect", { class: "rail", width: 100, height: 6 }), svg("rect", { class: "fill", width: 100 * confidence, height: 6 }));
  return element("p", { class: "meter confidence" }, bar, element("span", { class: "value" }, percent(confidence)), element("span", { class: "hint" }, word));
}
