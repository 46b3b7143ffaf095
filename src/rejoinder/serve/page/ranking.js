// Search by words, by meaning and by both, in messages that are all in memory.
// It follows index/matching.py, index/matcher.py and index/ranking.py, which explain the reasons.

import { nearestWord, unit, wordsOf } from "./encode.js";

const OFTEN = 20, LONG = 7, FREQUENT = 50, RARE = 1_000, K1 = 0.9, B = 0.2;
const DEPTH = 30, MOST_BY = 0.8, APART = 6 * 3_600, ASKED = 0.5, AROUND = 0.2, ADJACENT = 0.3, FAR = 0.1, BY = 0.2;
const ON = 0.15, TOGETHER = 0.2, ENDS = 0.08, SHORT = 0.25, LENGTH = 0.01, FEW = 3, CLOSE = 0.4, ENDING = 8, READ = 20;

export class Ranking {
  constructor(columns, encoder) {
    Object.assign(this, columns, { encoder, count: columns.texts.length });
    this.mean = sum(this.lengths) / Math.max(this.count, 1);
    this.numbers = new Map([...encoder.words, ...columns.spellings].map((word, at) => [word, at]));
    this.postings = new Map();
    let begin = 0;
    for (const stem of columns.stems) {
      if (this.postings.has(stem)) continue;
      const end = begin + (columns.having[this.postings.size] ?? 0);
      this.postings.set(stem, [begin, end]);
      let row = -1;
      for (let at = begin; at < end; at++) columns.having_rows[at] = row += columns.having_rows[at] + 1;
      begin = end;
    }
    this.putInOrder();
    this.named = new Map();
    this.author_names.forEach((name, number) => new Set(wordsOf(name)).forEach((word) => this.named.set(word, [...(this.named.get(word) ?? []), number])));
    this.written = new Uint32Array(this.author_names.length);
    for (const author of this.authors) this.written[author] += 1;
    this.newest = this.times.reduce((most, time) => (time > most ? time : most), -Infinity);
  }

  /** Orders messages by thread, or else by channel. */
  putInOrder() {
    const group = Float64Array.from(this.threads, (thread, row) => thread || -this.sources[row]), { times } = this;
    const later = (time) => (Number.isNaN(time) ? Infinity : time);
    this.order = [...group.keys()].filter((row) => group[row]).sort((a, b) => group[a] - group[b] || later(times[a]) - later(times[b]) || a - b);
    this.places = new Int32Array(this.count).fill(-1);
    this.runs = new Uint32Array(this.order.length);
    for (const [at, row] of this.order.entries()) {
      const before = this.order[at - 1];
      this.places[row] = at;
      this.runs[at] = at && this.runs[at - 1] + (group[before] !== group[row] || (group[row] < 0 && times[row] - times[before] > APART));
    }
  }

  /** The message this many places after or before a message; -1 if there is none. */
  near(row, distance) {
    const place = this.places[row], other = place + distance;
    return place >= 0 && this.runs[other] === this.runs[place] ? this.order[other] : -1;
  }

  stem = (word) => this.stems[this.numbers.get(word)] ?? word;

  /** How often a word occurs in the messages exactly as written. */
  timesOf = (word) => this.spelt[this.numbers.get(word)] ?? 0;

  /** Words of a query that likely stand for words of the messages, with these words (`own_words` in index/words.py). */
  ownWords(query) {
    const { encoder } = this, found = {}, read = encoder.read(query), isListed = (word) => encoder.misspelt.has(word);
    const unknown = read.filter(({ word }) => !encoder.index.has(word) && !encoder.isOwn([...word]));
    if (!encoder.corrects || !read.some(({ word }) => isListed(word) || (!encoder.index.has(word) && !this.timesOf(word)))) return found;
    const others = new Map(read.filter(({ word, id }) => id >= 0 && encoder.words[id] !== word).map(({ word, id }) => [word, encoder.words[id]]));
    const marks = new Map([...[...others.keys()].map((word) => [word, ""]), ...unknown.map(({ word, mark }) => [word, mark])]);
    for (const [word, mark] of marks) {
      const times = this.timesOf(word), other = others.get(word);
      if (times && !isListed(word)) continue;
      const near = nearestWord(word, this.timesOf) ?? other;
      if (!near || this.timesOf(near) <= OFTEN * times) continue;
      if (other || mark !== "name" || (word.length >= LONG && !encoder.index.has(near))) found[word] = near;
    }
    return found;
  }

