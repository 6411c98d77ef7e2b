// SPDX-License-Identifier: Apache-2.0
/**
 * New content in the place of old: what has not changed stays, with its focus, its scroll position
 * and whatever somebody has opened in it.
 * @module
 */

import { el } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/** Elements that nothing listens to: if they differ, only what differs in them is replaced. */
const CONTAINERS = /^(DIV|P|SPAN|SECTION|TABLE|THEAD|TBODY|TR|TH|TD|UL|OL|LI|DL|DD|DETAILS|PRE)$/;
/** Attributes that somebody changes by opening something, or by filtering. */
const OF_THE_READER = ["open", "hidden"];

/**
 * As `fill`, but keeps what is equal. A button that stays keeps its listener too: that must find
 * what it needs by what the button shows.
 *
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function refill(element, ...children) {
  const focused = document.activeElement;
  update(element, el("div", {}, ...children));
  const isMoved = focused instanceof HTMLElement && focused !== document.activeElement && element.contains(focused);
  if (isMoved) focused.focus({ preventScroll: true });
}

/** @param {Element} shown @param {Element} fresh */
function update(shown, fresh) {
  /** @type {Map<string, ChildNode[]>} */
  const old = new Map();
  shown.childNodes.forEach((node, at) => {
    const key = keyOf(node, at);
    const others = old.get(key);
    if (others) others.push(node);
    else old.set(key, [node]);
  });
  const nodes = [...fresh.childNodes].map((node, at) => kept(old.get(keyOf(node, at))?.shift(), node));
  const staying = new Set(nodes);
  for (const node of [...shown.childNodes]) if (!staying.has(node)) node.remove();
  nodes.forEach((node, at) => {
    const there = shown.childNodes[at] ?? null;
    if (there !== node) shown.insertBefore(node, there);
  });
}

/** Rows are known by their first cell, wherever they stand. @param {ChildNode} node @param {number} at */
function keyOf(node, at) {
  return node instanceof HTMLTableRowElement ? `${node.cells[0]?.textContent}` : `${node.nodeName} ${at}`;
}

/** @param {ChildNode | undefined} old @param {ChildNode} fresh */
function kept(old, fresh) {
  if (!old) return fresh;
  if (old.isEqualNode(fresh)) return old;
  if (!(old instanceof Element && fresh instanceof Element)) return fresh;
  if (!CONTAINERS.test(old.nodeName) || !bare(old).isEqualNode(bare(fresh))) return fresh;
  update(old, fresh);
  return old;
}

/** An element without what is in it, and as nobody has touched it. @param {Element} element */
function bare(element) {
  const copy = /** @type {Element} */ (element.cloneNode(false));
  OF_THE_READER.forEach((name) => copy.removeAttribute(name));
  return copy;
}
