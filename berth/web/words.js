// SPDX-License-Identifier: Apache-2.0
/**
 * What the API answers, in words.
 * @module
 */

import { el, number } from "./dom.js";

/** @typedef {import("./answers.js").Warning} Warning */
/** @typedef {import("./answers.js").Stage} Stage */
/** @typedef {import("./answers.js").Lack} Lack */

/** @param {Record<string, number>} resources */
export function amountsText(resources) {
  return Object.entries(resources).map(([name, amount]) => `${name} ${number(amount)}`).join(", ");
}

/** @param {Record<string, string> | undefined} labels @param {string} without what stands for none */
export function labelText(labels, without) {
  return Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`).join(", ") || without;
}

/** @param {string} effect of a drain */
export function effectText(effect) {
  return effect === "none" ? "announced only" : "in effect";
}

/** @param {number} seconds */
export function durationText(seconds) {
  const minutes = Math.floor(seconds / 60);
  return minutes >= 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : minutes ? `${minutes} min` : `${seconds} s`;
}

/**
 * A moment as the reader's clock shows it, no longer than it needs to be; in full when the pointer
 * is on it.
 *
 * @param {string | null | undefined} moment RFC 3339
 */
export function moment(moment) {
  if (!moment) return null;
  const date = new Date(moment);
  const today = new Date();
  /** @type {Intl.DateTimeFormatOptions} */
  const parts = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  if (date.toDateString() !== today.toDateString()) Object.assign(parts, { day: "numeric", month: "short" });
  if (date.getFullYear() !== today.getFullYear()) parts.year = "numeric";
  const text = date.toLocaleString([], parts);
  return el("time", { datetime: moment, title: moment }, text);
}

/** @param {Warning} warning */
export function warningText({ code, at, reference }) {
  if (reference === undefined) {
    if (code === "relation_without_effect") return `The relation ${at} changes nothing: every host that fits meets it anyway.`;
    return code === "limit_ignored" ? "The limit of the query does not count here." : `${code} at ${at}`;
  }
  const kind = code.replace("unknown_", "");
  return at.startsWith("/what_if") ? `There is no ${kind} ${reference}.`
    : `There is no ${kind} ${reference}, so this condition matches nothing.`;
}

/** What a host is or has that fails a constraint. @param {Stage} stage */
export function failureText(stage) {
  if (stage.at === "/drains") return "drained";
  return stage.has === undefined ? unmet(stage.text) : `lacks ${stage.text}`;
}

/** @param {string} text of a constraint that is left out @param {string} [at] its pointer */
export function withoutText(text, at = "") {
  if (at.startsWith("/host/in")) return "on any other host";
  if (text.startsWith("in ")) return `outside of ${text.slice(3)}`;
  return text.startsWith("not ") ? `on hosts that are ${text.slice(4)}` : `without ${text}`;
}

/** @param {Lack[]} lacks @param {Map<string, string>} texts of the constraints, by their pointers */
export function lacksText(lacks, texts) {
  /** Equal lacks of several groups are one. @type {Map<string, Lack>} */
  const merged = new Map();
  for (const lack of lacks) {
    const key = JSON.stringify({ ...lack, at: "" });
    const { asked, possible = 0 } = merged.get(key) ?? {};
    merged.set(key, asked === undefined ? lack : { ...lack, asked: asked + (lack.asked ?? 0), possible: possible + (lack.possible ?? 0) });
  }
  return [...merged.values()].map((lack) => lackText(lack, texts)).join(" and ");
}

/** @param {Lack} lack @param {Map<string, string>} texts */
function lackText({ text, asked, possible = 0, reason: why = "used", provider, free = 0, capacity, unmet: conditions = [], ...bounds }, texts) {
  if (asked === undefined) return unmet(text);
  const missing = `lacks ${number(asked - possible)} ${text.split(" ")[0]}`;
  if (capacity === undefined) return missing;
  if (why === "conditions") {
    return conditions.length ? `${missing} (${provider?.name} ${conditions.map((at) => unmet(texts.get(at) ?? at)).join(" and ")})`
      : `${missing} (${number(free)} free of ${number(capacity)}, but not beside the rest of the request)`;
  }
  if (why === "used") return `${missing} (${number(free)} free of ${number(capacity)})`;
  const bound = /** @type {Record<string, unknown>} */ ({ capacity, ...bounds })[why];
  return `${missing} (${why.replace("_", " ")}${typeof bound === "number" ? ` ${number(bound)}` : ""})`;
}

/** The opposite of a constraint. @param {string} text */
function unmet(text) {
  const condition = text.replace(/^not /, "");
  const isNegated = condition !== text;
  if (condition.startsWith("trait ")) return `${isNegated ? "has" : "lacks"} ${condition}`;
  if (/^(together|apart) /.test(condition)) return `does not have groups ${condition}`;
  return `is ${isNegated ? "" : "not "}${condition}`;
}
