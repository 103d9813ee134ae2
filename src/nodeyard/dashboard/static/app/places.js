// Places: leaf clusters and their resources, tenants and their classes, and whether a pod could run.
import { post } from "./api.js";
import { amount, clock, count, duration, percent, plural, spaced, textOf } from "./format.js";
import { html, useEffect, useState } from "./html.js";
import { live, useLive } from "./live.js";
import { link, update, useRoute } from "./route.js";
import { Badge, Bar, Empty, Problem, Ref, Since, useTick } from "./ui.js";
import { Matrix } from "./why.js";

const LATE = 40; // a node lease's duration

export function Places() {
  useLive("places");
  useTick(5);
  const { leaves = [], tenants = [] } = live.places ?? {};
  const { params } = useRoute();
  return html`<div class="page">
    <div class="page-head"><h1>Places and reach</h1><p>Where workloads may run, and how much room is there.</p></div>
    <section><h2 class="section-title">Leaf clusters</h2>
      ${leaves.length ? html`<ul class="leaves">${leaves.map((leaf) => html`<${Leaf} key=${leaf.name} leaf=${leaf} isChosen=${params.leaf === leaf.name} />`)}</ul>
        <p class="bar-key muted"><span class="key taken"></span>taken <span class="key reserved"></span>reserved <span class="key free"></span>free</p>`
      : html`<${Empty} title="No leaf clusters.">Create a Cluster of group kosmos.io to mirror one.<//>`}
    </section>
    <section><h2 class="section-title">Tenants, classes, nodes</h2>
      ${tenants.length ? html`<${Tenants} tenants=${tenants} />` : html`<${Empty} title="No tenants.">Tenants and their placement classes appear here while the capability affinity runs.<//>`}
    </section>
    <section><h2 class="section-title">Could it run?</h2><${CouldRun} params=${params} /></section>
  </div>`;
}

function Leaf({ leaf, isChosen }) {
  const contact = leaf.contact ?? {};
  const isGood = ["Reachable", "LeafReachable"].includes(contact.state);
  const age = leaf.leaseAgeSeconds;
  return html`<li class=${`panel leaf${isChosen ? " chosen" : ""}`}>
    <header>
      <h2><a class="ref" href=${link("yard", { group: "leaf", leaf: leaf.name })}>${leaf.name}</a></h2>
      <${Badge} tone=${isGood ? "good" : "critical"} title=${contact.message}>${spaced(contact.state ?? "Unknown")}<//>
      <${Since} at=${contact.since} prefix="for " /><span class="spacer"></span>
      ${age !== undefined && age !== null && html`<span class=${age > LATE ? "bad" : "muted"} title="Age of the oldest node lease">lease ${duration(age)} old</span>`}
    </header>
    ${contact.message && !isGood && html`<p class="leaf-message">${contact.message}</p>`}
    <table class="resources"><colgroup><col class="resource-name" /><col /><col class="resource-number" /></colgroup><thead class="visually-hidden"><tr><th scope="col">Resource</th><th scope="col">Use</th><th scope="col">Free of base</th></tr></thead><tbody>
      ${(leaf.resources ?? []).map((each) => {
        const base = each.base || 1;
        const text = `${amount(each.taken ?? 0, each.unit)} taken, ${amount(each.reserved ?? 0, each.unit)} reserved, ${amount(each.free ?? 0, each.unit)} free of ${amount(each.base ?? 0, each.unit)}`;
        return html`<tr title=${text}><th scope="row">${each.resource}</th><td class="bar-cell"><${Bar} label=${text} parts=${[["taken", (each.taken ?? 0) / base], ["reserved", (each.reserved ?? 0) / base], ["free", (each.free ?? 0) / base]]} /></td><td class="number">${amount(each.free ?? 0, each.unit === "bytes" ? each.unit : "")} <span class="muted">of ${amount(each.base ?? 0, each.unit)} free</span></td></tr>`;
      })}
    </tbody></table>
  </li>`;
}

function Tenants({ tenants }) {
  const most = Math.max(1, ...tenants.flatMap((tenant) => (tenant.classes ?? []).map((each) => each.nodes ?? 0)));
  const refusals = tenants.flatMap((tenant) => (tenant.refusals ?? []).map((refusal) => ({ ...refusal, tenant: tenant.name })));
  return html`<div class="panel table-box" tabindex="0" role="region" aria-label="Tenants">
      <table class="tenants"><thead><tr><th scope="col">Tenant</th><th scope="col">Class</th><th scope="col">Nodes</th><th scope="col" class="number">Pods</th><th scope="col">Outside their class</th></tr></thead>
        ${tenants.map((tenant) => {
          const classes = tenant.classes ?? [];
          return html`<tbody>${(classes.length ? classes : [null]).map((each, index) => html`<tr>
            ${index === 0 && html`<th scope="rowgroup" rowspan=${Math.max(1, classes.length)}>${tenant.name}</th>`}
            ${each ? html`<td><a class="ref" href=${link("why", { kind: "AffinityClass", name: each.name })}>${each.name}</a> ${each.isDefault && html`<${Badge}>default<//>`}</td>
              <td><div class="reach"><${Bar} label=${plural(each.nodes ?? 0, "node")} parts=${[["done", (each.nodes ?? 0) / most]]} /><a class=${each.nodes ? "ref" : "bad"} href=${link("yard", { group: "class", class: each.name })}>${each.nodes ? count(each.nodes) : "none"}</a></div></td>
              <td class="number">${count(each.pods)}</td>
              <td>${each.violators?.length ? html`<span class="bad">${plural(each.violators.length, "pod")}</span> ${each.violators.slice(0, 3).map((pod, at) => html`${at ? ", " : ""}<${Ref} to=${pod} kind=${false} />`)}${each.violators.length > 3 ? "…" : ""}` : html`<span class="muted">none</span>`}</td>`
            : html`<td colspan="4" class="muted">no classes: its pods may run anywhere</td>`}
          </tr>`)}</tbody>`;
        })}
      </table>
    </div>
    ${refusals.length > 0 && html`<div class="panel refusals"><header><h2>Refused at admission</h2></header><ul>${refusals.map((refusal) => html`<li><span class="muted">${clock(refusal.t)}</span> <strong>${refusal.tenant}</strong> <span class="muted">${textOf(refusal.object)}</span><p>${refusal.message}</p></li>`)}</ul></div>`}`;
}

function CouldRun({ params }) {
  const [yaml, setYaml] = useState("");
  const [state, setState] = useState({});
  const pod = params.pod ?? "";
  const [text, setText] = useState(pod);
  const ask = async (body) => {
    setState({ isBusy: true });
    try {
      setState({ data: await post("could-run", body) });
    } catch (error) {
      setState({ error });
    }
  };
  useEffect(() => {
    if (!pod) return;
    const [namespace, name] = pod.includes("/") ? pod.split("/", 2) : ["default", pod];
    ask({ namespace, name });
  }, [pod]);
  const submit = (event) => {
    event.preventDefault();
    if (yaml.trim()) {
      update({ pod: "" }, { replace: true });
      ask({ yaml });
    } else if (pod === text.trim()) ask({ namespace: pod.split("/")[0], name: pod.split("/")[1] });
    else update({ pod: text.trim() });
  };
  const { data, error, isBusy } = state;
  return html`<form class="panel could-run" onSubmit=${submit}>
      <label>A pod <input type="text" placeholder="namespace/name" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      <label class="grow">or the YAML of one <textarea rows="2" spellcheck="false" value=${yaml} onInput=${(event) => setYaml(event.target.value)}></textarea></label>
      <button type="submit" class="button primary" disabled=${isBusy || !(yaml.trim() || text.trim())}>${isBusy ? "Looking…" : "Could it run?"}</button>
    </form>
    ${error && html`<${Problem} error=${error} />`}
    ${data && html`<div class="panel verdict" role="status"><div class="panel-body">
      <p class="sentence"><${Badge} tone=${/^(yes|true|runs|fits|could)/i.test(String(data.verdict)) ? "good" : "critical"}>${String(data.verdict)}<//> ${data.sentence}</p>
      ${Object.keys(data.byRequirement ?? {}).length > 0 && html`<div class="table-box"><table class="by-requirement"><thead><tr><th scope="col">Requirement</th><th scope="col">Nodes that fail it</th><th></th></tr></thead><tbody>${Object.entries(data.byRequirement).map(([name, number]) => html`<tr><th scope="row">${name}</th><td class="number">${count(number)} <span class="muted">${percent(number, data.total)}</span></td><td class="bar-cell"><${Bar} label=${plural(number, "node")} parts=${[["reserved", number / (data.total || 1)]]} /></td></tr>`)}</tbody></table></div>`}
      ${data.nodes?.length > 0 && html`<${Matrix} title="Nodes" unit="node" word="Suitable" inOrder=${true} answer=${{ requirements: data.requirements ?? Object.keys(data.byRequirement ?? {}), candidates: data.nodes, total: data.total }} params=${params} />`}
    </div></div>`}`;
}
