// Encodes a text like the Python models of words: same tokens, corrections of misspelt words, rows, sum.
// It follows text/normalize.py, text/readings.py, text/vocabulary.py and text/features.py.

const WORD = "[\\p{L}\\p{M}]", SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const TOKEN = new RegExp(`${WORD}+(?:'${WORD}+)*|\\p{Nd}+|[^${SPACE}\\p{L}\\p{M}\\p{Nd}]`, "gu");
const QUOTES = { "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"' };
const ACCENTS = { "\u00b4": "'", "\u2032": "'" };
const replaced = (text, signs) => Object.entries(signs).reduce((made, [sign, other]) => made.replaceAll(sign, other), text);
const isLetter = (character) => /^[\p{L}\p{M}]/u.test(character);
const isCapital = (character) => character >= "A" && character <= "Z";

/** Removes marks from letters, and unifies letters that are often confused. */
const folded = (text) => replaced(text.normalize("NFKD").replace(/\p{Mn}+/gu, ""), { "\u0131": "i", "\u0649": "\u064a", "\u0629": "\u0647", "\u0640": "" });

/** NFKC, straight quotes, lower case. */
export const normalized = (text) => replaced(text.normalize("NFKC"), QUOTES).toLowerCase();

/** The same, but keeps ASCII capitals; accents used as apostrophes become apostrophes. */
function cased(text) {
  const plain = replaced(replaced(text, ACCENTS).normalize("NFKC"), QUOTES);
  if (plain.includes("\u0130")) return plain.toLowerCase();
  if (!plain.includes("\u03a3")) return plain.replace(/[^\x00-\x7f]+/g, (part) => part.toLowerCase());
  const small = [...plain.toLowerCase()]; // the small letter of a sigma depends on what is around it
  return [...plain].map((one, at) => (one < "\x80" ? one : small[at])).join("");
}

/** Tokens of a normalised text, as matches with their positions. */
export const tokensOf = (text) => [...text.matchAll(TOKEN)];

/** The words of a text, without punctuation. */
export const wordsOf = (text) => tokensOf(normalized(text)).map(([word]) => word).filter((word) => !/^\p{P}$/u.test(word));

const CRC = Uint32Array.from({ length: 256 }, (_, value) => {
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});
const crc32 = (bytes) => (bytes.reduce((sum, byte) => CRC[(sum ^ byte) & 255] ^ (sum >>> 8), -1) ^ -1) >>> 0;
const utf8 = new TextEncoder();

const GAMMA = 0x9e3779b97f4a7c15n, U64 = (1n << 64n) - 1n;
function mix64(value) {
  value = ((value ^ (value >> 30n)) * 0xbf58476d1ce4e5b9n) & U64;
  value = ((value ^ (value >> 27n)) * 0x94d049bb133111ebn) & U64;
  return value ^ (value >> 31n);
}

/** The key of a word in the list of words that are not misspellings. */
function keyOf(letters) {
  let power = 1n, sum = 0n;
  for (const letter of letters) {
    power = (power * GAMMA) & U64;
    sum += mix64(BigInt(letter.codePointAt(0))) * power;
  }
  return Number((sum & U64) >> 32n);
}

const LEAST = 4, MOST = 24, OTHER = -3, FIRST = -1, RANK = 100, SHORT = { 4: -1, 5: -0.5 };
const NONE = [-1, -Infinity], SURE = -12.5, LIKELY = -13.5, AGAIN = 2;
const ROWS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"], ENDINGS = ["s", "m", "d", "t", "re", "ve", "ll"];
const NEAR = new Set(ROWS.flatMap((keys, row) => [...keys].flatMap((key, at) => [keys[at + 1], ROWS[row + 1]?.[at], ROWS[row + 1]?.[at - 1]].filter(Boolean).flatMap((other) => [key + other, other + key]))));

export class Encoder {
  /**
   * `words`: known words, the most frequent first; `buckets`, `arabic`: of the letters of words, and of Arabic ones if these
   * have their own; `folds`: marks are left out; `corrects`: misspelt words stand for others; `places`: the row of each id, -1 for none;
   * `rows`: of `width` numbers each, times their `scales`; `misspelt`: words and what they stand for; `own`: keys of words
   * that are not misspelt, ascending.
   */
  constructor({ words, misspelt, ...rest }) {
    Object.assign(this, { ...rest, words, misspelt: new Map(misspelt) });
    this.index = new Map(words.map((word, at) => [word, at]));
    this.letters = [...new Set(words.filter((word) => isLetter(word)).join(""))];
    this.table = new Map(misspelt.flatMap(([wrong, right]) => (this.index.has(wrong) && this.index.has(right) ? [[this.index.get(wrong), this.index.get(right)]] : [])));
    this.whole = new Map(); // the word that a word and an end make, which old corpora part
    this.not = this.index.get("n't") ?? -1;
    for (const [word, id] of this.index) {
      const cut = word.lastIndexOf("'"), first = word.slice(0, Math.max(cut, 0)), last = word.slice(cut + 1);
      if (cut < 0) continue;
      if (ENDINGS.includes(last) && this.index.has(first) && this.index.has(last)) this.whole.set(`${this.index.get(first)} ${this.index.get(last)}`, id);
      if (last === "t" && this.index.has(first.slice(0, -1)) && this.not >= 0) this.whole.set(`${this.index.get(first.slice(0, -1))} ${this.not}`, id);
    }
    this.ends = new Set([...this.whole.keys()].map((pair) => Number(pair.split(" ")[1])));
    this.apostrophes = new Set(["'", "`"].flatMap((sign) => this.index.get(sign) ?? []));
    this.found = new Map();
  }

  /**
   * The tokens of a text: what each says, where it is in the text (`undefined` if normalising moved characters), the id of
   * a known word or -1, whether it is read `both` ways, and its rows.
   */
  read(text) {
    const plain = this.plain(text), tokens = tokensOf(plain.toLowerCase()), places = this.placesIn(text, plain);
    let read = tokens.map(({ 0: word, index }) => ({ word, start: places?.[index], stop: places?.[index + word.length], id: this.index.get(word) ?? -1, both: false }));
    if (this.corrects) {
      const marks = marksOf(plain, tokens, read);
      read.forEach((one, at) => Object.assign(one, { mark: marks[at], id: this.table.get(one.id) ?? one.id }));
      this.readUnknown(read);
      read = this.joined(read);
    }
    for (const one of read) {
      const row = one.id < 0 ? -1 : this.places[one.id];
      one.rows = row < 0 || one.both ? [...(row < 0 ? [] : [row]), ...this.rowsOfLetters(one.word)] : [row];
    }
    return read;
  }

  /** A normalised text, with ASCII capitals, which help to recognise names. */
  plain(text) {
    const whole = text.replace(/\p{Cs}/gu, "\ufffd"), bare = this.folds ? folded(whole) : whole;
    return this.corrects ? cased(bare) : normalized(bare);
  }

  /** For each position in the normalised text, the character of the text that it comes from, by code points. */
  placesIn(text, plain) {
    const parts = [...text].map((character) => this.plain(character));
    if (parts.join("").toLowerCase().replaceAll("ς", "σ") !== plain.toLowerCase().replaceAll("ς", "σ")) return null;
    return [...parts.flatMap((part, at) => Array(part.length).fill(at)), parts.length];
  }

  /** Gives unknown words the ids of the words that they likely stand for. */
  readUnknown(tokens) {
    const known = new Set(tokens.map(({ id }) => id)), times = new Map(), doubted = new Set();
    const likely = tokens.map(({ word, id, mark }) => {
      const [other, score] = id >= 0 || mark === "name" ? NONE : this.likely(word, mark);
      if (score >= LIKELY && score < Infinity) {
        times.set(other, (times.get(other) ?? 0) + 1);
        doubted.add(word);
      }
      return [other, score];
    });
    for (const [at, token] of tokens.entries()) {
      if (token.id >= 0) continue;
      let [id, score] = likely[at];
      if (doubted.has(token.word) && score > -Infinity && (known.has(id) || times.get(id) > 1)) score -= AGAIN;
      if (score < LIKELY) continue;
      token.both = score < SURE && this.buckets > 0;
      if (score >= SURE || token.both) token.id = id;
    }
  }

  /** The known word that a word most likely stands for, and how likely that is. */
  likely(word, mark) {
    const right = this.index.get(this.misspelt.get(word));
    if (right !== undefined) return [right, Infinity];
    if (mark === "foreign") return NONE;
    if (!this.found.has(word)) this.found.set(word, this.nearest([...word]));
    return this.found.get(word);
  }

  nearest(letters) {
    if (this.isOwn(letters)) return NONE;
    const [id, likely] = nearestOf(letters, this.index, this.letters);
    return [id, Math.fround(likely + (SHORT[letters.length] ?? 0))];
  }

  isOwn(letters) {
    const key = keyOf(letters);
    let low = 0, high = this.own.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.own[middle] < key) low = middle + 1;
      else high = middle;
    }
    return this.own[low] === key;
  }

  /** Joins words that old corpora split: `do n't`. */
  joined(tokens) {
    const kept = [...tokens];
    for (const [at, { id }] of tokens.entries()) {
      if (!this.ends.has(id) || tokens[at].both) continue;
      const back = at > 0 && !tokens[at - 1].both && this.apostrophes.has(tokens[at - 1].id) ? 2 : 1, first = kept[at - back];
      if (!first || first.both) continue;
      const together = this.whole.get(`${first.id} ${id}`);
      if (together === undefined || (back === 2) !== (id !== this.not)) continue;
      const parts = tokens.slice(at - back, at + 1);
      kept[at - back] = Object.assign(first, { id: together, word: parts.map(({ word }) => word).join(""), stop: parts.at(-1).stop });
      kept.fill(null, at - back + 1, at + 1);
    }
    return kept.filter(Boolean);
  }

  rowsOfLetters(word) {
    const edged = [..."<", ...word, ">"], rows = [], [first, buckets] = this.arabic && /^[\u0600-\u06ff]/.test(word) ? [this.buckets, this.arabic] : [0, this.buckets];
    if (!buckets) return rows;
    for (let length = 3; length <= 6; length++) {
      for (let at = 0; at + length <= edged.length; at++) rows.push(this.places[this.words.length + first + (crc32(utf8.encode(edged.slice(at, at + length).join(""))) % buckets)]);
    }
    return rows.filter((row) => row >= 0);
  }

  /** The sum of rows. */
  sum(rows) {
    const sum = new Float64Array(this.width);
    for (const row of rows) {
      const scale = this.scales[row], begin = row * this.width;
      for (let at = 0; at < this.width; at++) sum[at] += scale * this.rows[begin + at];
    }
    return sum;
  }

  /** The embedding of a text: of length 1, or of zeros. */
  encode(text) {
    return unit(this.sum(this.read(text).flatMap(({ rows }) => rows)));
  }
}

