// SPDX-License-Identifier: Apache-2.0
/**
 * The fields of a request: each change makes a new request.
 * @module
 */

import { el, field, fill, select } from "./dom.js";

/** @typedef {import("./wanted.js").Wanted} Wanted */
/** @typedef {import("./wanted.js").Relation} Relation */
/** @typedef {"trait" | "class" | "aggregate" | "provider" | "drain" | "level"} Kind of names that complete a field */
/** @typedef {(string | string[])[]} Items */

/** @typedef {Record<string, [string, Kind]>} Conditions what each condition is called, and which names complete it */

/** Those that most requests have; the others are folded away until one is used. @type {Conditions} */
const COMMON = { required: ["Traits", "trait"], member_of: ["In aggregates", "aggregate"] };
/** Conditions of a group. @type {Conditions} */
export const OF_GROUP = {
  ...COMMON, in_tree: ["In the tree of", "provider"], under: ["At or below", "provider"], not_under: ["Not at or below", "provider"],
};
/** Conditions of the host. @type {Conditions} */
export const OF_HOST = {
  ...COMMON, anywhere: ["Traits anywhere in it", "trait"], in: ["Only these hosts", "provider"], not_in: ["Not these hosts", "provider"],
};
/** @type {Partial<Record<Kind, string>>} */
const HINTS = { trait: "! forbids; A|B is one of them", aggregate: "zone=z1, a name or UUID; ! and | as above" };

/** The form of a request, which it makes anew for each one. */
export class RequestFields {
  /** Where somebody has opened more conditions. @type {Set<string>} */
  #opened = new Set();
  /** The request that the fields show. @type {Wanted} */
  #wanted = {};

  /**
   * @param {(kind: Kind) => string[]} namesOf what completes a field
   * @param {(wanted: Wanted) => void} change
   */
  constructor(namesOf, change) {
    this.namesOf = namesOf;
    this.change = change;
  }

