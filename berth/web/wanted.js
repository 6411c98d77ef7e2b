// SPDX-License-Identifier: Apache-2.0
/**
 * A request in other forms: read from what somebody pastes, by the service; written as a query
 * string of the old API and as a command line; changed as an explanation suggests.
 * @module
 */

import { ApiError } from "./api.js";
import { OF_GROUP, OF_HOST } from "./ask_fields.js";

/** @typedef {Record<string, any>} Wanted */
/** @typedef {{groups: string[], at: string}} Relation */
/** @typedef {{labels: Map<string, Record<string, string>>, providers: Map<string, {uuid: string, name: string}>}} Names */

const MEMBERS = ["groups", "flavor", "query", "alternatives"];
/** What a query string and a command can express of a group, of the host, and besides. */
const IN_QUERY = ["resources", "required", "member_of", "in_tree"];
const IN_COMMAND = ["resources", ...Object.keys(OF_GROUP)];
const OF_COMMAND = ["flavor", "groups", "host", "together", "apart", "tolerate"];
/** Characters of a group's name, and providers that an amount may come from: the API's bounds. */
const GROUP_NAME_MAX = 64;
const PARTS = 16;
const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/**
 * The request in a text: JSON, a query string, a line of a log or a URL with one, or a `berth`
 * command. The service reads all but JSON.
 *
 * @param {import("./api.js").Api} api
 * @param {string} text
 * @returns {Promise<Wanted>}
 * @throws {Error} if there is none; it says why
 */
export async function parse(api, text) {
  const pasted = text.trim();
  /** @type {Wanted} */
  let wanted = { query: pasted };
  let problem = "";
  if (pasted.startsWith("{")) {
    try {
      wanted = asRequest(readJSON(pasted));
    } catch (error) {
      problem = /** @type {Error} */ (error).message; // or it is a line of a log in JSON
    }
  }
  if (wanted.query === undefined) return wanted;
  try {
    return await translated(api, wanted);
  } catch (error) {
    throw problem && error instanceof ApiError && error.status === 400 ? new Error(problem) : error;
  }
}

/**
 * The request that the service makes of a query.
 *
 * @param {import("./api.js").Api} api
 * @param {Wanted} asked
 * @returns {Promise<Wanted>}
 */
async function translated(api, asked) {
  /** @type {{request: Wanted}} */
  const { request } = await api.post("berth/v1/explain", { request: asked, relaxations: false, nearest_max: 0 });
  // The old API reads some groups without resources in a way of its own.
  return Object.entries(request.groups).every(([name, group]) => group.resources || isNatural(request, name)) ? request : asked;
}

/**
 * The value of a JSON text, or an error in words that do not depend on the browser.
 *
 * @param {string} text
 */
export function readJSON(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    const [, line, column] = /line (\d+) column (\d+)/.exec(String(error)) ?? [];
    throw new Error(line ? `This is not JSON: see line ${line}, column ${column}.` : "This is not JSON: its end is missing.");
  }
}

/**
 * The request in a JSON value.
 *
 * @param {any} json
 * @returns {Wanted}
 * @throws {Error} if it is none
 */
export function asRequest(json) {
  const wanted = json?.request ?? json;
  if (wanted === null || typeof wanted !== "object") throw new Error("This JSON is not a request: a request is an object.");
  if (!MEMBERS.some((member) => member in wanted)) {
    throw new Error(`This JSON is not a request: it has none of ${MEMBERS.join(", ")}.`);
  }
  return wanted;
}

/** @param {Wanted} wanted @param {string} name */
function isNatural(wanted, name) {
  const { required = [], member_of: members = [], in_tree: trees } = wanted.groups[name];
  return !trees && isRelated(wanted, name) && [...required, ...members].some((item) => !String(item).startsWith("!"));
}

/**
 * The query string of `GET /allocation_candidates` that asks the same; null if there is none.
 *
 * @param {Wanted} wanted
 * @param {Names} names for references that are not UUIDs, which the old API does not know
 * @returns {string | null}
 */
