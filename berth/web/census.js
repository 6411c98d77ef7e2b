// SPDX-License-Identifier: Apache-2.0
/**
 * Counts and sums over all hosts. Kept up with the fleet: a change costs what it moved, not the fleet.
 * @module
 */

import { amountsOf } from "./fleet_state.js";

/** @typedef {import("./fleet_state.js").Fleet} Fleet */
/** @typedef {import("./fleet_state.js").Host} Host */
/**
 * What a host was counted as.
 *
 * @typedef {object} Counted
 * @property {Host} host
 * @property {string} name
 * @property {string} key
 * @property {boolean} isDrained
 * @property {string[]} groups
 * @property {(string | number)[]} amounts of each class its name, capacity and use: few bytes, of many hosts
 */

/** The key of drained hosts, which have another one too. */
export const DRAINED = "drained";

export class Census {
  /** Capacity and use of each class, and how many hosts have it. @type {Map<string, {capacity: number, used: number, hosts: number}>} */
  amounts = new Map();
  #fleet;
  #groupsOf;
  #keyOf;
  /** By the host's UUID. @type {Map<string, Counted>} */
  #counted = new Map();
  /** How many hosts of each group have each key; of all hosts, in the group "". @type {Map<string, Map<string, number>>} */
  #counts = new Map();

  /**
   * @param {Fleet} fleet
   * @param {string} by what groups hosts: a label, "aggregate", or nothing
   * @param {(host: Host) => string} keyOf
   */
  constructor(fleet, by, keyOf) {
    this.#fleet = fleet;
    this.#groupsOf = by ? fleet.grouping(by) : () => [];
    this.#keyOf = keyOf;
    for (const host of fleet.hosts.values()) this.#add(host, 1, this.#read(host));
  }

  /**
   * Count hosts that have changed.
   *
   * @param {Iterable<string>} uuids
   * @returns {Host[] | null} those that stay where they were; null if any came, went, or moved
   */
  recount(uuids) {
    let isMoved = false;
    const hosts = [];
    for (const uuid of uuids) {
      const before = this.#counted.get(uuid);
      const host = this.#fleet.hosts.get(uuid);
      if (before) this.#add(before.host, -1, before);
      const after = host && this.#read(host);
      if (after) this.#add(after.host, 1, after);
      else this.#counted.delete(uuid);
      isMoved ||= before?.host !== host || before?.name !== after?.name || String(before?.groups) !== String(after?.groups);
      if (host) hosts.push(host);
    }
    return isMoved ? null : hosts;
  }

  /** @param {Host} host */
  keyOf(host) {
    return this.#counted.get(host.uuid)?.key ?? "";
  }

  /** @param {Host} host @param {string} key */
  has(host, key) {
    return key === DRAINED ? host.drained : this.keyOf(host) === key;
  }

  /** How many hosts have a key. @param {string} key @param {string} [group] */
  count(key, group = "") {
    return this.#counts.get(group)?.get(key) ?? 0;
  }

  /** @param {Host} host @returns {Counted} */
  #read(host) {
    const amounts = [...amountsOf(host.providers)].flatMap(([name, { capacity, used }]) => [name, capacity, used]);
    return { host, name: host.name, key: this.#keyOf(host), isDrained: host.drained, groups: this.#groupsOf(host), amounts };
  }

  /** @param {Host} host @param {1 | -1} sign @param {Counted} counted */
  #add(host, sign, counted) {
    if (sign > 0) this.#counted.set(host.uuid, counted);
    for (const group of ["", ...counted.groups]) {
      const counts = this.#counts.get(group) ?? new Map();
      this.#counts.set(group, counts);
      counts.set(counted.key, (counts.get(counted.key) ?? 0) + sign);
      if (counted.isDrained) counts.set(DRAINED, (counts.get(DRAINED) ?? 0) + sign);
    }
    for (let at = 0; at < counted.amounts.length; at += 3) {
      const [name, capacity, used] = /** @type {[string, number, number]} */ (counted.amounts.slice(at, at + 3));
      const sum = this.amounts.get(name) ?? { capacity: 0, used: 0, hosts: 0 };
      sum.capacity += sign * capacity;
      sum.used += sign * used;
      sum.hosts += sign;
      if (sum.hosts) this.amounts.set(name, sum);
      else this.amounts.delete(name);
    }
  }
}
