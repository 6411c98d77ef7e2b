// SPDX-License-Identifier: Apache-2.0
/**
 * Search by any part of a name or UUID: hosts, providers, consumers, traits, labels, flavors.
 * @module
 */

import { link } from "./address.js";
import { el, fill } from "./dom.js";
import { reason } from "./parts.js";

/** @typedef {import("./main.js").Context} Context */
/** The rule of the policy for lists of consumers. */
const LIST = "berth:consumers:list";
/** @typedef {{kind: string, text: string, href: string}} Found */

/** Results that are shown of each kind. */
const SHOWN = 6;
/** Milliseconds of searching after which the page may draw and take keys again. */
const SLICE = 12;
/** Characters from which on the service is asked for consumers. */
const LEAST = 3;
/** Consumers that the service is asked for at most: the best of these are shown. */
const CONSUMERS = 50;
/** Milliseconds without a key after which it is asked, and for which the names of flavors are kept. */
const [TYPED, FRESH] = [250, 30_000];

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
    const text = input.value.trim();
    const part = text.toLowerCase();
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
    draw(found, "Searching consumers…");
    const all = names.find(text, () => own !== turn).then(({ found: others, said }) => {
      if (!isCurrent()) return;
      draw([...found, ...others], said || (found.length || others.length ? "" : "Nothing found."));
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
  /** Providers share their lists of traits, which are equal to most others: each with a host of it. @type {Map<string[], string>} */
  const lists = new Map();
  for (const { uuid, name, parent, root, traits: list } of fleet.providers.values()) {
    const kind = parent === null ? "host" : "provider";
    (parent === null ? hosts : providers).offer(name, uuid, () => ({ kind, text: name, href: link("hosts", uuid) }));
    if (!lists.has(list)) lists.set(list, root);
    const pause = slices.pause;
    if (pause) await pause;
    if (!isCurrent()) return [];
  }
  /** A host of each trait. */
  const examples = new Map([...lists].flatMap(([list, root]) => list.map((name) => /** @type {const} */ ([name, root]))));
  for (const [name, root] of examples) {
    traits.offer(name, "", () => ({ kind: "trait", text: name,
      href: link("ask", "", { request: JSON.stringify({ groups: { "": { resources: { [classOf(fleet.hosts.get(root))]: 1 } } }, host: { anywhere: [name] } }) }) }));
  }
  for (const [uuid, each] of fleet.labels) {
    for (const [key, value] of Object.entries(each)) {
      labels.offer(`${key}=${value}`, uuid, () => ({ kind: "label", text: `${key}=${value}`, href: link("labels", "", { filter: uuid }) }));
    }
  }
  return [hosts, providers, traits, labels].flatMap((best) => best.found);
}

/** A class to ask for on hosts like this one: processors, if it has some. @param {import("./fleet_state.js").Host} [host] */
function classOf(host) {
  const classes = (host?.providers ?? []).flatMap(({ inventories }) => Object.keys(inventories));
  return classes.includes("VCPU") ? "VCPU" : classes[0] ?? "VCPU";
}

/** Names that are not a part of the fleet: the service is asked for them. */
class Names {
  #context;
  #readAt = -Infinity;
  /** @type {Promise<string[]>} */
  #flavors = Promise.resolve([]);

  /** @param {Context} context */
  constructor(context) {
    this.#context = context;
  }

  /**
   * @param {string} text as somebody has typed it
   * @param {() => boolean} isOver whether something else has been typed since
   * @returns {Promise<{found: Found[], said: string}>} with what there is to say beside it
   */
  async find(text, isOver) {
    await new Promise((resolve) => setTimeout(resolve, TYPED));
    if (isOver()) return { found: [], said: "" };
    const part = text.toLowerCase();
    const ofFlavors = new Best(part);
    for (const name of await this.#flavorNames()) {
      ofFlavors.offer(name, "", () => ({ kind: "flavor", text: name, href: link("flavors", "", { filter: name }) }));
    }
    try {
      const { items, isCut } = await this.#consumers(text);
      const ofConsumers = new Best(part);
      for (const { uuid, name, project_id: project } of items) {
        const shown = name ? `${project}/${name}` : uuid;
        ofConsumers.offer(shown, `${uuid} ${uuid.replaceAll("-", "")}`, () => ({ kind: "consumer", text: shown, href: link("consumers", uuid) }));
      }
      return { found: [...ofConsumers.found, ...ofFlavors.found], said: isCut ? "More consumers match: type more of the name." : "" };
    } catch (error) {
      return { found: ofFlavors.found, said: `Consumers cannot be searched: ${reason(error)}` };
    }
  }

  /** Those whose name has the text in it, or whose UUID begins with it: `job-1`, `web/job-1`. @param {string} text */
  async #consumers(text) {
    const { api } = this.#context;
    if (api.forbidden.has(LIST)) return { items: [], isCut: false };
    const [, project, search] = /^([^/]+)\/([^/]*)$/.exec(text) ?? [undefined, "", text];
    const scope = { ...(project ? { project_id: project } : {}), ...api.scope(LIST) };
    if (search.includes("/") || (project && scope.project_id !== project)) return { items: [], isCut: false };
    return await api.first("berth/v1/consumers", { ...scope, ...(search ? { search } : {}) }, CONSUMERS);
  }

  /** @returns {Promise<string[]>} */
  #flavorNames() {
    const { api } = this.#context;
    if (performance.now() - this.#readAt > FRESH && !api.forbidden.has("berth:flavors:list")) {
      this.#readAt = performance.now();
      this.#flavors = api.get("berth/v1/flavors").then(({ flavors }) => flavors.map((/** @type {any} */ { name }) => name), () => []);
    }
    return this.#flavors;
  }
}