export function asQuery(wanted, names) {
  if (wanted.query !== undefined) return wanted.query;
  const changed = isInQuery(wanted) ? inUUIDs(wanted, names) : null;
  if (!changed || !isPlain(changed.groups)) return null;
  const { groups, host = {}, together = [], apart = [] } = changed;
  /** @type {[string, string][]} */
  const pairs = Object.entries(groups).flatMap(([name, { resources = {}, required = [], ...conditions }]) => {
    const amounts = Object.entries(resources).map(([resource, amount]) => `${resource}:${amount}`);
    const single = required.filter((/** @type {unknown} */ item) => !Array.isArray(item));
    const several = { required: required.filter(Array.isArray), ...conditions };
    return /** @type {[string, string][]} */ ([
      [`resources${name}`, amounts.join(",")], [`required${name}`, single.join(",")],
      ...Object.entries(several).flatMap(([member, items]) => items.map((/** @type {any} */ item) => [member + name, itemText(item)])),
    ]);
  });
  pairs.push(["root_required", (host.required ?? []).join(",")]);
  for (const relation of together) pairs.push(["same_subtree", relation.groups.join(",")]);
  // The old API demands this of a group without resources, even if it is alone in it.
  const related = together.flatMap((/** @type {Relation} */ relation) => relation.groups);
  for (const [name, group] of Object.entries(groups)) if (!group.resources && !related.includes(name)) pairs.push(["same_subtree", name]);
  // The old API demands a policy as soon as two groups have names.
  if (Object.keys(groups).filter(Boolean).length > 1) pairs.push(["group_policy", apart.length ? "isolate" : "none"]);
  return pairs.filter(([, value]) => value).map((pair) => pair.join("=")).join("&");
}

/** Whether the old API has all that a request says. @param {Wanted} wanted */
function isInQuery({ groups, host = {}, together: alike, apart: unlike, ...others }) {
  /** @type {Relation[]} */
  const together = alike ?? [];
  /** @type {Relation[]} */
  const apart = unlike ?? [];
  const named = Object.keys(groups ?? {}).filter(Boolean);
  return Boolean(groups) && isEmpty(others) && hasOnly(host, ["required"]) && !(host.required ?? []).some(Array.isArray)
    && Object.entries(groups).every(([name, group]) => hasOnly(group, IN_QUERY) && (group.in_tree ?? [""]).length === 1
      && (group.resources || isNatural({ groups, together }, name)))
    && together.every(({ groups: related, at }) => at === "subtree" && !related.includes(""))
    && apart.length < 2 && apart.every(({ groups: related, at }) => at === "provider" && named.length > 1
      && [...related].sort().join() === [...named].sort().join());
}

/**
 * The `berth why` that asks the same.
 *
 * @param {Wanted} wanted
 */
export function asCommand(wanted) {
  if (wanted.query !== undefined) return `berth why ${quoted(wanted.query)}`;
  if (!isInCommand(wanted)) return `printf %s ${quoted(JSON.stringify(wanted))} | berth why --request -`;
  const { flavor, groups = {}, host = {}, together = [], apart = [], tolerate = [] } = wanted;
  const { "": own = {}, ...named } = groups;
  /** @type {[string, string][]} */
  const options = [
    ...(flavor === undefined ? [] : [["flavor", flavor]]),
    ...conditionsOf(own),
    ...Object.entries(named).map(([name, group]) => ["group",
      [name, ...amountsOf(group), ...conditionsOf(group).map((pair) => quoted(pair.join("=")))].join(" ")]),
    ...conditionsOf(host).map(([member, text]) => [`host-${member}`, text]),
    ...[["together", together], ["apart", apart]].flatMap(([kind, relations]) =>
      relations.map((/** @type {any} */ relation) => [kind, `${relation.groups.join(",")}@${relation.at}`])),
    ...[tolerate].flat().map((name) => ["tolerate", name]),
  ];
  return ["berth why", ...amountsOf(own), ...options.map(([name, value]) => `--${name.replaceAll("_", "-")} ${quoted(value)}`)].join(" ");
}

