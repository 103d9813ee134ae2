// Plan: what is about to be done, what is held, what waits for what, and what a change would do.
import { Approve } from "./approve.js";
import { get } from "./api.js";
import { count, kinds, nameOf, plural } from "./format.js";
import { html, useMemo } from "./html.js";
import { live, useLive } from "./live.js";
import { Graph } from "./plan-graph.js";
import { link, update, useRoute } from "./route.js";
import { Badge, Chevron, Command, Diff, Empty, Pager, Ref, Result, Segmented, useRead } from "./ui.js";
import { WhatIf } from "./what-if.js";

const PAGE = 20;
const SECTIONS = 40;
const DISRUPTION = {
  deletes: ["critical", "Deletes"],
  replaces: ["critical", "Replaces"],
  releases: ["warning", "Releases"],
  evicts: ["warning", "Evicts"],
};
export const severityOf = (group) => ["deletes", "replaces", "releases", "evicts"].indexOf(group.disruption ?? "none");
export const isDisruptive = (group) => severityOf(group) >= 0;
const heldGroups = (plan) => plan.held?.groups ?? [];
export const allGroups = (plan) => [...heldGroups(plan), ...(plan.groups ?? [])];
const worst = (plan) => Math.min(9, ...allGroups(plan).filter(isDisruptive).map(severityOf));
export const planName = (plan) => `${plan.capability}/${plan.key}`;

/** Disruptive groups first, the worst of them at the top; each list keeps the server's order otherwise. */
export const ordered = (groups) =>
  [...groups].sort((a, b) => (severityOf(a) < 0 ? 9 : severityOf(a)) - (severityOf(b) < 0 ? 9 : severityOf(b)));

const MODES = [
  ["now", "Now"],
  ["whatif", "What if"],
];

export function Plan() {
  const { params } = useRoute();
  useLive("plans");
  const mode = params.mode === "whatif" ? "whatif" : "now";
  return html`<div class="page">
    <div class="page-head">
      <h1>Plan</h1>
      <${Segmented} label="Plan of" value=${mode} options=${MODES} onChange=${(chosen) => update({ mode: chosen === "now" ? "" : chosen, open: "" })} />
      <p>${mode === "now" ? "What the operator is about to do, disruptive actions first." : "What would happen if a file were applied. Nothing is changed."}</p>
    </div>
    ${mode === "whatif" ? html`<${WhatIf} />` : html`<${Now} params=${params} />`}
    ${params.approve && html`<${Approve} plan=${live.plans.find((plan) => planName(plan) === params.approve)} name=${params.approve} />`}
  </div>`;
}

