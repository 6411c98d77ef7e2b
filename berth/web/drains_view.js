// SPDX-License-Identifier: Apache-2.0
/**
 * Drains: the list, one of them with what is left on its hosts, and what can be done to each.
 * @module
 */

import { link } from "./address.js";
import { counted, el, field, fill, number, select, table } from "./dom.js";
import { NAME, listing, tableOr } from "./listing.js";
import { changeForm, changing, facts, items, json, nowAndThen, part, refusal, textField } from "./parts.js";
import { effectText, moment } from "./words.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./main.js").View} View */
/** @typedef {import("./address.js").Address} Address */
/** @typedef {import("./answers.js").Drain} Drain */
/** @typedef {import("./answers.js").OpenedDrain} OpenedDrain */
/** @typedef {{name?: string | null, providers?: string | null, reason?: string, effect: string}} Begun what a form begins with */

const RULE = "berth:drains:update";

/** @param {string} name */
const path = (name) => `berth/v1/drains/${encodeURIComponent(name)}`;

/** @param {Context} context @param {Address} address @returns {View} */
export function drainsView(context, address) {
  if (address.subject) return drainView(context, address.subject);
  const { api } = context;
  /** @type {Begun} */
  let begun = { name: address.filters.get("name"), providers: address.filters.get("providers"), effect: "exclude" };
  const view = listing(context, address, "berth:drains:list", "Drains", "A drained host or device gets nothing new. What it has stays, and ending the drain restores everything.",
    async () => {
      /** @type {{drains: Drain[]}} */
      const { drains } = await api.get("berth/v1/drains");
      return [refusal(context, RULE, "change drains"), tableOr(drains.map((drain) => [
        el("a", { href: link("drains", drain.name) }, drain.name), effectText(drain.effect), drain.reason, number(drain.hosts),
        number(drain.providers), drain.created_by, moment(drain.created_at), endDrain(context, drain.name, view.done),
      ]), "Drains", ["Name", "Effect", "Reason", "Hosts#", "Providers#", "By", "Since", ""], "Nothing is drained.")];
    },
    () => drainForm(context, begun, () => {
      begun = { effect: "exclude" };
      view.done();
    }));
  return { ...view, changed: (roots) => void (roots === null && view.changed()) };
}

/** @param {Context} context @param {string} name @returns {View} */
function drainView(context, name) {
  const { api } = context;
  const title = `Drain ${name}`;
  const forms = el("div", {});
  /** @type {OpenedDrain} */
  let drain;
  const refused = refusal(context, "berth:drains:list", "see drains");
  const body = part(title, async () => {
    if (refused) return [refused];
    drain = await api.get(path(name));
    return [
      facts({ Reason: drain.reason, Effect: effectText(drain.effect), Since: moment(drain.created_at), By: drain.created_by,
        Names: namedText(drain), Reaches: `${counted(drain.hosts, "host")}, ${counted(drain.providers, "provider")}`,
        "Consumers left": number(drain.consumers) }),
      endDrain(context, name, () => context.go(link("drains"))),
      table("Consumers left on each host", ["Host", "Consumers#"], drain.left.map(({ host, consumers }) =>
        [el("a", { href: link("hosts", host.uuid) }, host.name), number(consumers)])),
      json(drain),
    ];
  }, () => {
    // Once: what somebody types into it must outlive every change of the fleet.
    if (!refused && !forms.hasChildNodes()) showForm();
  });
  function showForm() {
    fill(forms, drainForm(context, { ...drain, providers: namedText(drain) }, () => {
      fill(forms);
      void body.refresh();
    }));
  }
  return { title, element: el("article", {}, el("h1", {}, title), body.element, forms), changed: body.changed };
}

/** The providers that a drain names, as the form reads them. @param {OpenedDrain} drain */
function namedText({ named }) {
  return named.map(({ uuid, name }) => name.includes(",") ? uuid : name).join(", ");
}

/** @param {Context} context @param {string} name @param {() => void} done */
function endDrain(context, name, done) {
  const { api } = context;
  return changing(context, {
    rule: RULE, text: "End…", title: `End the drain ${name}`, done,
    preview: async () => {
      /** @type {import("./answers.js").Capacity} */
      const { flavors } = await api.post("berth/v1/capacity", { what_if: { undrain: [name] } });
      return ["Its hosts and devices can get something again. ", nowAndThen(Object.entries(flavors)
        .flatMap(([flavor, { count, now }]) => count === undefined ? [] : [[flavor, { now: now.count, then: count }]]))];
    },
    act: () => api.json("DELETE", path(name)),
  });
}

/** @param {Context} context @param {Begun} begun @param {() => void} done */
function drainForm(context, begun, done) {
  const { api } = context;
  const name = textField("Name", begun.name ?? "", "", NAME);
  const providers = textField("Hosts and devices", begun.providers ?? "", "Names or UUIDs, separated by commas.", { placeholder: "cn7, cn8_gpu_1" });
  const members = textField("All hosts in", "", "Labels or aggregates.", { placeholder: "rack=r7" });
  const traits = textField("All hosts with traits", "", "", { placeholder: "CUSTOM_FW_OLD" });
  const why = textField("Reason", begun.reason ?? "");
  let { effect } = begun;
  let replaces = false;
  const body = () => {
    const selected = { ...(items(members.input.value).length ? { member_of: items(members.input.value) } : {}),
      ...(items(traits.input.value).length ? { required: items(traits.input.value) } : {}) };
    return { reason: why.input.value, effect, providers: items(providers.input.value),
      ...(Object.keys(selected).length ? { select: selected } : {}) };
  };
  const written = () => path(name.input.value.trim());
  return changeForm(context, "Create or replace a drain", [
    name.element, providers.element, members.element, traits.element, why.element,
    field("Effect", select([{ value: "exclude", text: "gets nothing new" }, { value: "none", text: "only announce it" }], effect,
      (value) => void (effect = value))),
  ], {
    rule: RULE, text: "Drain…", done,
    preview: async () => {
      /** @type {import("./answers.js").WrittenDrain} */
      const shown = await api.json("PUT", `${written()}?dry_run=true`, body());
      replaces = Boolean(shown.created_at);
      return [
        el("p", {}, `${counted(shown.hosts, "host")} with ${counted(shown.providers, "provider")} would get nothing new. `
          + `${counted(shown.consumers, "consumer")} would stay there.`),
        effect === "none" && el("p", {}, "It is only announced: nothing changes until you replace it with one that takes effect."),
        shown.created_at && el("p", {}, `It replaces the drain ${shown.name}, which ${shown.created_by || "an unknown user"} created: `,
          moment(shown.created_at), "."),
        nowAndThen(Object.entries(shown.capacity)),
        !shown.complete && el("p", { class: "hint" }, "The time for counting ended: some of these numbers are too low."),
      ];
    },
    act: () => api.put(written(), body(), replaces),
  }, () => `Drain ${name.input.value}`);
}
