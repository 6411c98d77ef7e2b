// SPDX-License-Identifier: Apache-2.0
/**
 * What several views are made of: parts that read and show, changes with a preview, and words.
 * @module
 */

import { ApiError } from "./api.js";
import { el, field, fill, number, table } from "./dom.js";
import { refill } from "./keeping.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./dom.js").Child} Child */

/** Milliseconds after which a part tries again to read from a service that could not answer. */
const AGAIN = 2000;
/** Milliseconds between two questions that a changing fleet makes, at least and at most: in between,
 * so many times what the last question took. */
const [SOON, LATE] = [1000, 5000];
const REST = 10;

/**
 * A part of a view that shows what it reads, or why it cannot. `refresh` reads it again, never
 * twice at the same time, and replaces what has changed.
 *
 * @param {string} label
 * @param {() => Promise<Child[]>} read
 * @param {() => void} [after] what is to be done with the elements that are shown then
 */
export function part(label, read, after = () => {}) {
  const element = el("section", { "aria-label": label }, "Reading…");
  let isReading = false;
  let isStale = false;
  async function refresh() {
    isStale = true;
    if (isReading) return;
    isReading = true;
    while (isStale) {
      isStale = false;
      try {
        refill(element, await read());
        after();
      } catch (error) {
        fill(element, el("p", { class: "problem", role: "alert" }, reason(error)));
        if (error instanceof ApiError && error.passes) {
          setTimeout(() => element.isConnected && void refresh(), AGAIN);
        }
      }
    }
    isReading = false;
  }
  void refresh();
  return { element, refresh };
}

/**
 * Follows the fleet with a question that costs the service something: soon after a change, but not
 * more often than the service can bear, and only while somebody looks.
 *
 * @param {() => Promise<unknown>} ask
 */
export function follower(ask) {
  let timer = 0;
  let earliest = 0;
  function askIfDue() {
    const wait = earliest - Date.now();
    if (document.hidden) document.addEventListener("visibilitychange", askIfDue, { once: true });
    else if (wait > 0) timer = window.setTimeout(askIfDue, wait);
    else void asked(ask());
  }
  function dispose() {
    clearTimeout(timer);
    timer = 0;
    document.removeEventListener("visibilitychange", askIfDue);
  }
  /** Somebody asks: the answer will have what changed until now. @param {Promise<unknown>} asking */
  async function asked(asking) {
    dispose();
    const began = Date.now();
    earliest = began + SOON;
    await asking;
    earliest = Date.now() + Math.min(LATE, Math.max(SOON, REST * (Date.now() - began)));
  }
  return {
    changed: () => {
      timer ||= window.setTimeout(askIfDue, Math.max(0, earliest - Date.now()));
    },
    asked, dispose,
  };
}

/**
 * @typedef {object} Change
 * @property {string} rule of the policy, which may forbid it
 * @property {string} text on the button
 * @property {string} title what is going to happen
 * @property {() => Promise<Child[]>} preview reads what would happen, and changes nothing
 * @property {() => Promise<unknown>} act
 * @property {() => void} done shows the new state
 */

/**
 * A button for what only some callers may do, greyed for all others.
 *
 * @param {Context} context
 * @param {string} rule of the policy
 * @param {string} text
 * @param {() => void} act
 */
export function permitted({ api }, rule, text, act) {
  const why = api.forbidden.get(rule);
  return el("button", { type: "button", disabled: why !== undefined, title: why, onclick: act }, text);
}

/**
 * Why the caller cannot do something; nothing if they can.
 *
 * @param {Context} context
 * @param {string} rule of the policy
 * @param {string} what as in "You cannot change drains."
 */
export function refusal({ api }, rule, what) {
  const why = api.forbidden.get(rule);
  return why !== undefined && el("p", { class: "hint refusal" }, `You cannot ${what}. ${why}`);
}

/**
 * A button for a change, greyed if the caller may not make it.
 *
 * @param {Context} context
 * @param {Change} change
 */
export function changing(context, change) {
  return permitted(context, change.rule, change.text, () => void propose(context, change));
}

/**
 * A form for a change, greyed with the reason if the caller may not make it.
 *
 * @param {Context} context
 * @param {string} legend
 * @param {Child[]} fields
 * @param {Omit<Change, "title">} change
 * @param {() => string} title
 */
export function changeForm(context, legend, fields, change, title) {
  return el("form", {
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      void propose(context, { ...change, title: title() });
    },
  }, el("fieldset", { disabled: context.api.forbidden.has(change.rule) }, el("legend", {}, legend),
    refusal(context, change.rule, "do this"), fields, el("button", { type: "submit" }, change.text)));
}

/**
 * Show in a dialog what a change would do, and do it when that is confirmed.
 *
 * @param {Context} context
 * @param {Change} change
 */
async function propose({ api }, { rule, text, title, preview, act, done }) {
  const shown = el("div", {}, "Reading…");
  const problem = el("p", { class: "problem", role: "alert" });
  const confirm = el("button", { type: "button", class: "primary", disabled: true, onclick: () => void perform() },
    text.replace("…", ""));
  const dialog = el("dialog", { "aria-label": title, onclose: () => dialog.remove() },
    el("h2", {}, title), el("p", { class: "hint" }, "Preview: nothing has been changed yet."), shown, problem,
    el("div", { class: "controls" }, confirm, el("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
  // In the view, so that it goes with it.
  document.querySelector("article")?.append(dialog);
  dialog.showModal();

  async function perform() {
    confirm.disabled = true;
    try {
      await act();
      dialog.close();
      done();
    } catch (error) {
      refuse(error);
    }
  }
  /** @param {unknown} error */
  function refuse(error) {
    fill(problem, reason(error));
    confirm.disabled = true;
    if (error instanceof ApiError && error.status === 403) {
      api.forbidden.set(rule, reason(error));
      done();
    }
  }
  try {
    fill(shown, await preview());
    confirm.disabled = false;
    confirm.focus();
  } catch (error) {
    fill(shown);
    refuse(error);
  }
}

/**
 * How often each flavor fits now and then.
 *
 * @param {[string, {now: number, then: number}][]} counts
 */
export function nowAndThen(counts) {
  return counts.length > 0 && table("How many more fit", ["Flavor", "Now#", "Then#", "Change#"],
    counts.map(([name, { now, then }]) => [name, number(now), number(then), difference(now, then)]));
}

/** @param {number} now @param {number} then */
export function difference(now, then) {
  return then === now ? "0" : `${then > now ? "+" : "−"}${number(Math.abs(then - now))}`;
}

/** @param {string} label @param {string} [value] @param {string} [hint] @param {Record<string, unknown>} [attributes] */
export function textField(label, value = "", hint = "", attributes = {}) {
  const input = el("input", { spellcheck: "false", autocomplete: "off", value, ...attributes });
  return { input, element: field(label, input, hint) };
}

/** What stands between commas. @param {string} text */
export function items(text) {
  return text.split(",").map((item) => item.trim()).filter(Boolean);
}

/** @param {unknown} value */
export function json(value) {
  return el("details", {}, el("summary", {}, "JSON"), el("pre", { tabindex: 0 }, JSON.stringify(value, null, 2)));
}

/** @param {unknown} error */
export function reason(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {Record<string, Child>} pairs */
export function facts(pairs) {
  return el("dl", {}, Object.entries(pairs).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value ?? "–")]));
}
