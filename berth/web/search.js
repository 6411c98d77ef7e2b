// SPDX-License-Identifier: Apache-2.0
/**
 * Search by any part of a name or UUID: hosts, providers, consumers, traits, labels, flavors.
 * @module
 */

import { link } from "./address.js";
import { el, fill } from "./dom.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {{kind: string, text: string, href: string}} Found */

/** Results that are shown of each kind. */
const SHOWN = 6;
/** Milliseconds of searching after which the page may draw and take keys again. */
const SLICE = 12;
/** Characters from which on consumers are searched, which must be read first. */
const LEAST = 3;
/** Milliseconds after which they may be read again, if a search finds nothing else. */
const FRESH = 30_000;
/** Consumers that are read at most. */
const CONSUMERS = 200_000;

/** @param {Context} context */
export function searchBox(context) {
  const names = new Names(context);
  const list = el("div", { id: "results", role: "listbox", "aria-label": "Results" });
  const state = el("p", { class: "hint", role: "status" });
  const results = el("div", { class: "results", hidden: true }, list, state);
  const input = el("input", {
    type: "search", placeholder: "Search ( / )", "aria-label": "Search hosts, providers, consumers, traits, labels and flavors",
    role: "combobox", "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
  });
  let turn = 0;
  let active = -1;
  /** Ends when something was found of what was typed last, or nothing. */
  let searching = Promise.resolve();

  async function show() {
    const own = ++turn;
    const part = input.value.trim().toLowerCase();
    if (!part) {
      close();
      return;
    }
    const isCurrent = () => own === turn;
    const found = await find(context, part, isCurrent);
    if (!isCurrent()) return;
    if (part.length < LEAST) {
      draw(found, `Consumers and flavors are searched from ${LEAST} characters on.`);
      return;
    }
    draw(found, "Reading the consumers…");
    const all = names.find(part, !found.length, isCurrent).then((others) => {
      if (isCurrent()) draw([...found, ...others], found.length || others.length ? "" : "Nothing found.");
    });
    if (!found.length) await all;
  }

  /** Open what is chosen, or the first that is found of what was typed. */
  async function enter() {
    const own = turn;
    await searching;
    if (own !== turn || results.hidden) return;
    const options = /** @type {NodeListOf<HTMLAnchorElement>} */ (list.querySelectorAll("[role=option]"));
    options[Math.max(active, 0)]?.click();
    if (options.length) input.blur();
  }

  /** @param {Found[]} found @param {string} said */
  function draw(found, said) {
    fill(list, found.map(({ kind, text, href }, at) =>
      el("a", { role: "option", id: `result-${at}`, href, class: "result", tabindex: -1, "aria-selected": "false", onclick: close },
        el("small", {}, kind), ` ${text}`)));
    fill(state, said);
    results.hidden = false;
    input.setAttribute("aria-expanded", "true");
    choose(Math.min(active, found.length - 1));
  }

  /** @param {number} at */
  function choose(at) {
    list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    active = at;
    const option = list.querySelectorAll("[role=option]")[at];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  }

  function close() {
    turn++;
    choose(-1);
    results.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "Escape") {
      if (results.hidden) input.value = "";
      close();
    } else if (event.key === "ArrowDown") choose(Math.min(active + 1, list.childElementCount - 1));
    else if (event.key === "ArrowUp") choose(Math.max(active - 1, -1));
    else if (event.key === "Enter") void enter();
    else return;
    event.preventDefault();
  }

  input.addEventListener("input", () => {
    active = -1;
    searching = show();
  });
  input.addEventListener("keydown", onKey);
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.select();
      input.focus();
    }
  });
  const element = el("div", { class: "search", role: "search", onfocusout: (/** @type {FocusEvent} */ event) => {
    if (!element.contains(/** @type {Node | null} */ (event.relatedTarget))) close();
  } }, input, results);
  return element;
}

/** The best few of a kind: first what equals the text, then what begins with it, then what contains it. */
class Best {
  /** @type {Found[][]} */
  #ranks = [[], [], []];

  /** @param {string} part in lower case */
  constructor(part) {
    this.part = part;
  }

  /** @param {string} text @param {string} uuid @param {() => Found} found */
  offer(text, uuid, found) {
    const name = text.toLowerCase();
    const at = name.indexOf(this.part);
    if (at < 0 && !uuid.includes(this.part)) return;
    const rank = this.#ranks[name === this.part || uuid === this.part ? 0 : at === 0 ? 1 : 2];
    if (rank.length < SHOWN) rank.push(found());
  }

