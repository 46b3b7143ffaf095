// Topics of the messages: a map of all messages, next to the list of topics, over time.

import { call, fetchNumbers } from "./api.js";
import { MOST } from "./levels.js";
import { bylineOf, textOf } from "./message.js";
import { scatter } from "./scatter.js";
import { byId, copyButton, element, fail, following, keep, kept, plural, svg } from "./tools.js";

const LISTED = 30;
let found = null;
let points = null;
let map = null;
let chosen = null;
let hover = null;
const dark = matchMedia("(prefers-color-scheme: dark)");

export function startTopics() {
  const update = following(async (signal) => {
    if (found) {
      map?.resize();
      return read();
    }
    const [topics, numbers] = await Promise.all([call("topics", undefined, signal), fetchNumbers("points", signal)]);
    found = topics;
    points = columnsOf(numbers);
    byId("topics-note").textContent = noteOf();
    listTopics();
    await drawMap();
    return read();
  }, 30);
  byId("topics-filter").addEventListener("input", () => {
    if (!found) return;
    keepTopic(true);
    listTopics();
  });
  byId("map-in").addEventListener("click", () => map?.zoom(1));
  byId("map-out").addEventListener("click", () => map?.zoom(-1));
  byId("map-reset").addEventListener("click", () => {
    map?.reset();
    turnTo(null);
  });
  byId("map-lasso").addEventListener("click", () => draw(byId("map-lasso").getAttribute("aria-pressed") !== "true"));
  dark.addEventListener("change", () => found && drawMap());
  return update;
}

const keepTopic = (typed = false) => keep("topics", { q: byId("topics-filter").value, topic: chosen === null ? "" : String(chosen) }, typed);

/** Shows the topic in the address. */
function read() {
  const values = kept(), words = values.get("q") ?? "", id = Number(values.get("topic"));
  if (byId("topics-filter").value !== words) {
    byId("topics-filter").value = words;
    listTopics();
  }
  const named = values.has("topic") && [...found.topics, ...found.wider].some((one) => one.id === id) ? id : null;
  if (named !== chosen || named === null) choose(named);
}

/** Chooses what the reader asked for, and stores it in the address. */
function turnTo(id) {
  choose(id);
  keepTopic();
}

/** The columns of `/points`: x, y, topic and month of each message. */
function columnsOf(buffer) {
  const count = buffer.byteLength / 16;
  return {
    count,
    x: new Float32Array(buffer, 0, count),
    y: new Float32Array(buffer, 4 * count, count),
    topic: new Int32Array(buffer, 8 * count, count),
    month: new Int32Array(buffer, 12 * count, count),
  };
}

function noteOf() {
  if (!found.topics.length) return "There are too few messages to find topics in.";
  const without = points.topic.reduce((sum, topic) => sum + (topic < 0), 0);
  return `${plural(found.topics.length, "topic")} in ${plural(points.count, "message")}; ${Math.round((100 * without) / points.count)} % have none${points.count > MOST ? `. The map draws ${MOST.toLocaleString("en")} of them` : ""}`;
}

/** Colours of topics: topics of one wider topic share a hue. */
function colorOf(topic) {
  if (topic < 0) return dark.matches ? "#4a5753" : "#c9c5b9";
  const { parent } = found.topics[topic];
  const hue = (137.5 * (parent ?? topic + 7) + 40) % 360;
  const light = (dark.matches ? 62 : 42) + 5 * ((topic % 3) - 1);
  return hexOf(hue, dark.matches ? 50 : 52, light);
}

function hexOf(hue, saturation, light) {
  const a = (saturation / 100) * Math.min(light / 100, 1 - light / 100);
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (light / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)))).toString(16).padStart(2, "0");
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}

/** The centre of each topic on the map, and the distance of its messages from there. */
function discsOf() {
  const sums = found.topics.map(() => [0, 0, 0, 0]);
  for (let index = 0; index < points.count; index++) {
    const sum = sums[points.topic[index]];
    if (!sum) continue;
    sum[0] += 1;
    sum[1] += points.x[index];
    sum[2] += points.y[index];
    sum[3] += points.x[index] ** 2 + points.y[index] ** 2;
  }
  return found.topics.map(({ id, name, size }) => {
    const [count, x, y, squares] = sums[id].map((value, at) => (at ? value / Math.max(1, sums[id][0]) : value));
    return { id, name: name.split(", ").slice(0, 2).join(", "), size, x, y, radius: count ? Math.sqrt(Math.max(1e-4, squares - x * x - y * y)) : 0.05 };
  }).sort((a, b) => b.size - a.size);
}

