// SPDX-License-Identifier: Apache-2.0
/**
 * How many more of each flavor fit, now and in a fleet with assumed changes.
 * @module
 */

import { link, refine } from "./address.js";
import { el, field, fill, number, select, table } from "./dom.js";
import { difference, items, part, refusal, textField } from "./parts.js";
import { warningText } from "./words.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./main.js").View} View */
/** @typedef {import("./answers.js").Capacity} Capacity */
/** @typedef {import("./answers.js").FlavorCapacity} FlavorCapacity */
/** @typedef {import("./answers.js").Counts} Counts */
/** @typedef {import("./answers.js").Left} Left */

const NOTHING = { count: 0, at_most: 0, hosts: 0 };
/** Names that a field suggests. */
const SUGGESTED = 50;

/**
 * @param {Context} context
 * @param {import("./address.js").Address} address
 * @returns {View}
 */
export function capacityView(context, address) {
  const { api, fleet } = context;
  const filter = (/** @type {string} */ name) => address.filters.get(name) ?? "";
  const chosen = { by: filter("by"), drain: filter("drain"), like: filter("like"), count: filter("count") || "1" };
  const names = el("datalist", { id: "host-names" });
  const refused = refusal(context, "berth:fleet", "see the fleet: its hosts and labels are not suggested here");
  const answer = part("Capacity", async (signal) => {
    const { drain, nowhere } = drainOf();
    const scenario = scenarioOf(drain);
    /** @type {Capacity} */
    const result = await api.post("berth/v1/capacity", {
      ...(chosen.by ? { by: [chosen.by] } : {}), ...(scenario ? { what_if: scenario } : {}),
    }, signal);
    return [
      el("ul", { class: "warnings" }, [...nowhere.map((label) => `No host has ${label}.`), ...result.warnings.map(warningText)]
        .map((text) => el("li", {}, text))),
      ...tables(result, chosen.by, scenario !== null),
      !result.complete && el("p", { class: "hint" }, "The time for counting ended: some of these numbers are bounds.")];
  });

  /** @param {Partial<typeof chosen>} change */
  function choose(change) {
    Object.assign(chosen, change);
    refine(change);
    // What stands there is about something else.
    answer.element.classList.add("stale");
    void answer.refresh();
  }

  /** What shall be drained: hosts, and those of labels; and the labels that no host has. */
  function drainOf() {
    /** @type {string[]} */
    const nowhere = [];
    const drain = items(chosen.drain).flatMap((item) => {
      const [, key, value] = /^([^=]+)=(.*)$/.exec(item) ?? [];
      const hosts = [...fleet.hosts.values()];
      if (!key || !fleet.isLoaded || hosts.some(({ name }) => name === item)) return [item];
      const labelled = hosts.filter((host) => fleet.valuesOf(host, key).includes(value)).map(({ uuid }) => uuid);
      if (!labelled.length) nowhere.push(item);
      return labelled;
    });
    return { drain, nowhere };
  }

  /** The request's what_if; null if nothing is assumed. @param {string[]} drain */
  function scenarioOf(drain) {
    return drain.length || chosen.like ? {
      ...(drain.length ? { drain } : {}),
      ...(chosen.like ? { add_hosts: [{ like: chosen.like, count: Number(chosen.count) || 1 }] } : {}),
    } : null;
  }

  /** @param {Event} event */
  function suggest(event) {
    const text = /** @type {HTMLInputElement} */ (event.target).value.trim().toLowerCase();
    const found = [];
    for (const { name } of fleet.hosts.values()) {
      if (found.length < SUGGESTED && name.toLowerCase().includes(text)) found.push(el("option", { value: name }));
    }
    fill(names, found);
  }

  const toDrain = textField("Drain a host", "", "A host, or all of a label: rack=r7", { list: "host-names", oninput: suggest });
  const drained = el("div", { class: "chips" });
  function showDrained() {
    const hosts = items(chosen.drain);
    fill(drained, hosts.map((host) => el("button", { type: "button", class: "chip", "aria-label": `Do not drain ${host}`,
      onclick: () => setDrained(hosts.filter((other) => other !== host)) }, `${host} ✕`)));
  }
  /** @param {string[]} hosts */
  function setDrained(hosts) {
    choose({ drain: hosts.join(",") });
    showDrained();
  }
  toDrain.input.addEventListener("change", () => {
    setDrained([...new Set([...items(chosen.drain), ...items(toDrain.input.value)])]);
    toDrain.input.value = "";
  });
  const like = textField("Add hosts like", chosen.like, "", { list: "host-names", oninput: suggest });
  like.input.addEventListener("change", () => choose({ like: like.input.value.trim() }));
  const count = textField("How many", chosen.count, "", { type: "number", min: 1, max: 10000 });
  count.input.addEventListener("change", () => choose({ count: count.input.value }));
  showDrained();
  const keys = fleet.labelKeys.filter((key) => key !== "name").map((value) => ({ value }));
  return {
    title: "Capacity",
    element: el("article", {}, el("h1", {}, "Capacity"),
      el("p", { class: "hint" }, "How many more of each flavor fit. Assume that hosts are drained or added to see now and then side by side; nothing is changed."),
      refused,
      names, el("div", { class: "controls" },
        field("By", select([{ value: "", text: "the whole fleet" }, ...keys, { value: "aggregate" }], chosen.by, (by) => choose({ by }))),
        toDrain.element, drained, like.element, count.element),
      answer.element),
    changed: answer.changed,
  };
}

