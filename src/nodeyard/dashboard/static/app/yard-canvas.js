// Draws the yard: one draw per animation frame, and none when nothing moves.
import { hueList, ink, tint } from "./colours.js";
import { HEAD, hit, tileX, tileY } from "./yard-layout.js";

const MOVE = 550; // milliseconds from group to group
const STEP = 50; // the most of a move that one frame shows
const MOST_ZOOM = 24;
const SIMPLE = 18; // device pixels, below which a tile is a few rectangles
const NAMED = 42; // a tile of this size carries its name
const FONT = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

const ease = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (-2 * t + 2) ** 3 / 2);

/** Paints one tile's glyph at 0,0. The form tells the state, the colour tells template or pool. */
export function paintGlyph(context, size, state, hue, free) {
  const inks = ink();
  const colour = hue === null ? inks.spare : hueList()[hue];
  const gap = size >= 20 ? 3 : size >= 9 ? 1.5 : size >= 5 ? 1 : 0.5;
  const side = size - gap;
  const radius = side >= 10 ? Math.min(5, side * 0.16) : 0;
  const line = Math.max(1, Math.min(2, side * 0.1));
  const shape = (inset) => {
    context.beginPath();
    context.roundRect(inset, inset, side - 2 * inset, side - 2 * inset, Math.max(0, radius - inset));
  };
  const outline = (stroke, alpha = 1) => {
    context.globalAlpha = alpha;
    context.strokeStyle = stroke;
    context.lineWidth = line;
    shape(line / 2);
    context.stroke();
    context.globalAlpha = 1;
  };
  const fill = (paint, alpha = 1) => {
    context.globalAlpha = alpha;
    context.fillStyle = paint;
    shape(0);
    context.fill();
    context.globalAlpha = 1;
  };
  if (state === "spare") {
    fill(inks.spare, 0.13);
    outline(inks.spare, 0.75);
  } else if (state === "claimed") {
    fill(colour);
  } else if (state === "releasing") {
    fill(colour, 0.22);
    context.save();
    shape(0);
    context.clip();
    context.beginPath();
    context.moveTo(0, 0);
    context.lineTo(side, 0);
    context.lineTo(0, side);
    context.fillStyle = colour;
    context.fill();
    context.restore();
  } else if (state === "draining") {
    fill(colour, 0.22);
    context.save();
    shape(0);
    context.clip();
    context.fillStyle = colour;
    const stripes = side >= 16 ? 3 : side >= 6 ? 2 : 1;
    const step = (side >= NAMED ? side * 0.72 : side) / (2 * stripes);
    for (let stripe = 0; stripe < stripes; stripe += 1) context.fillRect(0, step * 2 * stripe, side, step);
    context.restore();
  } else if (state === "notReady") {
    fill(inks.notReady, side >= NAMED ? 0.16 : 1);
    if (side >= NAMED) outline(inks.notReady);
    if (side >= 7) {
      const middle = side >= NAMED ? side * 0.4 : side / 2;
      const arm = side * (side >= NAMED ? 0.14 : 0.21);
      context.strokeStyle = side >= NAMED ? inks.notReady : inks.mark;
      context.lineWidth = Math.max(1.2, side * 0.08);
      context.lineCap = "round";
      context.beginPath();
      context.moveTo(side / 2 - arm, middle - arm);
      context.lineTo(side / 2 + arm, middle + arm);
      context.moveTo(side / 2 + arm, middle - arm);
      context.lineTo(side / 2 - arm, middle + arm);
      context.stroke();
    }
  } else if (state === "mirrored") {
    fill(colour, 0.16);
    context.save();
    shape(0);
    context.clip();
    context.fillStyle = colour;
    context.globalAlpha = side >= NAMED ? 0.4 : 0.75;
    const height = side * Math.max(0, Math.min(1, free ?? 0));
    context.fillRect(0, side - height, side, height);
    context.restore();
    outline(colour);
  } else if (state === "pending") {
    outline(inks.pending, 0.45);
    context.fillStyle = inks.pending;
    context.beginPath();
    context.arc(side / 2, side / 2, Math.max(0.8, side * 0.14), 0, 7);
    context.fill();
  } else {
    fill(inks.other);
  }
}

