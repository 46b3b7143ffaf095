// The board: what is chosen is in the address, and everything is drawn from it.
"use strict";
const {columns, encoders, pairs, level} = JSON.parse(document.getElementById("data").textContent);
const COSTS = [
  ["ratio", "speed", "sentences a second on fixed sentences, divided by those of rejoinder-small in the same run", null],
  ["rate", "sentences/s", "sentences a second on fixed sentences, on the machine of the row", 0],
  ["milliseconds", "ms each", "processor time of a sentence", null],
  ["megabytes", "MB on disk", "size of the model's files", 0],
  ["dimensions", "dim.", "numbers in a vector", 0],
  ["memory", "MB memory", "most memory of the process", 0],
];
const $ = (selector) => document.querySelector(selector);
const slug = ({task, split, label}) => [task, split, label].filter(Boolean).join(" ");
const family = ({task}) => task.split("/")[0];

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "circle", "line", "text"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

// The share of a normal distribution below z: Abramowitz and Stegun 1964, 26.2.17, error 7.5e-8.
function below(z) {
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const sum = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937
    + t * (-1.821255978 + t * 1.330274429))));
  const tail = sum * Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
  return z < 0 ? tail : 1 - tail;
}

// The z that is passed, up or down, with probability p.
function passed(p) {
  let [low, high] = [0, 40];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (2 * below(-middle) > p) low = middle; else high = middle;
  }
  return low;
}

// Tests every two of `rows` on the chosen columns together: the mean of their differences. Columns
// have other items, so the squares of their standard errors add up. One column keeps its own test.
function tested(chosen, rows) {
  const sums = new Map();
  for (const [column, one, other, difference, error, p] of pairs) {
    if (!chosen.has(column) || !rows.has(one) || !rows.has(other)) continue;
    const key = one * encoders.length + other;
    const sum = sums.get(key) ?? {one, other, difference: 0, square: 0, count: 0};
    sum.difference += difference / chosen.size;
    sum.square += (error / chosen.size) ** 2;
    sum.count += 1;
    sum.p = p;
    sums.set(key, sum);
  }
  const found = [...sums.values()].filter(({count}) => count === chosen.size);
  for (const pair of found) {
    pair.error = Math.sqrt(pair.square);
    if (chosen.size > 1) pair.p = 2 * below(-Math.abs(pair.difference) / (pair.error || 1e-12));
  }
  found.sort((a, b) => a.p - b.p);
  let most = 0; // Holm 1979: the i-th smallest p times the number of those from it on
  found.forEach((pair, place) => {
    most = Math.max(most, Math.min(1, pair.p * (found.length - place)));
    pair.corrected = most;
  });
  return found;
}

function mean(row, chosen) {
  const values = [...chosen].map((column) => row.scores[column]?.value);
  return values.length && values.every((value) => value !== undefined)
    ? values.reduce((sum, value) => sum + value) / values.length : null;
}

const state = () => new URLSearchParams(location.hash.slice(1));

// The columns that at least `share` of the encoders have, or else most; once for the same items.
function shared(share) {
  const rows = encoders.filter((row) => !row.published);
  const all = columns.map((_, column) => column);
  const counts = all.map((column) => rows.filter((row) => row.scores[column]).length);
  const least = Math.min(Math.max(...counts), share * rows.length);
  const usual = all.filter((column) => counts[column] >= least && columns[column].split !== "dev"
    && !/-(unrepeated|v2)$/.test(family(columns[column])));
  const first = ({task}) => (task.endsWith("/angular") ? 1 : 0);
  const once = new Map(usual.sort((a, b) => first(columns[b]) - first(columns[a]))
    .map((column) => [columns[column].data, column]));
  return new Set(all.filter((column) => once.get(columns[column].data) === column));
}

function chosenOf(given) {
  if (!given.has("c")) return shared(1);
  const names = given.get("c").split(";");
  return new Set(columns.map((_, column) => column)
    .filter((column) => names.includes(slug(columns[column]))));
}

function fits(row, given, chosen) {
  if (row.published) return given.has("published");
  const {megabytes, rate} = row.cost;
  if (given.get("mb") && !((megabytes ?? Infinity) <= Number(given.get("mb")))) return false;
  if (given.get("rate") && !((rate ?? 0) >= Number(given.get("rate")))) return false;
  if (given.get("unsupervised") && [...chosen].some((c) => row.scores[c]?.supervised)) return false;
  return row.licence.toLowerCase().includes((given.get("licence") ?? "").toLowerCase());
}

