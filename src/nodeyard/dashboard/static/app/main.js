// The frame around the views: header, connection, keyboard, help.
import { request } from "./api.js";
import { onSystemTheme, themeInUse } from "./colours.js";
import { clock, plural } from "./format.js";
import { html, render, useEffect, useState } from "./html.js";
import { live, retryNow, run, useLive } from "./live.js";
import { Places } from "./places.js";
import { Plan } from "./plan.js";
import { Recorder } from "./recorder.js";
import { Rollouts } from "./rollouts.js";
import { current, go, link, onRoute, update, useRoute } from "./route.js";
import { Badge, Dialog, Problem, Since, useTick } from "./ui.js";
import { Why } from "./why.js";
import { Yard } from "./yard.js";

const NAV = [
  ["yard", "Yard", "y", Yard],
  ["plan", "Plan", "p", Plan],
  ["why", "Why", "w", Why],
  ["recorder", "Recorder", "r", Recorder],
  ["rollouts", "Rollouts", "o", Rollouts],
  ["places", "Places", "l", Places],
];
const KEYS = [
  ["/", "Search an object"],
  ["g y", "Yard"],
  ["g p", "Plan"],
  ["g w", "Why"],
  ["g r", "Recorder"],
  ["g o", "Rollouts and drains"],
  ["g l", "Places and reach"],
  ["t", "Dark or light"],
  ["?", "This help"],
  ["Esc", "Close what is open"],
  ["arrows, + − 0", "In the yard: choose a node, zoom"],
];

function applyTheme() {
  const chosen = current().params.theme || localStorage.getItem("theme") || "";
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  dispatchEvent(new Event("themechange"));
}

function switchTheme() {
  const next = themeInUse() === "dark" ? "light" : "dark";
  localStorage.setItem("theme", next);
  update({ theme: next }, { replace: true });
  applyTheme();
}

function counts() {
  const held = live.plans.filter((plan) => plan.held).length;
  const blocked = live.rollouts.filter((rollout) => rollout.blockers?.length).length;
  return {
    yard: live.attention.length && [live.totals.attention ?? live.attention.length, live.attention.some((item) => item.severity === "critical") ? "critical" : "warning", "need you"],
    plan: held && [held, "warning", "held"],
    rollouts: live.rollouts.length && [live.rollouts.length, blocked ? "warning" : "plain", "on their way"],
  };
}

function Nav({ view }) {
  const numbers = counts();
  return html`<nav class="views" aria-label="Views">
    ${NAV.map(([key, text]) => html`<a href=${link(key)} aria-current=${view === key ? "page" : null}>
      <span>${text}</span>${numbers[key] ? html`<span class=${`count ${numbers[key][1]}`} aria-label=${`${numbers[key][0]} ${numbers[key][2]}`}>${numbers[key][0]}</span>` : null}
    </a>`)}
  </nav>`;
}

function Operators({ isOpen }) {
  useTick(5);
  const { operators } = live;
  const gone = operators.filter((operator) => operator.state === "Gone");
  const observing = operators.filter((operator) => operator.state === "Observing");
  const running = operators.length - gone.length - observing.length;
  const [tone, text] = gone.length
    ? ["critical", `${plural(gone.length, "operator")} gone`]
    : observing.length
      ? ["warning", running ? `${observing.length} observing` : "Observing only"]
      : operators.length
        ? ["good", plural(running, "capability", "capabilities")]
        : ["plain", "No operator"];
  return html`<div class="operators">
    <button type="button" class=${`status ${tone}`} aria-expanded=${String(isOpen)} onClick=${() => update({ operators: isOpen ? "" : "1" })}><span class="dot" aria-hidden="true"></span>${text}</button>
    ${isOpen &&
    html`<div class="popover" role="dialog" aria-label="Operators">
      ${operators.length === 0
        ? html`<p>No operator publishes itself on this cluster. Start one with <code>nodeyard run</code>; plans are shown as it would make them.</p>`
        : html`<table>
            <thead><tr><th scope="col">Capability</th><th scope="col">State</th><th scope="col">Limit</th><th scope="col">Version</th><th scope="col">Renewed</th></tr></thead>
            <tbody>${operators.map((operator) => html`<tr>
              <th scope="row" title=${operator.holder}>${operator.capability}</th>
              <td><${Badge} tone=${operator.state === "Gone" ? "critical" : operator.state === "Observing" ? "warning" : "good"}>${operator.state}<//></td>
              <td class="number">${operator.limit}</td><td>${operator.version}</td><td><${Since} at=${operator.renewed} /></td>
            </tr>`)}</tbody>
          </table>`}
    </div>`}
  </div>`;
}

