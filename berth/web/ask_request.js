// SPDX-License-Identifier: Apache-2.0
/**
 * The request of a question: pasted, begun with a flavor, filled into fields, or written as JSON.
 * All of its forms are always in step.
 * @module
 */

import { RequestFields } from "./ask_fields.js";
import { el, field, fill } from "./dom.js";
import { reason } from "./parts.js";
import { asCommand, asQuery, parse } from "./wanted.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./wanted.js").Wanted} Wanted */
/** @typedef {import("./answers.js").Flavor} Flavor */
/** @typedef {import("./ask_fields.js").Kind} Kind */

/** Pixels from which on there is room for everything beside the answer. */
const WIDE = 900;
/** Names of hosts that complete a field. */
const COMPLETED = 2000;

/**
 * @param {Context} context
 * @param {Wanted} begun
 * @param {boolean} isSent whether it came with the address, to be answered at once
 * @param {{changed: () => void, ask: () => void}} listeners
 */
export function requestForm({ api, fleet }, begun, isSent, { changed, ask }) {
  let wanted = begun;
  let lastRead = "";
  let isRead = true;
  /** What is being read. */
  let reading = Promise.resolve();
  /** Those that no host has included, if the caller may read them. @type {{traits?: string[], classes?: string[]}} */
  const names = {};

  const pasted = el("textarea", {
    id: "pasted", rows: 2, spellcheck: "false", "aria-describedby": "unread",
    placeholder: "… GET /placement/allocation_candidates?resources=VCPU:16&required=HW_CPU_X86_AVX2",
    onpaste: () => setTimeout(() => readPasted(true)),
    onchange: () => readPasted(false),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      readPasted(true);
    },
  });
  const unread = el("p", { id: "unread", class: "problem", role: "alert" });
  const flavors = el("select", {}, el("option", { value: "" }, "…"));
  const fields = new RequestFields(namesOf, change);
  const form = el("div", {});
  const json = el("textarea", { rows: 4, spellcheck: "false", "data-at": "json", "aria-label": "JSON", onchange: () => read(json.value) });
  const query = shown("Query string");
  const command = shown("Command line");
  const isWide = innerWidth > WIDE;

  /** @param {boolean} isToAsk */
  function readPasted(isToAsk) {
    const text = pasted.value;
    if (!text.trim()) forgive();
    if (text.trim() && (isToAsk || text !== lastRead)) {
      lastRead = text;
      read(text);
    }
    if (isToAsk) ask();
  }

  /** @param {string} text */
  function read(text) {
    const mine = parse(api, text).then((instead) => {
      // What was changed or pasted meanwhile counts.
      if (reading === mine) change(instead);
    }, (error) => {
      if (reading !== mine) return;
      fill(unread, reason(error).replace(/^\/request\/query is not a valid query\. /, ""));
      isRead = false;
      lastRead = "";
    });
    reading = mine;
  }

  function forgive() {
    fill(unread);
    isRead = true;
  }

  /** @param {Wanted} instead */
  function change(instead) {
    wanted = instead;
    reading = Promise.resolve();
    forgive();
    // A field that is just left must not be replaced before the focus is in the next.
    setTimeout(show);
    changed();
  }

  function show() {
    const at = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.at;
    try {
      fill(form, fields.of(wanted));
    } catch {
      fill(form, el("p", { class: "hint" }, "The form cannot show this request. The page sends the JSON."));
    }
    json.value = JSON.stringify(wanted, null, 2);
    query.show(asQuery(wanted, fleet) ?? "", "OpenStack Placement's API cannot express this request.");
    command.show(asCommand(wanted));
    if (at) /** @type {HTMLElement | null} */ (form.querySelector(`[data-at="${CSS.escape(at)}"]`))?.focus();
  }

  /** @param {Kind} kind @returns {string[]} */
  function namesOf(kind) {
    if (kind === "provider") return [...fleet.hosts.values()].slice(0, COMPLETED).map(({ name }) => name);
    if (kind === "drain") return ["*", ...fleet.excluding];
    if (kind === "level") return ["provider", "subtree", "tree", ...namesOf("trait")];
    if (kind === "trait") return names.traits ?? [...new Set([...fleet.providers.values()].flatMap(({ traits }) => traits))].sort();
    if (kind === "class") return names.classes ?? fleet.classes;
    return [...new Set([...fleet.labels.values()].flatMap((labels) => Object.entries(labels).map((pair) => pair.join("="))))].sort();
  }

  async function readNames() {
    try {
      if (!api.forbidden.has("placement:traits:list")) names.traits = (await api.get("traits")).traits;
      if (api.forbidden.has("placement:resource_classes:list")) return;
      /** @type {{resource_classes: {name: string}[]}} */
      const answer = await api.get("resource_classes");
      names.classes = answer.resource_classes.map(({ name }) => name);
    } catch {
      // The names that the fleet has complete the fields.
    }
  }

  async function readFlavors() {
    const why = api.forbidden.get("berth:flavors:list");
    if (why !== undefined) {
      Object.assign(flavors, { disabled: true, title: why });
      return;
    }
    try {
      /** @type {{flavors: Flavor[]}} */
      const answer = await api.get("berth/v1/flavors");
      const stored = new Map(answer.flavors.map(({ name, request }) => [name, request]));
      flavors.append(...[...stored.keys()].map((name) => el("option", {}, name)));
      flavors.addEventListener("change", () => {
        const request = stored.get(flavors.value);
        if (request) change(structuredClone(request));
      });
    } catch (error) {
      flavors.disabled = true;
      flavors.title = reason(error);
    }
  }

  show();
  if (begun.query !== undefined) read(JSON.stringify(begun));
  void readNames();
  void readFlavors();
  return {
    /** Where something can be pasted, and the other forms of the request. */
    top: el("div", {}, el("label", { for: "pasted" }, "Paste what failed: a line of a log, a query, a URL, a berth command, or JSON"),
      el("div", { class: "row" }, pasted, el("button", { type: "submit", class: "primary" }, "Ask")), unread,
      el("details", { class: "forms", open: isWide }, el("summary", {}, "The request as JSON, as a query string and as a command line"),
        el("div", {}, el("div", {}, heading("JSON", copyButton("JSON", () => json.value)), json), query.element, command.element))),
    element: el("div", {}, field("Begin with a flavor", flavors),
      el("details", { open: isWide || !isSent }, el("summary", {}, "The request"), form)),
    get wanted() {
      return wanted;
    },
    /** Wait until all that was typed is read. @returns {Promise<boolean>} whether it could be */
    settle: async () => {
      await reading;
      return isRead;
    },
    change,
    /** Say what is wrong with something that was sent. @param {string} problem */
    tell: (problem) => fill(unread, problem),
    /** Mark the fields that a problem is about. @param {string} pointer into the request */
    mark: (pointer) => {
      for (const control of form.querySelectorAll("[data-at]")) {
        const at = /** @type {HTMLElement} */ (control).dataset.at ?? "";
        if (`${pointer}/`.startsWith(`${at}/`)) control.setAttribute("aria-invalid", "true");
      }
    },
  };
}

/** A form of the request that can be read and copied. @param {string} name */
function shown(name) {
  const text = el("pre", { tabindex: 0, "aria-label": name });
  const copy = copyButton(name, () => text.textContent ?? "");
  return {
    element: el("div", {}, heading(name, copy), text),
    /** @param {string} what @param {string} [instead] what to say if there is no such form */
    show: (what, instead = "") => {
      fill(text, what || instead);
      text.classList.toggle("hint", !what);
      copy.disabled = !what;
    },
  };
}

/** @param {string} name @param {HTMLElement} copy */
function heading(name, copy) {
  return el("div", { class: "heading" }, el("h3", {}, name), copy);
}

/** @param {string} name @param {() => string} text */
function copyButton(name, text) {
  const button = el("button", { type: "button", "aria-label": `Copy ${name}`, onclick: async () => {
    await copy(text());
    fill(button, "Copied");
  } }, "Copy");
  return button;
}

/** @param {string} text */
async function copy(text) {
  // Browsers give pages that came over plain HTTP no clipboard.
  if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  const area = el("textarea", {});
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
