// Answers the page's requests from data in its own file, where there is no server (`rejoinder explore --to`).

import { Encoder, dot, unit, wordsOf } from "./encode.js";
import { Ranking } from "./ranking.js";

export class Failure extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const useKey = () => {};
export const watch = () => {};
export const needKey = () => {};
export const needsKey = () => false;

const FURTHEST = 200, LONGEST = 30;
let opened = null;

/** Returns what the server would answer. */
export async function call(path, body) {
  opened ??= open();
  const archive = await opened;
  if (!(path in archive.answers)) throw new Failure(404, "this file does not have it.");
  return archive.answers[path](body);
}

export const fetchNumbers = (path) => call(path);

async function open() {
  const columns = {};
  await Promise.all([...document.querySelectorAll("script[data-column]")].map(async (script) => {
    columns[script.dataset.column] = await columnOf(script.textContent, script.dataset.kind);
    script.remove();
  }));
  return new Archive(columns);
}

const KINDS = {
  bytes: (buffer) => buffer,
  json: (buffer) => JSON.parse(new TextDecoder().decode(buffer)),
  i1: (buffer) => new Int8Array(buffer),
  f4: (buffer) => new Float32Array(buffer),
  f8: (buffer) => new Float64Array(buffer),
  varint: (buffer) => {
    const bytes = new Uint8Array(buffer), numbers = new Uint32Array(bytes.reduce((sum, byte) => sum + (byte < 128), 0));
    let at = 0, number = 0, scale = 1;
    for (const byte of bytes) {
      number += scale * (byte & 127);
      scale *= 128;
      if (byte >= 128) continue;
      numbers[at++] = number;
      number = 0;
      scale = 1;
    }
    return numbers;
  },
};

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const decoded = atob(base64), bytes = new Uint8Array(decoded.length); // in browsers before 2025
  for (let at = 0; at < bytes.length; at++) bytes[at] = decoded.charCodeAt(at);
  return bytes;
}

/** Decodes a column: base64 of gzip. */
export async function columnOf(text, kind) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return KINDS[kind](await new Response(stream).arrayBuffer());
}

const summed = (numbers) => numbers.map(((sum) => (number) => (sum += number))(0));

export class Archive {
  constructor(columns) {
    const { model, words, row_ids: ids, rows, scales, misspelt, own } = columns;
    const places = new Int32Array(words.length + model.buckets + model.arabic).fill(-1);
    ids.forEach((id, row) => (places[id] = row));
    this.encoder = new Encoder({ words, places, rows, scales, misspelt, own: summed(own), ...model });
    this.ranking = new Ranking({ ...columns, ...model }, this.encoder);
    this.columns = columns;
    this.rowOf = new Map(columns.ids.map((id, row) => [id, row]));
    this.stem = (word) => this.ranking.stem(word);
    const { info, corpus } = columns.facts;
    this.answers = {
      info: () => info, corpus: () => corpus, asked: () => columns.asked, topics: () => columns.topics, points: () => columns.points,
      search: (body) => body.queries.map((query) => this.search(query, body)),
      read: ({ queries }) => queries.map((query) => this.readAs(query)),
      unknown: ({ inputs }) => inputs.map((text) => this.unknownShare(text)),
      explain: ({ first, second }) => this.explain(first, second),
      messages: (body) => body.rows.map((row) => this.message(this.rowOf.get(columns.point_ids[row]))),
      similar: ({ id, top_k: most, where }) => this.similar(this.row(id), most, where),
      around: ({ id, context }) => this.around(this.row(id), context),
    };
  }

  row(id) {
    const row = this.rowOf.get(id);
    if (row === undefined) throw new Failure(404, `this file has no message with the id ${id.slice(0, 100)}.`);
    return row;
  }

  /** A message, and what is known about it. */
  message(row) {
    const { columns } = this, about = {};
    const note = (key, value) => (value !== undefined && value !== "" && !Number.isNaN(value) ? (about[key] = value) : null);
    for (const key of ["author", "source", "thread", "title"]) note(key, columns[`${key}_names`][columns[`${key}s`][row]]);
    note("time", columns.times[row]);
    note("link", columns.links[row]);
    if (columns.answers[row]) note("answers", columns.ids[columns.answers[row] - 1]);
    if (columns.confidence[row]) note("confidence", columns.confidence[row] / 100);
    return { id: columns.ids[row], text: columns.texts[row], about };
  }

