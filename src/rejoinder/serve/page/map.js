// A map of sentences, with hover, keyboard and lasso.

import { call } from "./api.js";
import { comparedOf } from "./files.js";
import { isInside, listenForLasso } from "./lasso.js";
import { byId, copy, countOf, element, following, linesOf, noteUnknown, svg } from "./tools.js";

const WIDTH = 640, HEIGHT = 440, MARGIN = 26, LISTED = 200;

const SENTENCES = `I love dogs.
My cat sleeps all day.
The puppy chased its tail.
Our parrot can talk.
Feed the rabbits before you go.
What time does the train leave?
The bus was late again.
I missed my flight to Rome.
Is there a ticket machine here?
Cycling to work takes an hour.
This soup needs more salt.
I baked bread this morning.
Do you like spicy food?
We had pizza for dinner.
The coffee is too strong.
It rained all weekend.
The sun is finally out.
Snow is expected tonight.
It is freezing outside.
My laptop will not start.
The update broke my phone.
How do I reset my password?
The printer is jammed again.`;

let points = [];
let texts = [];
let picked = new Set();
let current = 0;

export function startMap(most) {
  byId("map-list").value = SENTENCES;
  const update = following(async (signal) => {
    const all = linesOf("map-list");
    countOf("map-count", all, most);
    if (!all.length) return draw([], [], [0, 0]);
    const shown = all.slice(0, most), inputs = comparedOf("map-list", shown);
    const answer = await call("map", { inputs }, signal);
    draw(shown, answer.points, answer.shares);
    return noteUnknown({ "these sentences": inputs.join(" ") }, signal);
  }, 150);
  byId("map-list").addEventListener("input", update);
  byId("picked-clear").addEventListener("click", () => pick(new Set()));
  byId("picked-copy").addEventListener("click", () => copy([...picked].map((index) => texts[index]).join("\n")));
  listenForLasso(byId("plot"), onLasso);
  byId("plot").addEventListener("keydown", onKey);
  return update;
}

function draw(lines, raw, shares) {
  texts = lines;
  points = placed(raw);
  picked = new Set();
  current = 0;
  const dots = points.map(([x, y], index) => {
    const dot = svg("circle", { cx: x, cy: y, r: 7, class: "dot", role: "button", "aria-pressed": "false", "aria-label": texts[index], tabindex: index ? -1 : 0 });
    dot.addEventListener("pointerenter", () => point(index));
    dot.addEventListener("focus", () => point(index));
    return dot;
  });
  byId("plot").replaceChildren(...labels(), ...dots);
  byId("tip").textContent = lines.length ? "Point at a dot, or move with the arrow keys." : "Paste some sentences.";
  byId("map-note").textContent = `The two axes show ${Math.round(100 * shares[0])} % and ${Math.round(100 * shares[1])} % of the differences (principal components).`;
  pick(new Set());
}

/** Scales points to the drawing, each axis separately. */
function placed(raw) {
  const scale = (axis, low, high) => {
    const values = raw.map((point) => point[axis]);
    const least = Math.min(...values), most = Math.max(...values);
    return (value) => (most > least ? low + ((value - least) / (most - least)) * (high - low) : (low + high) / 2);
  };
  const x = scale(0, MARGIN, WIDTH - MARGIN), y = scale(1, HEIGHT - MARGIN, MARGIN);
  return raw.map((point) => [x(point[0]), y(point[1])]);
}

/** Names some dots for which there is room. */
function labels() {
  const taken = [];
  const made = [];
  for (const [index, [x, y]] of points.entries()) {
    const words = texts[index].length > 26 ? `${texts[index].slice(0, 25)}…` : texts[index];
    const width = 6.4 * words.length + 16;
    const left = x + width + 8 > WIDTH ? x - width : x;
    const box = [left, y - 11, left + width, y + 11];
    const free = taken.every((other) => box[2] < other[0] || other[2] < box[0] || box[3] < other[1] || other[3] < box[1]);
    const covers = points.some(([px, py], other) => other !== index && px > box[0] - 4 && px < box[2] + 4 && py > box[1] - 4 && py < box[3] + 4);
    if (!free || covers || left < 0) continue;
    taken.push(box);
    const anchor = left < x ? "end" : "start";
    made.push(svg("text", { x: x + (left < x ? -12 : 12), y: y + 4, "text-anchor": anchor, class: "label", "aria-hidden": "true" }, words));
  }
  return made;
}

const dotsOf = () => [...byId("plot").querySelectorAll(".dot")];

function point(index) {
  current = index;
  byId("tip").textContent = texts[index];
  dotsOf().forEach((dot, other) => dot.classList.toggle("here", other === index));
}

function pick(chosen) {
  picked = chosen;
  dotsOf().forEach((dot, index) => {
    dot.classList.toggle("picked", chosen.has(index));
    dot.setAttribute("aria-pressed", String(chosen.has(index)));
  });
  byId("picked-count").textContent = chosen.size ? String(chosen.size) : "nothing yet: draw around some dots";
  byId("picked").replaceChildren(...[...chosen].slice(0, LISTED).map((index) => element("li", {}, texts[index])));
  byId("picked-copy").disabled = byId("picked-clear").disabled = !chosen.size;
}

function toggle(index) {
  const chosen = new Set(picked);
  if (!chosen.delete(index)) chosen.add(index);
  pick(chosen);
}

/** Arrow keys go to the nearest dot in their direction; space and enter pick it. */
function onKey(event) {
  const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
  if (!points.length) return;
  if (event.key === " " || event.key === "Enter") toggle(current);
  else if (way) move(way);
  else return;
  event.preventDefault();
}

function move([dx, dy]) {
  const [x, y] = points[current];
  let best = -1, least = Infinity;
  for (const [index, [px, py]] of points.entries()) {
    const along = (px - x) * dx + (py - y) * dy, aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
    const cost = along + 2 * aside;
    if (index !== current && along > 0 && cost < least) [best, least] = [index, cost];
  }
  if (best < 0) return;
  const dots = dotsOf();
  dots[current].setAttribute("tabindex", "-1");
  dots[best].setAttribute("tabindex", "0");
  dots[best].focus();
}

/** Picks the dots inside the drawn line, or the clicked dot. */
function onLasso(drawn, from) {
  const start = dotsOf().indexOf(from);
  if (drawn.length > 8) pick(new Set([...points.keys()].filter((index) => isInside(drawn, ...points[index]))));
  else if (start >= 0) toggle(start);
}
