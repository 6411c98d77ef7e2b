// SPDX-License-Identifier: Apache-2.0
/**
 * The fleet as a picture: each host a tile, in groups, on a canvas that pans and zooms.
 *
 * Positions are in world units, of which a tile takes one, and are multiples of a half. Small tiles
 * are four pixels of one bitmap, large ones are drawn one by one, only those in view. Either way a
 * tile has the colour of its host alone: nothing is averaged.
 * @module
 */

import { inkOn } from "./colours.js";
import { el } from "./dom.js";

/** @typedef {import("./fleet_state.js").Host} Host */
/** @typedef {{name: string, hosts: Host[]}} Group */
/** @typedef {{colour: string, dim: boolean, mark?: string}} Paint mark: a letter on large tiles */
/** @typedef {Group & {x: number, y: number, width: number, height: number}} Placed */

/** World units between groups. */
const GAP = 1;
/** Pixels above each group for its name, and the world units that they may take of many groups, or of few. */
const TITLE = 17;
const [TITLE_MANY, TITLE_FEW, FEW] = [2, 8, 12];
/** Pixels of a tile from which on tiles are drawn one by one. */
const BIG = 5;
const ZOOM_MAX = 80;
/** The same, from which on their marks can be read, and how much of a tile a mark takes. */
const [LEGIBLE, MARK] = [14, 0.55];
/** Pixels that stay free around everything, left and right or above and below together. */
const MARGIN = 16;
/** What is left of a colour that is dimmed, also as a byte. */
const DIM = 0.15;
const DIM_BYTE = "26";
/** Pixels that a pointer may move in a click. */
const CLICK = 4;
/** Buttons of a mouse. */
const [LEFT, MIDDLE] = [0, 1];

export class FleetMap {
  /** @type {Placed[]} */
  #groups = [];
  /** @type {(host: Host) => Paint} */
  #paint = () => ({ colour: "#888888", dim: false });
  #world = { width: 1, height: 1 };
  #view = { scale: 1, x: 0, y: 0 };
  #isFitted = true;
  #frame = 0;
  /** @type {OffscreenCanvas | null} */
  #bitmap = null;
  /** World units above each group for its name. */
  #title = 2;
  /** Where the bitmap has each host, once one is painted anew: two numbers a place. @type {Map<Host, number[]> | null} */
  #places = null;
  /** By the colour of the lines. @type {Map<string, CanvasPattern | null>} */
  #hatches = new Map();