export const dot = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);

export function unit(vector) {
  const length = Math.sqrt(dot(vector, vector));
  return length ? vector.map((value) => value / length) : vector;
}

/** The words of an index that are one error from a word, by number, and how likely each error is without its number. */
function* oneErrorFrom(letters, index, alphabet) {
  const { length } = letters;
  if (length < LEAST || length > MOST || !isLetter(letters[0])) return;
  const known = (word, size) => index.has(word) && size >= LEAST && size <= MOST && isLetter(word);
  for (let at = 0; at <= length; at++) {
    const before = letters.slice(0, at).join(""), letter = letters[at], next = letters[at + 1], first = at ? 0 : FIRST;
    const after = letters.slice(at + 1).join(""), rest = letters.slice(at).join("");
    for (const other of alphabet) {
      if (known(before + other + rest, length + 1)) yield [before + other + rest, first];
      if (letter && known(before + other + after, length)) yield [before + other + after, first + (NEAR.has(letter + other) ? 0 : OTHER)];
    }
    if (letter && known(before + after, length - 1)) yield [before + after, first + (letter === letters[at - 1] || letter === next ? 0 : OTHER)];
    const swapped = next && before + next + letter + letters.slice(at + 2).join("");
    if (next && known(swapped, length)) yield [swapped, 0];
  }
}

