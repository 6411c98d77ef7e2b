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
/** The most for a part of a view, which may cost a worker seconds. */
const LATE_PART = 20_000;

/**
 * A part of a view that shows what it reads, or why it cannot. Whatever has not changed stays.
 *
 * @param {string} label
 * @param {(signal: AbortSignal) => Promise<Child[]>} read
 * @param {() => void} [after] what is to be done with the elements that are shown then
 */
export function part(label, read, after = () => {}) {
  const element = el("section", { "aria-label": label }, "Reading…");
  let isRefused = false;
  const following = follower(async (signal) => {
    try {
      const shown = await read(signal);
      if (signal.aborted) return;
      refill(element, shown);
      after();
    } catch (error) {
      if (signal.aborted) return;
      fill(element, el("p", { class: "problem", role: "alert" }, reason(error)));
      isRefused = error instanceof ApiError && error.status === 403;
      if (error instanceof ApiError && error.passes) setTimeout(changed, AGAIN);
    }
    element.classList.remove("stale");
  }, SOON, LATE_PART);
  /** What it shows may have changed. Whoever may not read it is not asked again. */
  function changed() {
    if (element.isConnected && !isRefused) following.changed();
  }
  void following.ask();
  return { element, refresh: following.ask, changed };
}

/**
 * Asks the service a question, and the same again after the fleet has changed: one at a time, so
 * that an answer that came is the one to show; soon, but not more often than the service can bear;
 * and only while somebody looks.
 *
 * @param {(signal: AbortSignal) => Promise<void>} ask shows the answer, unless it is aborted
 * @param {number} [least] milliseconds between two questions
 * @param {number} [most]
 */
export function follower(ask, least = SOON, most = LATE) {
  let timer = 0;
  let earliest = 0;
  let hasChanged = false;
  /** @type {AbortController | null} */
  let pending = null;

  function plan() {
    timer ||= window.setTimeout(askIfSeen, Math.max(0, earliest - Date.now()));
  }
  function askIfSeen() {
    timer = 0;
    if (document.hidden) document.addEventListener("visibilitychange", askIfSeen, { once: true });
    else void askNow();
  }
  function dispose() {
    clearTimeout(timer);
    timer = 0;
    hasChanged = false;
    document.removeEventListener("visibilitychange", askIfSeen);
    pending?.abort();
    pending = null;
  }
  /** Somebody asks: whatever was asked before is no longer wanted. */
  async function askNow() {
    dispose();
    const own = new AbortController();
    pending = own;
    const began = Date.now();
    await ask(own.signal);
    if (own.signal.aborted) return;
    pending = null;
    earliest = Date.now() + Math.max(least, Math.min(most, REST * (Date.now() - began)));
    if (hasChanged) plan();
  }
  return {
    ask: askNow,
    changed: () => {
      if (pending) hasChanged = true;
      else plan();
    },
    dispose,
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
 * Why the caller cannot do something, in a sentence; nothing if they can.
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
