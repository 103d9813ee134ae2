// The state of the page is its URL: `#/plan?group=a1`. Views read it with useRoute and change it with go and update.
import { useLayoutEffect, useReducer } from "./html.js";

export const VIEWS = ["yard", "plan", "why", "recorder", "rollouts", "places"];
const KEPT = ["theme"]; // stays when the view changes

let shown = location.hash;
let route = parse(shown);
const listeners = new Set();

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const view = VIEWS.includes(path) ? path : "yard";
  return { view, params: Object.fromEntries(new URLSearchParams(query)) };
}

export function href(view, params = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) query.set(key, value);
  }
  const text = query.toString();
  return `#/${view}${text ? `?${text}` : ""}`;
}

export function link(view, params = {}) {
  const kept = Object.fromEntries(KEPT.map((key) => [key, route.params[key]]));
  return href(view, { ...kept, ...params });
}

/** Opens a view with these parameters. */
export function go(view, params = {}) {
  location.hash = link(view, params);
  refresh(); // at once: the next key must not act on the state before
}

/** Changes parameters of the current view. `replace` leaves no step in the history: typing, dragging, zooming. */
export function update(changes, { replace = false } = {}) {
  const target = href(route.view, { ...route.params, ...changes });
  if (target === location.hash) return;
  if (replace) history.replaceState(null, "", target);
  else location.hash = target;
  refresh();
}

export const current = () => route;

function refresh() {
  if (location.hash === shown) return;
  shown = location.hash;
  route = parse(shown);
  for (const listener of [...listeners]) listener(route);
}

addEventListener("hashchange", refresh);

export function onRoute(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useRoute() {
  const [, force] = useReducer((count) => count + 1, 0);
  useLayoutEffect(() => onRoute(force), []);
  return route;
}
