// SPDX-License-Identifier: Apache-2.0
/**
 * A copy of the fleet: read once from `GET /berth/v1/fleet`, then kept by `GET /berth/v1/changes`.
 * @module
 */

import { ApiError, pause } from "./api.js";

/** @typedef {import("./api.js").Api} Api */
/** @typedef {{total: number, reserved: number, min_unit: number, max_unit: number, step_size: number, allocation_ratio: number}} Inventory */
/**
 * @typedef {object} Provider
 * @property {string} uuid
 * @property {string} name
 * @property {string | null} parent
 * @property {string} root
 * @property {number} generation
 * @property {Record<string, Inventory>} inventories
 * @property {Record<string, number>} usages
 * @property {string[]} traits
 * @property {string[]} aggregates
 * @property {string[]} drains
 */
/**
 * @typedef {object} Host
 * @property {string} uuid
 * @property {string} name
 * @property {Provider[]} providers of its tree, the root first
 * @property {boolean} drained whether its root is
 */
/** @typedef {{providers: Map<string, Provider>, hosts: Map<string, Host>}} Copy */
/**
 * What a tree has of a class.
 *
 * @typedef {object} Amount
 * @property {number} capacity
 * @property {number} used
 * @property {number} providers that have an inventory of it
 * @property {number} largest what is free of the one with most free
 */

/** Seconds for which a poll waits for a change: after a few more, a service that is silent has gone. */
const POLL_S = 4;
/** Seconds for which the service may be silent in the middle of an answer, and while it does not wait. */
const SILENT_S = 5;
/** The same while it looks up a fleet, or changes that are long past. */
const LOOKING_S = 30;
/** Milliseconds from one poll to the next, at least: however much changes, while somebody looks, and while nobody does. */
const [SEEN, HIDDEN] = [500, 10_000];
/** The rules of the policy for the fleet, its labels and its drains. */
const [FLEET, LABELS, DRAINS] = ["berth:fleet", "berth:aggregates:list", "berth:drains:list"];

/** The code of a revision of another database. */
const FOREIGN = "berth.revision.foreign";

/** What the page knows of the fleet. Events: `loading`, `changed` (detail: roots), `live`. */
export class Fleet extends EventTarget {
  /** @type {Map<string, Provider>} */
  providers = new Map();
  /** @type {Map<string, Host>} */
  hosts = new Map();
  /** The labels of each aggregate. @type {Map<string, Record<string, string>>} */
  labels = new Map();
  /** Names of drains that exclude. @type {Set<string>} */
  excluding = new Set();
  /** Up to which the copy is current; empty if the fleet must be read first. */
  revision = "";
  /** Whether the copy follows the fleet at present. */
  isLive = false;
  /** Whether there is a copy. */
  isLoaded = false;
  /** Whether the whole fleet is being read. */
  isReading = false;
  /** Why it does not follow. */
  trouble = "";
  /** Whether that is because the caller may not: then the page does not ask again by itself. */
  isRefused = false;
  /** Whether labels and drains are as of the revision. */
  #hasNames = false;
  /** @type {Host[] | null} */
  #ordered = null;
  /** @type {AbortController | null} */
  #following = null;
  /** Equal lists and inventories stand in memory once. @type {Map<string, any>} */
  #shared = new Map();

  /** @param {Api} api */
  constructor(api) {
    super();
    this.api = api;
  }

  /** Follow the fleet until `stop`, whatever happens to the service. */
  follow() {
    if (this.#following) return;
    const why = this.api.forbidden.get(FLEET);
    if (why !== undefined) return this.#refuse(why);
    this.isRefused = false;
    this.#following = new AbortController();
    void this.#follow(this.#following.signal);
  }

  stop() {
    this.#following?.abort();
    this.#following = null;
    this.#forget();
    this.isRefused = false;
    this.#live(false, "");
  }

  /** @param {string} why */
  #refuse(why) {
    this.api.forbidden.set(FLEET, why);
    this.#following = null;
    this.isReading = false;
    this.isRefused = true;
    this.#live(false, why);
  }

  /** The hosts by name: numbers in names count as numbers. */
  get ordered() {
    const order = new Intl.Collator("en", { numeric: true });
    this.#ordered ??= [...this.hosts.values()].sort((one, other) => order.compare(one.name, other.name));
    return this.#ordered;
  }

  /** The resource classes that some provider has. */
  get classes() {
    const classes = new Set();
    for (const provider of this.providers.values()) {
      for (const name in provider.inventories) classes.add(name);
    }
    return [...classes].sort();
  }

  /** Keys of labels of hosts. */
  get labelKeys() {
    const keys = new Set();
    for (const labels of this.labels.values()) Object.keys(labels).forEach((key) => keys.add(key));
    return [...keys].sort();
  }

  /**
   * The values of a label that a host has; of "aggregate", its aggregates.
   *
   * @param {Host} host
   * @param {string} key
   * @returns {string[]}
   */
  valuesOf(host, key) {
    const aggregates = host.providers[0].aggregates;
    if (key === "aggregate") return aggregates.map((uuid) => this.labels.get(uuid)?.name ?? uuid);
    const values = aggregates.map((uuid) => this.labels.get(uuid)?.[key]).filter((value) => value !== undefined);
    return /** @type {string[]} */ ([...new Set(values)].sort());
  }

