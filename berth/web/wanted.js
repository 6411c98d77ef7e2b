// SPDX-License-Identifier: Apache-2.0
/**
 * A request in other forms: read from whatever somebody pastes; written as a query string of the
 * old API and as a command line; changed as an explanation suggests.
 * @module
 */

/** @typedef {Record<string, any>} Wanted */
/** @typedef {{groups: string[], at: string}} Relation */
/** @typedef {{labels: Map<string, Record<string, string>>, providers: Map<string, {uuid: string, name: string}>}} Names */

/** Conditions of a group, and of the host. */
export const OF_GROUP = ["required", "member_of", "in_tree", "under", "not_under"];
export const OF_HOST = ["required", "anywhere", "member_of", "in", "not_in"];
/** Those that can be negated, and be alternatives. */
const WITH_ITEMS = ["required", "anywhere", "member_of"];
const MEMBERS = ["groups", "flavor", "query", "alternatives"];
const PARAMETER = /^(resources|required|member_of|in_tree)([\w-]{0,64})$/;
const CONDITION = new RegExp(`^(${[...OF_GROUP, ...OF_HOST].join("|")})=(.*)$`, "s");
const COMMAND = /\bberth\s(?:.*\s)?(why|candidates|capacity|place)(\s|$)/s;
/** Options of commands that are not about the request, with and without a value. */
const OTHER_OPTIONS = /^(nearest|seconds|url|token|os_cloud|config_file|config_dir|order|limit|per_host)$/;
const OTHER_FLAGS = /^(json|debug)$/;
/** A word of a shell; in it, what is quoted. */
const WORD = /(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/gs;
const QUOTED = /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gs;
/** Characters of a group's name, and providers that an amount may come from: the API's bounds. */
const GROUP_NAME_MAX = 64;
const PARTS = 16;
const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/**
 * The request in a text: JSON, a query string, a line of a log or a URL with one, or a `berth`
 * command.
 *
 * @param {string} text
 * @returns {Wanted}
 * @throws {Error} if there is none; it says why
 */
export function parse(text) {
  const pasted = text.trim();
  /** @type {Error | null} */
  let problem = null;
  if (pasted.startsWith("{")) {
    try {
      return asRequest(readJSON(pasted));
    } catch (error) {
      problem = /** @type {Error} */ (error); // or it is a line of a log in JSON
    }
  }
  if (COMMAND.test(pasted)) return ofCommand(pasted);
  const query = queryIn(pasted);
  if (query) return ofQuery(query);
  throw problem ?? new Error("There is no query in it. A query is in the placement service's log: in the lines with"
    + " GET /allocation_candidates?resources=…, and in those of berth.explain.");
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
  const { query, ...others } = wanted;
  return typeof query === "string" && !MEMBERS.some((member) => member in others) ? { ...ofQuery(query), ...others } : wanted;
}

/** The query string in a text. @param {string} text */
function queryIn(text) {
  const plain = text.replace(/&amp;|\\u0026/g, "&");
  const found = /allocation_candidates\?([^\s"'<>\\`]+)/.exec(plain)
    ?? /(?:^|[\s?"'`])((?:resources|required|member_of|in_tree|root_required|same_subtree|group_policy|limit)[\w-]*=[^\s"'<>\\`]+)/.exec(plain);
  return found?.[1];
}

/** @param {string} query @returns {Wanted} */
function ofQuery(query) {
  /** @type {Map<string, string[]>} */
  const words = new Map();
  /** @type {Wanted} */
  const wanted = { groups: {} };
  let policy = "none";
  for (const [key, value] of new URLSearchParams(query.replace(/^.*\?/, ""))) {
    const [, member, name] = PARAMETER.exec(key) ?? [];
    if (member) {
      const others = words.get(name) ?? [];
      words.set(name, [...others, ...(member === "resources" ? value.split(",") : [`${member}=${value}`])]);
    } else if (key === "root_required") wanted.host = { required: value.split(",") };
    else if (key === "same_subtree") {
      const groups = value.split(",");
      if (groups.includes("")) throw new Error("same_subtree names a group without a name.");
      if (groups.length > 1) wanted.together = [...(wanted.together ?? []), { groups, at: "subtree" }];
    } else if (key === "group_policy") policy = value;
    else if (key !== "limit") throw new Error(`GET /allocation_candidates has no parameter ${key}.`);
  }
  if (policy !== "none" && policy !== "isolate") throw new Error(`group_policy is none or isolate, not ${policy}.`);
  wanted.groups = Object.fromEntries([...words].map(([name, each]) => [name, groupOf(each)]));
  const named = [...words.keys()].filter(Boolean);
  if (policy === "isolate" && named.length > 1) wanted.apart = [{ groups: named, at: "provider" }];
  // The old API reads some groups without resources in a way of its own.
  return Object.entries(wanted.groups).every(([name, group]) => group.resources || isNatural(wanted, name)) ? wanted : { query };
}

/** @param {Wanted} wanted @param {string} name */
function isNatural(wanted, name) {
  const { required = [], member_of: members = [], in_tree: trees } = wanted.groups[name];
  return !trees && isRelated(wanted, name) && [...required, ...members].some((item) => !String(item).startsWith("!"));
}

/** @param {string} text @returns {Wanted} */
function ofCommand(text) {
  const words = wordsIn(text);
  if (words.includes("--request")) {
    const json = words.find((word) => word.startsWith("{"));
    if (!json) throw new Error("The page cannot read the file of --request: paste what it contains.");
    return asRequest(readJSON(json));
  }
  /** @type {Wanted} */
  const wanted = {};
  /** @type {Record<"amounts" | "own" | "host", string[]>} */
  const parts = { amounts: [], own: [], host: [] };
  /** @type {[string, Wanted][]} */
  const groups = [];
  for (let at = words.findIndex((word) => /^(why|candidates|capacity|place)$/.test(word)) + 1; at < words.length; at++) {
    const [, option, given] = /^--([\w-]+)(?:=(.*))?$/s.exec(words[at]) ?? [];
    const name = option?.replaceAll("-", "_") ?? "";
    if (!option) parts.amounts.push(words[at]);
    if (!option || OTHER_FLAGS.test(name)) continue;
    const value = given ?? words[++at] ?? "";
    const [, host, member] = /^(host_)?(.*)$/.exec(name) ?? [];
    if (member === "group") {
      const [group, ...own] = wordsIn(value);
      groups.push([group, groupOf(own)]);
    } else if (name === "together" || name === "apart") {
      const end = value.lastIndexOf("@");
      wanted[name] = [...(wanted[name] ?? []), { groups: value.slice(0, end).split(","), at: value.slice(end + 1) }];
    } else if (name === "tolerate") wanted.tolerate = value === "*" ? "*" : [...(wanted.tolerate ?? []), value];
    else if (name === "flavor") wanted.flavor = value;
    else if ((host ? OF_HOST : OF_GROUP).includes(member)) parts[host ? "host" : "own"].push(`${member}=${value}`);
    else if (!OTHER_OPTIONS.test(name)) throw new Error(`The page does not know the option --${option}.`);
  }
  const query = parts.amounts.length === 1 && /[&:]/.test(parts.amounts[0]) && queryIn(parts.amounts[0]);
  if (query) return ofQuery(query);
  const own = [...parts.amounts, ...parts.own];
  if (own.length) groups.unshift(["", groupOf(own)]);
  if (groups.length) wanted.groups = Object.fromEntries(groups);
  if (parts.host.length) wanted.host = groupOf(parts.host);
  if (!wanted.groups && !wanted.flavor) throw new Error("This command asks for nothing: VCPU=4 would ask for something.");
  return wanted;
}

/** A group in words: `VCPU=4`, `required=in:A,B`. @param {string[]} words @returns {Wanted} */
function groupOf(words) {
  /** @type {Record<string, any[]>} */
  const conditions = {};
  /** @type {[string, number][]} */
  const amounts = [];
  for (const word of words) {
    const [, member, text] = CONDITION.exec(word) ?? [];
    const [, name, amount] = /^\s*([A-Z0-9_]+)[:=](\d+)\s*$/.exec(word) ?? [];
    if (member) conditions[member] = [...(conditions[member] ?? []), ...(WITH_ITEMS.includes(member) ? itemsOf(text) : [text])];
    else if (name) amounts.push([name, Number(amount)]);
    else throw new Error(`${word || "Nothing"} is not CLASS:AMOUNT, as in VCPU:4.`);
  }
  return amounts.length ? { resources: Object.fromEntries(amounts), ...conditions } : conditions;
}

/** `A,!B`, `in:A,B` or `!in:A,B`. @param {string} text */
function itemsOf(text) {
  const [, sign, names] = /^(!?)in:(.*)$/s.exec(text) ?? [];
  if (names === undefined) return text.split(",");
  const listed = names.split(",");
  if (sign) return listed.map((name) => `!${name}`);
  return listed.length > 1 ? [listed] : listed;
}

/** The words of a command line, without their quotes. @param {string} text */
function wordsIn(text) {
  const joined = text.replace(/\\\r?\n/g, " ");
  if (joined.replace(WORD, "").trim()) throw new Error("A quote is not closed in this command.");
  return (joined.match(WORD) ?? []).map((word) => word.replace(QUOTED, (_, single, double, escaped) =>
    single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped));
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
  return proven(() => {
    const { groups, host = {}, together = [], apart = [], ...others } = inUUIDs(wanted, names);
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
    const text = pairs.filter(([, value]) => value).map((pair) => pair.join("=")).join("&");
    return [text, { groups, host, together, apart, ...others }];
  }, ofQuery);
}

/**
 * The `berth why` that asks the same.
 *
 * @param {Wanted} wanted
 */
export function asCommand(wanted) {
  if (wanted.query !== undefined) return `berth why ${quoted(wanted.query)}`;
  return proven(() => {
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
    const text = ["berth why", ...amountsOf(own),
      ...options.map(([name, value]) => `--${name.replaceAll("_", "-")} ${quoted(value)}`)].join(" ");
    return [text, wanted];
  }, ofCommand) ?? `printf %s ${quoted(JSON.stringify(wanted))} | berth why --request -`;
}

/** @param {Wanted} group */
function amountsOf({ resources = {} }) {
  return Object.entries(resources).map((pair) => pair.join("="));
}

/** @param {Wanted} group @returns {[string, string][]} */
function conditionsOf({ resources: _, ...conditions }) {
  return Object.entries(conditions).flatMap(([member, items]) => items.map((/** @type {any} */ item) => [member, itemText(item)]));
}

/**
 * A text that says exactly what is wanted, as reading it proves; null if it says less.
 *
 * @param {() => [string, Wanted]} write
 * @param {(text: string) => Wanted} read
 */
function proven(write, read) {
  try {
    const [text, wanted] = write();
    return canonical(read(text)) === canonical(wanted) ? text : null;
  } catch {
    return null;
  }
}

/** Equal for requests that say the same: no order in a request means anything. @param {unknown} value @returns {string} */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).sort()}]`;
  if (!value || typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).filter(([name, each]) => !/^(host|together|apart)$/.test(name) || Object.keys(each).length);
  return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).sort()}}`;
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
