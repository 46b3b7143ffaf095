// Search in the messages of the server: as you type, by meaning and words, with filters.

import { call } from "./api.js";
import { showConversation } from "./conversation.js";
import { bylineOf, dayOf, textOf } from "./message.js";
import { byId, element, following, keep, kept, noteUnknown, numberOf, show, svg } from "./tools.js";

const PAGE = 25, MOST = 100, EXPLAINED = 500, QUOTED = 140, AFTER = 3, TYPING = 250;
const FILTERS = ["source", "author", "since", "until"];
const wide = matchMedia("(min-width: 60rem)");

/** The current search: `like` is a message whose similar ones are searched instead of the query. */
let like = null;
/** Id of the message whose conversation the reader opened. */
let opened = null;
/** Whether only the exchange of the message is shown, for a conversation in a channel. */
let only = false;
let count = PAGE;
let facts = null;
/** The card whose conversation is shown. */
let open = null;
/** The search whose hits are shown, as JSON. */
let drawn = null;
let update = () => {};

export function startFind(corpus) {
  facts = corpus;
  byId("find-facts").textContent = factsOf(corpus);
  byId("find-filters").hidden = !corpus.sources.length && !corpus.authors.length && corpus.first === null;
  fill("find-source", corpus.sources, (name) => `#${name.replace(/^#/, "")}`);
  byId("find-authors").replaceChildren(...corpus.authors.map(([name]) => element("option", { value: name })));
  for (const id of ["find-source", "find-author"]) byId(id).closest("label").hidden = !corpus[{ "find-source": "sources", "find-author": "authors" }[id]].length;
  for (const id of ["find-since", "find-until"]) {
    byId(id).closest("label").hidden = corpus.first === null;
    if (corpus.first !== null) Object.assign(byId(id), { min: isoOf(corpus.first), max: isoOf(corpus.last) });
  }
  update = following(search, TYPING);
  listen();
  // the first search checks the files of the index, which takes a while
  if (!kept().has("q")) call("search", { queries: ["hello"], top_k: 1, mode: "hybrid" }, undefined, false).catch(() => {});
  return () => {
    read();
    update.now();
  };
}

function factsOf({ texts, first, last, authors, sources, read: words }) {
  const amount = (list, one, many) => (list.length ? `${list.length >= 1000 ? "1,000+" : list.length} ${list.length === 1 ? one : many}` : "");
  const dates = first === null ? "" : dayOf(first) === dayOf(last) ? dayOf(first) : `${dayOf(first)} – ${dayOf(last)}`;
  if (words) return [words, amount(sources, "channel", "channels"), dates].filter(Boolean).join(" · ");
  return [`${texts.toLocaleString("en")} messages`, amount(authors, "author", "authors"), amount(sources, "channel", "channels"), dates].filter(Boolean).join(" · ");
}

const isoOf = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 10);

function fill(id, names, label) {
  byId(id).append(...names.map(([name, many]) => element("option", { value: name }, `${label(name)} (${many.toLocaleString("en")})`)));
}

function listen() {
  const form = byId("find-form");
  const changed = (typed = false) => {
    count = PAGE;
    opened = null;
    keepSearch(typed);
    update();
  };
  byId("find-query").addEventListener("input", () => {
    like = null;
    changed(true);
  });
  byId("find-options").addEventListener("click", (event) => {
    event.target.setAttribute("aria-expanded", String(form.classList.toggle("all")));
  });
  addEventListener("resize", showCut);
  form.addEventListener("change", (event) => event.target.id !== "find-query" && changed());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    drawn = null; // the index may have grown
    changed();
  });
  byId("find-clear").addEventListener("click", () => {
    for (const name of FILTERS) byId(`find-${name}`).value = "";
    changed();
  });
  byId("find-unlike").addEventListener("click", () => {
    like = null;
    changed();
    byId("find-query").focus();
  });
  byId("find-more").addEventListener("click", () => {
    count = Math.min(MOST, 3 * count);
    update();
  });
  byId("find-query").addEventListener("keydown", (event) => event.key === "ArrowDown" && move(event, -1, 1));
  byId("find-hits").addEventListener("keydown", onKey);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || byId("find").hidden || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    byId("find-query").select();
  });
}

