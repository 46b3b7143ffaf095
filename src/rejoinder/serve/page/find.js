// Search in the messages of the server: as you type, by meaning and words, with filters.

import { call } from "./api.js";
import { showConversation } from "./conversation.js";
import { bylineOf, dayOf, textOf } from "./message.js";
import { byId, element, following, noteUnknown, numberOf, show, svg } from "./tools.js";

const PAGE = 25, MOST = 100, EXPLAINED = 500, QUOTED = 140;
const wide = matchMedia("(min-width: 60rem)");

/** What is searched for: `like` is a message whose like are searched instead of the query. */
let like = null;
let count = PAGE;
let facts = null;
let open = null;
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
  read();
  update = following(search, 60);
  listen();
  // the first search checks the files of the index, which takes a while
  call("search", { queries: ["hello"], top_k: 1, mode: "hybrid" }, undefined, false).catch(() => {});
  return () => {
    if (location.hash.includes("?")) read(); // by a link or Back
    update();
  };
}

function factsOf({ texts, first, last, authors, sources }) {
  const amount = (list, one, many) => (list.length ? `${list.length >= 1000 ? "1,000+" : list.length} ${list.length === 1 ? one : many}` : "");
  const dates = first === null ? "" : dayOf(first) === dayOf(last) ? dayOf(first) : `${dayOf(first)} – ${dayOf(last)}`;
  return [`${texts.toLocaleString("en")} messages`, amount(authors, "author", "authors"), amount(sources, "channel", "channels"), dates].filter(Boolean).join(" · ");
}

const isoOf = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 10);

function fill(id, names, label) {
  byId(id).append(...names.map(([name, many]) => element("option", { value: name }, `${label(name)} (${many.toLocaleString("en")})`)));
}

