// Why: an object, the answer in a sentence, the rule that decided, the candidates, and what would change it.
import { get } from "./api.js";
import { count, nameOf, plural, spaced, textOf } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { live } from "./live.js";
import { go, link, update, useRoute } from "./route.js";
import { Badge, Command, Empty, firstOf, Pager, Problem, Ref, Result, Since, useRead, useTick, whyParams } from "./ui.js";

const PAGE = 50;

export function Why() {
  const { params } = useRoute();
  useTick();
  return html`<div class="page narrow">
    <div class="page-head"><h1>Why</h1><p>Any object: a node, a template, a pool, a tenant, a pod.</p></div>
    <${Search} key=${`${params.kind}/${params.ns}/${params.name}`} params=${params} />
    ${params.kind && params.name
      ? html`<${Answers} params=${params} />`
      : html`<${Empty} title="Ask about an object.">Type a name, or <code>kind/namespace/name</code>. Press <kbd>/</kbd> anywhere to come here.<//>`}
  </div>`;
}

function Search({ params }) {
  const [text, setText] = useState(params.q ?? "");
  const [found, setFound] = useState({ items: null, error: null });
  const [chosen, setChosen] = useState(0);
  const [isOpen, setOpen] = useState(Boolean(params.q));
  useEffect(() => {
    const asked = text.trim();
    if (!asked) {
      setFound({ items: null, error: null });
      return undefined;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      get("search", { q: asked }, controller.signal).then(
        (items) => setFound({ items, error: null }),
        (error) => error.name !== "AbortError" && setFound({ items: null, error }),
      );
    }, 120);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  const items = found.items ?? [];
  const open = (item) => {
    setOpen(false);
    setText("");
    go("why", whyParams(item));
  };
  const type = (event) => {
    setText(event.target.value);
    setChosen(0);
    setOpen(true);
    update({ q: event.target.value }, { replace: true });
  };
  const key = (event) => {
    if (event.key === "ArrowDown") setChosen(Math.min(items.length - 1, chosen + 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(0, chosen - 1));
    else if (event.key === "Enter" && items[chosen]) open(items[chosen]);
    else if (event.key === "Escape" && isOpen) {
      setOpen(false);
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  const isShown = isOpen && text.trim() !== "";
  return html`<div class="search">
    <input id="search" type="search" role="combobox" autocomplete="off" spellcheck="false" aria-label="Search an object" aria-controls="search-results" aria-expanded=${String(isShown)} aria-autocomplete="list"
      aria-activedescendant=${isShown && items.length ? `result-${chosen}` : null} placeholder=${params.name ? textOf({ kind: params.kind, namespace: params.ns, name: params.name }) : "Search nodes, templates, pools, tenants, pods…"} value=${text} onInput=${type} onKeyDown=${key} onFocus=${() => setOpen(true)} />
    ${isShown &&
    html`<ul id="search-results" class="results" role="listbox" aria-label="Found objects">
      ${found.error && html`<li class="result-note"><${Problem} error=${found.error} /></li>`}
      ${found.items && items.length === 0 && html`<li class="result-note muted" role="status">Nothing is named like this. For an object of another kind type kind/namespace/name.</li>`}
      ${items.map(
        (item, index) => html`<li id=${`result-${index}`} role="option" aria-selected=${String(index === chosen)} onMouseDown=${(event) => { event.preventDefault(); open(item); }} onMouseEnter=${() => setChosen(index)}>
          <span class="result-kind">${item.kind}</span><span class="result-name">${nameOf(item)}</span>${item.capability && html`<span class="muted">${item.capability}</span>`}
        </li>`,
      )}
    </ul>`}
  </div>`;
}

function Answers({ params }) {
  const read = useRead(
    (signal) => get("why", { kind: params.kind, namespace: params.ns, name: params.name, apiVersion: params.api }, signal),
    [params.kind, params.ns, params.name, params.api],
  );
  return html`<${Result} read=${read} what=${`why ${params.name} is as it is`}>
    ${(data) => html`
      <div class="why-object"><span class="muted">${data.object?.kind ?? params.kind}</span> <strong>${nameOf(data.object) || params.name}</strong>
        ${(data.object?.kind ?? params.kind) === "Node" && html`<a href=${link("yard", { node: data.object?.name ?? params.name })}>Show in the yard</a>`}
        <span class="spacer"></span><button type="button" class="button small" onClick=${read.reload}>Ask again</button>
      </div>
      ${!data.answers?.length && html`<${Empty} title="No capability concerns itself with this object.">Check its name, or whether the capability runs: <code>nodeyard status</code>.<//>`}
      ${(data.answers ?? []).map((answer, index) => html`<${Answer} answer=${answer} object=${data.object} params=${params} index=${index} />`)}
    `}
  <//>`;
}

function Answer({ answer, object, params, index }) {
  const isAbout = answer.object && nameOf(answer.object) !== nameOf(object);
  const notes = (answer.notes ?? []).filter((note) => note.message !== answer.sentence);
  return html`<article class="panel answer">
    <header><span class="by">${answer.by}</span>${isAbout && html`<${Ref} to=${answer.object} />`}<span class="spacer"></span><code class="muted">${answer.reason}</code></header>
    <div class="panel-body">
      <p class="sentence">${answer.sentence}</p>
      ${answer.since && html`<p class="muted"><${Since} at=${answer.since} prefix="For " /></p>`}
      ${notes.length > 0 && html`<ul class="notes">${notes.map((note) => html`<li><span class="badge">${note.reason}</span> ${capital(note.message)}</li>`)}</ul>`}
      ${answer.ladder?.length > 0 && html`<${Ladder} rungs=${answer.ladder} />`}
      ${answer.wouldChange?.length > 0 &&
      html`<section class="would"><h3>What would change it</h3><ul>${answer.wouldChange.map((way) => html`<li><p>${way.message}</p>${way.command && html`<${Command} text=${way.command} />`}</li>`)}</ul></section>`}
      ${answer.candidates?.length > 0 && html`<${Matrix} answer=${answer} params=${params} index=${index} />`}
    </div>
  </article>`;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// A rung says what the rule asks; the first that is true decides.
const RUNG = { passed: ["no", "not so"], decided: ["yes", "so, and this decides"], notReached: ["–", "not asked any more"] };

function Ladder({ rungs }) {
  return html`<section><h3>The rule, asked from top to bottom</h3><ol class="ladder">
    ${rungs.map((rung) => {
      const [sign, words] = RUNG[rung.state] ?? RUNG.notReached;
      return html`<li class=${rung.state} aria-current=${rung.state === "decided" ? "step" : null}><span class="rung-sign" aria-hidden="true">${sign}</span><span class="rung-title">${rung.title}</span><span class="visually-hidden">: ${words}</span>${rung.state === "decided" && html`<code>${rung.reason}</code>`}</li>`;
    })}
  </ol></section>`;
}

/**
 * Candidates × requirements, with the failing one named. `inOrder`: requirements are checked one after the other, so
 * that those before the failed one are met; else they are reasons of refusal, and nothing is known of the others.
 */
export function Matrix({ answer, params, index = 0, title = "Candidates", unit = "candidate", word = "Taken", inOrder = false }) {
  const requirements = answer.requirements ?? [];
  const all = answer.candidates ?? [];
  const only = params[`only${index}`] ?? "";
  const rows = all.filter((each) => !only || (only === "taken" ? each.isTaken : (each.failed ?? "") === only));
  const offset = firstOf(params[`from${index}`], PAGE, rows.length);
  const fails = (name) => all.filter((each) => !each.isTaken && each.failed === name).length;
  const taken = all.filter((each) => each.isTaken).length;
  const set = (value) => update({ [`only${index}`]: only === value ? "" : value, [`from${index}`]: "" });
  const total = answer.total ?? all.length;
  // Candidates are also templates, pools, classes or nodes of a leaf cluster.
  const isNode = (each) => live.nodes.has(each.name);
  return html`<section>
    <h3>${title}: ${plural(total, unit)}, ${count(taken)} ${word.toLowerCase()}${total > all.length ? `, the first ${count(all.length)} shown` : ""}</h3>
    <div class="filters" role="group" aria-label="Show only">
      <button type="button" class="chip" aria-pressed=${String(only === "taken")} onClick=${() => set("taken")}>${word} ${count(taken)}</button>
      ${requirements.filter(fails).map((name) => html`<button type="button" class="chip" aria-pressed=${String(only === name)} onClick=${() => set(name)} aria-label=${`Fails ${spaced(name)}: ${fails(name)}`}><span class="fail-sign" aria-hidden="true">✕</span> ${spaced(name)} ${fails(name)}</button>`)}
    </div>
    <div class="table-box" tabindex="0" role="region" aria-label=${title}>
      <table class="matrix">
        <thead><tr><th scope="col">${all.some(isNode) ? "Node" : "Candidate"}</th>${requirements.map((name) => html`<th scope="col">${spaced(name)}</th>`)}<th scope="col">Answer</th></tr></thead>
        <tbody>${rows.slice(offset, offset + PAGE).map((each) => {
          const stop = each.failed ? requirements.indexOf(each.failed) : -1;
          const isMet = (at) => inOrder && (each.isTaken || at < stop);
          return html`<tr class=${each.isTaken ? "taken" : ""}>
            <th scope="row">${isNode(each) ? html`<a class="ref" href=${link("why", { kind: "Node", name: each.name })}>${each.name}</a>` : each.name}</th>
            ${requirements.map((name, at) => at === stop ? html`<td class="fail"><span role="img" aria-label="fails">✕</span></td>` : isMet(at) ? html`<td class="pass"><span role="img" aria-label="meets">✓</span></td>` : html`<td class="unasked"><span role="img" aria-label="not the reason">·</span></td>`)}
            <td>${each.isTaken && html`<${Badge} tone="good">${word}<//> `}${each.message}</td>
          </tr>`;
        })}</tbody>
      </table>
    </div>
    <${Pager} offset=${offset} size=${PAGE} total=${rows.length} onMove=${(next) => update({ [`from${index}`]: next || "" })} />
  </section>`;
}
