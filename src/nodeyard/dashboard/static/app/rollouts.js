// Rollouts: what is on its way, with blockers in front.
import { percent, plural, spaced } from "./format.js";
import { html } from "./html.js";
import { live, useLive } from "./live.js";
import { update, useRoute } from "./route.js";
import { Badge, Bar, Command, Empty, Ref, Segmented, Since, useTick } from "./ui.js";

const KINDS = [
  ["", "All"],
  ["Pool", "Pools"],
  ["Profile", "Profiles"],
  ["Leaf", "Leaves"],
  ["Drain", "Drains"],
];
const BLOCKERS = 3; // of a row, before one asks for all
const isCommand = (text) => /^(kubectl|nodeyard|helm|flux) /.test(text);

export function Rollouts() {
  useLive("rollouts");
  useTick();
  const { params } = useRoute();
  const kind = params.kind ?? "";
  const rows = live.rollouts.filter((row) => !kind || row.kind === kind);
  rows.sort((a, b) => (b.blockers?.length ?? 0) - (a.blockers?.length ?? 0) || share(a) - share(b));
  return html`<div class="page">
    <div class="page-head"><h1>Rollouts and drains</h1><${Segmented} label="Kind" value=${kind} options=${KINDS} onChange=${(next) => update({ kind: next })} /></div>
    ${rows.length === 0
      ? html`<${Empty} title="Nothing is on its way.">${live.rollouts.length ? "Other kinds have something: choose All." : "Pools, profiles, leaves and drains appear here while they change."}<//>`
      : html`<ul class="rollouts">${rows.map((row) => html`<${Row} key=${`${row.capability}/${row.kind}/${row.object?.namespace}/${row.object?.name}`} row=${row} />`)}</ul>`}
  </div>`;
}

const share = (row) => (row.total ? (row.done ?? 0) / row.total : 0);

function Row({ row }) {
  const { params } = useRoute();
  const blockers = row.blockers ?? [];
  const shown = params.blockers === "all" ? blockers : blockers.slice(0, BLOCKERS);
  const hidden = blockers.length - shown.length;
  const isDone = row.total > 0 && row.done >= row.total;
  return html`<li class=${`panel rollout${blockers.length ? " stuck" : ""}`}>
    ${shown.map((blocker) => html`<div class="blocker">
      <p class="blocker-head"><${Badge} tone="warning">Blocked<//> <${Ref} to=${blocker.object} /><span class="muted">${blocker.reason}</span><${Since} at=${blocker.since} prefix="for " /></p>
      <p>${blocker.message}</p>
      ${blocker.waysOut?.length > 0 && html`<p class="muted ways-title">Ways out</p><ul class="ways">${blocker.waysOut.map((way) => html`<li>${isCommand(way) ? html`<${Command} text=${way} />` : way}</li>`)}</ul>`}
    </div>`)}
    ${hidden > 0 && html`<div class="blocker"><button type="button" class="link" onClick=${() => update({ blockers: "all" })}>${plural(hidden, "more blocker")}</button></div>`}
    <div class="rollout-row">
      <div class="rollout-what"><span class="muted">${row.kind}</span> <${Ref} to=${row.object} kind=${false} /><p class="muted">${row.capability}</p></div>
      <div class="rollout-progress">
        <p><span>${row.done ?? 0} of ${row.total}</span> <span class="muted">${percent(share(row))}</span></p>
        <${Bar} label=${`${row.done ?? 0} of ${plural(row.total ?? 0, "step")}`} parts=${[["done", share(row)]]} />
      </div>
      <div class="rollout-say">
        <p><${Badge} tone=${blockers.length ? "warning" : isDone ? "good" : "accent"}>${spaced(row.state ?? "")}<//> ${row.message} <${Since} at=${row.since} /></p>
        ${row.next && html`<p class="muted">Next: ${row.next}</p>`}
      </div>
    </div>
  </li>`;
}
