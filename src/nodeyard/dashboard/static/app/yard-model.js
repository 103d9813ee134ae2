// From rows of nodes to groups of tiles, now or at a moment of the last hour.
import { assignHues } from "./colours.js";

export const STATES = [
  ["spare", "Spare"],
  ["claimed", "Claimed"],
  ["pending", "Pending"],
  ["releasing", "Releasing"],
  ["draining", "Draining"],
  ["notReady", "Not ready"],
  ["mirrored", "Mirrored"],
  ["other", "Not managed"],
];
export const STATE_NAMES = Object.fromEntries(STATES);
export const DIMENSIONS = [
  ["zone", "Zone"],
  ["pool", "Pool"],
  ["template", "Template"],
  ["class", "Class"],
  ["leaf", "Leaf"],
  ["profile", "Profile"],
  ["state", "State"],
];

const keys = new Map();

/** A text that sorts like the name with its numbers as numbers: n2 before n10. */
function sortKey(name) {
  let key = keys.get(name);
  if (key === undefined) {
    key = name.replace(/\d+/g, (digits) => digits.padStart(8, "0"));
    keys.set(name, key);
  }
  return key;
}

export function sortNames(names) {
  return [...names].map((name) => [sortKey(name), name]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)).map((pair) => pair[1]);
}

export const indexOf = (columns) => Object.fromEntries(columns.map((column, index) => [column, index]));

export function defaultDimension(nodes, columns) {
  const at = indexOf(columns);
  const seen = new Set();
  for (const row of nodes.values()) {
    if (row[at.template] || row[at.state] === "spare") return "template";
    for (const dimension of ["pool", "leaf", "zone"]) if (row[at[dimension]]) seen.add(dimension);
  }
  return ["pool", "leaf", "zone"].find((dimension) => seen.has(dimension)) ?? "state";
}

function groupOf(row, at, dimension) {
  if (dimension === "state") return row[at.state] || "other";
  const name = row[at[dimension]];
  if (name) return name;
  return ["template", "pool"].includes(dimension) && row[at.state] === "spare" ? "\u0000spare" : "\u0001none";
}

/** Whether a node matches the filter: words that stand in any of its columns, `column=value` in that column. */
export function matcher(text, columns) {
  const at = indexOf(columns);
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [, column, value] = /^([a-z]+)=(.*)$/.exec(word) ?? [];
    const name = columns.find((each) => each.toLowerCase() === column);
    if (name) return (row) => String(row[at[name]] ?? "").toLowerCase() === value;
    return (row) => row.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(word));
  });
  return tests.length ? (row) => tests.every((test) => test(row)) : null;
}

/** Groups the nodes: {groups: [{key, label, isNone, count, members}], states: {state: count}, hues: [[name, slot, count]], matched}. */
export function arrange(nodes, columns, { dimension, filter = "", state = "" }) {
  const at = indexOf(columns);
  const groups = new Map();
  const states = {};
  const hueCounts = new Map();
  for (const row of nodes.values()) {
    const hue = row[at.hue];
    if (hue) hueCounts.set(hue, (hueCounts.get(hue) ?? 0) + 1);
  }
  const slots = assignHues(hueCounts.keys());
  const matches = matcher(filter, columns);
  let matched = 0;
  for (const name of sortedNames(nodes)) {
    const row = nodes.get(name);
    const key = groupOf(row, at, dimension);
    const tileState = row[at.state] || "other";
    states[tileState] = (states[tileState] ?? 0) + 1;
    const isMatch = (!matches || matches(row)) && (!state || tileState === state);
    if (isMatch) matched += 1;
    let group = groups.get(key);
    if (!group) {
      group = { key, label: labelOf(key, dimension), isNone: key < " ", count: 0, members: [] };
      groups.set(key, group);
    }
    group.count += 1;
    group.members.push({ name, state: tileState, hue: slots.get(row[at.hue]) ?? null, free: row[at.free], isDimmed: !isMatch });
  }
  const rank = (group) => (group.key[0] === "\u0000" ? 0 : group.key[0] === "\u0001" ? 2 : 1);
  const order = Object.fromEntries(STATES.map(([each], index) => [each, index]));
  const ordered = [...groups.values()].sort((a, b) =>
    dimension === "state" ? order[a.key] - order[b.key] : rank(a) - rank(b) || (sortKey(a.key) < sortKey(b.key) ? -1 : 1),
  );
  const hues = [...hueCounts].map(([name, number]) => [name, slots.get(name), number]).sort((a, b) => b[2] - a[2]);
  return { groups: ordered, states, hues, matched };
}

function labelOf(key, dimension) {
  if (key === "\u0000spare") return "Spare";
  if (key === "\u0001none") return `No ${dimension}`;
  return dimension === "state" ? STATE_NAMES[key] ?? key : key;
}

let sortedFor = { size: -1, names: [] };

function sortedNames(nodes) {
  if (sortedFor.size !== nodes.size || !sortedFor.names.every((name) => nodes.has(name))) {
    sortedFor = { size: nodes.size, names: sortNames(nodes.keys()) };
  }
  return sortedFor.names;
}

/** The last hour: the rows at its beginning and every change since, played to any moment. */
export class History {
  constructor({ from, to, columns, rows, changes }) {
    Object.assign(this, { from, to, columns, rows, changes: changes ?? [] });
    this.rewind();
  }

  rewind() {
    this.nodes = new Map(this.rows.map((row) => [row[0], row]));
    this.done = 0;
  }

  at(time) {
    if (this.done > 0 && this.changes[this.done - 1][0] > time) this.rewind();
    while (this.done < this.changes.length && this.changes[this.done][0] <= time) {
      const change = this.changes[this.done][1];
      if (Array.isArray(change)) this.nodes.set(change[0], change);
      else this.nodes.delete(change);
      this.done += 1;
    }
    return this.nodes;
  }

  /** How many changes happened in each of `number` equal parts of the time. */
  bins(number) {
    const bins = new Array(number).fill(0);
    const length = Math.max(1, this.to - this.from);
    for (const [time] of this.changes) bins[Math.max(0, Math.min(number - 1, Math.floor(((time - this.from) / length) * number)))] += 1;
    return bins;
  }
}
