// SPDX-License-Identifier: Apache-2.0
/**
 * The fleet as a map, coloured by how full its hosts are.
 * @module
 */

import { link, refine } from "./address.js";
import { Census, DRAINED } from "./census.js";
import { NOTHING, STEPS, inkOn, ofStep, stepOf, stepText } from "./colours.js";
import { counted, el, field, fill, number, offer, select, short, table } from "./dom.js";
import { amountsOf, fullnessOf } from "./fleet_state.js";
import { refill } from "./keeping.js";
import { FleetMap } from "./map.js";
import { follower } from "./parts.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./main.js").View} View */
/** @typedef {import("./fleet_state.js").Host} Host */
/** @typedef {{name: string, hosts: Host[]}} Group */
/** @typedef {{key: string, text: string, colour: string, mark?: string, hatched?: boolean}} Entry of a legend */

/** Hosts that a list shows at most. */
const LISTED = 200;
/** Groups for which a legend has columns, at most. */
const COLUMNS = 12;
/** The key of hosts without inventory of the class. */
const NONE = "none";
/** The rule of the policy for what is stranded, and milliseconds between two questions for it. */
const CAPACITY = "berth:capacity";
const STRANDED_EVERY = 10_000;

/**
 * @param {Context} context
 * @param {import("./address.js").Address} address
 * @returns {View}
 */
export function fleetView(context, address) {
  const { fleet } = context;
  const chosen = {
    by: address.filters.get("by") ?? (fleet.labelKeys.includes("zone") ? "zone" : ""),
    class: address.filters.get("class") ?? "",
    only: address.filters.get("only") ?? "",
  };
  const grouping = select([], "", (by) => choose({ by }));
  const colouring = select([], "", (name) => choose({ class: name }));
  const picture = hostMap(context);
  const totals = el("section", { "aria-label": "Totals" });
  const legend = el("section", { "aria-label": "Legend" });
  const list = new HostList();
  const stranded = new Stranded(context, () => showTotals());
  let census = takeCensus();
  /** @type {Group[]} */
  let groups = [];

  function takeCensus() {
    return new Census(fleet, chosen.by, (host) => {
      const fullness = fullnessOf(host, chosen.class);
      return fullness < 0 ? NONE : String(stepOf(fullness));
    });
  }

  /** @param {Record<string, string>} change */
  function choose(change) {
    Object.assign(chosen, change);
    refine(change);
    show();
  }

  /** Everything, from the beginning. */
  function show() {
    census = takeCensus();
    arrange();
    showCounts();
  }

  /** @param {Set<string> | null} roots */
  function changed(roots) {
    stranded.changed();
    if (!roots) return show();
    const hosts = census.recount(roots);
    if (hosts) picture.repaint(hosts);
    else arrange();
    showCounts();
  }

  function arrange() {
    groups = groupsOf(context, fleet.ordered, chosen.by);
    picture.show(groups, (host) => {
      const key = census.keyOf(host);
      return {
        colour: key === NONE ? NOTHING : ofStep(Number(key)),
        dim: Boolean(chosen.only) && !census.has(host, chosen.only),
      };
    });
  }

  function showCounts() {
    offer(grouping, groupings(fleet), chosen.by);
    offer(colouring, [{ value: "", text: "the fullest class" }, ...[...census.amounts.keys()].sort().map((value) => ({ value }))],
      chosen.class);
    press(legend, chosen.only);
    refill(legend, legendOf(entries(), groups, (key, group) => census.count(key, group), chosen.only, (only) => choose({ only })));
    showTotals();
    const { only } = chosen;
    list.show(only ? census.count(only) : fleet.hosts.size,
      () => (only ? fleet.ordered.filter((host) => census.has(host, only)) : fleet.ordered));
  }

  function showTotals() {
    refill(totals, totalsTable(fleet, census, stranded));
  }

  show();
  return {
    title: "Fleet",
    element: el("div", { class: "split" },
      el("div", { class: "wide" },
        el("div", { class: "controls" }, field("Group by", grouping), field("Colour by", colouring)), picture.element),
      el("aside", {}, totals, legend, el("section", { "aria-label": "Hosts" }, list.element))),
    changed,
    dispose: () => {
      picture.dispose();
      stranded.dispose();
    },
  };
}

/** @returns {Entry[]} */
function entries() {
  const steps = Array.from({ length: STEPS }, (_, step) =>
    ({ key: String(step), text: stepText(step), colour: ofStep(step) }));
  return [...steps, { key: NONE, text: "no such inventory", colour: NOTHING },
    { key: DRAINED, text: "drained", colour: "#ffffff", hatched: true }];
}

/** @param {import("./fleet_state.js").Fleet} fleet */
export function groupings(fleet) {
  return [{ value: "", text: "nothing" }, ...fleet.labelKeys.map((value) => ({ value })),
    { value: "aggregate" }];
}

/**
 * @param {Context} context
 * @param {Host[]} hosts in the order in which they stand in their groups
 * @param {string} by a label, "aggregate", or nothing
 * @returns {Group[]}
 */
