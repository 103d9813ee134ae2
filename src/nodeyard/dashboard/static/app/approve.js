// The dialog behind Approve…: what approving means, why, and who does it.
import { get, post } from "./api.js";
import { plural } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { live } from "./live.js";
import { update } from "./route.js";
import { Dialog, Problem, Result, useRead } from "./ui.js";

const MOST_PODS = 12;

export function Approve({ plan, name }) {
  const close = () => update({ approve: "" });
  const [done, setDone] = useState(null);
  const [capability, ...rest] = name.split("/");
  const key = rest.join("/");
  const read = useRead((signal) => get("approval", { capability, key }, signal), [capability, key]);
  if (done) {
    return html`<${Dialog} title="Approved" onClose=${close}>
      <div role="status"><p>${done.message || "The plan is approved."}</p>${done.by && html`<p class="muted">Recorded as approved by ${done.by}.</p>`}</div>
      <div class="dialog-foot"><button type="button" class="button primary" onClick=${close}>Close</button></div>
    <//>`;
  }
  if (!plan?.held && read.data === undefined && !read.error) return html`<${Dialog} title="Approve" onClose=${close}><p class="muted">Loading what approving means…</p><//>`;
  if (!plan?.held) {
    return html`<${Dialog} title="Nothing to approve" onClose=${close}><p>The plan ${key} of ${capability} is not held any more.</p><//>`;
  }
  return html`<${Dialog} title=${`Approve the plan of ${capability}`} wide onClose=${close}>
    <${Result} read=${read} what="what approving means">
      ${(meaning) => html`<${Form} meaning=${meaning} capability=${capability} planKey=${key} onDone=${setDone} onClose=${close} onReload=${read.reload} />`}
    <//>
  <//>`;
}

function Form({ meaning, capability, planKey, onDone, onClose, onReload }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState(null);
  const [isSending, setSending] = useState(false);
  const field = useRef();
  useEffect(() => field.current.focus(), []);
  const submit = async (event) => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      onDone(await post("approve", { capability, key: planKey, id: meaning.id, reason }));
    } catch (problem) {
      setError(problem);
      setSending(false);
    }
  };
  const pods = meaning.pods ?? [];
  const budgets = meaning.budgets ?? [];
  const spent = budgets.filter((budget) => !budget.allowed);
  return html`<form class="approve" onSubmit=${submit}>
    <p class="approve-lead">${plural(meaning.actions ?? 0, "action")} on ${plural(meaning.nodes ?? 0, "node")} will run. <code class="muted">${meaning.id}</code></p>
    ${meaning.laterSteps?.length > 0 && html`<section><h3>What happens then</h3><ol class="steps">${meaning.laterSteps.map((step) => html`<li>${step}</li>`)}</ol></section>`}
    ${budgets.length > 0 &&
    html`<section><h3>Disruption budgets</h3><table><tbody>${budgets.map((budget) => html`<tr>
      <th scope="row">${budget.namespace}/${budget.name}</th>
      <td class=${budget.allowed ? "muted" : "bad"}>${budget.allowed ? `allows ${plural(budget.allowed, "disruption")} now` : "allows none now: its pods will wait"}</td>
    </tr>`)}</tbody></table>${spent.length > 0 && html`<p class="muted">Evictions respect budgets; a spent one delays its node.</p>`}</section>`}
    ${pods.length > 0 &&
    html`<section><h3>${plural(pods.length, "pod")}${meaning.truncated ? " and more" : ""} will be evicted</h3>
      <ul class="pod-list">${pods.slice(0, MOST_PODS).map((pod) => html`<li>${pod.namespace}/${pod.name}</li>`)}${pods.length > MOST_PODS && html`<li class="muted">and ${pods.length - MOST_PODS} more</li>`}</ul></section>`}
    <label for="reason">Reason, recorded on the object</label>
    <textarea id="reason" ref=${field} rows="2" required value=${reason} placeholder="The storage farm moves to the new racks" onInput=${(event) => setReason(event.target.value)}></textarea>
    ${error && html`<${Problem} error=${error} onRetry=${error.status === 409 ? () => { setError(null); onReload(); } : undefined} />`}
    <div class="dialog-foot">
      <span class="muted who">You approve as <strong>${live.viewer.name || "the user of your kubeconfig"}</strong>, with your own credentials.</span>
      <button type="button" class="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="button primary" disabled=${isSending || !reason.trim()}>${isSending ? "Approving…" : `Approve ${plural(meaning.nodes ?? 0, "node")}`}</button>
    </div>
  </form>`;
}
