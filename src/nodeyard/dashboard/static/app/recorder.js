// Recorder: a lane per capability over the last day, and every write of a window.
import uPlot from "../vendor/uplot/uPlot.js";
import { get } from "./api.js";
import { hueList, ink, onSystemTheme } from "./colours.js";
import { clock, count, plural, stamp } from "./format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { serverNow, subscribe } from "./live.js";
import { update, useRoute } from "./route.js";
import { Badge, Chevron, Diff, Empty, Pager, Ref, Result, Segmented, useRead } from "./ui.js";

const RANGES = [
  ["1h", "1 hour"],
  ["6h", "6 hours"],
  ["24h", "24 hours"],
];
const HOURS = { "1h": 1, "6h": 6, "24h": 24 };

/** The shortest range that shows all that is recorded. */
const fitting = (began) => {
  const hours = began ? (serverNow() - began) / 3600 : 24;
  return RANGES.map(([key]) => key).find((key) => hours <= HOURS[key]) ?? "24h";
};
const TOP = 4; // reasons with a colour of their own in a lane
const PAGE = 50;
const AGAIN = 5000;
const MARKS = { Leader: "◆", Restart: "▲", Contact: "●", Approval: "✓", Brake: "■" };

export function Recorder() {
  const { params } = useRoute();
  const [began, setBegan] = useState(null);
  const range = params.range in HOURS ? params.range : fitting(began);
  const [turn, setTurn] = useState(0);
  const last = useRef(null);
  useLayoutEffect(() => {
    let timer = 0;
    const stop = subscribe(["recorder"], () => {
      timer ||= setTimeout(() => {
        timer = 0;
        setTurn((count) => count + 1);
      }, AGAIN);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  const read = useRead(async (signal) => {
    const found = await get("recorder", { from: Math.floor(serverNow() - HOURS[range] * 3600), to: Math.floor(serverNow()) }, signal);
    setBegan(found.began ?? 0);
    return { ...found, range };
  }, [range, turn]);
  if (read.data?.range === range) last.current = read.data;
  const data = last.current;
  const span = params.from && params.to ? [Number(params.from), Number(params.to)] : null;
  return html`<div class="page">
    <div class="page-head"><h1>Recorder</h1><${Segmented} label="Range" value=${range} options=${RANGES} onChange=${(next) => update({ range: next, from: "", to: "" })} /><p>Drag over a lane to read every write of that time.${data?.began > data?.from ? ` Recorded since ${stamp(data.began)}.` : ""}</p></div>
    ${data && Object.keys(data.lanes ?? {}).length > 0 && !read.error
      ? html`<${Lanes} data=${data} span=${span} capability=${params.capability} />
          <${WindowBar} data=${data} span=${span} capability=${params.capability} />
          ${span && html`<${Writes} span=${span} data=${data} params=${params} />`}
          <${Marks} data=${data} span=${span} />`
      : read.error?.status === 404
        ? html`<${Empty} title="This server records nothing.">The operator records: serve the page with <code>nodeyard run --dashboard-bind</code>.<//>`
        : html`<${Result} read=${read} what="the recording">${() => html`<${Empty} title="Nothing is recorded yet.">The operator keeps the last 24 hours in memory; it starts empty.<//>`}<//>`}
  </div>`;
}

const sum = (object) => Object.values(object ?? {}).reduce((total, value) => total + value, 0);

/** The counts of all points, or of those that overlap the window; a point counts from `t` for `step` seconds. */
function totals(points, span = null, step = 0) {
  const inside = span ? points.filter((point) => point.t + step > span[0] && point.t <= span[1]) : points;
  const reasons = {};
  const total = { passes: 0, writes: 0, brakes: 0, approvals: 0, errors: 0 };
  for (const point of inside) {
    for (const [reason, number] of Object.entries(point.writes ?? {})) reasons[reason] = (reasons[reason] ?? 0) + number;
    total.writes += sum(point.writes);
    for (const key of ["passes", "brakes", "approvals", "errors"]) total[key] += point[key] ?? 0;
  }
  return { ...total, reasons: Object.entries(reasons).sort((a, b) => b[1] - a[1]) };
}

function Lanes({ data, span, capability }) {
  const names = Object.keys(data.lanes);
  return html`<div class="lanes panel">
    ${names.map((name, index) => {
      const points = data.lanes[name];
      const total = totals(points, span, data.step);
      return html`<div class=${`lane${capability === name ? " chosen" : ""}`}>
        <div class="lane-head">
          <h2>${name}</h2>
          <p class="muted">${plural(total.writes, "write")} · ${plural(total.passes, "pass", "passes")}</p>
          <p class="lane-marks">${total.errors > 0 && html`<${Badge} tone="critical">${plural(total.errors, "error")}<//>`}${total.brakes > 0 && html`<${Badge} tone="warning">${plural(total.brakes, "brake")}<//>`}${total.approvals > 0 && html`<${Badge} tone="good">${plural(total.approvals, "approval")}<//>`}</p>
          <ul class="lane-reasons">${total.reasons.slice(0, TOP).map(([reason, number]) => html`<li><span class=${`swatch h${reasonSlot(points, reason)}`}></span><span class="reason-name">${reason}</span> <span class="number">${count(number)}</span></li>`)}</ul>
        </div>
        <${LaneChart} name=${name} points=${points} data=${data} span=${span} isLast=${index === names.length - 1} />
      </div>`;
    })}
  </div>`;
}

const topReasons = (points) => totals(points).reasons.slice(0, TOP).map(([reason]) => reason);
const reasonSlot = (points, reason) => topReasons(points).indexOf(reason);

/** Lanes share the pointer's position, and not the drag: the window belongs to the lane where it was drawn. */
const isHover = (type) => type === "mousemove" || type === "mouseleave";

/** Points and an empty one after each that stands alone: the width of all bars is the smallest distance of two points. */
function spread(points, step) {
  if (!step) return points;
  return points.flatMap((point, index) => (points[index + 1]?.t <= point.t + step ? [point] : [point, { t: point.t + step }]));
}

function LaneChart({ name, points: recorded, data, span, isLast }) {
  const box = useRef();
  const chart = useRef(null);
  const spanRef = useRef(span);
  spanRef.current = span;
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const changed = () => setTheme((count) => count + 1);
    onSystemTheme(changed);
    addEventListener("themechange", changed);
    return () => removeEventListener("themechange", changed);
  }, []);
  useLayoutEffect(() => {
    const inks = ink();
    const points = spread(recorded, data.step);
    const reasons = topReasons(points);
    const times = points.map((point) => point.t);
    // Stacked: the series drawn first is the sum of all, each next one lies above it.
    const stack = [points.map((point) => sum(point.writes))];
    for (let rank = reasons.length - 1; rank >= 0; rank -= 1) {
      stack.push(points.map((point) => reasons.slice(0, rank + 1).reduce((total, reason) => total + (point.writes?.[reason] ?? 0), 0)));
    }
    const colours = [inks.other, ...[...reasons.keys()].reverse().map((rank) => hueList()[rank])];
    const bars = uPlot.paths.bars({ size: [0.8, 40, 1], align: 1 });
    const marks = points.flatMap((point) => (point.marks ?? []).map((mark) => ({ t: point.t, ...mark })).concat(point.errors ? [{ type: "Error", t: point.t }] : []));
    const options = {
      width: box.current.clientWidth,
      height: isLast ? 112 : 84,
      padding: [16, 8, isLast ? 0 : 6, 0],
      legend: { show: false },
      cursor: { sync: { key: "recorder", filters: { pub: isHover, sub: isHover } }, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { min: data.from, max: data.to }, y: { range: (_, __, most) => [0, Math.max(4, most * 1.05)] } },
      axes: [
        { show: isLast, stroke: inks.muted, grid: { show: false }, ticks: { stroke: inks.line, size: 4 }, size: 28, font: "11px ui-sans-serif, system-ui, sans-serif", values: (_, splits) => splits.map((split) => clock(split, false)) },
        { size: 34, stroke: inks.muted, font: "10px ui-sans-serif, system-ui, sans-serif", grid: { stroke: inks.line, width: 1 }, ticks: { show: false }, splits: (_, __, ___, most) => [0, Math.floor(most)] },
      ],
      series: [{}, ...stack.map((_, index) => ({ paths: bars, fill: colours[index], width: 0, points: { show: false } }))],
      hooks: {
        setSelect: [
          (plot) => {
            if (plot.select.width < 3) return;
            const from = Math.floor(plot.posToVal(plot.select.left, "x"));
            const to = Math.ceil(plot.posToVal(plot.select.left + plot.select.width, "x"));
            update({ from, to, capability: name, offset: "", open: "" });
          },
        ],
        ready: [(plot) => mark(plot, spanRef.current)],
        draw: [(plot) => drawMarks(plot, marks, inks)],
      },
    };
    chart.current = new uPlot(options, [times, ...stack], box.current);
    const observer = new ResizeObserver(() => {
      chart.current.setSize({ width: box.current.clientWidth, height: options.height });
      mark(chart.current, spanRef.current);
    });
    observer.observe(box.current);
    return () => {
      observer.disconnect();
      chart.current.destroy();
    };
  }, [recorded, theme, isLast]);
  useLayoutEffect(() => {
    if (chart.current.status === 1) mark(chart.current, span);
  }, [span?.[0], span?.[1]]);
  return html`<div class="lane-chart" ref=${box} role="img" aria-label=${`Writes of ${name} over time; the table of a window has them in words`}></div>`;
}

/** Shows the selected window in a lane. */
function mark(plot, span) {
  const left = span ? Math.max(0, plot.valToPos(span[0], "x")) : 0;
  const right = span ? Math.min(plot.over.clientWidth, plot.valToPos(span[1], "x")) : 0;
  plot.setSelect({ left, width: span ? Math.max(2, right - left) : 0, top: 0, height: plot.over.clientHeight }, false);
}

function drawMarks(plot, marks, inks) {
  const { ctx } = plot;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.font = `${11 * ratio}px sans-serif`;
  ctx.textAlign = "center";
  for (const { t, type } of marks) {
    const x = plot.valToPos(t, "x", true);
    ctx.fillStyle = type === "Error" || type === "Brake" ? inks.notReady : inks.muted;
    ctx.globalAlpha = 0.35;
    ctx.fillRect(x, plot.bbox.top, ratio, plot.bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillText(MARKS[type] ?? "✕", x, plot.bbox.top - 4 * ratio);
  }
  ctx.restore();
}

const QUICK = [
  [300, "last 5 min"],
  [1800, "last 30 min"],
  [3600, "last hour"],
];

function WindowBar({ data, span, capability }) {
  const names = Object.keys(data.lanes);
  const pick = (length) => update({ from: Math.floor(data.to - length), to: Math.ceil(data.to), capability: capability || names[0], offset: "" });
  return html`<div class="window-bar">
    ${span ? html`<strong>${stamp(span[0])} to ${clock(span[1])}</strong>` : html`<span class="muted">No window is selected. Without a mouse:</span>`}
    ${span && html`<${Segmented} label="Capability" value=${capability || names[0]} options=${names.map((name) => [name, name])} onChange=${(next) => update({ capability: next, offset: "", open: "" })} />`}
    ${QUICK.map(([length, text]) => html`<button type="button" class="button small" onClick=${() => pick(length)}>${text}</button>`)}
    ${span && html`<button type="button" class="link" onClick=${() => update({ from: "", to: "", capability: "", open: "" })}>Clear</button>`}
  </div>`;
}

function Writes({ span, data, params }) {
  const capability = params.capability || Object.keys(data.lanes)[0];
  const offset = Number(params.offset ?? 0);
  const read = useRead((signal) => get("recorder/writes", { capability, from: span[0], to: span[1], offset }, signal), [capability, span[0], span[1], offset]);
  return html`<section class="panel" aria-label="Writes"><${Result} read=${read} what="the writes">
    ${({ total, writes }) => total === 0 || !writes?.length
      ? html`<${Empty} title=${`${capability} wrote nothing in this time.`} />`
      : html`<header><h2>${plural(total, "write")} of ${capability}</h2></header>
        <div class="table-box"><table class="writes"><thead><tr><th scope="col">Time</th><th scope="col">Write</th><th scope="col">Reason</th><th scope="col">Outcome</th></tr></thead><tbody>
          ${writes.map((write, index) => {
            const isOpen = params.open === String(offset + index);
            const isGood = !write.outcome || /^(done|ok|success|succeeded|written|applied|sent)$/i.test(write.outcome);
            return html`<tr>
                <td><button type="button" class="row-toggle" aria-expanded=${String(isOpen)} aria-label=${`Fields that changed at ${clock(write.t)}`} onClick=${() => update({ open: isOpen ? "" : String(offset + index) })}><${Chevron} open=${isOpen} />${clock(write.t)}</button></td>
                <td><span class="verb">${write.verb}</span> <${Ref} to=${write.object} /></td>
                <td><span class="muted">${write.reason}</span> ${write.message}</td>
                <td><${Badge} tone=${isGood ? "good" : "critical"}>${write.outcome || "Done"}<//></td>
              </tr>
              ${isOpen && html`<tr class="opened"><td colspan="4"><${Diff} entries=${write.diff} /></td></tr>`}`;
          })}
        </tbody></table></div>
        <${Pager} offset=${offset} size=${writes.length < PAGE && offset === 0 ? Math.max(writes.length, 1) : PAGE} total=${total} onMove=${(next) => update({ offset: next || "", open: "" })} />`}
  <//></section>`;
}

function Marks({ data, span }) {
  const marks = Object.entries(data.lanes).flatMap(([capability, points]) => points.flatMap((point) => (point.marks ?? []).map((mark) => ({ t: point.t, ...mark, capability }))));
  const shown = marks.filter((mark) => !span || (mark.t >= span[0] && mark.t <= span[1])).sort((a, b) => b.t - a.t);
  if (!shown.length) return null;
  return html`<section class="panel marks"><header><h2>Marks</h2></header><ul>${shown.slice(0, 50).map((mark) => html`<li><span class="mark-sign" aria-hidden="true">${MARKS[mark.type] ?? "✕"}</span><span class="muted">${stamp(mark.t)}</span><span>${mark.capability}</span><${Badge}>${mark.type}<//><span class="mark-message">${mark.message}</span></li>`)}</ul></section>`;
}