export function groupsOf({ fleet }, hosts, by) {
  if (!by) return hosts.length ? [{ name: "all hosts", hosts }] : [];
  /** @type {Map<string, Host[]>} */
  const groups = new Map();
  const valuesOf = fleet.grouping(by);
  for (const host of hosts) {
    for (const value of valuesOf(host)) {
      const group = groups.get(value);
      if (group) group.push(host);
      else groups.set(value, [host]);
    }
  }
  const order = new Intl.Collator("en", { numeric: true });
  return [...groups].sort(([one], [other]) => order.compare(one, other))
    .map(([name, members]) => ({ name, hosts: members }));
}

/**
 * What is free and used of each class.
 *
 * @param {Host} host
 * @param {Map<string, boolean>} [asked] the classes to show, and whether one provider must have the
 *   amount: then what counts is the largest that is free
 */
export function amountLines(host, asked) {
  return [...amountsOf(host.providers)].filter(([name]) => !asked || asked.has(name))
    .map(([name, { capacity, used, providers, largest }]) => {
      const free = capacity - used;
      const text = providers > 1 && asked?.get(name) ? `at most ${number(largest)} free of one provider, ${number(free)} in all`
        : `${number(free)} free, ${number(used)} used${providers > 1 ? `, at most ${number(largest)} free of one provider` : ""}`;
      return el("div", {}, `${name} ${text}`);
    });
}

/**
 * A map with its buttons and what the pointer is on.
 *
 * @param {Context} context
 * @param {(host: Host) => (HTMLElement | false)[]} [describe] what to say of a host beside its name
 */
export function hostMap(context, describe = amountLines) {
  const tip = el("div", { class: "tip", hidden: true });
  let pointed = { uuid: "", x: 0, y: 0 };
  const map = new FleetMap(
    (host, x, y) => {
      pointed = { uuid: host?.uuid ?? "", x, y };
      showTip();
    },
    (host, isApart) => {
      const address = link("hosts", host.uuid);
      if (isApart) window.open(address);
      else context.go(address);
    });

  function showTip() {
    const { x, y } = pointed;
    const host = context.fleet.hosts.get(pointed.uuid);
    tip.hidden = !host;
    if (!host) return;
    fill(tip, el("strong", {}, host.name), host.drained && " drained", describe(host));
    const left = Math.min(x + 14, map.canvas.clientWidth - tip.offsetWidth - 4);
    const isLow = y + 14 + tip.offsetHeight > map.canvas.clientHeight;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${Math.max(0, isLow ? y - 8 - tip.offsetHeight : y + 14)}px`;
  }

  const element = el("div", { class: "picture" }, map.canvas, tip,
    el("div", { class: "zoom", role: "group", "aria-label": "Map" },
      el("button", { type: "button", title: "Zoom in (+)", onclick: () => map.zoom(1.4) }, "+"),
      el("button", { type: "button", title: "Zoom out (-)", onclick: () => map.zoom(1 / 1.4) }, "−"),
      el("button", { type: "button", title: "Show everything (0)", onclick: () => map.fit() }, "Fit")));
  return {
    element,
    /** @type {FleetMap["show"]} */
    show: (groups, paint) => {
      map.show(groups, paint);
      showTip();
    },
    /** Paint some hosts that stand where they stood. @param {Host[]} hosts */
    repaint: (hosts) => {
      map.repaint(hosts);
      showTip();
    },
    dispose: () => map.dispose(),
  };
}

/**
 * As `legendOf`, of hosts that are counted now.
 *
 * @param {Entry[]} legend
 * @param {Host[]} hosts
 * @param {Group[]} groups
 * @param {(host: Host, key: string) => boolean} has
 * @param {string} only
 * @param {(only: string) => void} choose
 */
export function legendTable(legend, hosts, groups, has, only, choose) {
  const members = new Map([["", hosts], ...groups.map((group) => /** @type {const} */ ([group.name, group.hosts]))]);
  const count = (/** @type {string} */ key, /** @type {string} */ group) =>
    (members.get(group) ?? []).reduce((sum, host) => sum + Number(has(host, key)), 0);
  return legendOf(legend, groups, count, only, choose);
}

/**
 * The legend: what the colours mean, with how many hosts of each group have them.
 *
 * @param {Entry[]} legend
 * @param {Group[]} groups
 * @param {(key: string, group: string) => number} count of a group; of all hosts, if it is empty
 * @param {string} only
 * @param {(only: string) => void} choose
 */
function legendOf(legend, groups, count, only, choose) {
  const columns = groups.length > 1 && groups.length <= COLUMNS ? groups.map(({ name }) => name) : [];
  const shown = legend.filter(({ key }) => count(key, "") || key === only);
  return table("Hosts by colour", ["Colour", "Hosts#", ...columns.map((name) => `${name}#`)],
    shown.map(({ key, text, colour, mark, hatched }) => {
      const swatch = el("span", { class: hatched ? "swatch hatched" : "swatch", "data-mark": mark });
      swatch.style.backgroundColor = colour;
      swatch.style.color = inkOn(colour);
      const button = el("button", {
        type: "button", class: "entry", "aria-pressed": String(only === key), "data-key": key,
        // What is chosen may have changed since the button was made.
        onclick: () => choose(button.getAttribute("aria-pressed") === "true" ? "" : key),
      }, swatch, text);
      return [button, ...["", ...columns].map((group) => number(count(key, group)))];
    }));
}

