// SPDX-License-Identifier: Apache-2.0
/**
 * Leases, flavors and labels: lists, and what can be done to each.
 * @module
 */

import { link } from "./address.js";
import { counted, el, field, number } from "./dom.js";
import { NAME, listing, tableOr } from "./listing.js";
import { changeForm, changing, facts, permitted, refusal, textField } from "./parts.js";
import { asCommand, readJSON } from "./wanted.js";
import { amountsText, durationText, labelText, moment } from "./words.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./main.js").View} View */
/** @typedef {import("./address.js").Address} Address */
/** @typedef {import("./answers.js").Flavor} Flavor */
/** @typedef {import("./answers.js").FlavorCapacity} FlavorCapacity */
/** @typedef {import("./answers.js").Lease} Lease */
/** @typedef {import("./answers.js").Consumer} Consumer */
/** @typedef {import("./answers.js").Aggregate} Aggregate */

/** Leases that are shown at most. */
const LEASES = 1000;
/** Milliseconds between two looks at the leases, of which the fleet's changes say nothing. */
const LEASES_EVERY = 5000;

/** @param {Context} context @param {Address} address @returns {View} */
export function leasesView(context, address) {
  const { api } = context;
  const [reading, rule] = ["berth:leases:list", "berth:leases:update"];
  const project = api.projects.get(reading);
  let begun = address.filters.get("consumer") ?? "";
  const view = listing(context, address, reading, "Leases", "At the end of its lease, a consumer loses everything that it holds.",
    async () => {
      /** @type {{items: Lease[], isCut: boolean}} */
      const { items: leases, isCut } = await api.first("berth/v1/leases", api.scope(reading), LEASES);
      return [refusal(context, rule, "change leases"), isCut && el("p", { class: "hint" }, `The first ${number(LEASES)} leases are shown.`),
        project && el("p", { class: "hint" }, `You see the leases of your project ${project}.`), tableOr(leases.map((lease) => [
        el("a", { href: link("consumers", lease.consumer) }, lease.name ?? lease.consumer), lease.project_id, lease.user_id,
        moment(lease.expires_at), durationText(lease.seconds_left),
        el("span", { class: "controls" },
          permitted(context, rule, "Renew", () => view.edit(() => void (begun = lease.consumer))),
          changing(context, { rule, text: "End…", title: "End a lease", done: view.done,
            preview: async () => ["It keeps what it holds, with no end: ", ...held(await api.get(`berth/v1/consumers/${lease.consumer}`))],
            act: () => api.json("DELETE", `berth/v1/leases/${lease.consumer}`) })),
      ]), "Leases", ["Consumer", "Project", "User", "Until", "Left", ""], "There are no leases.")];
    },
    () => {
      const consumer = textField("Consumer", begun, "A UUID, or project/name.", { required: true });
      const minutes = textField("Minutes from now", "60", "", { type: "number", min: 1, max: 1440, required: true });
      let uuid = "";
      return changeForm(context, "Give a lease, or renew one", [consumer.element, minutes.element], {
        rule, text: "Lease…",
        preview: async () => {
          /** @type {Consumer} */
          const found = await api.get(`berth/v1/consumers/${consumer.input.value.trim().split("/").map(encodeURIComponent).join("/")}`);
          ({ uuid } = found);
          return [...(found.lease ? [`Its lease would end in ${minutes.input.value} min instead of at `, moment(found.lease.expires_at), ". "]
            : ["It has no lease now. "]), `In ${minutes.input.value} min it would lose: `, ...held(found)];
        },
        act: () => api.json("PUT", `berth/v1/leases/${uuid}`, { seconds: 60 * Number(minutes.input.value) }),
        done: () => {
          begun = "";
          view.done();
        },
      }, () => `Lease ${consumer.input.value}`);
    });
  const timer = setInterval(view.changed, LEASES_EVERY);
  return { ...view, changed: undefined, dispose: () => clearInterval(timer) };
}

/** What a consumer holds. @param {Consumer} consumer */
function held(consumer) {
  return [el("ul", {}, Object.values(consumer.allocations).map(({ name, resources }) => el("li", {}, `${name}: ${amountsText(resources)}`)))];
}

const REQUEST = { groups: { "": { resources: { VCPU: 4, MEMORY_MB: 8192 } } } };

