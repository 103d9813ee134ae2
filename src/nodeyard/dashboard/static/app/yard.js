// Yard: every node a tile.
import { get } from "./api.js";
import { onSystemTheme, themeInUse } from "./colours.js";
import { clock, count, percent, plural, textOf } from "./format.js";
import { html, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./html.js";
import { live, serverNow, subscribe, useLive } from "./live.js";
import { go, link, update, useRoute } from "./route.js";
import { Badge, Empty, firstOf, Pager, Problem, Segmented, Since, useTick, whyOf } from "./ui.js";
import { paintGlyph, YardCanvas } from "./yard-canvas.js";
import { layOut } from "./yard-layout.js";
import { arrange, defaultDimension, DIMENSIONS, History, indexOf, matcher, sortNames, STATES, STATE_NAMES } from "./yard-model.js";

const PAGE = 100;
const HOUR = 3600;

/** The nodes to show: those of now, or of the moment on the slider. */
function useNodes(at) {
  const [, force] = useReducer((turn) => turn + 1, 0);
  const [history, setHistory] = useState(null);
  const [error, setError] = useState(null);
  const version = useRef(0);
  useLayoutEffect(() => {
    let frame = 0;
    const changed = () => {
      version.current += 1;
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        force();
      });
    };
    const stop = subscribe(["nodes"], changed);
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, []);
  const load = () => {
    setError(null);
    get("history").then((data) => setHistory(new History(data)), setError);
  };
  useEffect(() => {
    if (at && (!history || (at > history.to && serverNow() - history.to > 5))) load();
  }, [Boolean(at), at > (history?.to ?? 0)]);
  if (at && history) return { nodes: history.at(at), columns: history.columns, history, error, load, version: `at ${at}` };
  return { nodes: live.nodes, columns: live.columns, history, error, load, version: version.current };
}