/** Whether a command has options for all that a request says. @param {Wanted} wanted */
function isInCommand(wanted) {
  const { groups = {}, host = {} } = wanted;
  return hasOnly(wanted, OF_COMMAND) && hasOnly(host, Object.keys(OF_HOST)) && Object.values(groups).every((group) => hasOnly(group, IN_COMMAND))
    && isPlain([groups, host]) && !(host.in ?? []).some(Array.isArray) && ![wanted.tolerate ?? []].flat().includes("");
}

/** @param {Wanted} group */
function amountsOf({ resources = {} }) {
  return Object.entries(resources).map((pair) => pair.join("="));
}

/** @param {Wanted} group @returns {[string, string][]} */
function conditionsOf({ resources: _, ...conditions }) {
  return Object.entries(conditions).flatMap(([member, items]) => items.map((/** @type {any} */ item) => [member, itemText(item)]));
}

/** @param {object} object @param {string[]} members */
function hasOnly(object, members) {
  return Object.keys(object).every((member) => members.includes(member));
}

/** Whether a value says nothing. @param {object} object */
function isEmpty(object) {
  return Object.values(object).every((value) => value && typeof value === "object" && !Object.keys(value).length);
}

/** Whether no list is empty, and no condition in it looks like another one when it is text. @param {any} value @returns {boolean} */
function isPlain(value) {
  if (typeof value === "string") return /^!?(?!!|in:)[^,]+$/.test(value);
  if (Array.isArray(value)) return value.length > 0 && value.every(isPlain);
  return typeof value !== "object" || Object.values(value).every(isPlain);
}

/** @param {string | string[]} item */
function itemText(item) {
  return Array.isArray(item) ? `in:${item.join(",")}` : item;
}

/** For a shell. @param {string} text */
function quoted(text) {
  return /^[\w=:.,@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** @param {Wanted} wanted @param {Names} names @returns {Wanted} */
function inUUIDs(wanted, { labels, providers }) {
  const changed = structuredClone(wanted);
  /** @param {string} reference */
  const aggregates = (reference) => {
    const [key, value] = reference.includes("=") ? reference.split(/=(.*)/s) : ["name", reference];
    return UUID.test(reference) ? [reference] : [...labels].filter(([, each]) => each[key] === value).map(([uuid]) => uuid);
  };
  /** @param {string} reference */
  const provider = (reference) => UUID.test(reference) ? reference
    : [...providers.values()].find(({ name }) => name === reference)?.uuid;
  for (const group of Object.values(changed.groups)) {
    group.member_of &&= group.member_of.flatMap((/** @type {string | string[]} */ item) => {
      const uuids = [item].flat().flatMap((name) => aggregates(name.replace(/^!/, "")));
      if (String(item).startsWith("!")) return uuids.map((uuid) => `!${uuid}`);
      return uuids.length === 1 ? uuids : [uuids];
    });
    group.in_tree &&= group.in_tree.map(provider);
  }
  return changed;
}

/**
 * The request without some constraints; null if what is left is not a request.
 *
 * @param {Wanted} wanted normalised, as an explanation shows it
 * @param {string[]} pointers into it
 * @returns {Wanted | null}
 */
export function without(wanted, pointers) {
  const changed = structuredClone(wanted);
  // Last items first, so that the others keep their places.
  for (const pointer of [...pointers].sort((one, other) => other.localeCompare(one, "en", { numeric: true }))) {
    if (pointer === "/drains") changed.tolerate = "*";
    else remove(changed, partsOf(pointer));
  }
  for (const [name, group] of Object.entries(changed.groups)) {
    for (const split in group.split) if (!group.resources?.[split]) remove(changed, ["groups", name, "split", split]);
    if (group.resources) continue;
    const isBare = !Object.keys(group).length;
    if (isBare) leaveOut(changed, name);
    else if (!name || !isRelated(changed, name)) return null;
  }
  return Object.keys(changed.groups).length ? changed : null;
}

/**
 * @param {Wanted} wanted
 * @param {string} pointer to an amount
 * @param {number} amount
 */
export function reduced(wanted, pointer, amount) {
  const changed = structuredClone(wanted);
  const [, group, , name] = partsOf(pointer);
  changed.groups[group].resources[name] = amount;
  return changed;
}

/**
 * The request with another class or trait wherever a name stands.
 *
 * @param {Wanted} wanted
 * @param {string} name
 * @param {string} other
 * @returns {Wanted}
 */
export function renamed(wanted, name, other) {
  return JSON.parse(JSON.stringify(wanted), (_, value) => {
    if (value === name) return other;
    if (value === `!${name}`) return `!${other}`;
    if (!value || typeof value !== "object" || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key === name ? other : key, each]));
  });
}