/**
 * The same glyph for a small tile, as rectangles [colour, x, y, width, height] in device pixels: ten thousand of them
 * are drawn in a fraction of the time that as many images take.
 */
function simpleGlyph(side, state, hue, free) {
  const inks = ink();
  const colour = hue === null ? inks.spare : hueList()[hue];
  const rim = (edge, inside) => [[edge, 0, 0, side, side], [inside, 1, 1, side - 2, side - 2]];
  if (state === "claimed") return [[colour, 0, 0, side, side]];
  if (state === "spare") return side > 3 ? rim(tint(inks.spare, 0.75), tint(inks.spare, 0.13)) : [[tint(inks.spare, 0.4), 0, 0, side, side]];
  if (state === "notReady") {
    const mark = Math.max(1, Math.round(side / 3));
    const at = Math.floor((side - mark) / 2);
    return [[inks.notReady, 0, 0, side, side], ...(side > 4 ? [[inks.mark, at, at, mark, mark]] : [])];
  }
  if (state === "releasing") {
    const steps = Array.from({ length: side }, (_, row) => [colour, 0, row, side - row, 1]);
    return [[tint(colour, 0.22), 0, 0, side, side], ...steps];
  }
  if (state === "draining") {
    const height = Math.max(1, Math.round(side / 4));
    return [[tint(colour, 0.22), 0, 0, side, side], [colour, 0, 0, side, height], [colour, 0, 2 * height, side, height]];
  }
  if (state === "mirrored") {
    const height = Math.round((side - 2) * Math.max(0, Math.min(1, free)));
    return [...rim(colour, tint(colour, 0.16)), [tint(colour, 0.75), 1, side - 1 - height, side - 2, height]];
  }
  if (state === "pending") {
    const at = Math.floor(side / 2) - 1;
    return [...(side > 3 ? rim(tint(inks.pending, 0.45), inks.ground) : []), [inks.pending, at, at, 2, 2]];
  }
  return [[inks.other, 0, 0, side, side]];
}

export class YardCanvas {
  constructor(canvas, { onZoom } = {}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.onZoom = onZoom ?? (() => {});
    this.tiles = new Map(); // name -> {name, state, hue, free, isDimmed, x, y, fromX, fromY, born, group, index}
    this.order = [];
    this.layout = { groups: [], size: 10, height: 0, unit: 1 };
    this.width = 0;
    this.height = 0;
    this.view = { scale: 1, x: 0, y: 0 };
    this.sprites = new Map();
    this.moved = MOVE; // milliseconds of the move that have been shown
    this.drawnAt = 0;
    this.frame = 0;
    this.frames = { count: 0, drawn: [], shown: 0 }; // how often and how long was drawn, for the tests
    this.reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  }

  resize(width, height) {
    const ratio = Math.min(3, devicePixelRatio || 1);
    this.ratio = ratio;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.clampView();
    this.drawNow();
  }

  forgetColours() {
    this.sprites.clear();
    this.schedule();
  }

  /** Shows these tiles: groups of the layout with `members` [{name, state, hue, free, isDimmed}]. Tiles move from where they are. */
  show(layout) {
    const isFirst = this.tiles.size === 0;
    this.frames.shown += 1;
    const progress = this.progress();
    const next = new Map();
    const before = this.tiles;
    const oldSize = this.currentSize(progress);
    let moves = false;
    this.order = [];
    for (const group of layout.groups) {
      group.members.forEach((member, index) => {
        const x = tileX(layout, group, index);
        const y = tileY(layout, group, index);
        const old = before.get(member.name);
        const tile = { ...member, group, index, x, y, fromX: x, fromY: y, isNew: false };
        if (old) {
          tile.fromX = old.fromX + (old.x - old.fromX) * progress;
          tile.fromY = old.fromY + (old.y - old.fromY) * progress;
          if (tile.fromX !== x || tile.fromY !== y) moves = true;
          tile.changedGroup = old.group.key !== group.key;
        } else if (!isFirst) {
          tile.isNew = true;
          moves = true;
        }
        next.set(member.name, tile);
        this.order.push(tile);
      });
    }
    // Tiles that go to another group are drawn last, above those that they pass.
    this.order.sort((a, b) => Number(a.changedGroup ?? false) - Number(b.changedGroup ?? false));
    this.tiles = next;
    this.fromSize = isFirst ? layout.size : oldSize;
    if (this.layout.size !== layout.size) this.sprites.clear();
    this.layout = layout;
    this.moved = moves && !this.reducedMotion.matches ? 0 : MOVE;
    this.drawnAt = performance.now();
    this.schedule();
  }