let discs = [];

async function drawMap() {
  map?.end();
  discs = discsOf();
  const colors = new Map([[-1, colorOf(-1)], ...found.topics.map(({ id }) => [id, colorOf(id)])]);
  map = await scatter(byId("topics-map"), {
    x: points.x, y: points.y, discs,
    color: (index) => colors.get(points.topic[index]),
    onPoint: point,
    onDisc: turnTo,
    onLasso: pick,
  });
  if (chosen !== null) choose(chosen);
}

/** Shows the message under the pointer. */
async function point(index) {
  hover?.abort();
  if (index === null) return;
  hover = new AbortController();
  try {
    const [message] = await call("messages", { rows: [index] }, hover.signal, false);
    if (message) byId("topics-tip").replaceChildren(bylineOf(message), textOf(message).paragraph);
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
  }
}

function draw(on) {
  byId("map-lasso").setAttribute("aria-pressed", String(on));
  map?.lasso(on);
}

const memberOf = (topic) => (index) => points.topic[index] === topic || (found.topics[points.topic[index]]?.parent === topic && topic >= found.topics.length);

/** Chooses a topic by its id, or none. */
function choose(id) {
  chosen = id;
  for (const button of byId("topics-list").querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.value) === id));
  const topic = id === null ? null : [...found.topics, ...found.wider].find((one) => one.id === id);
  map?.highlight(topic && memberOf(id), dark.matches ? "#26302d" : "#e3dfd4");
  byId("topics-detail").hidden = !topic;
  byId("topics-all").hidden = Boolean(topic);
  if (!topic) return;
  const disc = discs.find((one) => one.id === id);
  if (disc) map?.goTo(disc);
  byId("topics-detail").replaceChildren(...detailOf(topic));
}

/** Shows the messages that were drawn around. */
async function pick(rows) {
  draw(false);
  if (!rows.length) return;
  chosen = null;
  keepTopic();
  const picked = new Set(rows);
  map.highlight((index) => picked.has(index), dark.matches ? "#26302d" : "#e3dfd4");
  let messages;
  try {
    messages = await call("messages", { rows: rows.slice(0, LISTED) }, undefined, false);
  } catch (error) {
    return fail(error);
  }
  const counts = new Map();
  for (const row of rows) counts.set(points.topic[row], (counts.get(points.topic[row]) ?? 0) + 1);
  const top = [...counts].filter(([topic]) => topic >= 0).sort((a, b) => b[1] - a[1]).slice(0, 5);
  byId("topics-all").hidden = true;
  byId("topics-detail").hidden = false;
  byId("topics-detail").replaceChildren(
    backButton(),
    element("h3", {}, `${plural(rows.length, "message")} drawn around`),
    element("p", {}, ...top.map(([topic, count]) => element("span", { class: "chip" }, `${found.topics[topic].name} `, element("b", {}, count.toLocaleString("en"))))),
    copyButton(messages.map((one) => one.text).join("\n")),
    listOf(messages),
    ...(rows.length > messages.length ? [element("p", { class: "hint" }, `The first ${messages.length} are shown.`)] : []),
  );
  return undefined;
}

function backButton() {
  const button = element("button", { type: "button", class: "back" }, "← All topics");
  button.addEventListener("click", () => turnTo(null));
  return button;
}

const listOf = (messages) => element("ol", { class: "thread" }, ...messages.map((one) => element("li", {}, bylineOf(one), textOf(one).paragraph)));

function detailOf(topic) {
  const search = element("a", { href: `#find?${new URLSearchParams({ q: topic.words.slice(0, 4).join(" ") })}` }, "Search for these words");
  const more = element("div");
  showMembers(more, topic);
  return [
    backButton(),
    element("h3", { class: "topic-name" }, topic.name),
    element("p", { class: "hint" }, `${plural(topic.size, "message")} · ${((100 * topic.size) / points.count).toFixed(1)} %`),
    ...(Object.keys(found.months).length > 1 ? [chartOf(topic)] : []),
    element("p", { class: "words" }, ...topic.words.map((word) => element("span", { class: "chip" }, word))),
    element("h4", {}, "Typical"),
    element("ul", { class: "replies" }, ...topic.typical.map((text) => element("li", {}, element("p", { class: "text", dir: "auto" }, text)))),
    element("h4", {}, "Some of its messages"),
    more,
    element("p", { class: "hit-actions" }, search),
  ];
}