/**
 * Show on the buttons of a legend which one is chosen.
 *
 * @param {HTMLElement} legend
 * @param {string} only
 */
export function press(legend, only) {
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (legend.querySelectorAll("[data-key]"))) {
    button.setAttribute("aria-pressed", String(button.dataset.key === only));
  }
}

/**
 * @param {import("./fleet_state.js").Fleet} fleet
 * @param {Census} census
 * @param {Stranded} stranded
 */
function totalsTable(fleet, census, stranded) {
  const drained = census.count(DRAINED);
  const rows = [...census.amounts].sort(([one], [other]) => one.localeCompare(other))
    .map(([name, { capacity, used }]) => [name, short(capacity), short(used), short(capacity - used),
      ...(stranded.isKnown ? [stranded.text(name)] : []),
      capacity ? `${Math.round((100 * used) / capacity)} %` : "–"]);
  return el("div", {},
    el("p", { class: "lead" }, el("strong", {}, counted(fleet.hosts.size, "host")),
      `, ${counted(fleet.providers.size, "provider")}`, drained > 0 && `, ${number(drained)} drained`),
    table("Resources", ["Class", "Capacity#", "Used#", "Free#", ...(stranded.isKnown ? ["Stranded#"] : []), "%#"], rows),
    stranded.isKnown && el("p", { class: "hint" }, "Stranded: free, but no stored flavor that asks for the class can use it."));
}

/** What is free of each class but of no use to any stored flavor that asks for it. */
class Stranded {
  #context;
  #show;
  #following = follower((signal) => this.#read(signal), STRANDED_EVERY);
  /** @type {Map<string, {amount: number, isBound: boolean}>} */
  #amounts = new Map();

  /** @param {Context} context @param {() => void} show */
  constructor(context, show) {
    this.#context = context;
    this.#show = show;
    this.changed();
  }

  get isKnown() {
    return this.#amounts.size > 0;
  }

  /** @param {string} name of a class */
  text(name) {
    const stranded = this.#amounts.get(name);
    return stranded ? el("span", {}, stranded.isBound && "≤ ", short(stranded.amount)) : "–";
  }

  changed() {
    if (!this.#context.api.forbidden.has(CAPACITY)) this.#following.changed();
  }

  dispose() {
    this.#following.dispose();
  }

  /** @param {AbortSignal} signal */
  async #read(signal) {
    const { api } = this.#context;
    const answer = await api.post("berth/v1/capacity", {}, signal).catch((error) => {
      if (error.status === 403) api.forbidden.set(CAPACITY, error.message);
    });
    if (answer && !signal.aborted) this.#put(answer);
  }

  /** @param {any} answer */
  #put({ flavors, complete }) {
    this.#amounts.clear();
    for (const { classes = {} } of Object.values(flavors)) {
      for (const [name, { stranded }] of Object.entries(classes)) {
        const least = Math.min(stranded, this.#amounts.get(name)?.amount ?? Infinity);
        this.#amounts.set(name, { amount: least, isBound: !complete });
      }
    }
    this.#show();
  }
}

/** A list of hosts that is made when somebody opens it. */
export class HostList {
  #summary = el("summary", {});
  #list = el("ul", { class: "hosts" });
  #more = el("p", { class: "hint" }, `The first ${LISTED} are shown. Choose a colour, or search, to see others.`);
  /** @type {() => Host[]} */
  #hosts = () => [];

  /** @param {boolean} [isOpen] */
  constructor(isOpen = false) {
    this.element = el("details", { open: isOpen, ontoggle: () => this.#fill() }, this.#summary, this.#list, this.#more);
  }

  /**
   * @param {number} count
   * @param {() => Host[]} hosts by name
   */
  show(count, hosts) {
    const text = counted(count, "host");
    if (this.#summary.textContent !== text) fill(this.#summary, text);
    this.#more.hidden = count <= LISTED;
    this.#hosts = hosts;
    this.#fill();
  }

  #fill() {
    if (!this.element.open) return;
    const focused = document.activeElement?.getAttribute("href");
    refill(this.#list, this.#hosts().slice(0, LISTED).map((host) => el("li", {}, el("a", { href: link("hosts", host.uuid) }, host.name))));
    if (focused && this.#list.querySelector("a") && document.activeElement === document.body) {
      /** @type {HTMLElement | null} */ (this.#list.querySelector(`[href="${CSS.escape(focused)}"]`))?.focus();
    }
  }
}
