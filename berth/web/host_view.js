// SPDX-License-Identifier: Apache-2.0
/**
 * One host: its tree, who holds what of it, and its drains. One consumer: all that it holds.
 * @module
 */

import { link } from "./address.js";
import { counted, el, fill, number, table } from "./dom.js";
import { capacityOf } from "./fleet_state.js";
import { refill } from "./keeping.js";
import { facts, json, part, refusal } from "./parts.js";
import { amountsText, effectText, labelText, moment } from "./words.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./main.js").View} View */
/** @typedef {import("./address.js").Address} Address */
/** @typedef {import("./fleet_state.js").Provider} Provider */
/** @typedef {import("./answers.js").Consumer} Consumer */
/** @typedef {import("./answers.js").NamingDrain} NamingDrain */

/** Consumers that a table shows at most: a shared pool may have tens of thousands. */
const SHOWN = 500;
const CONSUMERS = "berth/v1/consumers";
/** The rule of the policy for lists of them. */
const LIST = "berth:consumers:list";

/** @param {Context} context @param {Address} address @returns {View} */
export function hostView(context, address) {
  const { api, fleet } = context;
  const provider = fleet.providers.get(address.subject) ?? byName(context, address.subject);
  if (!provider) {
    return { title: "Host", element: el("article", {}, el("h1", {}, "Host"),
      el("p", {}, `There is no provider ${address.subject}, or it was deleted. `), el("a", { href: link("fleet") }, "Back to the fleet")) };
  }
  const { root, uuid } = provider;
  const heading = el("h1", {});
  const summary = el("div", {});
  const tree = el("ul", { class: "tree", "aria-label": "Providers" });
  const raw = json(null);
  const unlisted = refusal(context, LIST, "see consumers");
  const consumers = part("Consumers", async (signal) => unlisted ? [unlisted]
    : consumersTable(context, await api.first(CONSUMERS, { host: root, ...api.scope(LIST) }, SHOWN, signal)));
  const refused = refusal(context, "berth:drains:list", "see drains");
  const drains = part("Drains", async () => {
    if (refused) return [refused];
    /** @type {{drains: NamingDrain[]}} */
    const found = await api.get(`berth/v1/drains?host=${root}`);
    return found.drains.length ? [table("Drains", ["Drain", "Effect", "Reason", "Providers", "Since", "By"],
      found.drains.map((drain) => [el("a", { href: link("drains", drain.name) }, drain.name), effectText(drain.effect),
        drain.reason, drain.named.map(({ name }) => name).join(", "), moment(drain.created_at), drain.created_by]))] : [];
  });

  function show() {
    const host = fleet.hosts.get(root);
    if (!host) {
      fill(summary, el("p", { class: "problem" }, "This host was deleted."));
      fill(tree);
      return;
    }
    const reference = host.name.includes(",") ? root : host.name;
    refill(heading, host.name, host.drained && el("span", { class: "chip drained" }, "drained"));
    refill(summary, el("p", { class: "lead" }, el("code", {}, root)),
      el("p", { class: "actions" }, el("a", { href: link("ask", "", { host: root }) }, "Ask with this host"),
        el("a", { href: link("drains", "", { providers: reference }) }, "Drain this host"),
        el("a", { href: link("capacity", "", { drain: reference }) }, "Capacity without it")));
    refill(tree, branch(context, host.providers, host.providers[0], uuid));
    refill(raw.children[1], JSON.stringify(host.providers, null, 2));
  }

  show();
  if (uuid !== root) requestAnimationFrame(() => tree.querySelector("[aria-current]")?.scrollIntoView({ block: "center" }));
  return {
    title: fleet.hosts.get(root)?.name ?? "Host",
    element: el("article", {}, heading, summary, tree, drains.element, consumers.element, raw),
    changed: (roots) => {
      if (roots && !roots.has(root)) return;
      show();
      consumers.changed();
      drains.changed();
    },
  };
}

/**
 * @param {Context} context
 * @param {Provider[]} providers of the tree
 * @param {Provider} provider
 * @param {string} chosen the UUID of the one that was looked for
 * @returns {HTMLElement}
 */
function branch(context, providers, provider, chosen) {
  const children = providers.filter((other) => other.parent === provider.uuid).sort((one, other) => one.name.localeCompare(other.name));
  return el("li", {},
    el("div", { class: "provider", "aria-current": provider.uuid === chosen && provider.parent !== null && "true" },
      el("h2", {}, provider.name, " ", el("small", { title: provider.uuid }, `generation ${provider.generation}`)),
      Object.entries(provider.inventories).sort().map(([name, inventory]) => bar(name, inventory, provider.usages[name] ?? 0)),
      el("div", { class: "chips" },
        provider.drains.map((name) => el("a", { class: "chip drained", href: link("drains", name) }, `drain ${name}`)),
        provider.traits.map((trait) => el("span", { class: "chip trait" }, trait)),
        provider.aggregates.map((uuid) => el("a", { class: "chip aggregate", title: `aggregate ${uuid}`, href: link("labels", "", { filter: uuid }) },
          labelText(context.fleet.labels.get(uuid), uuid))))),
    children.length > 0 && el("ul", {}, children.map((child) => branch(context, providers, child, chosen))));
}

