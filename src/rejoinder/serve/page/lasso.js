// A lasso: the reader draws around points.

import { svg } from "./tools.js";

/** Calls `done` with each line drawn on an SVG, [x, y] in its coordinates, and with the element under its start. */
export function listenForLasso(paper, done) {
  let path = null, line = null, from = null;
  const at = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(paper.getScreenCTM().inverse());
    return [x, y];
  };
  paper.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    from = event.target;
    path = [at(event)];
    line = svg("polygon", { class: "lasso" });
    paper.append(line);
    paper.setPointerCapture(event.pointerId);
  });
  paper.addEventListener("pointermove", (event) => {
    if (!path) return;
    path.push(at(event));
    line.setAttribute("points", path.join(" "));
  });
  const end = () => {
    if (!path) return;
    const drawn = path;
    line.remove();
    path = line = null;
    done(drawn, from);
  };
  paper.addEventListener("pointerup", end);
  paper.addEventListener("pointercancel", end);
}

/** Whether a point is inside a polygon: a ray from it crosses the outline an odd number of times. */
export function isInside(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i], [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}