export function Yard() {
  const { params } = useRoute();
  useLive("cluster");
  const at = params.at ? Number(params.at) : null;
  const shown = useNodes(at);
  const dimension = DIMENSIONS.some(([key]) => key === params.group) ? params.group : defaultDimension(shown.nodes, shown.columns);
  const filter = [params.q, ...DIMENSIONS.filter(([key]) => key !== "state" && params[key]).map(([key]) => `${key}=${params[key]}`)].filter(Boolean).join(" ");
  const state = params.state ?? "";
  const arranged = useMemo(
    () => arrange(shown.nodes, shown.columns, { dimension, filter, state }),
    [shown.version, shown.nodes, dimension, filter, state],
  );
  const isTable = params.as === "table";
  return html`<div class="yard">
    <h1 class="visually-hidden">Yard</h1>
    <${NeedsYou} />
    <${Toolbar} dimension=${dimension} filter=${filter} isTable=${isTable} arranged=${arranged} total=${shown.nodes.size} />
    ${shown.nodes.size === 0
      ? html`<${Empty} title=${at ? "There were no nodes at this time." : "No nodes yet."}>
          ${at ? "Move the slider, or return to now." : "Nodes appear here as soon as the cluster has them. To try it without a cluster, run `make demo`."}
        <//>`
      : isTable
        ? html`<${NodeTable} nodes=${shown.nodes} columns=${shown.columns} filter=${filter} state=${state} params=${params} />`
        : html`<${Stage} arranged=${arranged} dimension=${dimension} nodes=${shown.nodes} columns=${shown.columns} params=${params} />`}
    <${Legend} arranged=${arranged} state=${state} filter=${filter} />
    <${TimeSlider} at=${at} shown=${shown} />
    <${Announcer} />
  </div>`;
}

function NeedsYou() {
  const { attention, totals } = useLive("attention");
  const { params } = useRoute();
  useTick();
  if (!attention.length) return html`<p class="needs none"><span class="tick" aria-hidden="true">✓</span> Nothing needs you.</p>`;
  const isOpen = params.needs === "all";
  const first = isOpen ? attention : attention.slice(0, 4);
  return html`<section class="needs" aria-label="Needs you">
    <h2>Needs you <span class="number">${count(totals.attention ?? attention.length)}</span></h2>
    <ul>
      ${first.map((item) => {
        const { view, ...state } = item.link ?? {};
        const target = view ? link(view, state) : whyOf(item.object ?? {});
        return html`<li class=${item.severity}>
          <a href=${target}>
            <span class="needs-head"><span class="severity">${item.severity === "critical" ? "Critical" : "Warning"}</span><span class="needs-object">${textOf(item.object)}</span><${Since} at=${item.since} /></span>
            <span class="needs-message" title=${item.message}>${item.message}</span>
          </a>
        </li>`;
      })}
      ${attention.length > 4 &&
      html`<li class="more"><button type="button" class="link" onClick=${() => update({ needs: isOpen ? "" : "all" })}>${isOpen ? "Show fewer" : `${attention.length - 4} more`}</button></li>`}
      ${isOpen && totals.attention > attention.length && html`<li class="muted">and ${count(totals.attention - attention.length)} that are not listed: <code>nodeyard status</code> prints all</li>`}
    </ul>
  </section>`;
}

function Toolbar({ dimension, filter, isTable, arranged, total }) {
  const { params } = useRoute();
  const clear = () => update({ q: "", state: "", ...Object.fromEntries(DIMENSIONS.map(([key]) => [key, ""])) });
  return html`<div class="toolbar">
    <div class="field-inline">
      <span class="field-label" id="group-label">Group by</span>
      <${Segmented} label="Group by" value=${dimension} options=${DIMENSIONS} onChange=${(group) => update({ group, zoom: "" })} />
    </div>
    <label class="select-group"><span class="field-label">Group by</span>
      <select value=${dimension} onChange=${(event) => update({ group: event.target.value, zoom: "" })}>
        ${DIMENSIONS.map(([key, text]) => html`<option value=${key} selected=${key === dimension}>${text}</option>`)}
      </select>
    </label>
    <input class="filter" type="search" placeholder="Filter: name, zone=a, class=gpu" aria-label="Filter nodes" value=${params.q ?? ""} onInput=${(event) => update({ q: event.target.value, offset: "" }, { replace: true })} />
    ${(filter || params.state) && html`<span class="muted matched" role="status">${count(arranged.matched)} of ${plural(total, "node")} <button type="button" class="link" onClick=${clear}>Clear</button></span>`}
    <span class="spacer"></span>
    <${Segmented} label="Show as" value=${isTable ? "table" : "tiles"} options=${[["tiles", "Tiles"], ["table", "Table"]]} onChange=${(as) => update({ as: as === "table" ? "table" : "", zoom: "" })} />
  </div>`;
}

const roundZoom = ({ scale, x, y }) => (scale <= 1.001 && y === 0 ? "" : [scale, x, y].map((value) => Math.round(value * 100) / 100).join(","));

function Stage({ arranged, dimension, nodes, columns, params }) {
  const box = useRef();
  const canvasRef = useRef();
  const yard = useRef(null);
  const layoutRef = useRef(null);
  const [hover, setHover] = useState(null);
  const [isZoomed, setZoomed] = useState(false);
  const [, redraw] = useReducer((turn) => turn + 1, 0);
  const arrangedRef = useRef(arranged);
  arrangedRef.current = arranged;

  const place = (keepLayout = true) => {
    const { width, height, ratio } = yard.current;
    if (!width || !height) return;
    const unit = parseFloat(getComputedStyle(document.body).fontSize) / 13;
    layoutRef.current = layOut(arrangedRef.current.groups, { width, height, unit, ratio }, keepLayout ? layoutRef.current : null);
    yard.current.show(layoutRef.current);
    redraw();
  };

  useLayoutEffect(() => {
    let saving = 0;
    yard.current = new YardCanvas(canvasRef.current, {
      onZoom: (view) => {
        setZoomed(view.scale > 1.001);
        setHover(null);
        redraw();
        clearTimeout(saving);
        saving = setTimeout(() => update({ zoom: roundZoom(view) }, { replace: true }), 250);
      },
    });
    canvasRef.current.yard = yard.current; // for the tests
    const observer = new ResizeObserver(() => {
      const { clientWidth, clientHeight } = box.current;
      yard.current.resize(clientWidth, clientHeight);
      place(false);
      const [scale, x, y] = (params.zoom ?? "").split(",").map(Number);
      if (scale > 1) yard.current.setView({ scale, x, y });
    });
    observer.observe(box.current);
    const recolour = () => yard.current.forgetColours();
    onSystemTheme(recolour);
    addEventListener("themechange", recolour);
    return () => {
      clearTimeout(saving);
      observer.disconnect();
      removeEventListener("themechange", recolour);
    };
  }, []);
  useLayoutEffect(() => {
    if (yard.current.width) place();
  }, [arranged, dimension]);
  useEffect(() => {
    if (!params.zoom && yard.current.view.scale > 1) yard.current.setView({ scale: 1, x: 0, y: 0 });
  }, [params.zoom]);

  const point = (event) => {
    const rect = canvasRef.current.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };
  usePointers(canvasRef, yard, {
    onHover: (event) => setHover(yard.current.at(...point(event))?.tile?.name ?? null),
    onLeave: () => setHover(null),
    onPick: (event) => {
      const found = yard.current.at(...point(event));
      if (found?.tile) update({ node: found.tile.name === params.node ? "" : found.tile.name });
      else if (found?.isHead) yard.current.zoomToGroup(found.group);
      else if (params.node) update({ node: "" });
    },
  });

  const selected = params.node && nodes.has(params.node) ? params.node : null;
  const step = (event) => {
    const tiles = layoutRef.current?.groups ?? [];
    const tile = selected ? yard.current.tiles.get(selected) : null;
    const moves = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -(tile?.group.rows ?? 1), ArrowRight: tile?.group.rows ?? 1 };
    if (event.key === "+" || event.key === "=") yard.current.zoomAt(1.5);
    else if (event.key === "-") yard.current.zoomAt(1 / 1.5);
    else if (event.key === "0") yard.current.setView({ scale: 1, x: 0, y: 0 });
    else if (event.key === "Enter" && selected) go("why", { kind: "Node", name: selected });
    else if (event.key in moves) {
      let next = tiles[0]?.members[0];
      if (tile) {
        const group = tiles.indexOf(tile.group);
        const index = tile.index + moves[event.key];
        next = tile.group.members[index] ?? (index < 0 ? tiles[group - 1]?.members.at(-1) : tiles[group + 1]?.members[0]) ?? tile;
      }
      if (next) update({ node: next.name }, { replace: true });
    } else return;
    event.preventDefault();
  };

  const summary = `Map of ${plural(nodes.size, "node")} in ${plural(arranged.groups.length, "group")}: ${arranged.groups.slice(0, 12).map((group) => `${group.label} ${count(group.count)}`).join(", ")}. Arrow keys choose a node, Enter says why it is so. The button Table shows the same as a table.`;
  return html`<div class=${`stage${selected ? " has-panel" : ""}`}>
    <div class="stage-box" ref=${box}>
      <canvas ref=${canvasRef} tabindex="0" role="application" aria-roledescription="map of nodes" aria-label=${summary} onKeyDown=${step}></canvas>
      <${Ring} yard=${yard.current} name=${hover} tone="hover" />
      <${Ring} yard=${yard.current} name=${selected} tone="selected" />
      ${hover && hover !== selected && html`<${HoverCard} yard=${yard.current} row=${nodes.get(hover)} columns=${columns} />`}
      <div class="zoom" role="group" aria-label="Zoom">
        <button type="button" aria-label="Zoom in" onClick=${() => yard.current.zoomAt(1.6)}>+</button>
        <button type="button" aria-label="Zoom out" disabled=${!isZoomed} onClick=${() => yard.current.zoomAt(1 / 1.6)}>−</button>
        ${isZoomed && html`<button type="button" class="fit" onClick=${() => yard.current.setView({ scale: 1, x: 0, y: 0 })}>Fit</button>`}
      </div>
    </div>
    ${selected && html`<${NodePanel} row=${nodes.get(selected)} columns=${columns} />`}
  </div>`;
}

/** Hover, click, drag to pan, wheel and pinch to zoom. */
function usePointers(canvasRef, yard, handlers) {
  const latest = useRef(handlers);
  latest.current = handlers;
  useEffect(() => {
    const canvas = canvasRef.current;
    const pointers = new Map();
    let moved = 0;
    let spread = 0;
    const at = (event) => {
      const rect = canvas.getBoundingClientRect();
      return [event.clientX - rect.left, event.clientY - rect.top];
    };
    const gap = () => {
      const [[x1, y1], [x2, y2]] = [...pointers.values()];
      return { distance: Math.hypot(x1 - x2, y1 - y2), x: (x1 + x2) / 2, y: (y1 + y2) / 2 };
    };
    const isZoomed = () => yard.current.view.scale > 1.001 || yard.current.layout.height > yard.current.height + 1;
    const down = (event) => {
      pointers.set(event.pointerId, at(event));
      moved = pointers.size > 1 ? 99 : 0;
      if (pointers.size === 2) spread = gap().distance;
    };
    const move = (event) => {
      if (!pointers.has(event.pointerId)) {
        if (event.pointerType === "mouse") latest.current.onHover(event);
        return;
      }
      const [x, y] = at(event);
      const [beforeX, beforeY] = pointers.get(event.pointerId);
      pointers.set(event.pointerId, [x, y]);
      moved += Math.abs(x - beforeX) + Math.abs(y - beforeY);
      if (pointers.size === 2) {
        const now = gap();
        if (spread > 0) yard.current.zoomAt(now.distance / spread, now.x, now.y);
        spread = now.distance;
      } else if (moved > 4 && isZoomed()) {
        if (!canvas.hasPointerCapture(event.pointerId)) canvas.setPointerCapture(event.pointerId);
        yard.current.pan(x - beforeX, y - beforeY);
      }
    };
    const up = (event) => {
      const wasDown = pointers.delete(event.pointerId);
      if (wasDown && moved <= 6 && event.type === "pointerup") latest.current.onPick(event);
    };
    const wheel = (event) => {
      if (!event.ctrlKey && !event.metaKey && !isZoomed()) return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || isZoomed()) yard.current.zoomAt(Math.exp(-event.deltaY * 0.002), ...at(event));
    };
    const leave = () => latest.current.onLeave();
    const twice = (event) => yard.current.zoomAt(2, ...at(event));
    const listeners = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, pointerleave: leave, dblclick: twice };
    for (const [name, listener] of Object.entries(listeners)) canvas.addEventListener(name, listener);
    canvas.addEventListener("wheel", wheel, { passive: false });
    return () => {
      for (const [name, listener] of Object.entries(listeners)) canvas.removeEventListener(name, listener);
      canvas.removeEventListener("wheel", wheel);
    };
  }, []);
}

function Ring({ yard, name, tone }) {
  const box = name && yard?.boxOf(name);
  if (!box) return null;
  const side = Math.max(4, box.side);
  return html`<div class=${`ring ${tone}`} style=${{ transform: `translate(${box.x - 2}px, ${box.y - 2}px)`, width: `${side + 2}px`, height: `${side + 2}px` }}></div>`;
}

function describe(row, columns) {
  const at = indexOf(columns);
  const facts = DIMENSIONS.filter(([key]) => key !== "state" && row[at[key]]).map(([key, text]) => [text, row[at[key]], key]);
  const free = row[at.free];
  return { name: row[at.name], state: row[at.state] || "other", since: row[at.since], facts, free: typeof free === "number" ? free : null };
}

function HoverCard({ yard, row, columns }) {
  if (!row) return null;
  const { name, state, since, facts, free } = describe(row, columns);
  const box = yard.boxOf(name);
  if (!box) return null;
  const isRight = box.x > yard.width - 280;
  const isLow = box.y > yard.height - 190;
  const place = { left: `${isRight ? box.x - 8 : box.x + box.side + 8}px`, top: `${isLow ? box.y + box.side : box.y}px` };
  return html`<div class=${`hover-card${isRight ? " right" : ""}${isLow ? " low" : ""}`} style=${place}>
    <p class="hover-name">${name}</p>
    <p>${STATE_NAMES[state] ?? state}${since ? html` · <${Since} at=${since} />` : ""}</p>
    <dl>${facts.map(([label, value]) => html`<dt>${label}</dt><dd>${value}</dd>`)}${free !== null && html`<dt>Free</dt><dd>${percent(free)}</dd>`}</dl>
  </div>`;
}

function NodePanel({ row, columns }) {
  useTick();
  const { name, state, since, facts, free } = describe(row, columns);
  return html`<aside class="node-panel" aria-label="Node">
    <header><h2>${name}</h2><button type="button" class="icon-button" aria-label="Close" onClick=${() => update({ node: "" })}>✕</button></header>
    <p aria-live="polite"><${Badge} tone=${`state-${state}`}>${STATE_NAMES[state] ?? state}<//> <${Since} at=${since} prefix="for " /></p>
    <dl class="facts">
      ${facts.map(([label, value, key]) => html`<dt>${label}</dt><dd><a href=${link("yard", { group: key, [key]: value })}>${value}</a></dd>`)}
      ${free !== null && html`<dt>Free share</dt><dd>${percent(free)}</dd>`}
    </dl>
    <a class="button primary" href=${link("why", { kind: "Node", name })}>Why is it so?</a>
  </aside>`;
}

export function Glyph({ state, hue = 0, free = 0.6, size = 14 }) {
  const ref = useRef();
  const theme = themeInUse();
  useLayoutEffect(() => {
    const ratio = Math.max(2, devicePixelRatio || 1);
    const canvas = ref.current;
    canvas.width = canvas.height = size * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    paintGlyph(context, size + 1, state, state === "other" || state === "spare" || state === "pending" ? null : hue, free);
  }, [state, hue, size, theme]);
  return html`<canvas class="glyph" ref=${ref} aria-hidden="true"></canvas>`;
}

function Legend({ arranged, state, filter }) {
  const present = STATES.filter(([key]) => arranged.states[key]);
  const first = arranged.hues.slice(0, 12);
  return html`<div class="legend" aria-label="Legend">
    <ul>
      ${present.map(
        ([key, text]) => html`<li><button type="button" aria-pressed=${String(state === key)} title=${key === "mirrored" ? "The filled part is the free share" : `Show only: ${text}`} onClick=${() => update({ state: state === key ? "" : key })}>
          <${Glyph} state=${key} hue=${first[0]?.[1] ?? 0} /><span>${text}</span><span class="number">${count(arranged.states[key])}</span>
        </button></li>`,
      )}
    </ul>
    ${first.length > 0 &&
    html`<ul class="hues">
      ${first.map(([name, slot, number]) => html`<li><${Glyph} state="claimed" hue=${slot} size=${11} /><span class="hue-name">${name}</span><span class="number">${count(number)}</span></li>`)}
      ${arranged.hues.length > first.length && html`<li class="muted">and ${arranged.hues.length - first.length} more</li>`}
    </ul>`}
  </div>`;
}

function NodeTable({ nodes, columns, filter, state, params }) {
  const at = indexOf(columns);
  const shownColumns = ["name", "state", "since", "zone", "pool", "template", "class", "leaf", "profile", "free"].filter((column) => column in at);
  const sort = shownColumns.includes(params.sort) ? params.sort : "name";
  const matches = matcher(filter, columns);
  const rows = [...nodes.values()].filter((row) => (!matches || matches(row)) && (!state || row[at.state] === state));
  const names = new Map(sortNames(rows.map((row) => row[0])).map((name, index) => [name, index]));
  const text = (row) => String(row[at[sort]] ?? "");
  rows.sort((a, b) =>
    sort === "name" ? names.get(a[0]) - names.get(b[0]) : sort === "since" || sort === "free" ? (a[at[sort]] ?? 0) - (b[at[sort]] ?? 0) : text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : names.get(a[0]) - names.get(b[0]),
  );
  if (params.desc) rows.reverse();
  const offset = firstOf(params.offset, PAGE, rows.length);
  const sortBy = (column) => update({ sort: column, desc: sort === column && !params.desc ? "1" : "", offset: "" });
  const labels = { name: "Node", since: "For", free: "Free", ...Object.fromEntries(DIMENSIONS) };
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Nodes">
    <table>
      <caption class="visually-hidden">${plural(rows.length, "node")}</caption>
      <thead><tr>${shownColumns.map((column) => html`<th scope="col" aria-sort=${sort === column ? (params.desc ? "descending" : "ascending") : "none"}><button type="button" onClick=${() => sortBy(column)}>${labels[column]}</button></th>`)}</tr></thead>
      <tbody>
        ${rows.slice(offset, offset + PAGE).map(
          (row) => html`<tr>${shownColumns.map((column) => {
            const value = row[at[column]];
            if (column === "name") return html`<th scope="row"><a href=${link("why", { kind: "Node", name: value })}>${value}</a></th>`;
            if (column === "state") return html`<td>${STATE_NAMES[value] ?? value}</td>`;
            if (column === "since") return html`<td><${Since} at=${value} /></td>`;
            if (column === "free") return html`<td class="number">${typeof value === "number" ? percent(value) : ""}</td>`;
            return html`<td>${value}</td>`;
          })}</tr>`,
        )}
      </tbody>
    </table>
    <${Pager} offset=${offset} size=${PAGE} total=${rows.length} onMove=${(next) => update({ offset: next })} />
  </div>`;
}

