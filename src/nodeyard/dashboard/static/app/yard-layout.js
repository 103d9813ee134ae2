// Where each tile of the yard lies. Groups fill justified strips, tiles fill their group column by column: a group that
// grows moves its neighbours and nothing else. Pure: computed once per change, not per frame.

export const HEAD = 26; // the group's name above its tiles; all lengths grow with the words of the page
const GAP_X = 18;
const GAP_Y = 14;
const LARGEST = 112; // on a screen with more room a fifth of it
const SMALLEST = 2.5;

const columnsFor = (group, rows, least) => Math.max(Math.ceil(group.count / rows), least);

/** The fewest rows with which these groups fit side by side, or null. */
function rowsFor(groups, size, { width, floor, unit }) {
  const free = width - GAP_X * unit * (groups.length - 1);
  const total = groups.reduce((sum, group) => sum + group.count, 0);
  const room = Math.floor(free / size);
  if (room < 1) return null;
  const most = Math.max(1, ...groups.map((group) => group.count));
  for (let rows = Math.max(1, Math.floor(total / room)); rows <= most; rows += 1) {
    const used = groups.reduce((sum, group) => sum + Math.max(columnsFor(group, rows, 1) * size, floor), 0);
    if (used <= free) return rows;
  }
  const used = groups.reduce((sum, group) => sum + Math.max(size, floor), 0);
  return used <= free ? most : null;
}

function heightOf(strips, size, space) {
  let height = 0;
  for (const groups of strips) {
    const rows = rowsFor(groups, size, space);
    if (rows === null) return Infinity;
    height += (HEAD + GAP_Y) * space.unit + rows * size;
  }
  return height;
}

function split(groups, number) {
  const weight = (group) => group.count + 6;
  const total = groups.reduce((sum, group) => sum + weight(group), 0);
  const strips = Array.from({ length: number }, () => []);
  let before = 0;
  for (const group of groups) {
    const middle = before + weight(group) / 2;
    strips[Math.min(number - 1, Math.floor((middle / total) * number))].push(group);
    before += weight(group);
  }
  return strips.filter((strip) => strip.length);
}

function largestSize(strips, space) {
  let low = SMALLEST;
  let high = Math.max(LARGEST * space.unit, Math.min(space.width, space.height) / 5);
  if (heightOf(strips, high, space) <= space.height) return high;
  for (let step = 0; step < 18; step += 1) {
    const middle = (low + high) / 2;
    if (heightOf(strips, middle, space) <= space.height) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Lays out groups `[{key, count}]` in width × height. Returns {size, height, groups: [{key, count, x, y, rows, columns, width}]}.
 * `before` is the layout so far: it is kept as long as it nearly fits, so that one node more does not move everything.
 */
export function layOut(groups, { width, height, unit = 1, ratio = 1 }, before = null) {
  const space = { width, height, unit, floor: (width < 600 ? 64 : 92) * unit }; // the floor is room for a name
  const keep = before && before.width === width && before.room === height ? before.strips : 0;
  let best = null;
  for (let number = 1; number <= Math.min(groups.length, 40); number += 1) {
    const strips = split(groups, number);
    const size = largestSize(strips, space);
    const worth = size * (number === keep ? 1.12 : 1);
    if (!best || worth > best.worth * 1.001) best = { size, worth, strips, number };
  }
  if (!best) return { size: LARGEST, height: 0, groups: [], strips: 0, width, room: height, unit };
  let { size } = best;
  // Whole device pixels, so that all gaps are equally wide.
  if (size * ratio >= 3) size = Math.floor(size * ratio) / ratio;
  if (keep === best.number && before.size < size && before.size > size * 0.88) size = before.size;
  const placed = [];
  let y = 0;
  for (const strip of best.strips) {
    const rows = rowsFor(strip, size, space) ?? 1;
    let x = 0;
    for (const group of strip) {
      const columns = columnsFor(group, rows, 1);
      const room = Math.max(columns * size, space.floor);
      placed.push({ ...group, x, y, rows, columns, width: room });
      x += room + GAP_X * unit;
    }
    y += (HEAD + GAP_Y) * unit + rows * size;
  }
  return { size, height: Math.max(0, y - GAP_Y * unit), groups: placed, strips: best.number, width, room: height, unit };
}

export const tileX = (layout, group, index) => group.x + Math.floor(index / group.rows) * layout.size;
export const tileY = (layout, group, index) => group.y + HEAD * layout.unit + (index % group.rows) * layout.size;

/** The group and the tile's index at a point: arithmetic on the grid, no search through tiles. */
export function hit(layout, x, y) {
  for (const group of layout.groups) {
    if (x < group.x || x >= group.x + group.width || y < group.y) continue;
    const row = Math.floor((y - group.y - HEAD * layout.unit) / layout.size);
    if (row >= group.rows) continue;
    if (row < 0) return { group, index: -1 };
    const column = Math.floor((x - group.x) / layout.size);
    const index = column * group.rows + row;
    return { group, index: column < group.columns && index < group.count ? index : -2 };
  }
  return null;
}