  /** A query with replaced words. Capitals stay, as they help to recognise names. */
  inOwnWords(query) {
    const words = this.ownWords(query), characters = [...query];
    for (const { word, start, stop } of Object.keys(words).length ? this.encoder.read(query).reverse() : []) {
      if (!(word in words) || start === undefined || stop === undefined) continue;
      const written = characters.slice(start, stop).join(""), right = words[word];
      const isUpper = written.slice(1) !== written.slice(1).toLowerCase(), isCapital = written[0] !== written[0].toLowerCase();
      characters.splice(start, stop - start, isUpper ? right.toUpperCase() : isCapital ? right[0].toUpperCase() + right.slice(1) : right);
    }
    return characters.join("");
  }

  textsWith(stem) {
    const [begin, end] = this.postings.get(stem) ?? [0, 0];
    return this.having_rows.subarray(begin, end);
  }

  rarity(word) {
    const rank = this.encoder.index.get(word);
    if (rank === undefined || rank >= RARE) return 1;
    return rank <= FREQUENT ? 0 : Math.round(1_000 * Math.min(1, Math.log((rank + 1) / FREQUENT) / Math.log(RARE / FREQUENT))) / 1_000;
  }

  /** BM25 of all messages, and the largest possible value. */
  byWords(query, names = new Set()) {
    const written = wordsOf(withDigitsInWords(query)), weights = new Map(written.map((word) => [this.stem(word), 0]));
    for (const word of written) {
      const stem = this.stem(word);
      if (!names.has(word)) weights.set(stem, weights.get(stem) + Math.min(this.rarity(word), this.rarity(stem)));
    }
    if (![...weights.values()].some(Boolean)) written.forEach((word) => weights.set(this.stem(word), weights.get(this.stem(word)) + 1));
    const idf = (stem) => Math.log1p((this.count - this.textsWith(stem).length + 0.5) / (this.textsWith(stem).length + 0.5));
    const wanted = [...weights].filter(([, weight]) => weight).map(([stem, weight]) => [stem, idf(stem), weight]).sort((a, b) => b[1] - a[1]);
    const scores = new Float64Array(this.count);
    for (const [stem, rare, weight] of wanted) {
      const [begin, end] = this.postings.get(stem) ?? [0, 0];
      for (let at = begin; at < end; at++) {
        const row = this.having_rows[at], times = this.having_times[at];
        scores[row] += rare * weight * (times / (times + K1 * (1 - B + (B / this.mean) * this.lengths[row])));
      }
    }
    return { scores, most: Math.max(wanted.reduce((sum, [, rare, weight]) => sum + rare * weight, 0), 1e-9) };
  }

  /** Cosines of all messages with a vector: each is a sum of terms, and terms are sums of rows, so only rows are compared. */
  byMeaning(vector) {
    const { rows, scales, width } = this.encoder, dots = new Float64Array(this.used);
    for (let row = 0; row < this.used; row++) {
      let even = 0, odd = 0; // two sums are added at a time
      for (let at = 0, place = row * width; at < width; at += 2, place += 2) {
        even += vector[at] * rows[place];
        odd += vector[at + 1] * rows[place + 1];
      }
      dots[row] = (even + odd) * scales[row];
    }
    const sums = sumsOf(this.message_sizes, this.message_terms, sumsOf(this.term_sizes, this.term_rows, dots));
    return sums.map((sum, row) => (this.norms[row] ? sum / this.norms[row] : 0));
  }