const cards = () => [...byId("find-hits").children];

/** Arrow keys move from hit to hit. */
function onKey(event) {
  const at = cards().indexOf(event.target);
  if (at < 0) return;
  if (event.key === "ArrowDown") move(event, at, 1);
  else if (event.key === "ArrowUp") move(event, at, -1);
  else if (event.key === "Enter") event.target.querySelector(".conversation")?.click();
}

function move(event, at, step) {
  const next = at + step < 0 ? byId("find-query") : cards()[at + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
  if (wide.matches && facts.threads && next !== byId("find-query")) showThread(next);
}

/** Conditions on messages, in the server's form. */
function where() {
  const found = {};
  for (const name of ["source", "author", "since"]) {
    const value = byId(`find-${name}`).value.trim();
    if (value) found[name] = value;
  }
  const until = byId("find-until").value;
  if (until) found.until = isoOf(Date.parse(until) / 1000 + 86_400);
  return Object.keys(found).length ? found : null;
}

async function search(signal) {
  const query = byId("find-query").value.trim(), conditions = where();
  const mode = modeOf();
  byId("find-clear").hidden = !conditions;
  byId("find-options").textContent = conditions ? "Options •" : "Options";
  if (like && like.text === undefined) like = await messageOf(like.id, signal);
  byId("find-liked").hidden = !like;
  byId("find-like").textContent = like ? quoteOf(like.text) : "";
  byId("find-start").hidden = Boolean(query || like || opened);
  byId("find-results").hidden = !query && !like && !opened;
  const asked = JSON.stringify([query, mode, conditions, like?.id, count]);
  if (asked === drawn) return showOpened(signal);
  drawn = null;
  if (!query && !like) {
    draw([], "");
    byId("find-note").textContent = "";
    byId("find-more").hidden = true;
    show("unknown", "");
    return showOpened(signal);
  }
  const begun = performance.now();
  byId("find-hits").setAttribute("aria-busy", "true");
  let hits;
  try {
    hits = like
      ? await call("similar", { id: like.id, top_k: count, ...(conditions && { where: conditions }) }, signal)
      : (await call("search", { queries: [query], top_k: count, mode, ...(conditions && { where: conditions }), ...(facts.threads && { context: AFTER }), explain: true, typed: true }, signal))[0];
  } catch (error) {
    if (!signal.aborted) {
      draw([], ""); // those of the search before would seem to be found
      byId("find-note").textContent = "";
      byId("find-more").hidden = true;
    }
    throw error;
  } finally {
    byId("find-hits").removeAttribute("aria-busy");
  }
  const milliseconds = Math.max(1, Math.round(performance.now() - begun));
  draw(hits, like ? like.text : query, like || mode === "semantic");
  drawn = asked;
  await showOpened(signal);
  byId("find-note").textContent = hits.length ? `The best ${hits.length} of ${facts.texts.toLocaleString("en")}, in ${milliseconds} ms` : emptyOf(mode, conditions);
  byId("find-more").hidden = hits.length < count || count >= MOST;
  if (like) return show("unknown", "");
  const [words] = await call("read", { queries: [query] }, signal, false);
  const others = Object.entries(words).map(([word, other]) => `${word} as ${other}`);
  if (others.length) byId("find-note").textContent += `. Reads ${others.join(", ")}.`;
  return noteUnknown({ "the query": query }, signal);
}

function emptyOf(mode, conditions) {
  if (conditions) return "No message meets these conditions.";
  if (mode === "hybrid") return "Nothing close was found. Search by meaning for what is nearest.";
  return mode === "words" ? "No message has one of these words. Search by meaning as well." : "There is no message.";
}

const modeOf = () => document.querySelector("[name=find-mode]:checked").value;

/** A message by its id. */
const messageOf = (id, signal) => call("around", { id, context: 1 }, signal, false);

/** Shows hits. Hits of a search by meaning alone are ordered by similarity, which is shown with them. */
function draw(hits, query, measured = false) {
  open = null;
  byId("find-hits").replaceChildren(...folded(hits).map(([hit, ...same]) => cardOf(hit, same, query, measured)));
  byId("find-thread").replaceChildren();
  showCut();
}

/** Offers to unfold texts that do not fit. */
function showCut() {
  if (byId("find").hidden) return;
  for (const text of byId("find-hits").querySelectorAll(".text.folded")) {
    text.closest(".hit").querySelector(".all").hidden = !text.dataset.cut && text.scrollHeight <= text.clientHeight;
  }
}

/** Shows the conversation of the message in the address, or, if there is room, of the best hit. */
async function showOpened(signal) {
  let card = cards().find((one) => one.dataset.id === opened);
  if (opened && !card) {
    const message = await messageOf(opened, signal);
    if (signal.aborted) return;
    byId("find-hits").prepend(card = cardOf(message, [], ""));
    showCut();
  }
  if (!card && wide.matches && facts.threads) [card] = cards();
  if (card && card !== open) await showThread(card);
  else if (!card && open) closeThreads();
}

/** Returns a name for a mail's thread, which has a subject. */
const nameOfThread = ({ about }) => (about?.title && about.thread ? `thread ${about.thread}` : null);

/** Groups hits that are mails of a thread, or say the same: a bot says it to one person after another. */
function folded(hits) {
  const groups = new Map();
  for (const hit of hits) {
    const said = hit.text.toLowerCase().replace(/^\S{1,30}[:,] (?=(?:\S+ ){4})/, "");
    const words = nameOfThread(hit) ?? said.match(/[\p{L}\p{N}']+/gu)?.join(" ") ?? hit.text;
    groups.set(words, [...(groups.get(words) ?? []), hit]);
  }
  return [...groups.values()];
}

const quoteOf = (text) => (text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text);

function cardOf(hit, same, query, measured) {
  const card = element("li", { class: "hit", tabindex: 0, "data-id": hit.id });
  const head = element("div", { class: "hit-head" }, bylineOf(hit), ...(measured ? [meterOf(hit.score)] : []));
  hitOf.set(card, hit);
  const actions = element("div", { class: "hit-actions" });
  const action = (label, name, run) => {
    const button = element("button", { type: "button", class: name }, label);
    button.addEventListener("click", () => run(button));
    actions.append(button);
  };
  if (facts.threads) {
    action("Conversation", "conversation", () => {
      const close = open === card && !wide.matches;
      opened = close ? null : hit.id;
      keepSearch();
      if (close) closeThreads();
      else showThread(card);
    });
  }
  action("More like this", "alike", () => {
    like = hit;
    opened = null;
    count = PAGE;
    byId("find-query").value = "";
    keepSearch();
    update();
    scrollTo({ top: 0 });
  });
  if (hit.why?.cosine) action("Why?", "because", (button) => showWhy(card, hit, query, button));
  const { paragraph, cut } = textOf(hit);
  if (cut) paragraph.dataset.cut = "1";
  action("Show all", "all", (button) => {
    const whole = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(whole));
    button.textContent = whole ? "Show less" : "Show all";
    card.querySelector(".text").replaceWith(whole ? textOf(hit, true).paragraph : paragraph);
  });
  card.append(head);
  if (hit.about?.title) card.append(element("p", { class: "subject", dir: "auto" }, hit.about.title));
  if (hit.answered) card.append(element("p", { class: "answered", dir: "auto" }, element("span", { class: hit.about.confidence ? "" : "unseen" }, hit.about.confidence ? "Probably in answer to: " : "In answer to: "), quoteOf(hit.answered)));
  if (same.length) {
    const says = same.length === 1 ? "says" : "say";
    action(`${same.length} more ${nameOfThread(hit) ? "of this thread" : `${says} the same`}`, "same", (button) => {
      button.remove();
      card.after(...same.map((one) => cardOf(one, [], query, measured)));
      showCut();
    });
  }
  card.append(paragraph);
  const reply = hit.after?.find(({ about }) => about.answers === hit.id && (!about.author || about.author !== hit.about.author));
  if (reply) card.append(element("p", { class: "answered replied", dir: "auto" }, element("b", {}, `${reply.about.confidence ? "Probably answered" : "Answered"}${reply.about.author ? ` by ${reply.about.author}` : ""}: `), quoteOf(reply.text)));
  card.append(actions);
  return card;
}

/** The similarity as a number and a bar. */
function meterOf(cosine) {
  const bar = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
  bar.append(svg("rect", { class: "rail", width: 100, height: 6 }), svg("rect", { class: "fill", width: 100 * Math.max(0, Math.min(1, cosine)), height: 6 }));
  return element("span", { class: "meter", title: "Similarity of meaning (cosine)" }, bar, element("span", { class: "value" }, numberOf(cosine)));
}

/** The message of each card. */
const hitOf = new WeakMap();

function closeThreads() {
  open = null;
  byId("find-thread").replaceChildren();
  for (const other of cards()) {
    other.classList.remove("open");
    other.querySelector(".conversation")?.setAttribute("aria-expanded", "false");
    other.querySelector(".inline")?.remove();
  }
}

async function showThread(card) {
  closeThreads();
  open = card;
  card.classList.add("open");
  card.querySelector(".conversation")?.setAttribute("aria-expanded", "true");
  let place = byId("find-thread");
  if (!wide.matches) {
    place = element("div", { class: "inline" });
    card.append(place);
  }
  await showConversation(place, hitOf.get(card), only, (chosen) => {
    only = chosen;
    opened = card.dataset.id;
    keepSearch();
  });
}

/** Shows which words of the query fit which words of the message. */
async function showWhy(card, hit, query, button) {
  const shown = card.querySelector(".reasons");
  button.setAttribute("aria-expanded", String(!shown));
  if (shown) return shown.remove();
  const reasons = element("p", { class: "reasons" });
  card.querySelector(".hit-actions").before(reasons);
  if (query.length > EXPLAINED || hit.text.length > EXPLAINED) {
    const characters = [...hit.text];
    const strongest = hit.why.words.filter(([, , share]) => share > 0.02).sort((a, b) => b[2] - a[2]).slice(0, 5);
    return reasons.append("Words that fit: ", ...strongest.map(([start, stop, share]) => chipOf(characters.slice(start, stop).join(""), share)));
  }
  const { first, second, contributions } = await call("explain", { first: query, second: hit.text }, undefined, false);
  const pairs = contributions.flatMap((row, i) => row.map((value, j) => [value, `${first[i].text} · ${second[j].text}`]));
  const strongest = pairs.filter(([value]) => value > 0.02).sort((a, b) => b[0] - a[0]).slice(0, 5);
  return reasons.append("Your word · its word: ", ...strongest.map(([value, words]) => chipOf(words, value)));
}

const chipOf = (words, share) => element("span", { class: "chip" }, `${words} `, element("b", {}, `+${share.toFixed(2)}`));

/** Stores the search in the address. */
function keepSearch(typed = false) {
  const mode = modeOf();
  const filters = FILTERS.map((name) => [name, byId(`find-${name}`).value]);
  keep("find", { q: byId("find-query").value.trim(), mode: mode === "hybrid" ? "" : mode, ...Object.fromEntries(filters), like: like?.id, open: opened, only: only && 1 }, typed);
}

/** Reads the search from the address. */
function read() {
  const values = kept(), id = values.get("like");
  if (byId("find-query").value.trim() !== (values.get("q") ?? "")) byId("find-query").value = values.get("q") ?? "";
  for (const name of FILTERS) byId(`find-${name}`).value = values.get(name) ?? "";
  like = id === null ? null : like?.id === id ? like : { id };
  opened = values.get("open");
  if (only !== values.has("only")) closeThreads();
  only = values.has("only");
  const mode = document.querySelector(`[name=find-mode][value="${CSS.escape(values.get("mode") ?? "hybrid")}"]`);
  if (mode) mode.checked = true;
}