async function showMembers(place, topic) {
  const inside = memberOf(topic.id), rows = [];
  const step = Math.max(1, Math.floor(topic.size / 12));
  let seen = 0;
  for (let index = 0; index < points.count && rows.length < 12; index++) if (inside(index) && seen++ % step === 0) rows.push(index);
  try {
    place.replaceChildren(listOf(await call("messages", { rows }, undefined, false)));
  } catch (error) {
    fail(error);
  }
}

/** Messages of a topic by month, as bars. */
function chartOf(topic) {
  const months = monthsOf();
  const counts = months.map((month) => topic.months[month] ?? 0);
  const most = Math.max(...counts, 1);
  const wide = 100 / months.length;
  const chart = svg("svg", { class: "chart", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": `Messages by month, from ${months[0]} to ${months.at(-1)}; most in ${months[counts.indexOf(most)] ?? months[0]}: ${most}` });
  for (const [at, count] of counts.entries()) {
    const bar = svg("rect", { x: at * wide, y: 30 - (29 * count) / most, width: Math.max(0.2, wide * 0.82), height: (29 * count) / most });
    bar.append(svg("title", {}, `${months[at]}: ${count.toLocaleString("en")}`));
    chart.append(bar);
  }
  return element("figure", {}, chart, element("figcaption", { class: "hint" }, element("span", {}, months[0]), element("span", {}, `at most ${most.toLocaleString("en")} a month`), element("span", {}, months.at(-1))));
}

/** All months from the first to the last. */
function monthsOf() {
  const known = Object.keys(found.months).sort();
  const months = [];
  for (let [year, month] = known[0].split("-").map(Number); ; month++) {
    if (month > 12) [year, month] = [year + 1, 1];
    const name = `${year}-${String(month).padStart(2, "0")}`;
    months.push(name);
    if (name >= known.at(-1)) return months;
  }
}

/** A small chart of a topic over time, for the list. */
function sparkOf(topic, months) {
  const counts = months.map((month) => topic.months[month] ?? 0);
  const most = Math.max(...counts, 1);
  const line = counts.map((count, at) => `${((60 * at) / Math.max(1, months.length - 1)).toFixed(1)},${(15 - (14 * count) / most).toFixed(1)}`).join(" ");
  const spark = svg("svg", { class: "spark", viewBox: "0 0 60 16", preserveAspectRatio: "none", "aria-hidden": "true" });
  spark.append(svg("polyline", { points: line }));
  return spark;
}

function listTopics() {
  const words = byId("topics-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const months = Object.keys(found.months).length > 1 ? monthsOf() : null;
  const fits = (topic) => words.every((word) => topic.words.some((each) => each.includes(word)) || topic.typical.some((text) => text.toLowerCase().includes(word)));
  const bySize = (a, b) => b.size - a.size;
  const groups = [...found.wider].sort(bySize).map((wider) => [wider, found.topics.filter((one) => one.parent === wider.id).sort(bySize)]);
  groups.push([null, found.topics.filter((one) => one.parent === null).sort(bySize)]);
  const items = [];
  for (const [wider, topics] of groups) {
    const shown = topics.filter(fits);
    if (!shown.length) continue;
    if (wider) items.push(element("li", { class: "wider" }, buttonOf(wider, null, hueOf(topics))));
    items.push(...shown.map((topic) => element("li", {}, buttonOf(topic, months))));
  }
  byId("topics-list").replaceChildren(...items);
  if (!items.length && found.topics.length) byId("topics-list").append(element("li", { class: "hint" }, "No topic has these words."));
}

const hueOf = (topics) => colorOf(topics[0].id);

function buttonOf(topic, months, color = colorOf(topic.id)) {
  const dot = element("span", { class: "dot-of", "aria-hidden": "true" });
  dot.style.background = color;
  const button = element("button", { type: "button", value: topic.id, "aria-pressed": "false" }, dot, element("span", { class: "name" }, topic.name), ...(months ? [sparkOf(topic, months)] : []), element("span", { class: "count" }, topic.size.toLocaleString("en")));
  button.addEventListener("click", () => turnTo(chosen === topic.id ? null : topic.id));
  return button;
}