  get found() {
    return this.#ranks.flat().slice(0, SHOWN);
  }
}

/** Lets the page draw and take keys whenever a search has gone on for a while. */
class Slices {
  #since = performance.now();

  /** @returns {Promise<void> | null} null if it may go on at once */
  get pause() {
    if (performance.now() - this.#since < SLICE) return null;
    return new Promise((resolve) => setTimeout(() => {
      this.#since = performance.now();
      resolve();
    }));
  }
}

/**
 * Search what the page knows of the fleet.
 *
 * @param {Context} context
 * @param {string} part in lower case
 * @param {() => boolean} isCurrent whether the answer is still wanted
 */
async function find({ fleet }, part, isCurrent) {
  const slices = new Slices();
  const [hosts, providers, traits, labels] = [new Best(part), new Best(part), new Best(part), new Best(part)];
  /** Providers share their lists of traits, which are equal to most others. @type {Set<string[]>} */
  const lists = new Set();
  for (const { uuid, name, parent, traits: list } of fleet.providers.values()) {
    const kind = parent === null ? "host" : "provider";
    (parent === null ? hosts : providers).offer(name, uuid, () => ({ kind, text: name, href: link("hosts", uuid) }));
    lists.add(list);
    const pause = slices.pause;
    if (pause) await pause;
    if (!isCurrent()) return [];
  }
  for (const name of new Set([...lists].flat())) {
    traits.offer(name, "", () => ({ kind: "trait", text: name,
      href: link("ask", "", { request: JSON.stringify({ groups: { "": { resources: { VCPU: 1 }, required: [name] } } }) }) }));
  }
  for (const [uuid, each] of fleet.labels) {
    for (const [key, value] of Object.entries(each)) {
      labels.offer(`${key}=${value}`, uuid, () => ({ kind: "label", text: `${key}=${value}`, href: link("labels", "", { filter: uuid }) }));
    }
  }
  return [hosts, providers, traits, labels].flatMap((best) => best.found);
}

/** Names that are not a part of the fleet: read when somebody searches, and kept. */
class Names {
  #context;
  #readAt = 0;
  /** @type {Promise<[any[], string[]]> | null} */
  #read = null;

  /** @param {Context} context */
  constructor(context) {
    this.#context = context;
  }

  /**
   * @param {string} part in lower case
   * @param {boolean} isWanting whether nothing else was found: then what is new since is looked for too
   * @param {() => boolean} isCurrent
   * @returns {Promise<Found[]>}
   */
  async find(part, isWanting, isCurrent) {
    const found = await this.#find(part, isCurrent);
    if (found.length || !isWanting || !isCurrent() || performance.now() - this.#readAt < FRESH) return found;
    this.#read = null;
    return await this.#find(part, isCurrent);
  }

  /** @param {string} part @param {() => boolean} isCurrent @returns {Promise<Found[]>} */
  async #find(part, isCurrent) {
    if (!this.#read) {
      this.#readAt = performance.now();
      this.#read = this.#readAll();
    }
    const [consumers, flavors] = await this.#read;
    const slices = new Slices();
    const [ofConsumers, ofFlavors] = [new Best(part), new Best(part)];
    for (const { uuid, name, project } of consumers) {
      ofConsumers.offer(name ? `${project}/${name}` : "", uuid, () =>
        ({ kind: "consumer", text: name ? `${project}/${name}` : uuid, href: link("consumers", uuid) }));
      const pause = slices.pause;
      if (pause) await pause;
      if (!isCurrent()) return [];
    }
    for (const name of flavors) ofFlavors.offer(name, "", () => ({ kind: "flavor", text: name, href: link("flavors", "", { filter: name }) }));
    return [...ofConsumers.found, ...ofFlavors.found];
  }

  /** What the caller may not read is not found. @returns {Promise<[any[], string[]]>} */
  async #readAll() {
    const { api } = this.#context;
    /** @type {any[]} */
    const consumers = [];
    const stop = new AbortController();
    try {
      for await (const lines of api.lines("berth/v1/consumers", stop.signal)) {
        for (const { uuid, name, project_id: project } of lines) if (uuid) consumers.push({ uuid, name, project });
        if (consumers.length >= CONSUMERS) break;
      }
    } catch {
      // Those that were read before the answer broke off are better than none.
    }
    stop.abort();
    const flavors = await api.get("berth/v1/flavors").catch(() => ({ flavors: [] }));
    return [consumers, flavors.flavors.map((/** @type {any} */ { name }) => name)];
  }
}
