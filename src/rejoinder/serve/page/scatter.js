// Points in a plane, drawn by sigma.js: zoom, drag, touch, names that do not overlap, and a lasso.

import { isInside, listenForLasso } from "./lasso.js";
import { MOST, levelAt, levelsOf } from "./levels.js";
import { element, svg } from "./tools.js";

/** Largest distance of the pointer from a dot, in pixels. */
const REACH = 7;
const CHOSEN = "chosen";
const LIBRARIES = ["page/graphology.umd.min.js", "page/sigma.min.js"];

/** Loads the libraries, once. Only this part of the page uses them. */
let loaded;
function load() {
  const inside = [...document.querySelectorAll("script[data-library]")]; // in one file
  loaded ??= inside.length ? Promise.resolve(inside.forEach((one) => document.head.append(element("script", {}, one.textContent)))) : LIBRARIES.reduce((before, address) => before.then(() => new Promise((resolve, reject) => {
    const script = element("script", { src: address });
    script.addEventListener("load", resolve);
    script.addEventListener("error", reject);
    document.head.append(script);
  })), Promise.resolve());
  return loaded;
}

/**
 * Draws points in `place`.
 *
 * `x`, `y`: places; `color(index)`: the colour of a point as #rrggbb; `discs`: names with places and sizes, largest
 * first; `onPoint(index or null)`: called for the point under the pointer; `onDisc(id)`: called for a chosen name;
 * `onLasso(indices)`: called with the points inside the drawn line.
 */
export async function scatter(place, { x, y, color, discs, onPoint, onDisc, onLasso }) {
  await load();
  const size = Math.max(1.1, Math.min(2.8, 26 / Math.min(x.length, MOST) ** 0.25)); // 2.6 for 10,000, 1.5 for 100,000
  const levels = levelsOf(x, y), programs = programsOf(globalThis.Sigma);
  const graph = new globalThis.graphology.Graph({ type: "undirected" });
  for (let index = 0; index < x.length; index++) if (levels[index] in programs) graph.addNode(index, { x: x[index], y: y[index], size, color: color(index), type: String(levels[index]) });
  let shown = null;
  const canvas = element("div", { class: "canvas" });
  const names = element("div", { class: "names", "aria-hidden": "true" });
  const paper = svg("svg", { class: "paper", "aria-hidden": "true" });
  place.replaceChildren(canvas, names, paper);
  const corners = { x: [-1.05, 1.05], y: [-1.05, 1.05] };
  const { Sigma } = globalThis;
  const renderer = new Sigma(graph, canvas, {
    allowInvalidContainer: true,
    defaultDrawNodeHover: ringOf(place),
    defaultNodeType: "0",
    enableCameraRotation: false,
    maxCameraRatio: 1.3,
    minCameraRatio: 0.02,
    nodeProgramClasses: programs,
    renderLabels: false,
    stagePadding: 8,
    zoomToSizeRatioFunction: (ratio) => ratio ** 0.45,
  });
  renderer.setCustomBBox(corners);
  // sigma would draw all dots twice, and read a pixel at each move of the pointer
  renderer.getNodeAtPosition = (pointer) => nearest(renderer, pointer, { x, y, levels, shown });
  renderer.on("enterNode", ({ node }) => onPoint(Number(node)));
  renderer.on("leaveNode", () => onPoint(null));
  const labels = labelsOf(names, discs, renderer, onDisc);
  renderer.on("afterRender", labels);
  const camera = renderer.getCamera();
  const placeOf = ([left, top]) => {
    const found = renderer.viewportToGraph({ x: left, y: top });
    return [found.x, found.y];
  };
  listenForLasso(paper, (drawn) => drawn.length > 4 && onLasso(within(drawn.map(placeOf), x, y)));
  place.addEventListener("keydown", (event) => onKey(event, camera));
  return {
    zoom: (way) => (way > 0 ? camera.animatedZoom() : camera.animatedUnzoom()),
    reset: () => camera.animatedReset(),
    /** Centres a disc. */
    goTo({ x: left, y: top, radius }) {
      const middle = renderer.viewportToFramedGraph(renderer.graphToViewport({ x: left, y: top }));
      camera.animate({ ...middle, ratio: Math.max(0.08, Math.min(1, 3 * radius)) }, { duration: 350 });
    },
    /** Shows points for which `chosen(index)` is true in their colour, and others faintly. */
    highlight(chosen, faint) {
      shown = chosen;
      graph.updateEachNodeAttributes((node, attributes) => {
        const index = Number(node), strong = chosen?.(index);
        attributes.color = chosen && !strong ? faint : color(index);
        attributes.size = strong ? size * 1.35 : size;
        attributes.type = strong ? CHOSEN : String(levels[index]);
        return attributes;
      }, { attributes: ["color", "size", "type"] });
    },
    lasso(on) {
      place.classList.toggle("drawing", on);
    },
    resize: () => renderer.resize() && renderer.refresh(),
    end: () => renderer.kill(),
  };
}