  /**
   * What says which groups a host is in: its values of a label, or that it has none. Good until
   * labels change.
   *
   * @param {string} key
   * @returns {(host: Host) => string[]}
   */
  grouping(key) {
    /** Hosts share their lists of aggregates. @type {Map<string[], string[]>} */
    const known = new Map();
    return (host) => {
      const { aggregates } = host.providers[0];
      let groups = known.get(aggregates);
      if (!groups) {
        groups = this.valuesOf(host, key);
        if (!groups.length) groups = [`without ${key}`];
        known.set(aggregates, groups);
      }
      return groups;
    };
  }

  /** @param {AbortSignal} signal */
  async #follow(signal) {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        if (!this.revision) await this.#load(signal);
        for (;;) {
          const began = Date.now();
          await this.#poll(signal);
          attempt = 0;
          await rest(began);
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && (error.status === 410 || error.code === FOREIGN)) {
          // So long away that the changes are forgotten, or another database: read everything again.
          this.revision = "";
          this.isReading = true;
          this.#live(false, "The page has missed too many changes, and is reading the whole fleet again.");
          if (attempt) await pause(attempt);
        } else {
          const why = error instanceof Error ? error.message : String(error);
          if (error instanceof ApiError && error.status === 403) return this.#refuse(why);
          this.isReading = false;
          this.#live(false, why);
          // 401: whoever it was is signed out. All else may pass, such as a proxy's 404.
          if (error instanceof ApiError && error.status === 401) return;
          await pause(attempt);
        }
      }
    }
  }

  /**
   * Read the whole fleet. The copy so far stays until the new one is complete.
   *
   * @param {AbortSignal} signal
   */
  async #load(signal) {
    await this.#readNames(signal);
    /** @type {Copy} */
    const copy = { providers: new Map(), hosts: new Map() };
    let [revision, total, isComplete] = ["", 0, false];
    this.#shared.clear();
    for await (const lines of this.api.lines("berth/v1/fleet", signal, LOOKING_S)) {
      for (const line of lines) {
        if (line.berth === "fleet") [revision, total] = [line.revision, line.providers];
        else if (line.end) isComplete = true;
        else this.#put(line, copy);
      }
      this.dispatchEvent(new CustomEvent("loading", { detail: { read: copy.providers.size, total } }));
    }
    if (!isComplete) throw new ApiError(0, "The answer broke off.");
    this.providers = copy.providers;
    this.hosts = copy.hosts;
    this.#ordered = null;
    this.revision = revision;
    this.isLoaded = true;
    this.isReading = false;
    this.#live(true, "");
    this.dispatchEvent(new CustomEvent("changed", { detail: null }));
  }

  /** @param {AbortSignal} signal */
  async #poll(signal) {
    // At first, for what has changed in the meantime, however much that is.
    const wait = this.isLive ? POLL_S : 0;
    const path = `berth/v1/changes?after=${encodeURIComponent(this.revision)}&wait=${wait}`;
    /** @type {Set<string>} */
    const roots = new Set();
    let isComplete = false;
    for await (const lines of this.api.lines(path, signal, wait ? wait + SILENT_S : LOOKING_S)) {
      for (const line of lines) {
        if (line.change === undefined) [this.revision, isComplete] = [line.revision, true];
        else if (line.change === "names") this.#hasNames = false;
        else this.#apply(line, roots);
      }
    }
    if (!isComplete) throw new ApiError(0, "The answer broke off.");
    const isRenamed = !this.#hasNames;
    if (isRenamed) await this.#readNames(signal);
    this.#live(true, "");
    if (roots.size || isRenamed) {
      this.dispatchEvent(new CustomEvent("changed", { detail: isRenamed ? null : roots }));
    }
  }

  /** @param {AbortSignal} signal */
  async #readNames(signal) {
    const [{ aggregates }, { drains }] = await Promise.all([
      this.#readIfAllowed(LABELS, "berth/v1/aggregates", { aggregates: [] }),
      this.#readIfAllowed(DRAINS, "berth/v1/drains", { drains: [] }),
    ]);
    signal.throwIfAborted();
    this.labels = new Map(aggregates.map((/** @type {any} */ one) => [one.uuid, one.labels]));
    this.excluding = new Set(drains
      .filter((/** @type {any} */ drain) => drain.effect === "exclude")
      .map((/** @type {any} */ drain) => drain.name));
    for (const host of this.hosts.values()) host.drained = this.#isDrained(host.providers[0]);
    this.#hasNames = true;
  }

  /**
   * @param {string} rule of the policy
   * @param {string} path
   * @param {any} instead of an answer that the caller may not have
   */
  async #readIfAllowed(rule, path, instead) {
    if (this.api.forbidden.has(rule)) return instead;
    return await this.api.get(path).catch((error) => {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      this.api.forbidden.set(rule, error.message);
      return instead;
    });
  }

  /**
   * @param {any} event
   * @param {Set<string>} roots
   */
  #apply(event, roots) {
    const before = this.providers.get(event.uuid);
    if (before) roots.add(before.root);
    if (event.change === "gone") {
      if (before) this.#remove(before);
    } else if (event.change === "usage") {
      if (!before) return;
      before.usages = event.usages;
      before.generation = event.generation;
    } else {
      if (before && before.root !== event.root) this.#remove(before);
      this.#put(event, this);
      roots.add(event.root);
    }
  }

  /** @param {any} line @param {Copy} copy into which it goes */
  #put(line, { providers, hosts }) {
    const known = providers.get(line.uuid);
    const provider = known ?? /** @type {Provider} */ ({});
    Object.assign(provider, {
      uuid: line.uuid,
      name: line.name,
      parent: line.parent,
      root: line.root,
      generation: line.generation,
      inventories: this.#share(line.inventories),
      usages: line.usages,
      traits: this.#share(line.traits),
      aggregates: this.#share(line.aggregates),
      drains: this.#share(line.drains ?? []),
    });
    providers.set(line.uuid, provider);
    let host = hosts.get(line.root);
    if (!host) {
      host = { uuid: line.root, name: line.name, providers: [], drained: false };
      hosts.set(line.root, host);
      this.#ordered = null;
    }
    if (!host.providers.includes(provider)) host.providers.push(provider);
    if (provider.uuid === host.uuid) {
      if (host.name !== provider.name) this.#ordered = null;
      host.name = provider.name;
      host.drained = this.#isDrained(provider);
      if (host.providers[0] !== provider) {
        host.providers = [provider, ...host.providers.filter((other) => other !== provider)];
      }
    }
  }

  /** @param {Provider} provider */
  #remove(provider) {
    this.providers.delete(provider.uuid);
    const host = this.hosts.get(provider.root);
    if (!host) return;
    host.providers = host.providers.filter((other) => other !== provider);
    if (host.providers.length && provider.uuid !== host.uuid) return;
    this.hosts.delete(host.uuid);
    this.#ordered = null;
  }

  /** @param {Provider} provider */
  #isDrained(provider) {
    return provider.drains.some((name) => this.excluding.has(name));
  }

  /**
   * @template T
   * @param {T} value
   * @returns {T}
   */
  #share(value) {
    const text = JSON.stringify(value);
    const shared = this.#shared.get(text);
    if (shared) return shared;
    this.#shared.set(text, value);
    return value;
  }

  #forget() {
    for (const each of [this.providers, this.hosts, this.labels, this.excluding, this.#shared]) each.clear();
    this.#ordered = null;
    this.#hasNames = false;
    this.revision = "";
    this.isLoaded = false;
  }

  /**
   * @param {boolean} isLive
   * @param {string} trouble
   */
  #live(isLive, trouble) {
    if (isLive === this.isLive && trouble === this.trouble) return;
    this.isLive = isLive;
    this.trouble = trouble;
    this.dispatchEvent(new CustomEvent("live"));
  }
}

