// A message: who wrote it, when and where, and its text with the found words marked.

import { element } from "./tools.js";

/** Shares of a cosine from which a word is marked, the strongest first. */
const LEVELS = [[0.2, 3], [0.1, 2], [0.04, 1]];
/** Number of characters in a folded text, of which three lines are seen; in its marked part; and before that. */
const EXCERPT = 400, WINDOW = 80, BEFORE = 30;

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const minute = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

export const dayOf = (seconds) => day.format(1000 * seconds);

/** The line above a message: its author, place and time, and a link to where it was written. */
export function bylineOf({ id, about = {} }) {
  const { author, source, time, link } = about;
  const line = element("div", { class: "byline" });
  if (author) line.append(avatarOf(author), element("b", {}, author));
  if (source) line.append(element("span", { class: "place" }, `#${source.replace(/^#/, "")}`));
  if (time !== undefined) {
    const when = element("time", { datetime: new Date(1000 * time).toISOString() }, minute.format(1000 * time));
    const inThread = id !== undefined && (source || about.thread);
    line.append(inThread ? element("a", { class: "when", href: `#find?${new URLSearchParams({ open: id })}` }, when) : when);
  }
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

/** The text of a message with the found words marked. Unless the complete text is wanted, it is folded to three
 * lines around them. */
export function textOf({ text, why }, whole = false) {
  const characters = [...text];
  const marks = marksOf(why, characters.length);
  const begin = whole ? 0 : beginOf(characters, marks);
  const end = whole ? characters.length : Math.min(characters.length, begin + EXCERPT);
  const paragraph = element("p", { class: whole ? "text" : "text folded", dir: "auto" });
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

/** Where a folded text begins: shortly before the part with the strongest marks. */
function beginOf(characters, marks) {
  const strengthOf = (from) => marks.reduce((sum, [start, stop, level]) => sum + (start >= from && stop <= from + WINDOW ? level ** 3 : 0), 0);
  let best = 0, strongest = strengthOf(0);
  for (const [start] of marks) {
    if (strengthOf(start) <= strongest) continue;
    best = start;
    strongest = strengthOf(start);
  }
  if (best <= BEFORE) return 0;
  const space = characters.findIndex((character, at) => at >= best - BEFORE && at < best && /\s/.test(character));
  return space < 0 ? best : space + 1;
}

/** Positions of the words to mark, and how strongly. In a long text each word has a small share, so the strongest one
 * is the measure. */
function marksOf(why, length) {
  if (!why) return [];
  if (why.cosine === null) return why.matches.map(([start, stop]) => [start, stop, 2]);
  const strongest = why.words.reduce((most, [, , share]) => Math.max(most, share), 0);
  const scale = length > EXCERPT && strongest > 0 ? Math.min(1, strongest / LEVELS[0][0]) : 1;
  return why.words.flatMap(([start, stop, share]) => {
    const level = LEVELS.find(([least]) => share >= scale * least)?.[1];
    return level ? [[start, stop, level]] : [];
  }).sort((a, b) => a[0] - b[0]);
}
