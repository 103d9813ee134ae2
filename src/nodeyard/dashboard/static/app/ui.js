// Small parts that several views share.
import { get } from "./api.js";
import { link } from "./route.js";
import { ago, nameOf, seconds, stamp, textOf } from "./format.js";
import { html, useEffect, useLayoutEffect, useReducer, useRef, useState } from "./html.js";
import { serverNow } from "./live.js";

export { link };

/** Renders the component again every `period` seconds, so that ages stay true. */
export function useTick(period = 10) {
  const [, force] = useReducer((count) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(force, period * 1000);
    return () => clearInterval(timer);
  }, [period]);
}

/** The result of an asynchronous read, again whenever a dependency changes: {data, error, isLoading, reload}. */
export function useRead(read, dependencies) {
  const [state, setState] = useState({ isLoading: true });
  const [turn, reload] = useReducer((count) => count + 1, 0);
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    Promise.resolve(read(controller.signal)).then(
      (data) => !controller.signal.aborted && setState({ data, isLoading: false }),
      (error) => !controller.signal.aborted && setState({ error, isLoading: false }),
    );
    return () => controller.abort();
  }, [...dependencies, turn]);
  return { ...state, reload };
}

export const useGet = (path, params, dependencies = Object.values(params)) =>
  useRead((signal) => get(path, params, signal), [path, ...dependencies]);

export function Since({ at, prefix = "" }) {
  const time = seconds(at);
  if (!time) return null;
  const text = ago(time, serverNow());
  return html`<time class="since" datetime=${new Date(time * 1000).toISOString()} title=${stamp(time)}>${text === "just now" ? text : `${prefix}${text}`}</time>`;
}

/** Several groups have a kind Cluster, so the group is part of the address, except for the core group. */
export const whyParams = (ref) => ({ kind: ref.kind, ns: ref.namespace, name: ref.name, api: ref.apiVersion?.includes("/") ? ref.apiVersion : "" });
export const whyOf = (ref) => link("why", whyParams(ref));

export function Ref({ to, kind = true }) {
  if (!to) return null;
  return html`<a class="ref" href=${whyOf(to)} title=${`Why is ${textOf(to)} as it is?`}>
    ${kind && html`<span class="ref-kind">${to.kind} </span>`}<span class="ref-name">${nameOf(to)}</span>
  </a>`;
}

export function Badge({ tone = "plain", children, title }) {
  return html`<span class=${`badge ${tone}`} title=${title}>${children}</span>`;
}

export const Chevron = ({ open }) => html`<svg class=${`chevron${open ? " open" : ""}`} viewBox="0 0 12 12" aria-hidden="true"><path d="M4 2.5 8 6 4 9.5" /></svg>`;

export function Problem({ error, onRetry }) {
  return html`<div class="problem" role="alert">
    <p class="problem-what">${error.message}</p>
    ${error.remedy && html`<p class="problem-remedy">${error.remedy}</p>`}
    ${onRetry && html`<button type="button" class="button" onClick=${onRetry}>Try again</button>`}
  </div>`;
}

export const Empty = ({ title, children }) => html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}</div>`;

export const Loading = ({ what }) => html`<p class="loading" role="status">Loading ${what}…</p>`;

/** Shows what a read gave: its data, or in plain words why there is none. */
export function Result({ read, what, children }) {
  if (read.error) return html`<${Problem} error=${read.error} onRetry=${read.reload} />`;
  if (!read.data) return html`<${Loading} what=${what} />`;
  return children(read.data);
}

export function Copy({ text, label = "Copy" }) {
  const [state, setState] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("Copied");
    } catch {
      setState("Select the text and copy it");
    }
    setTimeout(() => setState(""), 2000);
  };
  return html`<button type="button" class="button small" onClick=${copy}><span aria-live="polite">${state || label}</span></button>`;
}

export const Command = ({ text }) => html`<div class="command"><code tabindex="0">${text}</code><${Copy} text=${text} /></div>`;

export function Dialog({ title, onClose, children, wide }) {
  const ref = useRef();
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = ref.current;
    dialog.showModal();
    return () => {
      dialog.close(); // what lies behind it takes no focus until then
      before?.focus?.();
    };
  }, []);
  const outside = (event) => event.target === ref.current && onClose();
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${ref} class=${wide ? "wide" : ""} aria-labelledby="dialog-title" onCancel=${cancel} onClick=${outside}>
    <div class="dialog-body">
      <header class="dialog-head">
        <h2 id="dialog-title">${title}</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick=${onClose}>✕</button>
      </header>
      ${children}
    </div>
  </dialog>`;
}

const value = (item) => (typeof item === "string" ? item : JSON.stringify(item));

/** Changes of fields, one line each, as in `nodeyard plan`. */
export function Diff({ entries }) {
  if (!entries?.length) return html`<p class="muted">No field changes.</p>`;
  return html`<ul class="diff">
    ${entries.map((entry) => {
      const has = { from: entry.from !== undefined && entry.from !== null, to: entry.to !== undefined && entry.to !== null };
      const [sign, tone, words] = has.from && has.to ? ["~", "changed", "changed"] : has.from ? ["-", "removed", "removed"] : ["+", "added", "added"];
      return html`<li class=${tone}>
        <span class="sign" aria-label=${words}>${sign}</span>
        <span class="path">${entry.path}</span>
        ${has.from && html`<span class="from">${value(entry.from)}</span>`}
        ${has.from && has.to && html`<span class="arrow" aria-label="becomes">→</span>`}
        ${has.to && html`<span class="to">${value(entry.to)}</span>`}
      </li>`;
    })}
  </ul>`;
}

/** The first row of the page that a row is on, of rows that may have become fewer. */
export const firstOf = (offset, size, total) => Math.floor(Math.min(Number(offset) || 0, Math.max(0, total - 1)) / size) * size;

export function Pager({ offset, size, total, onMove }) {
  if (total <= size) return null;
  return html`<nav class="pager" aria-label="Pages">
    <button type="button" class="button small" disabled=${offset === 0} onClick=${() => onMove(Math.max(0, offset - size))}>Previous</button>
    <span class="muted">${offset + 1}–${Math.min(total, offset + size)} of ${total.toLocaleString("en")}</span>
    <button type="button" class="button small" disabled=${offset + size >= total} onClick=${() => onMove(offset + size)}>Next</button>
  </nav>`;
}

/** One of several: Tab reaches the chosen one, arrow keys choose another. */
export function Segmented({ label, value: chosen, options, onChange }) {
  const at = Math.max(0, options.findIndex(([key]) => key === chosen));
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (at + step + options.length) % options.length;
    event.currentTarget.children[next].focus();
    onChange(options[next][0]);
  };
  return html`<div class="segmented" role="radiogroup" aria-label=${label} onKeyDown=${move}>
    ${options.map(
      ([key, text], index) => html`<button type="button" role="radio" aria-checked=${String(key === chosen)} tabindex=${index === at ? 0 : -1} onClick=${() => onChange(key)}>${text}</button>`,
    )}
  </div>`;
}

/** A bar of parts, each with a width in percent and a class for its colour. */
export const Bar = ({ parts, label }) => html`<div class="bar" role="img" aria-label=${label}>
  ${parts.map(([tone, share]) => share > 0 && html`<span class=${tone} style=${{ width: `${Math.min(100, 100 * share)}%` }}></span>`)}
</div>`;