  /**
   * @param {(host: Host | null, x: number, y: number) => void} hover
   * @param {(host: Host, isApart: boolean) => void} open apart: in a tab of its own
   */
  constructor(hover, open) {
    this.hover = hover;
    this.open = open;
    this.canvas = el("canvas", { class: "map", tabindex: 0, role: "img",
      "aria-label": "Map of the fleet. The tables beside it say the same." });
    this.#listen();
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.canvas);
  }

  /**
   * @param {Group[]} groups
   * @param {(host: Host) => Paint} paint
   */
  show(groups, paint) {
    this.#paint = paint;
    this.#arrange(groups);
    if (this.#isFitted) this.fit();
    this.#redraw();
  }

  /**
   * Paint some hosts that stand where they stood, or all.
   *
   * @param {Iterable<Host>} [hosts]
   */
  repaint(hosts) {
    const context = this.#bitmap?.getContext("2d");
    if (hosts && context) {
      this.#places ??= this.#findPlaces();
      for (const host of hosts) {
        const places = this.#places.get(host) ?? [];
        for (let at = 0; at < places.length; at += 2) this.#paintPixels(context, host, places[at], places[at + 1]);
      }
    } else this.#bitmap = null;
    this.#redraw();
  }

  /** Show everything. */
  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const scale = Math.min((width - MARGIN) / this.#world.width, (height - MARGIN) / this.#world.height, 40);
    this.#view = {
      scale,
      x: (width - this.#world.width * scale) / 2,
      y: Math.min(8, (height - this.#world.height * scale) / 2),
    };
    this.#isFitted = true;
    this.#redraw();
  }

  /** @param {number} factor */
  zoom(factor) {
    this.#zoomAt(this.canvas.clientWidth / 2, this.canvas.clientHeight / 2, factor);
  }

  dispose() {
    this.observer.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  /**
   * Choose the widths, of all and of each group, at which tiles are largest.
   *
   * @param {Group[]} groups
   */
  #arrange(groups) {
    const width = this.canvas.clientWidth || 800;
    const height = this.canvas.clientHeight || 500;
    const cells = groups.reduce((sum, group) => sum + group.hosts.length + 6, 0);
    const square = Math.sqrt((cells * width) / height);
    this.#bitmap = null;
    this.#places = null;
    this.#title = TITLE_MANY;
    let best = 0;
    // The height of titles depends on the scale, of which the first round gives an idea.
    for (let round = 0; round < 2; round++) {
      if (round) this.#title = Math.ceil(2 * Math.min(TITLE / best, groups.length <= FEW ? TITLE_FEW : TITLE_MANY)) / 2;
      best = 0;
      for (const aspect of [0.6, 1, 1.6, 2.5, 4, 8]) {
        for (const factor of [0.8, 1, 1.2, 1.4, 1.7, 2, 2.5, 3, 4]) {
          const shelves = shelved(groups, Math.max(6, square * factor), aspect, this.#title);
          const scale = Math.min(width / shelves.width, height / shelves.height);
          if (scale <= best) continue;
          best = scale;
          this.#groups = shelves.groups;
          this.#world = { width: shelves.width, height: shelves.height };
        }
      }
    }
  }

  #resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    if (this.#isFitted) {
      this.#arrange(this.#groups);
      this.fit();
    }
    this.#redraw();
  }

  #redraw() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #draw() {
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    const { scale, x, y } = this.#view;
    const visible = this.#groups.filter((group) =>
      x + (group.x + group.width) * scale >= 0 && x + group.x * scale <= this.canvas.clientWidth &&
      y + (group.y + group.height) * scale >= 0 && y + (group.y - this.#title) * scale <= this.canvas.clientHeight);
    if (scale >= BIG) visible.forEach((group) => this.#drawTiles(context, group));
    else this.#drawBitmap(context);
    this.#drawTitles(context, visible);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Placed} group
   */
  #drawTiles(context, group) {
    const { scale, x, y } = this.#view;
    const first = Math.max(0, Math.floor((-y - group.y * scale) / scale)) * group.width;
    const rows = Math.ceil((this.canvas.clientHeight - y) / scale - group.y);
    const last = Math.min(group.hosts.length, Math.max(0, rows) * group.width);
    const size = scale - (scale > 8 ? 1 : 0.5);
    context.font = `${Math.round(MARK * size)}px system-ui, sans-serif`;
    [context.textAlign, context.textBaseline] = ["center", "middle"];
    for (let at = first; at < last; at++) {
      const host = group.hosts[at];
      const { colour, dim, mark } = this.#paint(host);
      const left = x + (group.x + (at % group.width)) * scale;
      const top = y + (group.y + Math.floor(at / group.width)) * scale;
      context.globalAlpha = dim ? DIM : 1;
      context.fillStyle = colour;
      context.fillRect(left, top, size, size);
      if (host.drained) {
        context.fillStyle = this.#hatching(context, inkOn(colour)) ?? colour;
        context.fillRect(left, top, size, size);
      }
      if (mark && scale >= LEGIBLE && !host.drained) {
        context.fillStyle = inkOn(colour);
        context.fillText(mark, left + size / 2, top + size / 2);
      }
    }
    context.globalAlpha = 1;
    context.textAlign = "start";
  }

  /** @param {CanvasRenderingContext2D} context */
  #drawBitmap(context) {
    const bitmap = this.#bitmap ?? this.#paintBitmap();
    this.#bitmap = bitmap;
    const { scale, x, y } = this.#view;
    context.imageSmoothingEnabled = false;
    context.drawImage(bitmap, x, y, (bitmap.width * scale) / 2, (bitmap.height * scale) / 2);
  }

  /** Every host a square of four pixels: so many that a drained one can be hatched. */
  #paintBitmap() {
    const width = 2 * Math.ceil(this.#world.width) + 2;
    const bitmap = new OffscreenCanvas(width, 2 * Math.ceil(this.#world.height) + 2);
    const context = /** @type {OffscreenCanvasRenderingContext2D} */ (bitmap.getContext("2d"));
    const image = new ImageData(bitmap.width, bitmap.height);
    const pixels = new DataView(image.data.buffer);
    /** @type {Map<string, number>} */
    const values = new Map();
    const valueOf = (/** @type {string} */ colour, /** @type {boolean} */ dim) => {
      const key = dim ? `${colour}${DIM_BYTE}` : `${colour}ff`;
      const value = values.get(key) ?? parseInt(key.slice(1), 16);
      values.set(key, value);
      return value;
    };
    for (const group of this.#groups) {
      group.hosts.forEach((host, at) => {
        const { colour, dim } = this.#paint(host);
        const value = valueOf(colour, dim);
        const line = host.drained ? valueOf(inkOn(colour), dim) : value;
        const [x, y] = placeOf(group, at);
        const above = 4 * (y * width + x);
        pixels.setUint32(above, value);
        pixels.setUint32(above + 4, line);
        pixels.setUint32(above + 4 * width, line);
        pixels.setUint32(above + 4 * width + 4, value);
      });
    }
    context.putImageData(image, 0, 0);
    return bitmap;
  }

  /**
   * The same for one host.
   *
   * @param {OffscreenCanvasRenderingContext2D} context
   * @param {Host} host
   * @param {number} x
   * @param {number} y
   */
  #paintPixels(context, host, x, y) {
    const { colour, dim } = this.#paint(host);
    context.clearRect(x, y, 2, 2);
    context.globalAlpha = dim ? DIM : 1;
    context.fillStyle = colour;
    if (!host.drained) context.fillRect(x, y, 2, 2);
    else {
      context.fillRect(x, y, 1, 1);
      context.fillRect(x + 1, y + 1, 1, 1);
      context.fillStyle = inkOn(colour);
      context.fillRect(x + 1, y, 1, 1);
      context.fillRect(x, y + 1, 1, 1);
    }
    context.globalAlpha = 1;
  }

  #findPlaces() {
    /** @type {Map<Host, number[]>} */
    const places = new Map();
    for (const group of this.#groups) {
      group.hosts.forEach((host, at) => {
        const others = places.get(host);
        if (others) others.push(...placeOf(group, at));
        else places.set(host, placeOf(group, at));
      });
    }
    return places;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Placed[]} groups
   */
  #drawTitles(context, groups) {
    const { scale, x, y } = this.#view;
    context.fillStyle = getComputedStyle(this.canvas).color;
    const size = Math.max(9, Math.min(13, this.#title * scale * 0.8));
    if (this.#title * scale < 5) return;
    context.font = `${size}px system-ui, sans-serif`;
    context.textBaseline = "bottom";
    for (const group of groups) {
      const text = `${group.name} (${group.hosts.length})`;
      context.fillText(text, x + group.x * scale, y + group.y * scale - 2, Math.max(group.width, 5) * scale + 8);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {string} colour */
  #hatching(context, colour) {
    const known = this.#hatches.get(colour);
    if (known) return known;
    const tile = new OffscreenCanvas(6, 6);
    const lines = tile.getContext("2d");
    if (!lines) return null;
    lines.strokeStyle = colour;
    lines.lineWidth = 1.5;
    lines.beginPath();
    for (const from of [-6, 0, 6]) {
      lines.moveTo(from, 6);
      lines.lineTo(from + 6, 0);
    }
    lines.stroke();
    const pattern = context.createPattern(tile, "repeat");
    this.#hatches.set(colour, pattern);
    return pattern;
  }

  /** @param {number} x @param {number} y of the canvas @returns {Host | null} */
  #hostAt(x, y) {
    const across = (x - this.#view.x) / this.#view.scale;
    const down = (y - this.#view.y) / this.#view.scale;
    for (const group of this.#groups) {
      const column = Math.floor(across - group.x);
      const row = Math.floor(down - group.y);
      if (column >= 0 && column < group.width && row >= 0 && row < group.height) {
        return group.hosts[row * group.width + column] ?? null;
      }
    }
    return null;
  }

  /** @param {number} x @param {number} y @param {number} factor */
  #zoomAt(x, y, factor) {
    const scale = Math.min(ZOOM_MAX, Math.max(0.5, this.#view.scale * factor));
    const actual = scale / this.#view.scale;
    this.#view = { scale, x: x - (x - this.#view.x) * actual, y: y - (y - this.#view.y) * actual };
    this.#isFitted = false;
    this.#redraw();
  }

  /** @param {number} x @param {number} y */
  #pan(x, y) {
    this.#view = { ...this.#view, x: this.#view.x + x, y: this.#view.y + y };
    this.#isFitted = false;
    this.#redraw();
  }

  #listen() {
    const { canvas } = this;
    let moved = 0;
    /** @type {Map<number, {x: number, y: number}>} */
    const pointers = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      // The right button has the browser's menu.
      if (event.button !== LEFT && event.button !== MIDDLE) return;
      pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      moved = pointers.size > 1 ? CLICK : 0;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("mousedown", (event) => {
      // Otherwise some browsers begin to scroll.
      if (event.button === MIDDLE) event.preventDefault();
    });
    canvas.addEventListener("pointermove", (event) => {
      const { offsetX: x, offsetY: y } = event;
      const before = pointers.get(event.pointerId);
      if (!before) {
        this.hover(this.#hostAt(x, y), x, y);
        return;
      }
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const factor = Math.hypot(x - other.x, y - other.y) / Math.hypot(before.x - other.x, before.y - other.y);
        this.#zoomAt((x + other.x) / 2, (y + other.y) / 2, factor);
        this.#pan((x - before.x) / 2, (y - before.y) / 2);
        moved = CLICK;
      } else {
        this.#pan(x - before.x, y - before.y);
        moved += Math.abs(x - before.x) + Math.abs(y - before.y);
      }
      pointers.set(event.pointerId, { x, y });
    });
    canvas.addEventListener("pointerup", (event) => {
      const isClick = pointers.delete(event.pointerId) && moved < CLICK;
      const host = isClick ? this.#hostAt(event.offsetX, event.offsetY) : null;
      if (host) this.open(host, event.button === MIDDLE || event.ctrlKey || event.metaKey || event.shiftKey);
    });
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.hover(null, 0, 0));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.#zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY / 400));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const act = /** @type {Record<string, () => void>} */ ({
        "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4),
        "0": () => this.fit(),
        ArrowLeft: () => this.#pan(60, 0), ArrowRight: () => this.#pan(-60, 0),
        ArrowUp: () => this.#pan(0, 60), ArrowDown: () => this.#pan(0, -60),
      })[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }
}

/**
 * Groups side by side, in as many rows as they need.
 *
 * @param {Group[]} groups
 * @param {number} across the width of a row in world units
 * @param {number} aspect of the width of a group to its height
 * @param {number} title world units above each
 * @returns {{groups: Placed[], width: number, height: number}}
 */
function shelved(groups, across, aspect, title) {
  let [x, y, shelf, right] = [0, 0, 0, 1];
  const placed = groups.map((group) => {
    const count = Math.max(1, group.hosts.length);
    const width = Math.min(Math.ceil(Math.sqrt(count * aspect)), Math.floor(across));
    const height = Math.ceil(count / width);
    const taken = Math.max(width, 5);
    if (x > 0 && x + taken > across) {
      [x, y, shelf] = [0, y + shelf + title + GAP / 2, 0];
    }
    const at = { ...group, x, y: y + title, width, height };
    x += taken + GAP;
    right = Math.max(right, x - GAP);
    shelf = Math.max(shelf, height);
    return at;
  });
  return { groups: placed, width: right, height: y + shelf + title };
}

/** Where the bitmap has a host of a group. @param {Placed} group @param {number} at */
function placeOf(group, at) {
  return [2 * (group.x + (at % group.width)), 2 * (group.y + Math.floor(at / group.width))];
}
