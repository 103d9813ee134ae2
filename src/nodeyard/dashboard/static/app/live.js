// What the server knows, kept up to date by its event stream. Views subscribe to the topics that they show.
import { errorOf, get } from "./api.js";
import { useLayoutEffect, useReducer } from "./html.js";

const SILENCE = 40_000; // the server sends a heartbeat every 15 s
const LONGEST_PAUSE = 15_000;
const LISTS = ["attention", "plans", "rollouts", "places", "operators"];

export const live = {
  status: "loading", // loading, live, lost, error
  error: null,
  retryAt: 0,
  heardAt: 0,
  skew: 0, // seconds that the server's clock is ahead of ours
  seq: null,
  cluster: {},
  viewer: {},
  operators: [],
  columns: [],
  nodes: new Map(),
  attention: [],
  plans: [],
  rollouts: [],
  places: {},
  totals: {}, // of lists that are cut
};

const listeners = new Map();

export function subscribe(topics, listener) {
  for (const topic of topics) {
    if (!listeners.has(topic)) listeners.set(topic, new Set());
    listeners.get(topic).add(listener);
  }
  return () => topics.forEach((topic) => listeners.get(topic).delete(listener));
}

function tell(topic, payload) {
  for (const listener of [...(listeners.get(topic) ?? [])]) listener(payload);
}

/** Renders the component again when one of the topics changes. */
export function useLive(...topics) {
  const [, force] = useReducer((count) => count + 1, 0);
  // A layout effect: nothing happens between rendering and it, so no change is missed.
  useLayoutEffect(() => subscribe(topics, force), []);
  return live;
}

export const serverNow = () => Date.now() / 1000 + live.skew;

const epoch = (value) => (typeof value === "number" ? value : Date.parse(value) / 1000);

function takeSnapshot(data) {
  live.seq = data.seq;
  live.cluster = data.cluster ?? {};
  live.viewer = data.viewer ?? {};
  live.totals = data.totals ?? {};
  live.columns = data.nodes?.columns ?? [];
  live.nodes = new Map((data.nodes?.rows ?? []).map((row) => [row[0], row]));
  for (const topic of LISTS) live[topic] = data[topic] ?? (topic === "places" ? {} : []);
  hear(data.now);
  for (const topic of ["nodes", "cluster", ...LISTS]) tell(topic);
}

function hear(now) {
  live.heardAt = Date.now();
  if (now !== undefined) live.skew = epoch(now) - Date.now() / 1000;
}

function takeEvent({ event, id, data }) {
  const body = JSON.parse(data);
  if (event === "snapshot") {
    takeSnapshot(body);
    return;
  }
  live.seq = id || live.seq;
  hear(body.now);
  if (event === "nodes") {
    for (const row of body.set ?? []) live.nodes.set(row[0], row);
    for (const name of body.delete ?? []) live.nodes.delete(name);
    tell("nodes");
  } else if (event === "recorder") {
    tell("recorder", body.entries ?? []);
  } else if (LISTS.includes(event)) {
    live.totals = { ...live.totals, [event]: body.total };
    live[event] = body[event] ?? body.items ?? (event === "places" ? {} : []);
    tell(event);
  }
}

/** Splits a stream of server-sent events into events. */
export class EventParser {
  #rest = "";
  #event = {};

  *feed(text) {
    const lines = (this.#rest + text).split(/\r?\n/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (this.#event.data !== undefined) yield { event: "message", ...this.#event };
        this.#event = {};
      } else if (!line.startsWith(":")) {
        const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
        if (field === "data") this.#event.data = this.#event.data === undefined ? value : `${this.#event.data}\n${value}`;
        else this.#event[field] = value;
      }
    }
  }
}

function setStatus(status, error = null) {
  live.status = status;
  live.error = error;
  tell("status");
}

async function follow() {
  const controller = new AbortController();
  let watchdog;
  const wind = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => controller.abort(), SILENCE);
  };
  wind();
  try {
    const headers = { Accept: "text/event-stream" };
    if (live.seq !== null) headers["Last-Event-ID"] = String(live.seq);
    const response = await fetch("/api/v1/stream", { headers, signal: controller.signal, cache: "no-store" });
    if (!response.ok) throw await errorOf(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    setStatus("live");
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      wind();
      live.heardAt = Date.now();
      for (const event of parser.feed(value)) takeEvent(event);
    }
  } finally {
    clearTimeout(watchdog);
    controller.abort();
  }
}

let wake = () => {};

function pause(milliseconds) {
  live.retryAt = Date.now() + milliseconds;
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

export const retryNow = () => wake();

/** Loads the snapshot, then follows the stream, for as long as the page is open. */
export async function run() {
  let failures = 0;
  for (;;) {
    try {
      if (live.seq === null) takeSnapshot(await get("snapshot"));
      const began = Date.now();
      await follow();
      if (Date.now() - began > 5000) failures = 0;
      throw new Error("The stream ended.");
    } catch (error) {
      const wait = Math.min(LONGEST_PAUSE, 1000 * 2 ** failures++);
      const pausing = pause(wait);
      const known = error.status ? error : null;
      setStatus(live.seq === null || error.status === 401 ? "error" : "lost", known ?? (live.seq === null ? error : null));
      await pausing;
    }
  }
}

addEventListener("online", retryNow);
