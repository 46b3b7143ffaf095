// A message: who wrote it, when and where, and its text with the words that it was found for.

import { element } from "./tools.js";

/** Shares of a cosine from which a word is marked, the strongest first. */
const LEVELS = [[0.2, 3], [0.1, 2], [0.04, 1]];
const EXCERPT = 420;
const BEFORE = 120;

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const minute = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

export const dayOf = (seconds) => day.format(1000 * seconds);

/** The line above a message: its author, place and time, and a link to where it was written. */
export function bylineOf({ about = {} }) {
  const { author, source, time, link } = about;
  const line = element("div", { class: "byline" });
  if (author) line.append(avatarOf(author), element("b", {}, author));
  if (source) line.append(element("span", { class: "place" }, `#${source.replace(/^#/, "")}`));
  if (time !== undefined) line.append(element("time", { datetime: new Date(1000 * time).toISOString() }, minute.format(1000 * time)));
  if (/^https?:\/\//.test(link ?? "")) line.append(element("a", { href: link, rel: "noreferrer", target: "_blank" }, "open"));
  return line;
}

function avatarOf(author) {
  const letter = [...author.replace(/^[^\p{L}\p{N}]+/u, "")][0] ?? "?";
  const avatar = element("span", { class: "avatar", "aria-hidden": "true" }, letter.toUpperCase());
  let hash = 0;
  for (const character of author) hash = (31 * hash + character.codePointAt(0)) % 360;
  avatar.style.setProperty("--hue", hash);
  return avatar;
}

/** The text of a message with the words marked that it was found for. A long text is cut. */
export function textOf({ text, why }, whole = false) {
  const characters = [...text];
  const marks = marksOf(why);
  const first = marks.find(([, , level]) => level > 1)?.[0] ?? marks[0]?.[0] ?? 0;
  const begin = !whole && characters.length > EXCERPT && first > EXCERPT - BEFORE ? first - BEFORE : 0;
  const end = whole ? characters.length : Math.min(characters.length, begin + EXCERPT);
  const paragraph = element("p", { class: "text" });
  if (begin) paragraph.append("… ");
  let at = begin;
  for (const [start, stop, level] of marks) {
    if (start < at || stop > end) continue;
    paragraph.append(characters.slice(at, start).join(""), element("mark", { class: `level-${level}` }, characters.slice(start, stop).join("")));
    at = stop;
  }
  paragraph.append(characters.slice(at, end).join(""));
  if (end < characters.length) paragraph.append(" …");
  return { paragraph, cut: begin > 0 || end < characters.length };
}

/** Places of the words to mark, with how strongly. */
function marksOf(why) {
  if (!why) return [];
  if (why.cosine === null) return why.matches.map(([start, stop]) => [start, stop, 2]);
  return why.words.flatMap(([start, stop, share]) => {
    const level = LEVELS.find(([least]) => share >= least)?.[1];
    return level ? [[start, stop, level]] : [];
  }).sort((a, b) => a[0] - b[0]);
}