function listen() {
  const form = byId("find-form");
  const changed = () => {
    count = PAGE;
    update();
  };
  byId("find-query").addEventListener("input", () => {
    like = null;
    changed();
  });
  form.addEventListener("change", (event) => event.target.id !== "find-query" && changed());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    changed();
  });
  byId("find-clear").addEventListener("click", () => {
    for (const id of ["find-source", "find-author", "find-since", "find-until"]) byId(id).value = "";
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

/** Arrows go from hit to hit. */
function onKey(event) {
  const at = cards().indexOf(event.target);
  if (at < 0) return;
  if (event.key === "ArrowDown") move(event, at, 1);
  else if (event.key === "ArrowUp") move(event, at, -1);
  else if (event.key === "Enter") event.target.querySelector(".conversation").click();
}

function move(event, at, step) {
  const next = at + step < 0 ? byId("find-query") : cards()[at + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
  if (wide.matches && next !== byId("find-query")) next.querySelector(".conversation").click();
}

/** Conditions on messages, as the server takes them. */
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
  const mode = document.querySelector("[name=find-mode]:checked").value;
  keep(query, mode);
  byId("find-clear").hidden = !conditions;
  byId("find-liked").hidden = !like;
  byId("find-like").textContent = like ? quoteOf(like.text) : "";
  byId("find-start").hidden = Boolean(query || like);
  byId("find-results").hidden = !query && !like;
  if (!query && !like) {
    byId("find-note").textContent = "";
    return show("unknown", "");
  }
  const begun = performance.now();
  byId("find-hits").setAttribute("aria-busy", "true");
  let hits;
  try {
    hits = like
      ? await call("similar", { id: like.id, top_k: count, ...(conditions && { where: conditions }) }, signal)
      : (await call("search", { queries: [query], top_k: count, mode, ...(conditions && { where: conditions }), explain: true, typed: true }, signal))[0];
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
  draw(hits, like ? like.text : query);
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
  return mode === "words" ? "No message has one of these words. Search by meaning as well." : "There is no message.";
}

function draw(hits, query) {
  open = null;
  byId("find-hits").replaceChildren(...folded(hits).map(([hit, ...same]) => cardOf(hit, same, query)));
  byId("find-thread").replaceChildren();
  if (wide.matches && hits.length && facts.threads) cards()[0].querySelector(".conversation").click();
}

/** Puts hits together that say the same. */
function folded(hits) {
  const groups = new Map();
  for (const hit of hits) {
    const words = hit.text.toLowerCase().match(/[\p{L}\p{N}']+/gu)?.join(" ") ?? hit.text;
    groups.set(words, [...(groups.get(words) ?? []), hit]);
  }
  return [...groups.values()];
}

const quoteOf = (text) => (text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text);

function cardOf(hit, same, query) {
  const card = element("li", { class: "hit", tabindex: 0 });
  const { paragraph, cut } = textOf(hit);
  const head = element("div", { class: "hit-head" }, bylineOf(hit), meterOf(hit));
  const actions = element("div", { class: "hit-actions" });
  const action = (label, name, run) => {
    const button = element("button", { type: "button", class: name }, label);
    button.addEventListener("click", () => run(button));
    actions.append(button);
  };
  if (facts.threads) action("Conversation", "conversation", (button) => showThread(card, hit, button));
  action("More like this", "alike", () => {
    like = hit;
    count = PAGE;
    byId("find-query").value = "";
    update();
    scrollTo({ top: 0 });
  });
  if (hit.why?.cosine) action("Why?", "because", (button) => showWhy(card, hit, query, button));
  if (cut) {
    action("Show all", "all", (button) => {
      card.querySelector(".text").replaceWith(textOf(hit, true).paragraph);
      button.remove();
    });
  }
  card.append(head);
  if (hit.about?.title) card.append(element("p", { class: "subject" }, hit.about.title));
  if (hit.answered) card.append(element("p", { class: "answered" }, element("span", { class: "unseen" }, "In answer to: "), quoteOf(hit.answered)));
  if (same.length) {
    action(`${same.length} more ${same.length === 1 ? "says" : "say"} the same`, "same", (button) => {
      button.remove();
      card.after(...same.map((one) => cardOf(one, [], query)));
    });
  }
  card.append(paragraph, actions);
  return card;
}

/** The similarity as a number and a bar. */
function meterOf(hit) {
  const cosine = hit.why ? hit.why.cosine : hit.score;
  if (cosine === null) return "";
  const bar = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
  bar.append(svg("rect", { class: "rail", width: 100, height: 6 }), svg("rect", { class: "fill", width: 100 * Math.max(0, Math.min(1, cosine)), height: 6 }));
  return element("span", { class: "meter", title: "Similarity of meaning (cosine)" }, bar, element("span", { class: "value" }, numberOf(cosine)));
}

async function showThread(card, hit, button) {
  const again = open === card;
  for (const other of cards()) {
    other.classList.remove("open");
    other.querySelector(".conversation")?.setAttribute("aria-expanded", "false");
    other.querySelector(".inline")?.remove();
  }
  open = again && !wide.matches ? null : card;
  if (!open) return;
  card.classList.add("open");
  button.setAttribute("aria-expanded", "true");
  let place = byId("find-thread");
  if (!wide.matches) {
    place = element("div", { class: "inline" });
    card.append(place);
  }
  await showConversation(place, hit);
}

/** Shows which word of the query fits which word of the message. */
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

/** Keeps the search in the address, so that it can be opened again. */
function keep(query, mode) {
  const values = { q: query, mode: mode === "hybrid" ? "" : mode };
  for (const name of ["source", "author", "since", "until"]) values[name] = byId(`find-${name}`).value;
  const kept = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  history.replaceState(null, "", kept.size ? `#find?${kept}` : "#find");
}

/** Reads the search of the address. */
function read() {
  const kept = new URLSearchParams(location.hash.split("?")[1] ?? "");
  byId("find-query").value = kept.get("q") ?? "";
  for (const name of ["source", "author", "since", "until"]) byId(`find-${name}`).value = kept.get(name) ?? "";
  const mode = document.querySelector(`[name=find-mode][value="${CSS.escape(kept.get("mode") ?? "hybrid")}"]`);
  if (mode) mode.checked = true;
}