/** @param {Context} context @param {Address} address @returns {View} */
export function flavorsView(context, address) {
  const { api } = context;
  const rule = "berth:flavors:update";
  /** @type {Flavor[]} */
  let flavors = [];
  const none = { name: "", request: REQUEST, expose: true, description: "" };
  /** @type {Flavor} */
  let begun = none;
  const named = (/** @type {string} */ name) => flavors.find((flavor) => flavor.name === name);
  const path = (/** @type {string} */ name) => `berth/v1/flavors/${encodeURIComponent(name)}`;
  const view = listing(context, address, "berth:flavors:list", "Flavors", "A flavor is a request with a name.",
    async () => {
      ({ flavors } = await api.get("berth/v1/flavors"));
      return [refusal(context, rule, "change flavors"), tableOr(flavors.map((flavor) => [
        el("a", { href: link("ask", "", { request: JSON.stringify(flavor.request) }), title: "Ask" }, flavor.name),
        requestText(flavor.request), flavor.expose ? "yes" : "no", flavor.description,
        el("span", { class: "controls" },
          permitted(context, rule, "Edit", () => view.edit(() => void (begun = named(flavor.name) ?? none))),
          changing(context, { rule, text: "Delete…", title: `Delete the flavor ${flavor.name}`, done: view.done,
            preview: async () => ["Questions that name it will be refused. ", countText("Now", (await count({ flavors: [flavor.name] }))[flavor.name])],
            act: () => api.json("DELETE", path(flavor.name)) })),
      ]), "Flavors", ["Name", "Request", "In metrics", "Description", ""], "There are no flavors yet.")];
    },
    () => {
      const name = textField("Name", begun.name, "", NAME);
      const request = el("textarea", { rows: 8, spellcheck: "false" }, JSON.stringify(begun.request, null, 2));
      const description = textField("Description", begun.description);
      const expose = el("input", { type: "checkbox", checked: begun.expose });
      let replaces = false;
      return changeForm(context, "Create or replace a flavor", [name.element, field("Request, as JSON", request), description.element,
        el("label", { class: "check" }, expose, " Show its capacity in the metrics")], {
        rule, text: "Save…",
        preview: async () => {
          const known = named(name.input.value.trim());
          replaces = known !== undefined;
          const counts = await count({ requests: { new: readJSON(request.value) }, flavors: known ? [known.name] : [] });
          return [
            known && el("p", {}, "It replaces ", requestText(known.request), "."),
            known && countText("Before", counts[known.name]), countText(known ? "After" : "Now", counts.new)];
        },
        act: () => api.put(path(name.input.value.trim()),
          { request: readJSON(request.value), expose: expose.checked, description: description.input.value }, replaces),
        done: () => {
          begun = none;
          view.done();
        },
      }, () => `Save the flavor ${name.input.value}`);
    });
  /** @param {unknown} body @returns {Promise<Record<string, FlavorCapacity>>} */
  const count = async (body) => (await api.post("berth/v1/capacity", body)).flavors;
  return { ...view, changed: (roots) => void (roots === null && view.changed()) };
}

/** A request as the command line has it, if it can. @param {import("./wanted.js").Wanted} request */
function requestText(request) {
  const [, words] = /^berth why (.*)$/s.exec(asCommand(request)) ?? [];
  return el("code", {}, words ?? JSON.stringify(request));
}

/** @param {string} when @param {FlavorCapacity} counts */
function countText(when, { count, hosts }) {
  return el("p", {}, count === undefined ? `${when} it cannot be counted.` : `${when}: ${number(count)} fit on ${counted(hosts, "host")}.`);
}

/** @param {Context} context @param {Address} address @returns {View} */
export function labelsView(context, address) {
  const { api, fleet } = context;
  const rule = "berth:aggregates:update";
  const none = { uuid: "", labels: {} };
  /** @type {Omit<Aggregate, "members">} */
  let begun = none;
  /** @type {Aggregate[]} */
  let aggregates = [];
  const view = listing(context, address, "berth:aggregates:list", "Labels", "Labels give aggregates names, zones and racks. A host has the labels of the aggregates that its root is in.",
    async () => {
      ({ aggregates } = await api.get("berth/v1/aggregates"));
      return [refusal(context, rule, "change labels"), tableOr(aggregates.map(({ uuid, labels, members }) => [
        labelText(labels, "no labels"), el("code", {}, uuid), number(members),
        permitted(context, rule, "Edit", () => view.edit(() => void (begun = aggregates.find((each) => each.uuid === uuid) ?? none))),
      ]), "Aggregates", ["Labels", "Aggregate", "Members#", ""], "No aggregate has labels or members.")];
    },
    () => {
      const uuid = textField("Aggregate", begun.uuid, "Its UUID.", { required: true });
      const lines = Object.entries(begun.labels).map((pair) => pair.join("="));
      const labels = el("textarea", { rows: Math.max(3, lines.length + 1), spellcheck: "false", placeholder: "name=az-1\nzone=z1" }, lines.join("\n"));
      const pairs = () => Object.fromEntries(labels.value.split("\n").map((line) => line.trim()).filter(Boolean).map(labelOf));
      return changeForm(context, "Label an aggregate", [uuid.element, field("Labels", labels, "All of them, each on a line of its own.")], {
        rule, text: "Save…",
        preview: async () => {
          const before = aggregates.find((each) => each.uuid === uuid.input.value.trim());
          const members = [...fleet.hosts.values()].filter((host) => host.providers[0].aggregates.includes(uuid.input.value.trim())).length;
          return [facts({ Before: labelText(before?.labels, "no labels"), After: labelText(pairs(), "no labels"),
            Concerns: fleet.isLoaded ? counted(members, "host") : counted(before?.members ?? 0, "provider") })];
        },
        act: () => api.json("PUT", `berth/v1/aggregates/${encodeURIComponent(uuid.input.value.trim())}`, { labels: pairs() }),
        done: () => {
          begun = none;
          view.done();
        },
      }, () => `Label ${uuid.input.value}`);
    });
  return { ...view, changed: (roots) => void (roots === null && view.changed()) };
}

/** @param {string} line @returns {[string, string]} */
function labelOf(line) {
  const [, key, value] = /^([^=]+)=(.+)$/.exec(line) ?? [];
  if (!key) throw new Error(`${line} is not a label: write key=value, as in zone=z1.`);
  return [key.trim(), value.trim()];
}