function Now({ params }) {
  const { plans, operators } = live;
  const only = params.capability ?? "";
  const shown = plans.filter((plan) => (!only || plan.capability === only) && (!params.key || plan.key === params.key));
  const busy = shown.filter((plan) => plan.held || plan.groups?.length || plan.blocked?.length);
  busy.sort((a, b) => Number(Boolean(b.held)) - Number(Boolean(a.held)) || worst(a) - worst(b) || (b.groups?.length ?? 0) - (a.groups?.length ?? 0));
  const quiet = shown.length - busy.length;
  const limit = params.all ? busy.length : SECTIONS;
  const capabilities = [...new Set(plans.map((plan) => plan.capability))].sort();
  const observing = operators.filter((operator) => operator.state === "Observing").map((operator) => operator.capability);
  const groups = busy.flatMap(allGroups);
  const sum = (list, key) => list.reduce((total, group) => total + (group[key] ?? 0), 0);
  const disruptive = groups.filter(isDisruptive);
  return html`
    <dl class="figures">
      <div><dt>Actions</dt><dd>${count(sum(groups, "count"))}</dd></div>
      <div class=${disruptive.length ? "warning" : ""}><dt>Disruptive</dt><dd>${count(sum(disruptive, "count"))}</dd></div>
      <div class=${busy.some((plan) => plan.held) ? "warning" : ""}><dt>Held plans</dt><dd>${count(busy.filter((plan) => plan.held).length)}</dd></div>
      <div><dt>Blocked objects</dt><dd>${count(busy.reduce((total, plan) => total + (plan.blocked ?? []).reduce((part, each) => part + (each.count ?? 1), 0), 0))}</dd></div>
      ${quiet > 0 && html`<div><dt>Nothing to do</dt><dd>${plural(quiet, "plan")}</dd></div>`}
    </dl>
    ${capabilities.length > 1 && html`<${Segmented} label="Capability" value=${only} options=${[["", "All"], ...capabilities.map((name) => [name, name])]} onChange=${(capability) => update({ capability, key: "", open: "" })} />`}
    ${params.key && html`<p class="muted">Only ${params.key}. <a href=${link("plan", { capability: only })}>Show all</a></p>`}
    ${observing.length > 0 && html`<p class="notice">Observed only, nothing of it is written: ${observing.join(", ")}.</p>`}
    ${busy.length === 0 && html`<${Empty} title="Nothing to do.">${plans.length ? "The fleet is as its objects say." : "No plan has been made yet. The first one appears when the caches are filled."}<//>`}
    ${busy.slice(0, limit).map((plan) => html`<${PlanSection} key=${planName(plan)} plan=${plan} params=${params} />`)}
    ${busy.length > limit && html`<p><button type="button" class="button" onClick=${() => update({ all: "1" })}>Show ${count(busy.length - limit)} more plans</button></p>`}
  `;
}

function PlanSection({ plan, params }) {
  const held = useMemo(() => ordered(heldGroups(plan)), [plan.held]);
  const groups = useMemo(() => ordered(plan.groups ?? []), [plan.groups]);
  const blockedId = `${planName(plan)}:blocked`;
  const list = (each, isHeld) => each.length > 0 && html`<ul class=${`groups${isHeld ? " of-held" : ""}`}>${each.map((group) => html`<${Group} key=${group.id} plan=${plan} group=${group} isHeld=${isHeld} isOpen=${params.open === `${planName(plan)}:${group.id}`} />`)}</ul>`;
  const hidden = (plan.groupsTotal ?? 0) - groups.length;
  return html`<section class="panel plan" aria-label=${`${plan.capability} ${plan.key}`}>
    <header>
      <h2>${plan.capability} <span class="muted">${plan.key}</span></h2>
      ${(plan.held?.id || plan.id) && html`<code class="muted" title="The plan's id">${plan.held?.id || plan.id}</code>`}
      <span class="spacer"></span>
      <span class="muted">${plural(allGroups(plan).reduce((total, group) => total + (group.count ?? 1), 0), "action")}</span>
    </header>
    ${plan.held && html`<${Held} plan=${plan} />`}
    ${list(held, true)}
    ${held.length > 0 && groups.length > 0 && html`<p class="groups-title">Goes on meanwhile</p>`}
    ${list(groups, false)}
    ${hidden > 0 && html`<p class="groups-title">and ${count(hidden)} more groups; <code>nodeyard plan --full</code> prints all</p>`}
    <${Graph} groups=${allGroups(plan)} onPick=${(id) => update({ open: `${planName(plan)}:${id}` })} />
    ${plan.blocked?.length > 0 && html`<${BlockedList} blocked=${plan.blocked} isOpen=${params.open === blockedId} onToggle=${() => update({ open: params.open === blockedId ? "" : blockedId })} />`}
  </section>`;
}

function Held({ plan }) {
  const { held } = plan;
  const mayApprove = live.viewer.canApprove === true;
  return html`<div class="held" role="note">
    <div>
      <p class="held-title">Held for approval: ${plural(held.actions ?? 0, "action")} on ${plural(held.nodes ?? 0, "node")}</p>
      <p>${held.message}</p>
      ${!mayApprove && html`<p class="muted">You may not approve with your credentials. Someone who may patch the object can run:</p><${Command} text=${`nodeyard approve ${held.id ?? plan.id}`} />`}
    </div>
    ${mayApprove && html`<button type="button" class="button primary" onClick=${() => update({ approve: planName(plan) })}>Approve…</button>`}
  </div>`;
}

export function Group({ plan, group, isHeld, isOpen, canOpen = true }) {
  const [tone, word] = DISRUPTION[group.disruption] ?? [];
  const key = `${planName(plan)}:${group.id}`;
  const head = html`
    ${canOpen && html`<${Chevron} open=${isOpen} />`}
    <span class="group-what"><span class="verb">${group.verb}</span> ${kinds(group.count ?? 1, group.kind)}</span>
    <span class="group-message">${group.message}${group.samples?.length > 0 && !isOpen && html` <span class="samples">${group.samples.slice(0, 3).map(nameOf).join(", ")}${(group.count ?? 0) > 3 ? ", …" : ""}</span>`}</span>
    <span class="group-marks">
      ${group.isNew && html`<${Badge} tone="accent">New<//>`}
      ${isHeld && html`<${Badge} tone="warning">Held<//>`}
      ${word && html`<${Badge} tone=${tone}>${word} ${plural(group.nodes ?? 0, "node")}<//>`}
      <span class="reason muted">${group.reason}</span>
    </span>`;
  return html`<li class=${`group${word ? " disruptive" : ""}${group.isNew ? " new" : ""}`}>
    ${canOpen ? html`<button type="button" class="group-head" aria-expanded=${String(isOpen)} onClick=${() => update({ open: isOpen ? "" : key, offset: "" })}>${head}</button>` : html`<div class="group-head">${head}</div>`}
    ${isOpen && html`<${Actions} plan=${plan} group=${group} />`}
  </li>`;
}

function Actions({ plan, group }) {
  const { params } = useRoute();
  const offset = Number(params.offset ?? 0);
  const read = useRead(
    (signal) => get("plans/actions", { capability: plan.capability, key: plan.key, group: group.id, offset, limit: PAGE }, signal),
    [plan.capability, plan.key, plan.id, group.id, offset],
  );
  return html`<div class="actions">
    <${Result} read=${read} what="the actions">
      ${(data) => html`<ul>
          ${data.actions.map((action) => html`<li>
            <p class="action-head"><span class="verb">${action.verb}</span> <${Ref} to=${action.object} /> <span class="muted">${action.message}</span></p>
            <${Diff} entries=${action.diff} />
          </li>`)}
        </ul>
        ${data.actions.length === 0 && html`<p class="muted">These actions are done by now.</p>`}
        <${Pager} offset=${offset} size=${PAGE} total=${data.total} onMove=${(next) => update({ offset: next || "" })} />`}
    <//>
  </div>`;
}

export function BlockedList({ blocked, isOpen, onToggle }) {
  const total = blocked.reduce((sum, each) => sum + (each.count ?? 1), 0);
  return html`<div class="blocked">
    <button type="button" class="group-head" aria-expanded=${String(isOpen)} onClick=${onToggle}><${Chevron} open=${isOpen} /><span>${plural(total, "object")} blocked</span><span class="muted group-message">${blocked.slice(0, 3).map((each) => `${each.reason} ${count(each.count ?? 1)}`).join(" · ")}</span></button>
    ${isOpen && html`<table><thead><tr><th scope="col">Reason</th><th scope="col">Message</th><th scope="col">Objects</th></tr></thead><tbody>
      ${blocked.map((each) => html`<tr><th scope="row">${each.reason}</th><td>${each.message}</td><td>${(each.samples ?? []).map((sample, index) => html`${index ? ", " : ""}<${Ref} to=${sample} />`)}${(each.count ?? 0) > (each.samples?.length ?? 0) ? ` and ${count(each.count - (each.samples?.length ?? 0))} more` : ""}</td></tr>`)}
    </tbody></table>`}
  </div>`;
}
