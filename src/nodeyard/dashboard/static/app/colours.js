// Colours of templates and pools. The eight hues are told apart with the common kinds of colour blindness, and states
// differ in form as well: colour is never the only sign.
import { byName } from "./format.js";

const HUES = {
  light: ["#2f6fdf", "#c9741a", "#12876a", "#7d55cf", "#2394c0", "#9a8608", "#c05590", "#6d7f3b"],
  dark: ["#5e95f7", "#e79a4c", "#37b895", "#ad8bf0", "#55bde3", "#d8c64a", "#e48bbd", "#9fb365"],
};
const INK = {
  light: { spare: "#8b95a3", other: "#c3c9d1", pending: "#8b95a3", notReady: "#c8321f", mark: "#ffffff", ground: "#f6f7f9", text: "#1b2027", muted: "#5d6775", line: "#e1e5ea" },
  dark: { spare: "#7f8a99", other: "#3a424d", pending: "#7f8a99", notReady: "#f0604d", mark: "#14171c", ground: "#0e1116", text: "#e7eaee", muted: "#98a3b1", line: "#272d36" },
};

const media = matchMedia("(prefers-color-scheme: dark)");
export const themeInUse = () => document.documentElement.dataset.theme || (media.matches ? "dark" : "light");
export const onSystemTheme = (listener) => media.addEventListener("change", listener);
export const ink = () => INK[themeInUse()];
export const hueList = () => HUES[themeInUse()];

/** A colour laid over the page's ground with this strength, as an opaque colour. */
export function tint(colour, strength) {
  const parts = [1, 3, 5].map((at) => {
    const [over, under] = [colour, ink().ground].map((each) => parseInt(each.slice(at, at + 2), 16));
    return Math.round(over * strength + under * (1 - strength)).toString(16).padStart(2, "0");
  });
  return `#${parts.join("")}`;
}

function hash(text) {
  let value = 2166136261;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 16777619);
  return value >>> 0;
}

/** Gives each name one of the hues: by its own hash, so that a new name seldom changes the colours of the others. */
export function assignHues(names) {
  const given = new Map();
  const uses = new Array(HUES.light.length).fill(0);
  for (const name of [...names].sort(byName)) {
    const start = hash(name) % uses.length;
    const least = Math.min(...uses);
    let slot = start;
    while (uses[slot] > least) slot = (slot + 1) % uses.length;
    uses[slot] += 1;
    given.set(name, slot);
  }
  return given;
}
