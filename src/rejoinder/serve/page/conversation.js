// The messages around a message, in its thread or channel. Where conversations are interwoven in a channel, the messages of
// its exchange are highlighted.

import { call } from "./api.js";
import { bylineOf, textOf } from "./message.js";
import { element, fail } from "./tools.js";

const FIRST = 5, MORE = 15, MOST = 500;

/** Shows the conversation of a message in `place`, or `only` its exchange; calls `choose` when the reader changes that. */
export async function showConversation(place, hit, only, choose, context = FIRST) {
  place.setAttribute("aria-busy", "true");
  let found;
  try {
    found = await call("around", { id: hit.id, context }, undefined, false);
  } catch (error) {
    return fail(error);
  } finally {
    place.removeAttribute("aria-busy");
  }
  const { about: { source, thread }, before, after, exchange } = found;
  const lines = [...before, { ...found, why: hit.why }, ...after], shown = new Set(lines.map(({ id }) => id));
  const linked = new Set(exchange.map(({ id }) => id)), at = exchange.findIndex(({ id }) => id === found.id);
  const mixed = !thread && linked.size > 1 && lines.some(({ id }) => !linked.has(id));
  const authors = new Map([...exchange, ...lines].map(({ id, about }) => [id, about.author]));
  if (thread) authors.delete(exchange[0].id); // it begins the thread, which says enough
  const list = element("ol", { class: mixed ? "thread mixed" : "thread" });
  const add = (message) => list.append(lineOf(message, message.id === found.id, linked.has(message.id), authors));
  const more = (label) => {
    const button = element("button", { type: "button", class: "more" }, label);
    button.addEventListener("click", () => showConversation(place, hit, only, choose, Math.min(MOST, context + MORE)));
    list.append(element("li", { class: "gap" }, button));
  };
  const further = (some) => mixed && some.filter(({ id }) => !shown.has(id)).forEach(add);
  further(exchange.slice(0, at));
  if (before.length >= context) more("Earlier messages");
  lines.forEach(add);
  if (after.length >= context) more("Later messages");
  further(exchange.slice(at + 1));
  const lonely = lines.length === 1;
  const title = element("h3", {}, thread && !lonely ? "Thread" : "Conversation", source ? element("span", { class: "hint" }, ` in #${source.replace(/^#/, "")}`) : "");
  const toggle = element("button", { type: "button", class: "exchange" }, "Only this exchange");
  const press = () => {
    toggle.setAttribute("aria-pressed", String(only));
    list.classList.toggle("alone", mixed && only);
  };
  toggle.addEventListener("click", () => {
    only = !only;
    press();
    choose(only);
  });
  press();
  place.replaceChildren(element("div", { class: "hit-head" }, title, ...(mixed ? [toggle] : [])), list, ...(lonely ? [element("p", { class: "hint" }, "Nobody wrote before or after it here.")] : []));
  return undefined;
}

function lineOf(message, here, linked, authors) {
  const { answers, author, confidence } = message.about, answered = authors.get(answers);
  const line = element("li", { class: ["here", "linked", "likely"].filter((_, at) => [here, linked, confidence][at]).join(" "), ...(here && { "aria-current": "true" }) }, bylineOf(message));
  const what = answered === author ? "continues" : `answers ${answered}`;
  if (answered) line.firstChild.append(element("span", { class: "answers" }, confidence ? `probably ${what}` : what));
  line.append(textOf(message, true).paragraph);
  return line;
}
