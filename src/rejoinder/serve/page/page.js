// Starts the page: tabs, the key, and the program of the last request.

import { call, needKey, useKey, watch } from "./api.js";
import { startAsked } from "./asked.js";
import { startCompare } from "./compare.js";
import { startFind } from "./find.js";
import { startReply, startSearch } from "./lists.js";
import { takeFiles } from "./files.js";
import { startMap } from "./map.js";
import { languagesOf, program } from "./programs.js";
import { startSuggest } from "./suggest.js";
import { byId, copy, element, show, whenLocked } from "./tools.js";
import { startTopics } from "./topics.js";

let tabs = [...document.querySelectorAll("[role=tab]")];
const requests = new Map();
/** The last address of each part, by its name. */
const addresses = new Map();
let updates = {};

function partOf(tab) {
  return tab.getAttribute("aria-controls");
}

/** Shows the part for a tab. */
function open(tab) {
  if (tab.getAttribute("aria-selected") !== "true") show("unknown", "");
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    byId(partOf(other)).hidden = !chosen;
  }
  tab.parentElement.scrollLeft = tab.offsetLeft - tab.offsetWidth; // on a phone
  showProgram();
  updates[partOf(tab)]?.();
}

/** Shows the part for a chosen tab, as a new step for Back. */
function choose(tab) {
  if (partOf(tab) === chosenPart()) return;
  addresses.set(chosenPart(), location.hash);
  history.pushState(null, "", addresses.get(partOf(tab)) ?? `#${partOf(tab)}`);
  open(tab);
}

function tabOfAddress() {
  const [part] = location.hash.split("?");
  return tabs.find((tab) => `#${partOf(tab)}` === part && !tab.disabled);
}

window.addEventListener("popstate", () => tabOfAddress() && open(tabOfAddress()));

function chosenPart() {
  return partOf(tabs.find((tab) => tab.getAttribute("aria-selected") === "true"));
}

for (const tab of tabs) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const index = tabs.indexOf(tab);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = { Home: 0, End: tabs.length - 1 }[event.key] ?? (step && (index + step + tabs.length) % tabs.length);
    if (next === undefined) return;
    event.preventDefault();
    tabs[next].focus();
    choose(tabs[next]);
  });
}

const LANGUAGES = { command: "Command", library: "Python", curl: "curl", python: "Python, HTTP", javascript: "JavaScript" };
let index = null;
/** The chosen language. */
let language = "command";

/** Shows the part's last request as a program, and the languages to choose from. */
function showProgram() {
  const request = requests.get(chosenPart());
  byId("code").hidden = !request;
  if (!request) return;
  const [path, body] = request, known = languagesOf(path, index);
  const name = (one) => (one === "python" && !known.includes("library") ? "Python" : LANGUAGES[one]);
  byId("languages").replaceChildren(...known.map((one) => {
    const choice = element("input", { type: "radio", name: "language", value: one });
    choice.checked = one === languageOf(known);
    return element("label", {}, choice, name(one));
  }));
  writeProgram();
}

const languageOf = (known) => (known.includes(language) ? language : known[0]);

function writeProgram() {
  const [path, body] = requests.get(chosenPart());
  byId("snippet").textContent = program(languageOf(languagesOf(path, index)), path, body, index);
}

byId("languages").addEventListener("change", (event) => {
  language = event.target.value;
  writeProgram();
});

watch((path, body) => {
  const shown = requests.get(chosenPart());
  requests.set(chosenPart(), [path, body]);
  if (shown?.[0] === path) writeProgram(); // the focus stays on a language
  else showProgram();
});
byId("copy").addEventListener("click", async () => {
  await copy(byId("snippet").textContent);
  byId("copy").textContent = "Copied";
  setTimeout(() => (byId("copy").textContent = "Copy"), 1500);
});

document.addEventListener("click", (event) => {
  if (!byId("corner").contains(event.target)) byId("corner").open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !byId("corner").open) return;
  byId("corner").open = false;
  byId("corner").firstElementChild.focus();
});

function lock() {
  byId("key").hidden = false;
  byId("model").textContent = "locked";
  byId("key-input").focus();
}

byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(byId("key-input").value.trim());
  byId("key").hidden = true;
  start();
});
whenLocked(lock);

async function start() {
  let info;
  try {
    info = await call("info", undefined, undefined, false);
  } catch (error) {
    if (error.status === 401) return lock();
    byId("model").textContent = error.message;
    return show("fault", error.message);
  }
  const { corpus, dim, explains, language, ranks, offline, max_body_bytes: most } = info.rejoinder;
  needKey(info.rejoinder.needs_key);
  byId("language").hidden = language !== "en";
  byId("model").textContent = `${info.model_id} · ${dim} dimensions`;
  byId("tab-reply").disabled = !ranks;
  if (offline) byId("served").textContent = "Everything is in this file, without a server. Suggested replies need the program: rejoinder explore.";
  takeFiles(most);
  const texts = info.max_client_batch_size;
  const facts = corpus ? await call("corpus", undefined, undefined, false) : { found: [] };
  index = facts.command ?? null;
  if (facts.name) document.title = `${facts.name} · rejoinder`;
  updates = {
    ...(corpus ? { find: startFind(facts) } : { search: startSearch(texts, info.rejoinder.texts) }),
    ...(facts.found.includes("asked") && { asked: startAsked() }),
    ...(facts.found.includes("topics") && { topics: startTopics() }),
    ...(facts.found.includes("suggest") && { suggest: startSuggest(facts) }),
    ...(!offline && { compare: startCompare(explains) }),
    ...(!facts.found.length && { reply: startReply(texts), map: startMap(texts) }),
  };
  showTabs(Object.keys(updates));
  const asked = tabOfAddress() ?? tabs[0];
  if (!tabOfAddress()) history.replaceState(null, "", `#${partOf(asked)}`);
  return open(asked);
}

/** Shows the tabs of some parts. */
function showTabs(parts) {
  for (const tab of tabs) tab.hidden = byId(partOf(tab)).hidden = !parts.includes(partOf(tab));
  tabs = tabs.filter((tab) => !tab.hidden);
  tabs[0].parentElement.hidden = false;
}

start();