/** Programs of sigma that draw the dots of a level where it is shown, and chosen dots always. */
function programsOf({ rendering: { NodePointProgram } }) {
  const drawnFrom = (level) => class extends NodePointProgram {
    constructor(gl, _picking, renderer) {
      super(gl, null, renderer);
    }

    render(parameters) {
      if (level <= levelAt(parameters.zoomRatio)) super.render(parameters);
    }
  };
  return { 0: drawnFrom(0), 1: drawnFrom(1), 2: drawnFrom(2), 3: drawnFrom(3), [CHOSEN]: drawnFrom(0) };
}

/** The drawn point nearest to the pointer, as the name of its node; null if none is near. */
function nearest(renderer, pointer, { x, y, levels, shown }) {
  const { x: left, y: top } = renderer.viewportToGraph(pointer);
  const edge = renderer.viewportToGraph({ x: pointer.x + REACH, y: pointer.y });
  const level = levelAt(renderer.getCamera().ratio);
  let least = Math.hypot(edge.x - left, edge.y - top) ** 2, found = null;
  for (let index = 0; index < x.length; index++) {
    const far = (x[index] - left) ** 2 + (y[index] - top) ** 2;
    if (far < least && (levels[index] <= level || (levels[index] <= 3 && shown?.(index)))) [least, found] = [far, String(index)];
  }
  return found;
}

function ringOf(place) {
  return (context, { x, y, size }) => {
    context.strokeStyle = getComputedStyle(place).color;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, size + 3, 0, 2 * Math.PI);
    context.stroke();
  };
}

/** Returns a function that places the names for which there is room, the largest first. */
function labelsOf(names, discs, renderer, onDisc) {
  const labels = discs.map((disc) => {
    const label = element("span", {}, disc.name);
    label.addEventListener("click", () => onDisc(disc.id));
    names.append(label);
    return { disc, label };
  });
  const sizes = labels.map(({ label }) => [label.offsetWidth, label.offsetHeight]);
  return () => {
    const { width, height } = renderer.getDimensions();
    const taken = [];
    for (const [number, { disc, label }] of labels.entries()) {
      const { x, y } = renderer.graphToViewport(disc);
      const [wide, high] = sizes[number];
      const box = [x - wide / 2 - 4, y - high / 2 - 2, x + wide / 2 + 4, y + high / 2 + 2];
      const inside = box[0] >= 0 && box[1] >= 0 && box[2] <= width && box[3] <= height;
      const free = inside && taken.every((other) => box[2] < other[0] || other[2] < box[0] || box[3] < other[1] || other[3] < box[1]);
      label.hidden = !free;
      if (!free) continue;
      taken.push(box);
      label.style.transform = `translate(${Math.round(x - wide / 2)}px, ${Math.round(y - high / 2)}px)`;
    }
  };
}

function onKey(event, camera) {
  const step = 0.12 * camera.ratio;
  const ways = { ArrowLeft: { x: camera.x - step }, ArrowRight: { x: camera.x + step }, ArrowUp: { y: camera.y + step }, ArrowDown: { y: camera.y - step } };
  if (ways[event.key]) camera.animate(ways[event.key], { duration: 120 });
  else if (event.key === "+" || event.key === "=") camera.animatedZoom();
  else if (event.key === "-") camera.animatedUnzoom();
  else if (event.key === "0") camera.animatedReset();
  else return;
  event.preventDefault();
}

/** The points inside a polygon. */
function within(polygon, x, y) {
  const lefts = polygon.map((point) => point[0]), tops = polygon.map((point) => point[1]);
  const left = Math.min(...lefts), right = Math.max(...lefts), low = Math.min(...tops), high = Math.max(...tops);
  const found = [];
  for (let index = 0; index < x.length; index++) {
    const px = x[index], py = y[index];
    if (px >= left && px <= right && py >= low && py <= high && isInside(polygon, px, py)) found.push(index);
  }
  return found;
}