  hit(row, score, context = 0) {
    const answered = this.columns.answers[row], [before, after] = this.messagesAround(row, context);
    return { ...this.message(row), score, before, after, answered: answered ? this.columns.texts[answered - 1] : null };
  }

  /** The words of a query that are read as other words, with these words; and the date in the query. */
  readAs(query) {
    const { words } = this.encoder, [named, date] = this.ranking.dateIn(query), { months } = this.columns.dates;
    const own = Object.entries(this.ranking.ownWords(query)), read = this.encoder.read(this.ranking.inOwnWords(query)).filter(({ word, id }) => id >= 0 && words[id] !== word).map(({ word, id }) => [word, words[id]]);
    const month = Object.keys(months).find((name) => months[name] === date[1])?.replace(/^./, (letter) => letter.toUpperCase());
    return Object.fromEntries([...read, ...own, ...(named ? [[named, [date[2], month, date[0]].filter(Boolean).join(" ")]] : [])]);
  }

  search(typed, { top_k: most = 10, mode = "semantic", where, context = 0, explain = false, typed: isTyped = false }) {
    const [said, conditions] = isTyped ? readQuery(typed) : [typed, {}];
    const query = this.ranking.inOwnWords(said);
    const hits = this.ranking.search(query, most, mode, this.absent({ ...where, ...conditions })).map(([row, score]) => this.hit(row, score, context));
    if (explain) for (const hit of hits) hit.why = this.why(query, hit.text);
    return hits;
  }

  similar(row, most, where) {
    const found = this.ranking.similar(row, most + 1, this.absent(where ?? {}));
    return found.filter(([other]) => other !== row).slice(0, most).map(([other, score]) => this.hit(other, score));
  }

  /** Returns which messages the conditions leave out; null if there are none. */
  absent(where) {
    if (!Object.keys(where).length) return null;
    const { columns, ranking } = this, tests = [];
    for (const key of ["author", "source", "thread"]) {
      if (!where[key]) continue;
      const wanted = [where[key]].flat().map((value) => value.toLowerCase()), names = columns[`${key}_names`].map((name) => name.toLowerCase());
      const unknown = wanted.find((value) => !names.includes(value));
      if (unknown !== undefined) throw new Failure(422, `no message has the ${key} '${unknown}'.`);
      tests.push((row) => wanted.includes(names[columns[`${key}s`][row]]));
    }
    const [since, until] = ["since", "until"].map((key) => where[key] && secondsOf(key, [where[key]].flat()[0]));
    if (since !== undefined) tests.push((row) => columns.times[row] >= since);
    if (until !== undefined) tests.push((row) => columns.times[row] < until);
    const having = (words) => wordsOf(words).map((word) => new Set(ranking.textsWith(this.stem(word)))).reduce((one, other) => one.intersection?.(other) ?? new Set([...one].filter((row) => other.has(row))));
    for (const phrase of where.phrase ?? []) {
      const rows = having(phrase), wanted = ` ${wordsOf(phrase).join(" ")} `;
      tests.push((row) => rows.has(row) && ` ${wordsOf(columns.texts[row]).join(" ")} `.includes(wanted));
    }
    for (const word of where.without ?? []) tests.push(((rows) => (row) => !rows.has(row))(having(word)));
    if (where.has) tests.push((row) => /\bhttps?\b/i.test(columns.texts[row]));
    return (row) => !tests.every((test) => test(row));
  }

  /** The messages before and after a message in its thread, or else in its channel. */
  messagesAround(row, context) {
    const places = context ? this.conversationOf(row) : [row], at = places.indexOf(row);
    return [places.slice(Math.max(at - context, 0), at), places.slice(at + 1, at + 1 + context)].map((rows) => rows.map((other) => this.message(other)));
  }

  conversationOf(row) {
    const { threads, sources, times, answers } = this.columns, thread = threads[row], source = sources[row];
    if (!thread && !source) return [row];
    const key = thread ? `thread ${thread}` : `source ${source}`;
    this.conversations ??= new Map();
    if (!this.conversations.has(key)) {
      const rows = [...threads.keys()].filter((one) => (thread ? threads[one] === thread : sources[one] === source && !(threads[one] && answers[one])));
      const later = (time) => (Number.isNaN(time) ? Infinity : time);
      this.conversations.set(key, rows.sort((a, b) => later(times[a]) - later(times[b]) || a - b));
    }
    return this.conversations.get(key);
  }