/** @param {Capacity} result @param {string} by @param {boolean} isScenario */
function tables(result, by, isScenario) {
  const flavors = Object.entries(result.flavors).sort();
  if (!flavors.length) return [el("p", {}, "There are no flavors yet. ", el("a", { href: link("flavors") }, "Create one"))];
  const columns = isScenario ? ["Now#", "Then#", "Change#", "Hosts now#", "Hosts then#"] : ["Count#", "Hosts#"];
  const cells = (/** @type {Counts & {now: Counts | null}} */ { now, ...then }) => isScenario
    // A value of a label that only assumed hosts have has nothing now.
    ? [bounds(now ?? NOTHING), bounds(then), difference(now?.count ?? 0, then.count), number(now?.hosts ?? 0), number(then.hosts)]
    : [bounds(then), number(then.hosts)];
  const pair = (/** @type {Left & {now: Left}} */ each, /** @type {keyof Left} */ name) => isScenario && each.now[name] !== each[name]
    ? `${number(each.now[name])} → ${number(each[name])}` : number(each[name]);
  const place = (/** @type {string} */ name) => by ? [name] : [];
  const amounts = /** @type {const} */ (["free", "usable", "stranded", "largest"]);
  return [
    table("How many more fit", ["Flavor", ...place(by), ...columns], flavors.flatMap(([name, each]) => isCounted(each)
      ? [...Object.entries(each.by?.[by] ?? {}).sort().map(([value, counts]) => [name, value, ...cells(counts)]), [name, ...place("all"), ...cells(each)]]
      : [[name, ...place(""), each.invalid ?? `unknown: ${(each.unknown ?? []).map(({ name: lost }) => lost).join(", ")}`]])),
    table("What is left of each class", ["Flavor", "Class", "Free#", "Usable#", "Stranded#", "Largest#"], flavors.flatMap(([name, each]) =>
      Object.entries(each.classes ?? {}).map(([resource, left]) => [name, resource, ...amounts.map((amount) => pair(left, amount))]))),
  ];
}

/** @param {FlavorCapacity} flavor @returns {flavor is FlavorCapacity & Counts} */
function isCounted(flavor) {
  return flavor.count !== undefined;
}

/** @param {{count: number, at_most: number}} counts */
function bounds({ count, at_most: most }) {
  return count === most ? number(count) : `${number(count)}–${number(most)}`;
}
