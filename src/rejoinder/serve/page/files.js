// Files that the reader opens. The server reads their texts; a list has a line for each.

import { call } from "./api.js";
import { byId, fail, show } from "./tools.js";

/** By list and line: the messages that the line shows, in file order. */
const messages = new Map();

/** Largest size of a request without the bytes of the file. */
const AROUND = 1_000;

const REASONS = { private: "private", bot: "by bots", system: "by the program", empty: "without text", malformed: "malformed" };

/** Returns the message that each line of a list shows; undefined for lines that the reader wrote. */
export function messagesOf(id, lines) {
  const seen = new Map();
  return lines.map((line) => {
    const number = seen.get(line) ?? 0;
    seen.set(line, number + 1);
    return messages.get(id)?.get(line)?.[number];
  });
}

/** Texts that the server compares for lines: messages without greeting and signature. */
export function comparedOf(id, lines) {
  const found = messagesOf(id, lines);
  return lines.map((line, index) => found[index]?.core ?? line);
}

/** Lets the reader open a file, or drop it on a card, to replace a list. */
export function takeFiles(most) {
  for (const input of document.querySelectorAll("[data-file]"))
    input.addEventListener("change", () => input.files[0] && open(input.files[0], input.dataset.file, most));
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
      open(file, card.dataset.drop, most);
    });
  }
}

async function open(file, id, most) {
  const largest = Math.floor((most - AROUND) * 3 / 4);
  if (file.size > largest) {
    return show("fault", `${file.name} has ${file.size.toLocaleString("en")} bytes; at most ${largest.toLocaleString("en")} can be sent.`);
  }
  try {
    const answer = await call("texts", { name: file.name, content: await base64Of(file) }, undefined, false);
    show("left-out", notRead(file.name, answer));
    byId(id).value = remember(id, answer.texts).join("\n");
    return byId(id).dispatchEvent(new Event("input"));
  } catch (error) {
    return fail(error);
  }
}

function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.split(",")[1] ?? "");
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** Stores the messages of a list, and returns its lines. */
function remember(id, texts) {
  const byLine = new Map();
  const byName = new Map(texts.map((one) => [one.id, one]));
  const lines = texts.map((one) => {
    const line = one.text.split(/\s+/).filter(Boolean).join(" ");
    const message = { ...one, answered: byName.get(one.about.answers)?.text };
    byLine.set(line, [...(byLine.get(line) ?? []), message]);
    return line;
  });
  messages.set(id, byLine);
  return lines;
}

function notRead(name, { texts, more, left_out: leftOut }) {
  const parts = Object.entries(leftOut).map(([reason, count]) => `${count.toLocaleString("en")} ${REASONS[reason] ?? reason}`);
  const first = more ? `The first ${texts.length.toLocaleString("en")} texts of ${name} are read. ` : "";
  return first + (parts.length ? `Messages left out: ${parts.join(", ")}.` : "");
}