function nearestOf(letters, index, alphabet) {
  let best = NONE;
  for (const [word, error] of oneErrorFrom(letters, index, alphabet)) {
    const number = index.get(word), likely = error - Math.log(number + RANK);
    if (likely > best[1]) best = [number, likely];
  }
  return best;
}

const SHORTEST = 5, LONG = 7, EASY = -0.5, ALPHABET = [..."abcdefghijklmnopqrstuvwxyz"];

/** The word in texts that is one error from a word, weighted by its frequency; of several, the likeliest. */
export function nearestWord(word, times) {
  const letters = [...word];
  if (letters.length < SHORTEST) return null;
  const near = new Set([...oneErrorFrom(letters, { has: (one) => times(one) > 0 }, ALPHABET)].map(([one]) => one));
  near.delete(word);
  const known = [...near].sort((a, b) => times(b) - times(a) || (a < b ? -1 : 1));
  const [number, likely] = nearestOf(letters, new Map(known.map((one, at) => [one, at])), ALPHABET);
  return number < 0 || (letters.length < LONG && likely + Math.log(number + RANK) < EASY) ? null : known[number];
}

/** Evidence on a text's unknown words: names are right, and so is most of a text in another language. */
function marksOf(text, tokens, read) {
  const found = [];
  let last = "", words = 0, strange = 0, small = false;
  for (const [at, { 0: word, index: start }] of tokens.entries()) {
    const letter = isLetter(word), first = text[start], stop = start + word.length, capital = isCapital(first);
    const late = /[A-Z]/.test(text.slice(start + 1, stop));
    found.push([late || (capital && last !== "" && (last === "word" || ",;-('&/".includes(last))), letter && isInCode(text, start, stop)]);
    if (letter) {
      words += 1;
      strange += read[at].id < 0;
      small ||= !capital && utf8.encode(word).length >= 4;
    }
    last = /^[\p{L}\p{M}\p{Nd}]/u.test(word) ? "word" : first;
  }
  const rest = strange >= 3 && 2.5 * strange >= words ? "foreign" : "";
  return found.map(([name, code]) => (code || (small && name) ? "name" : rest)); // where all have a capital, it tells nothing
}

function isInCode(text, start, stop) {
  const before = text[start - 1] ?? "", after = text[stop] ?? "", next = text[stop + 1] ?? "";
  return /^[0-9_@#$`\\]$/.test(before) || /^[0-9_@`\\]$/.test(after) || (after === "(" && next === ")") || (after === "." && /^[a-z0-9]$/.test(next)) || (before === "." && start > 1 && !" .\t\n\r".includes(text[start - 2]));
}
