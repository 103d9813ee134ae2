// Numbers, times and names as text.
export const seconds = (value) => (value === undefined || value === null || value === "" ? null : typeof value === "number" ? value : Date.parse(value) / 1000);

const COUNT = new Intl.NumberFormat("en");
export const count = (value) => COUNT.format(value ?? 0);

export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** The kind's plural as Kubernetes forms it: 3 Nodes, 2 LatticeNodeClasses. */
export const kinds = (value, kind) => {
  const name = kind || "object";
  return plural(value, name, /(s|x|ch|sh)$/.test(name) ? `${name}es` : /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`);
};

export function duration(value) {
  const length = Math.max(0, Math.round(value));
  if (length < 60) return `${length} s`;
  if (length < 3600) return `${Math.floor(length / 60)} min`;
  if (length < 86400) {
    const minutes = Math.floor((length % 3600) / 60);
    return `${Math.floor(length / 3600)} h${minutes ? ` ${minutes} min` : ""}`;
  }
  return plural(Math.floor(length / 86400), "day");
}

export const ago = (time, now) => (now - time < 5 ? "just now" : duration(now - time));

const two = (value) => String(value).padStart(2, "0");
export function clock(value, withSeconds = true) {
  const time = new Date(seconds(value) * 1000);
  return `${two(time.getHours())}:${two(time.getMinutes())}${withSeconds ? `:${two(time.getSeconds())}` : ""}`;
}
export function stamp(value) {
  const time = new Date(seconds(value) * 1000);
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clock(value)}`;
}

export const percent = (part, whole = 1) => (whole ? `${Math.round((100 * part) / whole)} %` : "0 %");

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
export function amount(value, unit = "") {
  if (unit === "bytes" || unit === "B") {
    const power = value > 0 ? Math.min(BINARY.length - 1, Math.floor(Math.log2(value) / 10)) : 0;
    const scaled = value / 1024 ** power;
    return `${scaled >= 100 || Number.isInteger(scaled) ? Math.round(scaled) : scaled.toFixed(1)} ${BINARY[power]}B`;
  }
  const text = Math.abs(value) >= 100 || Number.isInteger(value) ? count(Math.round(value)) : String(Math.round(value * 10) / 10);
  return unit ? `${text} ${unit}` : text;
}

export const nameOf = (ref) => (ref ? `${ref.namespace ? `${ref.namespace}/` : ""}${ref.name}` : "");
export const textOf = (ref) => (ref ? `${ref.kind} ${nameOf(ref)}${ref.cluster ? ` in ${ref.cluster}` : ""}` : "");

const COLLATOR = new Intl.Collator("en", { numeric: true });
export const byName = COLLATOR.compare;

export const spaced = (word) => word.replace(/([a-z])([A-Z])(?=[a-z])/g, (_, before, after) => `${before} ${after.toLowerCase()}`);