  around(row, context) {
    const far = this.hit(row, 0, Math.max(context, FURTHEST)), own = this.message(row), near = [...far.before, own, ...far.after];
    const linked = new Set([far.id]);
    for (let size = 0; size < linked.size; ) {
      size = linked.size;
      for (const { id, about } of near) if (linked.has(id) || linked.has(about.answers)) [id, about.answers ?? id].forEach((one) => linked.add(one));
    }
    const shown = new Set(near.map(({ id }) => id)), earlier = [...linked].filter((id) => !shown.has(id)).map((id) => this.message(this.rowOf.get(id)));
    const before = [...earlier.sort((a, b) => (a.about.time ?? 0) - (b.about.time ?? 0)), ...far.before.filter(({ id }) => linked.has(id))];
    const exchange = [...before.slice(-LONGEST), own, ...far.after.filter(({ id }) => linked.has(id)).slice(0, LONGEST)];
    return { ...far, before: far.before.slice(-context), after: far.after.slice(0, context), exchange };
  }

  unknownShare(text) {
    const words = this.encoder.read(text).filter(({ word }) => /\p{L}/u.test(word));
    return words.length ? words.filter(({ id }) => id < 0).length / words.length : 0;
  }

  /** The words that have rows, with the sums of these rows. */
  wordsWithRows(text) {
    const words = this.encoder.read(text).filter(({ rows }) => rows.length).map((word) => ({ ...word, row: this.encoder.sum(word.rows) }));
    return [words, words.reduce((sum, { row }) => sum.map((value, at) => value + row[at]), new Float64Array(this.encoder.width))];
  }

  explain(first, second) {
    const [[ours, one], [theirs, other]] = [first, second].map((text) => this.wordsWithRows(text)), scale = Math.sqrt(dot(one, one) * dot(other, other)) || 1;
    const contributions = ours.map(({ row }) => theirs.map((their) => dot(row, their.row) / scale));
    const named = (words) => words.map(({ word }) => ({ text: word }));
    return { cosine: contributions.flat().reduce((sum, value) => sum + value, 0), first: named(ours), second: named(theirs), contributions };
  }

  /** Which words of a text are related to a query. */
  why(query, text) {
    const wanted = new Set(wordsOf(query).map(this.stem)), [words, total] = this.wordsWithRows(text);
    const direction = unit(this.wordsWithRows(query)[1]), length = Math.sqrt(dot(total, total)) || 1;
    const located = words.filter(({ start, stop }) => start !== undefined && stop !== undefined);
    const shares = located.map(({ start, stop, row }) => [start, stop, dot(row, direction) / length]);
    const matches = located.filter(({ word }) => wanted.has(this.stem(word))).map(({ start, stop }) => [start, stop]);
    return { cosine: dot(total, direction) / length, words: shares, matches };
  }
}

const NAMES = { from: "author", in: "source", after: "since", before: "until", has: "has" };
const TYPED = /(?<!\S)(?:(?<name>from|in|before|after|has):(?<value>"[^"]+"|[^\s"]+)|-(?<without>\p{L}[\p{L}\p{M}\p{N}_'-]*)|"(?<phrase>[^"]+)")(?!\S)/gu;

/** What a person wants to find, and the conditions in the query. */
function readQuery(typed) {
  const where = {}, take = (key, value) => (where[key] = [...(where[key] ?? []), value]);
  const text = typed.replace(TYPED, (...found) => {
    const { name, value, without, phrase } = found.at(-1);
    if (without) take("without", without);
    if (phrase) take("phrase", phrase);
    if (name) take(NAMES[name], value.replaceAll('"', ""));
    return phrase ?? "";
  }).split(/\s+/).filter(Boolean).join(" ");
  if (Object.keys(where).length && !text) throw new Failure(422, "the query has only conditions; add words to search for.");
  return [Object.keys(where).length ? text : typed, where];
}

function secondsOf(key, date) {
  const seconds = Date.parse(`${date}T00:00:00Z`) / 1_000;
  if (Number.isNaN(seconds)) throw new Failure(422, `${key} must be a date such as 2024-01-31; got '${date}'.`);
  return seconds;
}
