// The messages around a message, in its thread or channel.

import { call } from "./api.js";
import { bylineOf, textOf } from "./message.js";
import { element, fail } from "./tools.js";

const FIRST = 5, MORE = 15, MOST = 500;

/** Shows the conversation of a message in `place`. */
export async function showConversation(place, hit, signal, context = FIRST) {
  place.setAttribute("aria-busy", "true");
  let found;
  try {
    found = await call("around", { id: hit.id, context }, signal, false);
  } catch (error) {
    place.removeAttribute("aria-busy");
    return error.name === "AbortError" ? undefined : fail(error);
  }
  place.removeAttribute("aria-busy");
  const more = (label) => {
    const button = element("button", { type: "button", class: "more" }, label);
    button.addEventListener("click", () => showConversation(place, hit, undefined, Math.min(MOST, context + MORE)));
    return button;
  };
  const { source, thread } = found.about;
  const around = found.before.length + found.after.length;
  const title = element("h3", {}, thread && around ? "Thread" : "Conversation", source ? element("span", { class: "hint" }, ` in #${source.replace(/^#/, "")}`) : "");
  const list = element("ol", { class: "thread" }, ...found.before.map(lineOf), lineOf({ ...found, why: hit.why }, true), ...found.after.map(lineOf));
  const parts = [title];
  if (found.before.length >= context) parts.push(more("Earlier messages"));
  parts.push(list);
  if (found.after.length >= context) parts.push(more("Later messages"));
  if (!around) parts.push(element("p", { class: "hint" }, "Nobody wrote before or after it here."));
  place.replaceChildren(...parts);
  return undefined;
}

function lineOf(message, here) {
  const line = element("li", here === true ? { class: "here", "aria-current": "true" } : {}, bylineOf(message), textOf(message, true).paragraph);
  return line;
}