/**
 * The request with every amount from as many providers as it takes; null if that cannot be said.
 *
 * @param {Wanted} wanted normalised, as an explanation shows it
 * @returns {Wanted | null}
 */
export function split(wanted) {
  /** The names of each group's parts. @type {Record<string, string[]>} */
  const parts = {};
  /** @type {[string, Wanted][]} */
  const groups = [];
  for (const [name, group] of Object.entries(wanted.groups)) {
    const divided = divide(name, group);
    parts[name] = divided.map(([part]) => part);
    groups.push(...divided);
  }
  const names = groups.map(([name]) => name);
  if (new Set(names).size < names.length || names.some((name) => name.length > GROUP_NAME_MAX)) return null;
  /** @type {Relation[]} */
  const together = wanted.together ?? [];
  /** @type {Relation[]} */
  const apart = wanted.apart ?? [];
  return {
    ...wanted, groups: Object.fromEntries(groups),
    together: together.map((relation) => ({ ...relation, groups: relation.groups.flatMap((name) => parts[name]) })),
    apart: apart.flatMap((relation) => spread(relation, parts)),
  };
}

/**
 * A group with its amounts split. One with a name that splits an amount has no other amount, so
 * one with several becomes several.
 *
 * @param {string} name
 * @param {Wanted} group
 * @returns {[string, Wanted][]}
 */
function divide(name, group) {
  const amounts = Object.entries(group.resources ?? {});
  if (!amounts.length) return [[name, group]];
  const several = name ? amounts.map((amount) => [amount]) : [amounts];
  return several.map((each, at) => [at ? `${name}_${each[0][0]}` : name, {
    ...group, resources: Object.fromEntries(each),
    split: Object.fromEntries(each.map(([resource]) => [resource, { parts: PARTS }])),
  }]);
}

/**
 * Each part of a group apart from those of the others, but not from those of its own.
 *
 * @param {Relation} relation
 * @param {Record<string, string[]>} parts of each group
 * @returns {Relation[]}
 */
function spread(relation, parts) {
  const { groups } = relation;
  if (groups.every((name) => parts[name].length === 1)) return [relation];
  return groups.flatMap((one, at) => groups.slice(at + 1).flatMap((other) =>
    parts[one].flatMap((part) => parts[other].map((foreign) => ({ ...relation, groups: [part, foreign] })))));
}

/** @param {string} pointer */
function partsOf(pointer) {
  return pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** @param {any} object @param {string[]} parts */
function remove(object, parts) {
  const last = /** @type {string} */ (parts.at(-1));
  const parents = parts.slice(0, -1);
  const parent = parents.reduce((inner, part) => inner?.[part], object);
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else if (parent) delete parent[last];
  // A group stays, even with nothing in it.
  if (parent && !Object.keys(parent).length && parents.length && !(parents.length === 2 && parents[0] === "groups")) remove(object, parents);
}

/** Remove a group, also from the relations. @param {Wanted} wanted @param {string} name */
function leaveOut(wanted, name) {
  delete wanted.groups[name];
  for (const kind of ["together", "apart"]) {
    /** @type {Relation[]} */
    const relations = wanted[kind] ?? [];
    wanted[kind] = relations.map((relation) => ({ ...relation, groups: relation.groups.filter((other) => other !== name) }))
      .filter(({ groups }) => groups.length > 1);
  }
}

/** @param {Wanted} wanted @param {string} name */
function isRelated(wanted, name) {
  return [...(wanted.together ?? []), ...(wanted.apart ?? [])].some(({ groups }) => groups.includes(name));
}