  /** The messages nearest to a message. */
  similar(row, most, absent) {
    const begin = sum(this.message_sizes.subarray(0, row)), terms = this.message_terms.subarray(begin, begin + this.message_sizes[row]);
    const rows = [...terms].flatMap((term) => {
      const first = sum(this.term_sizes.subarray(0, term));
      return [...this.term_rows.subarray(first, first + this.term_sizes[term])];
    });
    return best(this.byMeaning(unit(this.encoder.sum(rows))), most, absent);
  }

  /** The best messages, as pairs of a row and a score. Rows with `absent(row)` are not found. */
  search(query, most, mode, absent = null) {
    if (mode === "words") return best(this.byWords(query).scores, most, absent, 0);
    const cosines = this.byMeaning(this.encoder.encode(query));
    if (mode === "semantic") return best(cosines, most, absent);
    const names = this.namesIn(query), words = this.byWords(query, names), asked = this.askedBy(query, names), depth = Math.max(most, DEPTH);
    const found = [...(this.weight > 0 ? [best(cosines, depth, absent)] : []), ...(this.weight < 1 ? [best(words.scores, depth, absent, 0)] : [])];
    const isNamed = asked.authors || asked.date.some(Boolean);
    if (!absent && !isNamed && found.length > 1 && !found[1].length && !(found[0][0]?.[1] >= CLOSE)) return [];
    const rows = new Set(found.flat().flatMap(([row]) => [row, this.near(row, -1), this.near(row, 1)]));
    const candidates = [...rows].filter((row) => row >= 0 && !absent?.(row)).sort((a, b) => a - b);
    const scored = candidates.map((row) => [row, (1 - this.weight) * this.factsOf(row, words, asked) + this.weight * this.meantBy(row, cosines)]);
    ordered(scored);
    if (!asked.pairs.length) return scored.slice(0, most);
    for (const one of scored.slice(0, READ)) one[1] += ((1 - this.weight) * TOGETHER * this.sideBySide(one[0], asked.pairs)) / asked.pairs.length;
    return ordered(scored).slice(0, most);
  }

  /** Scores that a message and its neighbours get; repeated messages add nothing. */
  around(row, valueOf) {
    const own = valueOf(row);
    return [own, ...[-2, -1, 1, 2].map((distance) => {
      const other = this.near(row, distance), value = other < 0 ? 0 : valueOf(other);
      return value === own ? 0 : value;
    })];
  }

  factsOf(row, { scores, most }, asked) {
    const depends = !this.titles[row];
    if (!this.are_known) return scores[row] / most;
    const [own, farBefore, before, after, farAfter] = this.around(row, (one) => scores[one] / most);
    const last = this.near(row, -1), isSame = last >= 0 && this.authors[row] > 0 && this.authors[last] === this.authors[row];
    const fromBefore = last < 0 ? 0 : isSame ? AROUND : this.asks[last] ? ASKED : 0;
    let sum = own;
    if (depends) sum += before * fromBefore + AROUND * (after + farBefore + farAfter) + LENGTH * Math.log1p(this.lengths[row]) - (this.asks[row] > 1 ? ENDS : 0) - (this.lengths[row] <= FEW ? SHORT : 0);
    return sum + (asked.authors?.has(this.authors[row]) ? BY : 0) + ON * partsOfDate(asked.date, this.times[row]);
  }

  meantBy(row, cosines) {
    if (!this.are_known) return cosines[row];
    const [own, farBefore, before, after, farAfter] = this.around(row, (one) => cosines[one]);
    return this.titles[row] ? own : own + ADJACENT * (before + after) + FAR * (farBefore + farAfter);
  }

