// SPDX-License-Identifier: Apache-2.0
/**
 * The address of a view, filters included: `#/fleet?by=zone`. It can be sent to a colleague.
 * @module
 */

/** @typedef {{view: string, subject: string, filters: URLSearchParams}} Address */

/** @returns {Address} */
export function current() {
  const [path, query] = split(location.hash.replace(/^#\/?/, ""));
  const [view, ...subject] = path.split("/");
  return {
    view: view || "fleet",
    subject: decode(subject.join("/")),
    filters: new URLSearchParams(query),
  };
}

/**
 * The link to a view.
 *
 * @param {string} view
 * @param {string} [subject]
 * @param {Record<string, string>} [filters] empty ones are left out
 */
export function link(view, subject, filters = {}) {
  const kept = Object.entries(filters).filter(([, value]) => value);
  const query = kept.length ? `?${new URLSearchParams(kept)}` : "";
  return `#/${view}${subject ? `/${encodeURIComponent(subject)}` : ""}${query}`;
}

/**
 * Change a filter of the current address.
 *
 * @param {Record<string, string>} changed
 * @param {boolean} [isStep] whether the browser's "back" shall undo it
 */
export function refine(changed, isStep = false) {
  const { view, subject, filters } = current();
  const all = link(view, subject, { ...Object.fromEntries(filters), ...changed });
  if (all !== location.hash) history[isStep ? "pushState" : "replaceState"](null, "", all);
}

/** @param {string} text @returns {[string, string]} */
function split(text) {
  const at = text.indexOf("?");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
