// The graph of what waits for what: groups in columns, each to the right of all that it waits for.
import { kinds } from "./format.js";
import { html } from "./html.js";

const WIDTH = 176;
const HEIGHT = 38;
const GAP_X = 44;
const GAP_Y = 10;
const MOST = 40;

export function ranks(groups) {
  const byId = new Map(groups.map((group) => [group.id, group]));
  const rank = new Map();
  const visit = (id, path) => {
    if (rank.has(id)) return rank.get(id);
    if (path.has(id)) return 0;
    path.add(id);
    const before = (byId.get(id).after ?? []).filter((each) => byId.has(each) && each !== id);
    const value = before.length ? 1 + Math.max(...before.map((each) => visit(each, path))) : 0;
    path.delete(id);
    rank.set(id, value);
    return value;
  };
  for (const id of byId.keys()) visit(id, new Set());
  return rank;
}

export function Graph({ groups, onPick }) {
  const ids = new Set(groups.map((group) => group.id));
  const linked = new Set();
  for (const group of groups) {
    for (const before of group.after ?? []) {
      if (ids.has(before)) {
        linked.add(group.id);
        linked.add(before);
      }
    }
  }
  const shown = groups.filter((group) => linked.has(group.id)).slice(0, MOST);
  if (!shown.length) return null;
  const rank = ranks(shown);
  const columns = [];
  for (const group of shown) (columns[rank.get(group.id)] ??= []).push(group);
  const place = new Map();
  columns.forEach((column, index) => column.forEach((group, row) => place.set(group.id, { x: index * (WIDTH + GAP_X) + 1, y: row * (HEIGHT + GAP_Y) + 1 })));
  const width = columns.length * (WIDTH + GAP_X) - GAP_X + 2;
  const height = Math.max(...columns.map((column) => column.length)) * (HEIGHT + GAP_Y) - GAP_Y + 2;
  const edges = shown.flatMap((group) => (group.after ?? []).filter((id) => place.has(id)).map((id) => [place.get(id), place.get(group.id)]));
  const pickable = (group) => ({
    tabindex: "0",
    role: "button",
    onClick: () => onPick(group.id),
    onKeyDown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), onPick(group.id)),
  });
  const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  return html`<figure class="graph" aria-label="What waits for what">
    <figcaption>What waits for what</figcaption>
    <div class="graph-box" tabindex="0" role="region" aria-label="Graph of the groups">
      <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
        ${edges.map(([from, to]) => {
          const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
          const bend = (x1 + x2) / 2;
          return html`<g class="edge"><path d=${`M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2 - 5} ${y2}`} /><path class="tip" d=${`M${x2 - 6} ${y2 - 3.5}L${x2} ${y2}L${x2 - 6} ${y2 + 3.5}z`} /></g>`;
        })}
        ${shown.map((group) => {
          const { x, y } = place.get(group.id);
          const isDisruptive = (group.disruption ?? "none") !== "none";
          return html`<g class=${`box${isDisruptive ? " disruptive" : ""}`} ...${pickable(group)} aria-label=${`${group.verb} ${kinds(group.count ?? 1, group.kind)}: ${group.message}`}>
            <title>${group.message}</title>
            <rect x=${x} y=${y} width=${WIDTH} height=${HEIGHT} rx="6" />
            <text x=${x + 10} y=${y + 16} class="what">${clip(`${group.verb} ${kinds(group.count ?? 1, group.kind)}`, 21)}</text>
            <text x=${x + 10} y=${y + 30} class="why">${clip(group.reason ?? "", 25)}</text>
          </g>`;
        })}
      </svg>
    </div>
  </figure>`;
}
