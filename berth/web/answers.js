// SPDX-License-Identifier: Apache-2.0
/**
 * What the API answers, as types: the same as in its OpenAPI document, as far as the page reads it.
 * @module
 */

/** @typedef {{uuid: string, name: string}} Named a provider */
/** @typedef {{code: string, at: string, reference?: string}} Warning */
/** @typedef {Record<string, any>} Wanted a request, in the grammar of `/berth/v1` */

/**
 * @typedef {object} Stage a constraint of a request
 * @property {string} at its JSON pointer into the request
 * @property {string} text
 * @property {number} [has] only of an amount: hosts with any inventory of the class
 * @property {number} [if_empty]
 * @property {number | null} alone
 * @property {number} left hosts that fit it and all before it
 * @property {boolean} [at_least]
 */
/**
 * @typedef {object} Lack
 * @property {string} at
 * @property {string} text
 * @property {number} [asked] only of an amount, like all that follows
 * @property {number} [possible]
 * @property {"used" | "capacity" | "max_unit" | "min_unit" | "step_size" | "no_inventory" | "conditions"} [reason]
 * @property {Named} [provider]
 * @property {number} [free]
 * @property {number} [capacity]
 * @property {number} [max_unit]
 * @property {string[]} [unmet] pointers to conditions that the provider does not meet
 */
/** @typedef {{drop: string[], hosts: number, reduce_to?: number, hosts_reduced?: number, at_least?: boolean}} Relaxation */
/** @typedef {{at: string, kind: string, name: string, did_you_mean: string[], hosts?: Record<string, number>}} UnknownName */
/** @typedef {{at: string[], kind: string, text: string}} Impossible what no host has, even with nothing used */
/**
 * @typedef {object} Explanation
 * @property {boolean} complete
 * @property {string} verdict
 * @property {string} summary
 * @property {{total: number, fit: number, at_least?: boolean}} hosts
 * @property {Stage[]} stages
 * @property {Relaxation[]} [relaxations] only if no host fits, like the next two
 * @property {number} [split_would_fit]
 * @property {{host: Named, lacks: Lack[], named?: boolean, consumers?: Consumer[], more_consumers?: boolean}[]} [nearest]
 * @property {Impossible[]} [impossible]
 * @property {string} paint a byte for each host, in Base64
 * @property {UnknownName[]} unknown
 * @property {Warning[]} warnings
 * @property {Wanted} request as it was understood
 */
/** @typedef {Explanation & {revision: string, alternatives?: Explanation[]}} Explained either one explanation, or the alternatives */

/**
 * @typedef {object} Candidate
 * @property {string} host
 * @property {Record<string, {resources: Record<string, number>}>} allocations
 * @property {{total: number}} [score]
 */
/** @typedef {{candidates: Candidate[], more: boolean}} Candidates */

/**
 * @typedef {object} Drain
 * @property {string} name
 * @property {string} reason
 * @property {"exclude" | "none"} effect
 * @property {string | null} created_at null in a dry run that would create it, like the next
 * @property {string | null} created_by
 * @property {number} hosts
 * @property {number} providers
 */
/** @typedef {Drain & {named: Named[]}} NamingDrain of a host: the providers of that host that it names */
/** @typedef {NamingDrain & {consumers: number, left: {host: Named, consumers: number}[]}} OpenedDrain */
/** @typedef {Drain & {consumers: number, capacity: Record<string, {now: number, then: number}>, complete: boolean}} WrittenDrain */

/** @typedef {{count: number, at_most: number, hosts: number}} Counts */
/** @typedef {{free: number, usable: number, stranded: number, largest: number}} Left of a class */
/**
 * @typedef {object} FlavorCapacity
 * @property {number} [count] absent for a flavor that cannot be counted, like the next two
 * @property {number} at_most
 * @property {number} hosts
 * @property {Counts} now without what is assumed; only if something is
 * @property {Record<string, Left & {now: Left}>} [classes]
 * @property {Record<string, Record<string, Counts & {now: Counts | null}>>} [by]
 * @property {UnknownName[]} [unknown]
 * @property {string} [invalid]
 */
/** @typedef {{complete: boolean, flavors: Record<string, FlavorCapacity>, warnings: Warning[]}} Capacity */

/** @typedef {{name: string, request: Wanted, expose: boolean, description: string}} Flavor */
/** @typedef {{uuid: string, labels: Record<string, string>, members: number}} Aggregate */
/** @typedef {{consumer: string, name: string | null, project_id: string, user_id: string, expires_at: string, seconds_left: number}} Lease */
/**
 * @typedef {object} Consumer
 * @property {string} uuid
 * @property {string | null} name
 * @property {string} project_id
 * @property {string} user_id
 * @property {string} consumer_type
 * @property {number} generation
 * @property {string | null} created_at
 * @property {Record<string, {name: string, resources: Record<string, number>}>} allocations
 * @property {{expires_at: string} | null} lease
 */

export {};