function Header({ route }) {
  useLive("status", "cluster", "attention", "plans", "rollouts", "operators");
  const { cluster } = live;
  return html`<header class="top">
    <a class="brand" href=${link("yard")}><img src="/static/icon.svg" alt="" width="22" height="22" /><span class="brand-name">Nodeyard</span>
      ${cluster.name && html`<span class="cluster" title=${cluster.server ? `${cluster.server} · Kubernetes ${cluster.version ?? ""}` : ""}>${cluster.name}</span>`}
    </a>
    <${Nav} view=${route.view} />
    <div class="top-end">
      <button type="button" class="search-open" onClick=${openSearch} aria-label="Search an object"><span>Search</span><kbd>/</kbd></button>
      <${Operators} isOpen=${route.params.operators === "1"} />
      <${LiveMark} />
      <button type="button" class="icon-button" aria-label=${themeInUse() === "dark" ? "Light colours" : "Dark colours"} title="Dark or light (t)" onClick=${switchTheme}>
        <svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="1.4" /><path d="M8 2.5a5.5 5.5 0 0 1 0 11z" fill="currentColor" /></svg>
      </button>
      <button type="button" class="icon-button help-open" aria-label="Help" title="Keyboard (?)" onClick=${() => update({ help: "1" })}>?</button>
    </div>
  </header>`;
}

function LiveMark() {
  const texts = { live: ["good", "Live"], loading: ["plain", "Loading"], lost: ["critical", "Offline"], error: ["critical", "Offline"] };
  const [tone, text] = texts[live.status];
  return html`<span class=${`live ${tone}`} role="status"><span class="dot" aria-hidden="true"></span>${text}</span>`;
}

function Connection() {
  useLive("status");
  useTick(1);
  if (live.status !== "lost") return null;
  const wait = Math.max(0, Math.ceil((live.retryAt - Date.now()) / 1000));
  return html`<div class="connection" role="alert">
    <p><strong>${live.error ? live.error.message : "The connection is lost."}</strong> You see the state of ${clock(live.heardAt / 1000)}. ${live.error?.remedy || "Check that `nodeyard dashboard` still runs."}</p>
    <p>${wait > 0 ? `Trying again in ${wait} s.` : "Trying again…"} <button type="button" class="link" onClick=${retryNow}>Try now</button></p>
  </div>`;
}

function SignIn({ error }) {
  const [token, setToken] = useState("");
  const [failure, setFailure] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await request("/api/v1/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
      setToken("");
      retryNow();
    } catch (problem) {
      setFailure(problem);
    }
  };
  return html`<form class="sign-in" onSubmit=${submit}>
    <h1>Sign in</h1>
    <p>${error.message} ${error.remedy}</p>
    <label for="token">Kubernetes bearer token</label>
    <input id="token" type="password" autocomplete="off" required value=${token} onInput=${(event) => setToken(event.target.value)} />
    <p class="muted">For example from <code>kubectl create token NAME -n NAMESPACE</code>. The server keeps it for this session only.</p>
    ${failure && html`<${Problem} error=${failure} />`}
    <button type="submit" class="button primary">Sign in</button>
  </form>`;
}

function Help() {
  return html`<${Dialog} title="Keyboard" onClose=${() => update({ help: "" })}>
    <dl class="keys">${KEYS.map(([keys, text]) => html`<dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${text}</dd>`)}</dl>
    <p class="muted">The address of the page holds all that you see: copy it to show someone the same.</p>
  <//>`;
}

function openSearch() {
  go("why", current().view === "why" ? current().params : {});
  const focus = (tries) => {
    const box = document.getElementById("search");
    if (box) {
      box.focus();
      box.select();
    } else if (tries) requestAnimationFrame(() => focus(tries - 1));
  };
  focus(30);
}

let leader = 0;
function onKey(event) {
  const target = event.target;
  if (event.key === "Escape") {
    if (document.querySelector("dialog[open]")) return; // it closes itself
    const { params } = current();
    const open = ["operators", "node", "open"].find((key) => params[key]);
    if (target.matches?.("input, textarea")) target.blur();
    else if (open) update({ [open]: "" });
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || target.matches?.("input:not([type=range]), textarea, select") || document.querySelector("dialog[open]")) return;
  const view = NAV.find(([, , key]) => key === event.key)?.[0];
  if (Date.now() - leader < 1500 && view) go(view);
  else if (event.key === "/") openSearch();
  else if (event.key === "?") update({ help: "1" });
  else if (event.key === "t") switchTheme();
  else if (event.key !== "g") return;
  leader = event.key === "g" ? Date.now() : 0;
  event.preventDefault();
}

function App() {
  const route = useRoute();
  useLive("status");
  const [, , , View] = NAV.find(([key]) => key === route.view);
  const title = NAV.find(([key]) => key === route.view)[1];
  useEffect(() => {
    document.title = `${title} · Nodeyard${live.cluster.name ? ` · ${live.cluster.name}` : ""}`;
  }, [title, live.status]);
  const body =
    live.status === "loading"
      ? html`<p class="page-note" role="status">Loading the fleet…</p>`
      : live.status === "error" && live.error?.status === 401
        ? html`<${SignIn} error=${live.error} />`
        : live.status === "error"
          ? html`<div class="page-note"><h1>The fleet cannot be shown.</h1><${Problem} error=${live.error} onRetry=${retryNow} /></div>`
          : html`<${View} key=${route.view} />`;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <${Header} route=${route} />
    <${Connection} />
    <main id="main" tabindex="-1" class=${`view-${route.view}`}>${body}</main>
    ${route.params.help && html`<${Help} />`}`;
}

applyTheme();
onRoute(applyTheme);
onSystemTheme(applyTheme);
addEventListener("keydown", onKey);
const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
run();