/**
 * Wait until the next poll is due, or somebody looks again.
 *
 * @param {number} began when the last one did
 * @returns {Promise<void>}
 */
function rest(began) {
  const wait = began + (document.hidden ? HIDDEN : SEEN) - Date.now();
  if (wait <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", end);
      resolve();
    };
    const timer = setTimeout(end, wait);
    document.addEventListener("visibilitychange", end);
  });
}

/**
 * What can be allocated of an inventory: the same rounding as the service's.
 *
 * @param {Inventory} inventory
 */
export function capacityOf(inventory) {
  return Math.max(0, Math.floor((inventory.total - inventory.reserved) * inventory.allocation_ratio));
}

/**
 * Capacity and use of each class, over all providers of a tree.
 *
 * @param {Provider[]} providers
 * @returns {Map<string, Amount>}
 */
export function amountsOf(providers) {
  /** @type {Map<string, Amount>} */
  const amounts = new Map();
  for (const provider of providers) {
    for (const name in provider.inventories) {
      const amount = amounts.get(name) ?? { capacity: 0, used: 0, providers: 0, largest: 0 };
      const [capacity, used] = [capacityOf(provider.inventories[name]), provider.usages[name] ?? 0];
      amount.capacity += capacity;
      amount.used += used;
      amount.providers += 1;
      amount.largest = Math.max(amount.largest, capacity - used);
      amounts.set(name, amount);
    }
  }
  return amounts;
}

/**
 * How full a host is, 0..1 or more: of a class, or of its fullest. -1 if it has no such inventory.
 *
 * @param {Host} host
 * @param {string} name of the class; empty for the fullest
 */
export function fullnessOf(host, name) {
  let fullest = -1;
  for (const [each, { capacity, used }] of amountsOf(host.providers)) {
    if (name && each !== name) continue;
    const fullness = capacity ? used / capacity : used ? 1 : -1;
    if (fullness > fullest) fullest = fullness;
  }
  return fullest;
}