function TimeSlider({ at, shown }) {
  useTick(5);
  const [isPlaying, setPlaying] = useState(false);
  const sparkRef = useRef();
  const { history, error, load } = shown;
  const now = Math.floor(serverNow());
  const from = history ? Math.max(Math.floor(history.from), now - HOUR) : now - HOUR;
  const value = Math.min(now, Math.max(from, at ?? now));
  const set = (time) => update({ at: time >= now - 1 ? "" : time }, { replace: true });
  useEffect(() => {
    if (!isPlaying) return undefined;
    const timer = setInterval(() => {
      const next = Number(new URLSearchParams(location.hash.split("?")[1]).get("at") || from) + Math.max(1, (now - from) / 200);
      if (next >= now) setPlaying(false);
      set(Math.floor(next));
    }, 100);
    return () => clearInterval(timer);
  }, [isPlaying]);
  useLayoutEffect(() => {
    const canvas = sparkRef.current;
    const width = canvas.clientWidth;
    canvas.width = width * 2;
    canvas.height = 36;
    if (!history || !width) return;
    const bins = history.bins(120);
    const most = Math.max(1, ...bins);
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(canvas).color;
    bins.forEach((number, index) => number && context.fillRect((index * canvas.width) / 120, 36 - (34 * number) / most - 2, canvas.width / 120 - 2, (34 * number) / most + 2));
  }, [history]);
  const play = () => {
    if (!history) load();
    if (!isPlaying && !at) set(from);
    setPlaying(!isPlaying);
  };
  return html`<div class=${`slider${at ? " past" : ""}`}>
    <button type="button" class="button small" onClick=${play} aria-label=${isPlaying ? "Pause" : "Play the last hour"}>${isPlaying ? "❚❚" : "▶"}</button>
    <div class="slider-track">
      <canvas ref=${sparkRef} class="spark" aria-hidden="true"></canvas>
      <input type="range" min=${from} max=${now} step="1" value=${value} aria-label="Time" aria-valuetext=${at ? clock(value) : "now"} onInput=${(event) => set(Number(event.target.value))} />
    </div>
    <span class="slider-time" role="status">${at ? clock(value) : "Now"}</span>
    ${at && html`<button type="button" class="button small" onClick=${() => { setPlaying(false); update({ at: "" }); }}>Back to now</button>`}
    ${error && html`<${Problem} error=${error} onRetry=${load} />`}
  </div>`;
}

/** Says to screen readers what changes, at most every 5 seconds. */
function Announcer() {
  const [text, setText] = useState("");
  useEffect(() => {
    let before = null;
    const timer = setInterval(() => {
      const at = indexOf(live.columns);
      const counts = {};
      for (const row of live.nodes.values()) counts[row[at.state]] = (counts[row[at.state]] ?? 0) + 1;
      if (before) {
        const parts = STATES.filter(([key]) => counts[key] !== before[key]).map(([key, name]) => `${name} ${counts[key] ?? 0}, before ${before[key] ?? 0}`);
        if (parts.length) setText(`Nodes changed: ${parts.join("; ")}.`);
      }
      before = counts;
    }, 5000);
    return () => clearInterval(timer);
  }, []);
  return html`<p class="visually-hidden" aria-live="polite">${text}</p>`;
}