  namedBy = (word) => this.named.get(word.replace(/'s$/, "")) ?? [];

  /** Words of a query that name an author rather than a subject of texts. */
  namesIn(query) {
    return new Set(wordsOf(query).filter((word) => {
      const count = this.namedBy(word).reduce((sum, author) => sum + this.written[author], 0);
      return count > 0 && count < MOST_BY * this.count && count >= this.textsWith(this.stem(word.replace(/'s$/, ""))).length;
    }));
  }

  askedBy(query, names) {
    const words = wordsOf(query), says = words.map((word) => !names.has(word) && this.rarity(word) > 0);
    const stems = words.map(this.stem).map((one) => ([...one].length > 3 ? one.slice(0, -1) : one));
    const pairs = stems.slice(1).flatMap((stem, at) => (says[at] || says[at + 1] ? [[stems[at], stem]] : []));
    const [, date] = this.dateIn(query);
    return { date, pairs, authors: names.size ? new Set([...names].flatMap(this.namedBy)) : null };
  }

  /** The words of a query that name a date, with its year, month and day, 0 where missing. */
  dateIn(query) {
    const { patterns, last, months, holidays } = this.dates, text = query.toLowerCase();
    const found = patterns.map((pattern) => patternOf(pattern).exec(text)).find(Boolean);
    if (!found) return ["", [0, 0, 0]];
    const { year = 0, month, number = 0, day = 0, holiday } = found.groups;
    const date = [Number(year), ...(holidays[holiday] ?? [months[month] ?? Number(number), Number(day)])];
    if (date[1] && !date[0] && Number.isFinite(this.newest) && patternOf(last).test(text)) {
      const now = new Date(1_000 * this.newest);
      date[0] = now.getUTCFullYear() - (date[1] > now.getUTCMonth() + 1);
    }
    return [found[0], date];
  }

  sideBySide(row, pairs) {
    const title = this.title_names[this.titles[row]];
    const text = `${title ? `${title} ` : ""}${this.texts[row]}`.toLowerCase();
    return pairs.filter(([first, second]) => follows(text, first, second)).length;
  }
}

const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);

/** Sums of groups of values: group sizes are given, one group after the other, by position. */
function sumsOf(sizes, places, values) {
  const sums = new Float64Array(sizes.length);
  for (let number = 0, at = 0; number < sizes.length; number++) {
    for (const end = at + sizes[number]; at < end; at++) sums[number] += values[places[at]];
  }
  return sums;
}

/** Sorts pairs by their second element, largest first. */
const ordered = (pairs) => pairs.sort((a, b) => b[1] - a[1] || a[0] - b[0]);

function best(scores, most, absent, above = -Infinity) {
  const found = [];
  let least = above;
  const cut = () => (ordered(found).length = Math.min(most, found.length));
  for (let row = 0; row < scores.length; row++) {
    if (!(scores[row] > least) || absent?.(row)) continue;
    if (found.push([row, scores[row]]) < 4 * most) continue;
    cut();
    least = found[most - 1][1]; // of equal ones the first stays
  }
  cut();
  return found;
}

/** Treats digits next to letters as letters, so that both are one word. */
const withDigitsInWords = (text) => text.replace(/(?<=\p{L})\p{Nd}+|(?<!\p{Nd})\p{Nd}+(?=\p{L})/gu, (digits) => digits.replace(/[0-9]/g, (digit) => String.fromCodePoint(0x10000 + Number(digit))));

function follows(text, first, second) {
  if (first.length < second.length) {
    for (let at = text.indexOf(second); at >= 0; at = text.indexOf(second, at + 1)) {
      if (text.slice(Math.max(at - ENDING - first.length, 0), Math.max(at - 1, 0)).includes(first)) return true;
    }
    return false;
  }
  for (let at = text.indexOf(first); at >= 0; at = text.indexOf(first, at + first.length)) {
    const end = at + first.length;
    if (text.slice(end + 1, end + ENDING + second.length).includes(second)) return true;
  }
  return false;
}

const BORDER = "(?:(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_])|(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_]))";
/** Translates a pattern of Python, whose words may have any letters. */
const patternOf = (pattern) => new RegExp(pattern.replaceAll("(?P<", "(?<").replaceAll("\\b", BORDER), "u");

function partsOfDate(date, time) {
  if (!date.some(Boolean) || Number.isNaN(time)) return 0;
  const when = new Date(1_000 * time), parts = [when.getUTCFullYear(), when.getUTCMonth() + 1, when.getUTCDate()];
  return parts.filter((part, at) => date[at] && part === date[at]).length;
}