  progress() {
    return this.moved >= MOVE ? 1 : ease(this.moved / MOVE);
  }

  currentSize(progress) {
    return this.fromSize === undefined ? this.layout.size : this.fromSize + (this.layout.size - this.fromSize) * progress;
  }

  schedule() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  drawNow() {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.draw();
  }

  simple(tile, pixels) {
    const level = tile.state === "mirrored" ? Math.round((tile.free ?? 0) * 10) : 0;
    const key = `${tile.state}|${tile.hue}|${level}|${pixels}|simple`;
    let glyph = this.sprites.get(key);
    if (!glyph) {
      glyph = simpleGlyph(Math.max(1, pixels - (pixels > 4 ? Math.round(Math.min(this.ratio, pixels / 6)) || 1 : 0)), tile.state, tile.hue, level / 10);
      this.sprites.set(key, glyph);
    }
    return glyph;
  }

  sprite(tile, pixels) {
    const level = tile.state === "mirrored" ? Math.round((tile.free ?? 0) * 10) : 0;
    const key = `${tile.state}|${tile.hue}|${level}|${pixels}`;
    let sprite = this.sprites.get(key);
    if (!sprite) {
      sprite = document.createElement("canvas");
      sprite.width = sprite.height = Math.max(1, Math.ceil(pixels));
      const context = sprite.getContext("2d");
      context.scale(this.ratio * this.view.scale, this.ratio * this.view.scale);
      paintGlyph(context, pixels / (this.ratio * this.view.scale), tile.state, tile.hue, level / 10);
      this.sprites.set(key, sprite);
    }
    return sprite;
  }

  draw() {
    this.frame = 0;
    const began = performance.now();
    const { context, ratio, view } = this;
    // A busy machine shows the move later, not in leaps.
    this.moved += Math.min(began - this.drawnAt, STEP);
    this.drawnAt = began;
    const progress = this.progress();
    const scale = view.scale * ratio;
    const size = this.currentSize(progress);
    const pixels = Math.max(1, Math.round(this.layout.size * scale * 2) / 2);
    const drawn = Math.max(1, size * scale);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const offX = view.x * ratio;
    const offY = view.y * ratio;
    const exact = progress === 1;
    if (this.sprites.size > 600) this.sprites.clear();
    for (const tile of this.order) {
      const x = offX + (tile.fromX + (tile.x - tile.fromX) * progress) * scale;
      const y = offY + (tile.fromY + (tile.y - tile.fromY) * progress) * scale;
      if (x > this.canvas.width || y > this.canvas.height || x + drawn < 0 || y + drawn < 0) continue;
      const alpha = (tile.isDimmed ? 0.14 : 1) * (tile.isNew ? progress : 1);
      if (alpha !== context.globalAlpha) context.globalAlpha = alpha;
      if (drawn < SIMPLE) {
        const [left, top] = [Math.round(x), Math.round(y)];
        for (const [colour, dx, dy, width, height] of this.simple(tile, Math.floor(drawn))) {
          if (context.fillStyle !== colour) context.fillStyle = colour;
          context.fillRect(left + dx, top + dy, width, height);
        }
        continue;
      }
      const sprite = this.sprite(tile, pixels);
      if (exact) context.drawImage(sprite, Math.round(x), Math.round(y));
      else context.drawImage(sprite, x, y, drawn, drawn);
    }
    context.globalAlpha = 1;
    this.drawHeads(scale, offX, offY);
    if (this.layout.size * view.scale >= (NAMED + 4) * this.layout.unit && exact) this.drawNames(scale, offX, offY);
    const took = performance.now() - began;
    this.frames.count += 1;
    this.frames.drawn = [...this.frames.drawn.slice(-99), took];
    if (!exact) this.schedule();
  }

