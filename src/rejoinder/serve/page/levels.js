// Chooses which of many points to draw: one per small cell of the plane, more as the reader zooms in.

const CELLS = [200, 400, 800];
/** Largest number of points that are ever drawn. */
export const MOST = 150_000;
const GOLDEN = 0.6180339887;

/**
 * Returns the level of each point: 0 is always drawn, 1 from a zoom of 2 on, 2 from 4, 3 from 8; 4 never.
 *
 * Points are taken in a fixed order that is unrelated to their own order. At each level, a cell of
 * the plane shows one of its points; the last level shows all, up to `MOST`.
 */
export function levelsOf(x, y) {
  const count = x.length, levels = new Uint8Array(count).fill(CELLS.length + 1);
  const order = orderOf(count);
  let drawn = 0;
  for (const [level, cells] of CELLS.entries()) {
    const taken = new Uint8Array(cells * cells);
    const cellOf = (index) => Math.floor(((y[index] + 1.05) / 2.1) * cells) * cells + Math.floor(((x[index] + 1.05) / 2.1) * cells);
    for (let index = 0; index < count; index++) if (levels[index] < level) taken[cellOf(index)] = 1;
    for (const index of order) {
      if (levels[index] < level || drawn === MOST) continue;
      const cell = cellOf(index);
      if (taken[cell]) continue;
      taken[cell] = 1;
      levels[index] = level;
      drawn += 1;
    }
  }
  for (const index of order) {
    if (drawn === MOST) break;
    if (levels[index] <= CELLS.length) continue;
    levels[index] = CELLS.length;
    drawn += 1;
  }
  return levels;
}

/** The highest level to draw if a share `ratio` of the plane is visible. */
export const levelAt = (ratio) => Math.max(0, Math.min(CELLS.length, Math.floor(Math.log2(1 / ratio) + 0.01)));

/** All indices, in steps of a size that has no common divisor with their number. */
function orderOf(count) {
  let step = Math.max(1, Math.floor(count * GOLDEN));
  while (common(step, count) > 1) step += 1;
  return Uint32Array.from({ length: count }, (_, at) => (at * step) % count);
}

function common(a, b) {
  return b ? common(b, a % b) : a;
}
