// Two sentences, their similarity, and the words that make it.

import { call } from "./api.js";
import { byId, element, following, noteUnknown, numberOf, show } from "./tools.js";

const EXAMPLES = [
  ["How old are you?", "What is your age?", null],
  ["How old are you?", "How are you?", null],
  ["a small bird sitting on a branch in winter.", "a small bird perched on an icy branch.", "4.2"],
  ["microwave would be your best bet.", "your best bet is research.", "0.0"],
  ["a little boy is singing and playing a guitar.", "a man is singing and playing the guitar.", "2.2"],
  ["yes, you have to file a tax return in canada.", "you are not required to file a tax return in canada if you have no taxable income.", "1.0"],
];

/** Largest number of characters in a sentence that `/explain` accepts. */
const EXPLAINED = 500;

export function startCompare(explains) {
  const update = following(async (signal) => {
    const first = byId("first").value, second = byId("second").value;
    const short = Math.max(first.length, second.length) <= EXPLAINED;
    await (explains && short ? explained : compared)(first, second, signal);
    await noteUnknown({ "the first sentence": first, "the second sentence": second }, signal);
  });
  byId("first").addEventListener("input", update);
  byId("second").addEventListener("input", update);
  byId("examples").replaceChildren(...EXAMPLES.map((example) => exampleItem(example, update)));
  byId("why").hidden = !explains;
  return update;
}

function exampleItem([first, second, gold], update) {
  const badge = gold === null ? "introduction" : `people: ${gold}`;
  const button = element(
    "button",
    { type: "button" },
    element("span", { class: "a" }, first),
    element("span", { class: "b" }, second),
    element("span", { class: "gold" }, badge),
  );
  button.addEventListener("click", () => {
    byId("first").value = first;
    byId("second").value = second;
    update();
  });
  return element("li", {}, button);
}

async function compared(first, second, signal) {
  const body = { inputs: { source_sentence: first, sentences: [second] } };
  const [cosine] = await call("similarity", body, signal);
  showScore(first, second, cosine);
  byId("why-table").replaceChildren();
  byId("why-words").replaceChildren();
  byId("why-note").textContent = `Sentences of up to ${EXPLAINED} characters are explained.`;
}

async function explained(first, second, signal) {
  const answer = await call("explain", { first, second }, signal);
  showScore(first, second, answer.cosine);
  showWhy(answer);
}

function wordsOf(sentence) {
  return sentence.toLowerCase().match(/[\p{L}\p{M}\p{N}']+|\S/gu) ?? [];
}

/** Whether two sentences differ only in the order of their words, and the model saw no difference. */
function confuses(first, second, cosine) {
  const one = wordsOf(first), other = wordsOf(second);
  return cosine > 0.9999 && one.join(" ") !== other.join(" ") && one.sort().join(" ") === other.sort().join(" ");
}

function showScore(first, second, cosine) {
  const score = 5 * Math.max(0, cosine);
  byId("score").value = score.toFixed(1);
  byId("score-fill").setAttribute("width", 20 * score);
  byId("score-note").textContent = `Cosine ${cosine.toFixed(3)}, times 5; below 0 counts as 0.`;
  show("score-caution", confuses(first, second, cosine) ? "The model does not see word order. Both sentences have the same words, so they get the highest score, whatever they mean." : "");
}

function showWhy({ cosine, first, second, contributions }) {
  const table = byId("why-table");
  if (!first.length || !second.length) {
    table.replaceChildren();
    byId("why-words").replaceChildren();
    byId("why-note").textContent = "A sentence without words has nothing in common with another.";
    return;
  }
  const all = contributions.flat();
  const strongest = Math.max(...all.map(Math.abs), 1e-9);
  const cell = (value) => {
    const level = Math.min(5, Math.ceil((5 * Math.abs(value)) / strongest - 0.3));
    const kind = level <= 0 ? "zero" : `${value > 0 ? "plus" : "minus"}-${level}`;
    return element("td", { class: kind }, numberOf(value));
  };
  const head = element("tr", {}, element("td", {}), ...second.map((word) => element("th", { scope: "col" }, word.text)));
  const rows = first.map((word, row) => element("tr", {}, element("th", { scope: "row" }, word.text), ...contributions[row].map(cell)));
  table.replaceChildren(element("caption", {}, `All numbers together are the cosine, ${cosine.toFixed(3)}.`), element("thead", {}, head), element("tbody", {}, ...rows));
  byId("why-note").textContent = "What each word of the first sentence (rows) adds together with each word of the second (columns). Exact, because this model adds up its words.";
  showStrongest(first, second, contributions);
}

function showStrongest(first, second, contributions) {
  const pairs = contributions.flatMap((row, i) => row.map((value, j) => ({ value, i, j })));
  pairs.sort((a, b) => b.value - a.value);
  const parts = pairs.slice(0, 3).filter(({ value }) => value > 0.005).map(({ value, i, j }) =>
    element("span", { class: "chip" }, `${first[i].text} · ${second[j].text} `, element("b", {}, `+${value.toFixed(2)}`)));
  byId("why-words").replaceChildren(...(parts.length ? ["Most of it: ", ...parts] : []));
}
