// SPDX-License-Identifier: Apache-2.0
/**
 * Elements without markup: every text goes in as text, so names from the fleet are never HTML.
 * @module
 */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [attributes] `onclick` and its kin are listeners; `true` sets an
 *   empty attribute, and `false`, null and undefined set none.
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  append(element, children);
  return element;
}

/**
 * Replace everything in an element.
 *
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * @param {Element} element
 * @param {(Child | Child[])[]} children
 */
function append(element, children) {
  for (const child of children.flat()) {
    if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/**
 * A table with a caption.
 *
 * @param {string} caption
 * @param {string[]} columns a name that ends with "#" is that of a column of numbers
 * @param {Child[][]} rows
 * @returns {HTMLElement}
 */
export function table(caption, columns, rows) {
  const isNumber = columns.map((column) => column.endsWith("#"));
  const head = columns.map((column, at) =>
    el("th", { scope: "col", class: isNumber[at] && "number" }, column.replace(/#$/, "")));
  const body = rows.map((row) =>
    el("tr", {}, row.map((cell, at) =>
      at ? el("td", { class: isNumber[at] && "number" }, cell) : el("th", { scope: "row" }, cell))));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, body)));
}

const NUMBER = new Intl.NumberFormat("en-US");

/** @param {number} value */
export function number(value) {
  return NUMBER.format(value);
}

const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });

/** A number for a narrow column: millions are rounded, and stand in full where the pointer is. @param {number} value */
export function short(value) {
  return Math.abs(value) < 1_000_000 ? number(value) : el("span", { title: number(value) }, SHORT.format(value));
}

/**
 * A count with its noun: "1 host", "2 hosts".
 *
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  return el("label", { class: "field" }, el("span", {}, label), control,
    hint && el("small", {}, hint));
}

/**
 * A choice among values.
 *
 * @param {{value: string, text?: string}[]} choices
 * @param {string} chosen
 * @param {(value: string) => void} choose
 * @param {Record<string, unknown>} [attributes]
 */
export function select(choices, chosen, choose, attributes = {}) {
  const element = el("select", attributes);
  offer(element, choices, chosen);
  element.addEventListener("change", () => choose(element.value));
  return element;
}

/**
 * Offer other choices. Where they are the same ones, nothing happens to a list that is open.
 *
 * @param {HTMLSelectElement} element
 * @param {{value: string, text?: string}[]} choices
 * @param {string} chosen
 */
export function offer(element, choices, chosen) {
  const isSame = element.options.length === choices.length &&
    choices.every(({ value, text }, at) => element.options[at].value === value && element.options[at].text === (text ?? value));
  if (!isSame) fill(element, choices.map(({ value, text }) => el("option", { value }, text ?? value)));
  if (element.value !== chosen) element.value = chosen;
  if (element.selectedIndex < 0) element.selectedIndex = 0;
}
