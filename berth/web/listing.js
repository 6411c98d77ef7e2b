// SPDX-License-Identifier: Apache-2.0
/**
 * A list with a filter, and a form below it.
 * @module
 */

import { refine } from "./address.js";
import { el, field, fill, table } from "./dom.js";
import { part, refusal } from "./parts.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./address.js").Address} Address */
/** @typedef {import("./dom.js").Child} Child */

/** What the names of drains and flavors are made of. */
export const NAME = { required: true, pattern: "(?!\\.{1,2}$)[A-Za-z0-9._\\-]{1,255}", title: "Letters, digits, . _ and -" };

/**
 * A list with a filter, which is a part of the address, and a form below it.
 *
 * @param {Context} context
 * @param {Address} address
 * @param {string} rule of the policy, for reading
 * @param {string} title
 * @param {string} hint
 * @param {() => Promise<Child[]>} read
 * @param {() => HTMLElement} form
 */
export function listing(context, address, rule, title, hint, read, form) {
  const filter = el("input", { type: "search", value: address.filters.get("filter") ?? "", spellcheck: "false" });
  const forms = el("div", {});
  const refused = refusal(context, rule, `see ${title.toLowerCase()}`);
  const list = part(title, refused ? async () => [refused] : read, narrow);
  function narrow() {
    const text = filter.value.trim().toLowerCase();
    for (const row of list.element.querySelectorAll("tbody tr")) {
      /** @type {HTMLElement} */ (row).hidden = !row.textContent?.toLowerCase().includes(text);
    }
  }
  filter.addEventListener("input", () => {
    refine({ filter: filter.value.trim() });
    narrow();
  });
  const showForm = () => fill(forms, form());
  showForm();
  return {
    title,
    element: el("article", {}, el("h1", {}, title), el("p", { class: "hint" }, hint), field("Filter", filter), list.element, forms),
    changed: () => {
      if (!refused) list.changed();
    },
    /** After a change of one's own: the list is read again, and the form is empty again. */
    done: () => {
      showForm();
      void list.refresh();
    },
    /** @param {() => void} prepare what the form shows */
    edit: (prepare) => {
      prepare();
      showForm();
      forms.querySelector("input")?.focus();
    },
  };
}

/** @param {Child[][]} rows @param {string} caption @param {string[]} columns @param {string} none */
export function tableOr(rows, caption, columns, none) {
  return rows.length ? table(caption, columns, rows) : el("p", {}, none);
}