  drawHeads(scale, offX, offY) {
    const { context, ratio } = this;
    const inks = ink();
    context.textBaseline = "middle";
    for (const group of this.layout.groups) {
      const x = offX + group.x * scale;
      const y = offY + (group.y + 11 * this.layout.unit) * scale;
      const width = group.width * scale;
      if (y < -20 || y > this.canvas.height + 20 || x > this.canvas.width || x + width < 0) continue;
      const grown = Math.min(this.view.scale, 1.5) * ratio * this.layout.unit;
      const number = String(group.count.toLocaleString("en"));
      context.font = `${11.5 * grown}px ${FONT}`;
      const numberWidth = context.measureText(number).width;
      context.font = `600 ${12 * grown}px ${FONT}`;
      const label = fit(context, group.label, width - numberWidth - 10 * grown, false);
      context.fillStyle = group.isNone ? inks.muted : inks.text;
      context.fillText(label, x, y);
      const labelWidth = context.measureText(label).width;
      context.font = `${11.5 * grown}px ${FONT}`;
      context.fillStyle = inks.muted;
      context.fillText(number, x + labelWidth + 6 * grown, y);
    }
  }

  drawNames(scale, offX, offY) {
    const { context } = this;
    const ratio = this.ratio * this.layout.unit;
    const inks = ink();
    const side = this.layout.size * scale - 6 * ratio;
    context.font = `${10.5 * ratio}px ${FONT}`;
    context.textBaseline = "alphabetic";
    for (const tile of this.order) {
      const x = offX + tile.x * scale;
      const y = offY + tile.y * scale;
      if (x > this.canvas.width || y > this.canvas.height || x + side < 0 || y + side < 0) continue;
      context.globalAlpha = tile.isDimmed ? 0.3 : 1;
      const isSolid = tile.state === "claimed";
      context.fillStyle = isSolid ? inks.mark : inks.text;
      context.fillText(fit(context, tile.name, side - 4 * ratio, true), x + 4 * ratio, y + side - 2 * ratio);
    }
    context.globalAlpha = 1;
  }

  /** The tile or group at a point of the canvas, in CSS pixels. */
  at(x, y) {
    const found = hit(this.layout, (x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale);
    if (!found) return null;
    return { group: found.group, tile: found.index >= 0 ? this.tiles.get(found.group.members[found.index].name) : null, isHead: found.index === -1 };
  }

  boxOf(name) {
    const tile = this.tiles.get(name);
    if (!tile) return null;
    const side = this.layout.size * this.view.scale;
    return { x: this.view.x + tile.x * this.view.scale, y: this.view.y + tile.y * this.view.scale, side };
  }

  clampView() {
    const { view } = this;
    view.scale = Math.max(1, Math.min(MOST_ZOOM, view.scale));
    const left = Math.min(0, this.width - this.width * view.scale);
    const top = Math.min(0, this.height - Math.max(this.height, this.layout.height) * view.scale);
    view.x = Math.min(0, Math.max(left, view.x));
    view.y = Math.min(0, Math.max(top, view.y));
  }

  setView({ scale, x, y }) {
    if (scale !== this.view.scale) this.sprites.clear();
    this.view = { scale, x, y };
    this.clampView();
    this.onZoom(this.view);
    this.schedule();
  }

  zoomAt(factor, x = this.width / 2, y = this.height / 2) {
    const { view } = this;
    const scale = Math.max(1, Math.min(MOST_ZOOM, view.scale * factor));
    const ratio = scale / view.scale;
    this.setView({ scale, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio });
  }

  pan(dx, dy) {
    this.setView({ scale: this.view.scale, x: this.view.x + dx, y: this.view.y + dy });
  }

  zoomToGroup(group) {
    const height = HEAD * this.layout.unit + group.rows * this.layout.size;
    const scale = Math.min(MOST_ZOOM, this.width / (group.columns * this.layout.size + 20), this.height / (height + 20), 80 / this.layout.size);
    this.setView({ scale: Math.max(1, scale), x: -group.x * scale + 10, y: -group.y * scale + 4 });
  }
}

function fit(context, text, width, keepEnd) {
  if (width <= 0) return "";
  if (context.measureText(text).width <= width) return text;
  let kept = text.length - 1;
  while (kept > 1) {
    const short = keepEnd ? `…${text.slice(text.length - kept)}` : `${text.slice(0, kept)}…`;
    if (context.measureText(short).width <= width) return short;
    kept -= Math.max(1, Math.floor(kept / 10));
  }
  return "";
}