const shown = (value, digits) => value == null ? "" : value.toLocaleString("en", digits === null
  ? {maximumSignificantDigits: 2} : {minimumFractionDigits: digits, maximumFractionDigits: digits});

function draw() {
  const given = state();
  const chosen = chosenOf(given);
  const rows = encoders.map((row, index) => ({...row, index, mean: mean(row, chosen)}))
    .filter((row) => fits(row, given, chosen)
      && [...chosen].some((column) => row.scores[column]));
  const whole = new Set(rows.filter((row) => !row.published && row.mean != null)
    .map(({index}) => index));
  const found = tested(chosen, whole);
  const apart = found.filter(({corrected}) => corrected < level);
  for (const row of rows) {
    if (!whole.has(row.index)) continue;
    const mine = apart.filter(({one, other}) => one === row.index || other === row.index);
    const worse = mine.filter(({one, difference}) => (one === row.index) === (difference < 0));
    row.best = 1 + worse.length;
    row.last = whole.size - (mine.length - worse.length);
  }
  drawTable(rows, chosen, given);
  drawPlot(rows, given.get("x") ?? "ratio");
  const errors = found.map(({error}) => error).sort((a, b) => a - b);
  const least = passed(level / found.length) * errors[errors.length >> 1];
  const same = new Set([...chosen].map((column) => columns[column].data)).size < chosen.size;
  $("#tested").textContent = !found.length ? "No two encoders have all chosen columns."
    : `Pairs tested, with Holm's correction: ${found.length}. Told apart at ${level}: `
    + `${apart.length}. Tied: ${found.length - apart.length}. Differences below `
    + `${least.toFixed(2)} points can't be seen with these columns.`
    + (same ? " Some columns have the same items: less can be told apart than it seems." : "")
    + (given.has("published") ? " Published rows are not tested." : "");
  document.querySelectorAll("#choose input").forEach((box) => {
    box.checked = chosen.has(Number(box.value));
  });
  $("#choose summary").textContent =
    `${chosen.size} of ${columns.length} columns; the mean needs all of them`;
  for (const input of $("#limits").elements) {
    if (input.type === "checkbox") input.checked = given.has(input.name);
    else input.value = given.get(input.name) ?? (input.name === "x" ? "ratio" : "");
  }
}

function drawTable(rows, chosen, given) {
  const heads = [["name", "encoder"], ["rank"], ["mean"], ...COSTS, ...[...chosen].map((column) =>
    [slug(columns[column]), null, `${columns[column].main}, n = ${columns[column].n}`, 2, column]),
  ["left out", null, "of how many chosen columns the training left out the sentences", 0],
  ["licence"], ["data", "trained on"], ["date"], ["version", "judge"]];
  const sort = given.get("s") ?? "mean";
  const cells = (row) => heads.map(([name, , , digits, column]) => {
    if (column !== undefined) return row.scores[column]?.value ?? null;
    if (name === "rank") return row.best ?? null;
    if (name === "left out") {
      return row.published ? null : [...chosen].filter((c) =>
        row.scores[c]?.leaks?.startsWith("training left out")).length;
    }
    return digits !== undefined ? row.cost?.[name] ?? null : row[name] ?? null;
  });
  const place = Math.max(0, heads.findIndex(([name]) => name === sort));
  const rising = ["name", "rank", "licence", "milliseconds", "megabytes", "memory"].includes(sort);
  const table = rows.map((row) => [row, cells(row)]).sort(([, a], [, b]) => {
    const [x, y] = [a[place], b[place]];
    if (x === null || y === null) return (x === null) - (y === null);
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return rising ? order : -order;
  });
  $("#board thead").replaceChildren(make("tr", {}, ...heads.map(([name, title, hint], index) =>
    make("th", {title: hint ?? "", ...(index === place ? {"aria-sort": rising ? "ascending"
      : "descending"} : {})}, make("button", {type: "button", onclick: () => set({s: name})},
      title ?? name)))));
  $("#board tbody").replaceChildren(...table.map(([row, values]) => make("tr",
    row.best === 1 ? {class: "first"} : {},
    ...heads.map(([name, , , digits, column], index) => {
      const value = values[index];
      if (name === "name") {
        return make("td", {}, value, row.published
          ? make("small", {title: row.published.join("; ")}, "published") : null);
      }
      if (name === "rank") {
        const rank = row.best === row.last ? row.best : `${row.best}–${row.last}`;
        return make("td", {}, row.best ? String(rank) : "");
      }
      if (name === "mean") return make("td", {}, shown(value, 2));
      if (column === undefined) {
        return make("td", {}, digits === undefined ? value ?? "" : shown(value, digits));
      }
      if (value === null || row.published) return make("td", {}, shown(value, 2));
      const {supervised} = row.scores[column];
      return make("td", {}, make("button", {type: "button", "aria-haspopup": "dialog",
        onclick: () => tell(row, column)}, shown(value, 2) + (supervised ? " *" : "")));
    }))));
}