  /** @param {Wanted} wanted @returns {HTMLElement[]} */
  of(wanted) {
    this.#wanted = wanted;
    if (wanted.query !== undefined || wanted.alternatives) {
      return [el("p", { class: "hint" }, "This request can be changed as JSON.")];
    }
    const groups = Object.keys(wanted.groups ?? {});
    const host = wanted.host ?? {};
    return [
      ...groups.map((name) => this.#group(name)),
      ...(wanted.flavor === undefined ? [] : [el("p", {}, `Flavor ${wanted.flavor}`)]),
      this.#buttons(groups),
      ...["together", "apart"].flatMap((kind) => (wanted[kind] ?? []).map((/** @type {Relation} */ relation, /** @type {number} */ at) =>
        this.#relation(kind, relation, at))),
      el("fieldset", {}, el("legend", {}, "The host"), this.#conditions("/host", OF_HOST, host, (changed) => this.#put({ host: changed }),
        this.#list("/tolerate", "Use drained hosts of these drains", "drain", wanted.tolerate, (names) =>
          this.#put({ tolerate: names.includes("*") ? "*" : names })), wanted.tolerate !== undefined)),
    ];
  }

  /** @param {Wanted} changed members; those with nothing in them go */
  #put(changed) {
    this.change(filled({ ...this.#wanted, ...changed }));
  }

  /** @param {string[]} groups */
  #buttons(groups) {
    const add = () => {
      let at = 1;
      while (groups.includes(`_${at}`)) at++;
      this.#put({ groups: { ...this.#wanted.groups, [`_${at}`]: { resources: { VCPU: 1 } } } });
    };
    return el("div", { class: "row" }, el("button", { type: "button", onclick: add }, "Add a group"),
      groups.length > 1 && el("button", { type: "button", onclick: () =>
        this.#put({ apart: [...(this.#wanted.apart ?? []), { groups: groups.slice(-2), at: "provider" }] }) }, "Add a relation"));
  }

  /** @param {string} name */
  #group(name) {
    const { [name]: group, ...others } = this.#wanted.groups;
    const at = `/groups/${name}`;
    /** @param {Wanted} changed */
    const put = (changed) => this.#put({ groups: { ...this.#wanted.groups, [name]: filled(changed) } });
    return el("fieldset", {}, el("legend", {}, name === "" ? "Resources" : `Group ${name}`),
      this.#amounts(at, group, put), this.#conditions(at, OF_GROUP, group, put),
      name !== "" && el("button", { type: "button", onclick: () => this.#put({ groups: others }) }, `Remove group ${name}`));
  }

  /** A row for each amount, and one for another. @param {string} at @param {Wanted} group @param {(group: Wanted) => void} put */
  #amounts(at, group, put) {
    /** @type {[string, number | string][]} */
    const amounts = Object.entries(group.resources ?? {});
    return [...amounts, ["", ""]].map(([resource, amount], row) => {
      const what = this.#list(`${at}/resources/${row}`, "Class", "class", resource ? [resource] : [], ([given = ""]) => {
        const changed = given ? [[given, Number(amount) || 1]] : [];
        put({ ...group, resources: Object.fromEntries([...amounts.slice(0, row), ...changed, ...amounts.slice(row + 1)]) });
      });
      const much = el("input", { type: "number", min: 1, value: amount, disabled: !resource && !amounts.length,
        "data-at": `${at}/resources/${row}/amount`,
        onchange: () => resource && put({ ...group, resources: { ...group.resources, [resource]: Number(much.value) } }) });
      return el("div", { class: "row" }, what, field("Amount", much));
    });
  }

  /**
   * @param {string} at
   * @param {Conditions} conditions
   * @param {Wanted} all
   * @param {(all: Wanted) => void} put
   * @param {HTMLElement} [more] another field among those that are folded away
   * @param {boolean} [isUsed] whether it has a value
   */
  #conditions(at, conditions, all, put, more, isUsed = false) {
    /** @param {string} member */
    const fieldOf = (member) => {
      const [label, kind] = conditions[member];
      return this.#list(`${at}/${member}`, label, kind, all[member], (items) => put(filled({ ...all, [member]: items })), HINTS[kind]);
    };
    const rare = Object.keys(conditions).filter((member) => !(member in COMMON));
    const isOpen = isUsed || this.#opened.has(at) || rare.some((member) => all[member] !== undefined);
    const folded = el("details", { open: isOpen, ontoggle: () => {
      if (folded.open) this.#opened.add(at);
      else this.#opened.delete(at);
    } }, el("summary", {}, "More conditions"), rare.map(fieldOf), more);
    return [...Object.keys(COMMON).map(fieldOf), folded];
  }

  /** @param {string} kind @param {Relation} relation @param {number} at */
  #relation(kind, relation, at) {
    const pointer = `/${kind}/${at}`;
    /** @type {Relation[]} */
    const all = this.#wanted[kind];
    const others = all.filter((_, each) => each !== at);
    /** @param {Partial<Relation>} changed */
    const put = (changed) => this.#put({ [kind]: all.with(at, { ...relation, ...changed }) });
    return el("fieldset", {}, el("legend", {}, "Relation"),
      field("Groups are", select([{ value: "together" }, { value: "apart" }], kind, (other) =>
        this.#put({ [kind]: others, [other]: [...(this.#wanted[other] ?? []), relation] }), { "data-at": `${pointer}/kind` })),
      this.#list(`${pointer}/groups`, "Groups", "level", relation.groups, (groups) => put({ groups: groups.flat() })),
      this.#list(`${pointer}/at`, "At", "level", [relation.at], ([level = "provider"]) => put({ at: String(level) }),
        "provider, subtree, tree, or a trait"),
      el("button", { type: "button", onclick: () => this.#put({ [kind]: others }) }, "Remove this relation"));
  }

  /**
   * @param {string} at the field's JSON pointer into the request
   * @param {string} label
   * @param {Kind} kind
   * @param {Items | string | undefined} items
   * @param {(items: Items) => void} put
   * @param {string} [hint]
   */
  #list(at, label, kind, items, put, hint) {
    const all = [items ?? []].flat();
    const input = this.#completed(el("input", { value: all.map((item) => [item].flat().join("|")).join(", "), spellcheck: "false", "data-at": at }), kind);
    // What stands between the names of a field may stand in a name too.
    if (all.flat().some((name) => /[,|]/.test(name))) {
      input.disabled = true;
      return field(label, input, "A name with , or | can be changed in the JSON.");
    }
    input.addEventListener("change", () => put(input.value.split(",").map((item) => item.trim()).filter(Boolean)
      .map((item) => (item.includes("|") ? item.split("|").map((one) => one.trim()) : item))));
    return field(label, input, hint);
  }

  /**
   * Complete the last name in a field, whatever stands before it.
   *
   * @param {HTMLInputElement} input
   * @param {Kind} kind
   */
  #completed(input, kind) {
    const list = el("datalist", { id: `names-${kind}` });
    const complete = () => {
      const before = /^.*[,|!]\s*/.exec(input.value)?.[0] ?? "";
      input.parentElement?.append(list);
      fill(list, this.namesOf(kind).map((name) => el("option", { value: before + name })));
    };
    input.setAttribute("list", list.id);
    input.addEventListener("focus", complete);
    input.addEventListener("blur", () => list.remove());
    input.addEventListener("input", (event) => {
      if (/[,|!\s]$/.test(input.value) || !input.value || !(event instanceof InputEvent)) complete();
    });
    return input;
  }
}

/** Without members that say nothing. @param {Wanted} members */
function filled(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => typeof value !== "object" || Object.keys(value).length));
}