/**
 * Reserved, used and free, as a bar with its numbers beside it.
 *
 * @param {string} name
 * @param {import("./fleet_state.js").Inventory} inventory
 * @param {number} used
 */
function bar(name, inventory, used) {
  const { total, reserved, allocation_ratio: ratio, min_unit: least, max_unit: most, step_size: step } = inventory;
  const capacity = capacityOf(inventory);
  const whole = Math.max(used, capacity) + reserved * ratio || 1;
  const share = (/** @type {string} */ kind, /** @type {number} */ amount) => {
    const element = el("span", { class: kind });
    element.style.width = `${(100 * amount) / whole}%`;
    return element;
  };
  const free = capacity - used;
  const rules = [
    (reserved > 0 || ratio !== 1) && `total ${number(total)}`, ratio !== 1 && `allocation ratio ${ratio}`,
    least > 1 && `min unit ${number(least)}`, most < total && `max unit ${number(most)}`, step > 1 && `step size ${number(step)}`,
  ].filter(Boolean).join(", ");
  return el("div", { class: "amount" }, el("span", { class: "class" }, name),
    el("span", { class: "bar", "aria-hidden": "true" }, share("reserved", reserved * ratio), share("used", used)),
    el("span", {}, reserved > 0 && `${number(reserved)} reserved, `, `${number(used)} used, `,
      free < 0 ? el("strong", { class: "problem" }, `${number(-free)} over`) : `${number(free)} free`, ` of ${number(capacity)}`,
      rules && el("small", {}, ` (${rules})`)));
}

/** @param {Context} context @param {Address} address @returns {View} */
export function consumerView(context, address) {
  const { api, fleet } = context;
  const path = address.subject.split("/").map(encodeURIComponent).join("/");
  /** The hosts of which it holds something. @type {Set<string>} */
  let hosts = new Set();
  const hostOf = (/** @type {string} */ provider) => fleet.hosts.get(fleet.providers.get(provider)?.root ?? "");
  const refused = refusal(context, "berth:consumers:show", "see consumers");
  const all = part("Consumer", async () => {
    if (refused) return [refused];
    /** @type {Consumer} */
    const consumer = await api.get(`${CONSUMERS}/${path}`);
    hosts = new Set(Object.keys(consumer.allocations).map((uuid) => hostOf(uuid)?.uuid ?? ""));
    return [
      facts({
        Name: consumer.name, UUID: el("code", {}, consumer.uuid), Project: consumer.project_id, User: consumer.user_id,
        Type: consumer.consumer_type, Generation: consumer.generation, Created: moment(consumer.created_at),
        Lease: el("span", {}, consumer.lease ? ["until ", moment(consumer.lease.expires_at), ". "] : "none. ",
          el("a", { href: link("leases", "", { consumer: consumer.uuid }) }, consumer.lease ? "Renew or end" : "Give it a lease")),
      }),
      table("What it holds", ["Provider", "Host", "Resources"], Object.entries(consumer.allocations).map(([uuid, held]) =>
        [fleet.providers.has(uuid) ? el("a", { href: link("hosts", uuid) }, held.name) : held.name, hostOf(uuid)?.name, amountsText(held.resources)])),
      refusal(context, "berth:fleet", "see the fleet: the hosts of these providers are not named"),
      json(consumer),
    ];
  });
  return { title: "Consumer", element: el("article", {}, el("h1", {}, "Consumer"), all.element),
    changed: (roots) => {
      if (!roots || [...hosts].some((host) => roots.has(host))) all.changed();
    } };
}

/** @param {Context} context @param {{items: Consumer[], isCut: boolean}} listed */
function consumersTable({ fleet }, { items: consumers, isCut }) {
  if (!consumers.length) return [el("p", {}, "No consumer holds anything here.")];
  return [
    table("Who holds what", ["Consumer", "Type", "Project", "Holds", "Leased until"],
      consumers.map((consumer) => [
        el("a", { href: link("consumers", consumer.uuid) }, consumer.name ?? consumer.uuid), consumer.consumer_type, consumer.project_id,
        el("div", {}, Object.entries(consumer.allocations).map(([uuid, { name, resources }]) =>
          el("div", {}, fleet.providers.has(uuid) ? el("a", { href: link("hosts", uuid) }, name) : name, ` ${amountsText(resources)}`))),
        moment(consumer.lease?.expires_at),
      ])),
    isCut && el("p", { class: "hint" }, `The first ${counted(SHOWN, "consumer")} are shown.`),
  ];
}

/** @param {Context} context @param {string} name */
function byName({ fleet }, name) {
  for (const provider of fleet.providers.values()) if (provider.name === name) return provider;
  return undefined;
}
