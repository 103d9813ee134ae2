// What if: the plan of a file that is not applied.
import { post } from "./api.js";
import { html, useState } from "./html.js";
import { allGroups, BlockedList, Group, ordered, planName } from "./plan.js";
import { Badge, Copy, Empty, Problem } from "./ui.js";

const LIMIT = 1_000_000;

// Kept while the page is open, so that a look at another view loses nothing. Too large for the URL.
const kept = { yaml: "", result: null };

export function WhatIf() {
  const [yaml, setYaml] = useState(kept.yaml);
  const [result, setResult] = useState(kept.result);
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const [isOver, setOver] = useState(false);
  const change = (text) => {
    kept.yaml = text;
    setYaml(text);
  };
  const ask = async (text) => {
    if (text.length > LIMIT) {
      setError({ message: "The file is larger than 1 MB.", remedy: "Use `nodeyard plan -f FILE`." });
      return;
    }
    setBusy(true);
    setError(null);
    try {
      kept.result = await post("whatif", text, "application/yaml");
      setResult(kept.result);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const take = async (files) => {
    const texts = await Promise.all([...files].map((file) => file.text()));
    const text = texts.join("\n---\n");
    change(text);
    ask(text);
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer.files.length) take(event.dataTransfer.files);
    else change(event.dataTransfer.getData("text/plain"));
  };
  return html`
    <form class=${`panel what-if${isOver ? " over" : ""}`} onSubmit=${(event) => { event.preventDefault(); ask(yaml); }}
      onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <label for="yaml">Drop YAML files here, or paste what you would apply</label>
      <textarea id="yaml" rows=${result ? 6 : 12} spellcheck="false" value=${yaml} placeholder="apiVersion: nyallocator.cybozu.io/v1" onInput=${(event) => change(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && ask(yaml)}></textarea>
      <div class="what-if-foot">
        <label class="button">Choose files<input class="visually-hidden" type="file" multiple accept=".yaml,.yml,.json" onChange=${(event) => take(event.target.files)} /></label>
        <span class="spacer"></span>
        <button type="submit" class="button primary" disabled=${isBusy || !yaml.trim()}>${isBusy ? "Planning…" : "Show its plan"}</button>
      </div>
    </form>
    ${error && html`<${Problem} error=${error} />`}
    ${result && !error && html`<${Outcome} result=${result} />`}`;
}

function Outcome({ result }) {
  const plans = (result.plans ?? []).filter((plan) => plan.held || plan.groups?.length || plan.blocked?.length);
  const gone = (result.gone ?? []).filter((plan) => plan.held || plan.groups?.length);
  const added = plans.flatMap(allGroups).filter((group) => group.isNew).length;
  return html`<div class="outcome" role="status">
    <div class="page-head">
      <h2>${plans.length || gone.length ? "Its plan" : "Nothing would change."}</h2>
      ${added > 0 && html`<p><${Badge} tone="accent">New<//> happens only because of the change.</p>`}
      <span class="spacer"></span>
      <${Copy} text="nodeyard rehearse -f change.yaml -o html > rehearsal.html" label="Copy command to rehearse" />
      ${result.markdown && html`<${Copy} text=${result.markdown} label="Copy as Markdown" />`}
    </div>
    ${(result.warnings ?? []).map((warning) => html`<p class="notice warning">${warning.message ?? warning}</p>`)}
    ${plans.map((plan) => html`<section class="panel plan" aria-label=${planName(plan)}>
      <header><h2>${plan.capability} <span class="muted">${plan.key}</span></h2></header>
      ${plan.held && html`<p class="notice warning">Would be held: ${plan.held.message}</p>`}
      <ul class="groups">${ordered(allGroups(plan)).map((group) => html`<${Group} key=${group.id} plan=${plan} group=${group} canOpen=${false} />`)}</ul>
      ${plan.blocked?.length > 0 && html`<${BlockedList} blocked=${plan.blocked} isOpen=${true} onToggle=${() => {}} />`}
    </section>`)}
    ${gone.length > 0 &&
    html`<section class="panel plan gone" aria-label="No longer done">
      <header><h2>No longer done</h2><span class="muted">What the operator would do now, and would not do any more.</span></header>
      <ul class="groups">${gone.flatMap((plan) => ordered(allGroups(plan)).map((group) => html`<${Group} key=${planName(plan) + group.id} plan=${plan} group=${group} canOpen=${false} />`))}</ul>
    </section>`}
    ${!plans.length && !gone.length && html`<${Empty} title="No action follows from it.">The operator would do the same as now.<//>`}
  </div>`;
}
