// Questions that were asked again and again, with the replies that they got.

import { call } from "./api.js";
import { bylineOf, dayOf } from "./message.js";
import { byId, copyButton, download, element, following, keep, kept, plural } from "./tools.js";

const PAGE = 40, FIRST = 3, EACH = 12;
let questions = null;
let shown = PAGE;

export function startAsked() {
  const update = following(async (signal) => {
    byId("asked-list").setAttribute("aria-busy", "true");
    questions ??= await call("asked", undefined, signal);
    byId("asked-list").removeAttribute("aria-busy");
    read();
    draw();
  }, 60);
  for (const id of ["asked-filter", "asked-open"]) {
    byId(id).addEventListener("input", () => {
      if (!questions) return;
      shown = PAGE;
      keep("asked", { q: byId("asked-filter").value, open: byId("asked-open").checked ? "1" : "" }, id === "asked-filter");
      update();
    });
  }
  byId("asked-more").addEventListener("click", () => {
    shown += PAGE;
    update();
  });
  byId("asked-csv").addEventListener("click", () => download("questions.csv", "text/csv", csvOf(chosen())));
  byId("asked-markdown").addEventListener("click", () => download("faq.md", "text/markdown", markdownOf(chosen())));
  return update;
}

/** Reads the filters from the address. */
function read() {
  const values = kept();
  if (byId("asked-filter").value !== (values.get("q") ?? "")) byId("asked-filter").value = values.get("q") ?? "";
  byId("asked-open").checked = values.has("open");
}

/** The questions with the filter's words. */
function chosen() {
  const words = byId("asked-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const open = byId("asked-open").checked;
  return questions.filter((one) => {
    const text = [one.text, ...one.ways, ...one.replies.map((reply) => reply.text)].join(" ").toLowerCase();
    return words.every((word) => text.includes(word)) && (!open || !one.replied);
  });
}

function draw() {
  const list = chosen();
  const messages = list.reduce((sum, one) => sum + one.count, 0);
  byId("asked-note").textContent = list.length
    ? `${plural(list.length, "question")}, asked ${messages.toLocaleString("en")} times in all`
    : questions.length ? "No question has these words." : "No question was asked twice.";
  byId("asked-csv").disabled = byId("asked-markdown").disabled = !list.length;
  byId("asked-list").replaceChildren(...list.slice(0, shown).map(itemOf));
  byId("asked-more").hidden = list.length <= shown;
}

function itemOf(one, index) {
  const facts = [one.authors ? plural(one.authors, "person", "people") : "", periodOf(one), one.replied ? plural(one.replied, "reply", "replies") : "no reply"];
  const summary = element("summary", {},
    element("span", { class: "times" }, element("b", {}, one.count.toLocaleString("en")), element("span", {}, "times")),
    element("span", { class: "question" }, element("span", { class: "text", dir: "auto" }, one.text), element("span", { class: "hint" }, facts.filter(Boolean).join(" · "))));
  const item = element("details", { class: "card asked" }, summary);
  const fillIn = () => item.childElementCount > 1 || item.append(detailsOf(one));
  item.addEventListener("toggle", fillIn);
  if (!index) {
    item.open = true;
    fillIn();
  }
  return element("li", {}, item);
}

function detailsOf(one) {
  const inside = element("div", { class: "inside" });
  if (one.replies.length) {
    const list = element("ul", { class: "replies" }, ...one.replies.slice(0, FIRST).map(replyOf));
    inside.append(element("h3", {}, "Replies"), list);
    if (one.replies.length > FIRST) {
      const more = element("button", { type: "button", class: "more" }, "More replies");
      more.addEventListener("click", () => {
        list.append(...one.replies.slice(FIRST).map(replyOf));
        more.remove();
      });
      inside.append(more);
    }
  } else {
    inside.append(element("p", { class: "hint" }, "Nobody else answered in its threads."));
  }
  if (one.ways.length) inside.append(element("h3", {}, "Also asked as"), element("ul", { class: "ways" }, ...one.ways.map((way) => element("li", { dir: "auto" }, way))));
  const search = new URLSearchParams({ q: one.text.slice(0, 200) });
  const each = one.ids.slice(0, EACH).map((id, at) => element("a", { href: `#find?${new URLSearchParams({ open: id })}`, "aria-label": `Message ${at + 1}` }, `${at + 1}`));
  inside.append(element("p", { class: "hit-actions" }, element("a", { href: `#find?${search}` }, "Search for it"), " ", element("span", {}, "Where it was asked:"), ...each.flatMap((link) => [" ", link])));
  return inside;
}

function replyOf(reply) {
  const { author, time } = reply;
  const byline = bylineOf({ about: { author: author ?? undefined, time: time ?? undefined } });
  if (reply.count > 1) byline.append(element("span", { class: "chip" }, `${reply.count} times`));
  return element("li", {}, element("div", { class: "hit-head" }, byline, copyButton(reply.text)), element("p", { class: "text", dir: "auto" }, reply.text));
}

function periodOf({ first, last }) {
  if (first === null) return "";
  return dayOf(first) === dayOf(last) ? dayOf(first) : `${dayOf(first)} – ${dayOf(last)}`;
}

function csvOf(list) {
  // a spreadsheet would run text that begins like a formula
  const cell = (value) => `"${String(value ?? "").replace(/^(?=\s*[=+\-@＝＋－＠])|^(?=[\t\r\n])/, "'").replaceAll('"', '""')}"`;
  const day = (time) => (time === null ? "" : new Date(1000 * time).toISOString().slice(0, 10));
  const rows = list.map((one) => [one.text, one.count, one.authors || "", day(one.first), day(one.last), one.replied, one.replies[0]?.text, one.replies[0]?.count, one.id]);
  return [["question", "times", "people", "first", "last", "replies", "most frequent reply", "its times", "id"], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Returns a line that Markdown shows literally: people wrote it, and it could load pictures from anywhere. */
function asWritten(line) {
  return line
    .replace(/[\\`*_~[\]<>&|$#]/g, "\\$&")
    .replace(/^[ \t]+/, (space) => "\u00a0".repeat(space.length))
    .replace(/^(\u00a0*)([+=-])/, "$1\\$2")
    .replace(/^(\u00a0*\d+)([.)])/, "$1\\$2");
}

/** A draft of frequently asked questions. */
function markdownOf(list) {
  const line = (text) => asWritten(text.split(/\s+/).filter(Boolean).join(" "));
  const quote = (text) => text.trim().split(/\r\n?|\n/).map((part) => `> ${asWritten(part)}`.trimEnd()).join("\n");
  const parts = list.map((one) => {
    const facts = [`Asked ${plural(one.count, "time")}`, one.authors ? `by ${plural(one.authors, "person", "people")}` : "", periodOf(one)].filter(Boolean).join(", ");
    const replies = one.replies.slice(0, 3).map((reply) => `${quote(reply.text)}${reply.count > 1 ? `\n>\n> (${reply.count} times)` : ""}`);
    return `## ${line(one.text)}\n\n*${facts}*\n\n${replies.length ? replies.join("\n\n") : "No reply yet."}\n`;
  });
  return `# Asked again and again\n\n${parts.join("\n")}`;
}