function tell(row, column) {
  const score = row.scores[column];
  const facts = {
    "95 % interval": score.interval?.map((end) => shown(end, 2)).join(" to "),
    "supervised on the task": score.supervised ? "yes (*)" : "not told",
    "leaks": score.leaks ?? "not told by the encoder",
    "notes": score.notes.filter((note) => note !== score.leaks).join("; "),
    "n, seed, data": `${columns[column].n}, ${score.seed}, SHA-256 ${score.data}…`,
    "date, versions, machine": [score.date, score.versions, score.machine].join("; "),
  };
  $("#about div").replaceChildren(
    make("h2", {}, `${row.name}: ${slug(columns[column])}, ${columns[column].main} `
      + shown(score.value, 2)),
    make("pre", {}, score.command || "The command is not known."),
    make("dl", {}, ...Object.entries(facts).filter(([, text]) => text)
      .flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])));
  $("#about").showModal();
}

function drawPlot(rows, x) {
  const points = rows.filter((row) => row.cost?.[x] > 0 && row.mean != null)
    .sort((a, b) => b.mean - a.mean);
  if (!points.length) return $("#plot").replaceChildren();
  const [width, height, edge] = [800, 360, 45];
  const logs = points.map((row) => Math.log10(row.cost[x]));
  const scale = (value, all, from, to) => {
    const [low, high] = [Math.min(...all), Math.max(...all)];
    return from + (high > low ? (value - low) / (high - low) : 0.5) * (to - from);
  };
  const across = (value) => scale(Math.log10(value), logs, edge, width - 190);
  const up = (value) => scale(value, points.map((row) => row.mean), height - edge, 20);
  let last = 0;
  const [, , hint] = COSTS.find(([name]) => name === x);
  $("#plot").replaceChildren(make("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Mean of the chosen columns against ${hint}`},
  make("line", {x1: edge, y1: height - 25, x2: width - 10, y2: height - 25, stroke: "#888"}),
  make("text", {x: edge, y: height - 8}, `${hint} (${shown(10 ** Math.min(...logs), null)} to `
    + `${shown(10 ** Math.max(...logs), null)}, logarithmic)`),
  ...points.flatMap((row) => [ // a label gives way to that above
    make("circle", {cx: across(row.cost[x]), cy: up(row.mean), r: 5,
      fill: row.best === 1 ? "#0072b2" : "#999"}),
    make("text", {x: across(row.cost[x]) + 9, y: last = Math.max(up(row.mean) + 4, last + 13)},
      `${row.name} ${shown(row.mean, 1)}`)])));
}

function set(changes) {
  const given = state();
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined) given.delete(name);
    else given.set(name, value);
  }
  location.hash = given.toString();
}

$("#limits").addEventListener("change", ({target}) => set({[target.name]:
  target.type === "checkbox" ? (target.checked ? "1" : "") : target.value}));
$("#limits").addEventListener("submit", (event) => event.preventDefault());
$("#choose").append(...[...new Set(columns.map(family))].map((name) => make("fieldset", {},
  make("legend", {}, name), ...columns.map((column, index) => [column, index])
    .filter(([column]) => family(column) === name).map(([column, index]) => make("label", {},
      make("input", {type: "checkbox", value: index}), ` ${slug(column)}`)))));
$("#choose").addEventListener("change", () => set({c: [...document.querySelectorAll(
  "#choose input:checked")].map(({value}) => slug(columns[value])).join(";")}));
$("#presets").append(...Object.entries({
  "what all have": "",
  "what half have": `c=${[...shared(0.5)].map((column) => slug(columns[column])).join(";")}`,
  "under 30 MB and 100,000 a second": "mb=30&rate=100000",
  "not trained on the task": "unsupervised=1",
  "STS Benchmark and published": "c=stsb/cosine+test&published=1",
}).flatMap(([name, hash]) => [make("a", {href: `#${hash}`}, name), " · "]).slice(0, -1));
addEventListener("hashchange", draw);
draw();
