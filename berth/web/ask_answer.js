// SPDX-License-Identifier: Apache-2.0
/**
 * The answer to a question, in words and tables: the verdict, the changes that would help, the
 * nearest hosts, the candidates.
 * @module
 */

import { link } from "./address.js";
import { counted, el, fill, number, table } from "./dom.js";
import { refill } from "./keeping.js";
import { reason } from "./parts.js";
import { reduced, renamed, split, without } from "./wanted.js";
import { amountsText, lackText, warningText, withoutText } from "./words.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./wanted.js").Wanted} Wanted */
/** @typedef {import("./answers.js").Explanation} Explanation */
/** @typedef {import("./answers.js").Candidates} Candidates */
/** @typedef {Candidates | {problem: string} | null} Found the candidates; null if there can be none */
/** @typedef {{text: string, wanted: Wanted | null}} Change of a request; null if the page cannot make it */

/** Candidates that the table shows. */
export const CANDIDATES = 20;

/**
 * @param {Context} context
 * @param {{askInstead: (wanted: Wanted) => void, askPatiently: () => void}} listeners
 */
export function answerPanel({ fleet }, { askInstead, askPatiently }) {
  const verdict = el("section", { "aria-live": "polite", "aria-label": "Answer" });
  const help = el("section", { "aria-label": "What would help" });
  const nearest = el("section", { "aria-label": "Nearest hosts" });
  const candidates = el("section", { "aria-label": "Candidates" });

  /** @param {Explanation} explanation */
  function verdictOf({ verdict: outcome, summary, complete, warnings }) {
    return [
      el("p", { class: `verdict ${outcome === "fits" ? "fits" : "fails"}` }, fleet.hosts.size ? summary : "The fleet has no hosts yet."),
      !complete && el("p", {}, "The time ended before everything was counted: figures are lower bounds. ",
        el("button", { type: "button", onclick: askPatiently }, "Take more time")),
      el("ul", { class: "warnings" }, warnings.map((warning) => el("li", {}, warningText(warning)))),
    ];
  }

  /** @param {Explanation} explanation */
  function helpOf(explanation) {
    const changes = changesOf(explanation);
    return changes.length ? [
      el("h2", {}, explanation.verdict === "fits" ? "Did you mean" : "It would fit"),
      el("ul", { class: "help" }, changes.map(({ text, wanted }) =>
        el("li", {}, wanted ? el("button", { type: "button", onclick: () => askInstead(wanted) }, text) : text))),
    ] : [];
  }

  /** @param {Found} found @returns {Child[]} */
  function candidatesOf(found) {
    if (!found) return [];
    if ("problem" in found) return [el("p", { class: "problem" }, `The candidates cannot be shown: ${found.problem}`)];
    const isScored = found.candidates.some(({ score }) => score);
    return [
      table("Candidates", ["Host", "Gives", ...(isScored ? ["Score#"] : [])], found.candidates.map(({ host, allocations, score }) => [
        hostLink(host, fleet.hosts.get(host)?.name ?? host),
        Object.entries(allocations).map(([uuid, { resources }]) => `${fleet.providers.get(uuid)?.name ?? uuid}: ${amountsText(resources)}`).join("; "),
        ...(isScored ? [score?.total.toFixed(3)] : []),
      ])),
      found.more && found.candidates.length === CANDIDATES && el("p", { class: "hint" }, `These are the first ${CANDIDATES} hosts.`),
    ];
  }

  return {
    verdict, help, nearest, candidates,
    /**
     * @param {Explanation} explanation
     * @param {Found} found
     * @param {boolean} isFollowing whether it answers the same request as the last: then what is equal stays
     */
    show: (explanation, found, isFollowing) => {
      const put = isFollowing ? refill : fill;
      put(verdict, verdictOf(explanation));
      put(help, helpOf(explanation));
      put(nearest, nearestOf(explanation));
      put(candidates, candidatesOf(found));
    },
    /** @param {...Child} children */
    say: (...children) => fill(verdict, ...children),
    /** @param {{message: string, status?: number, suggestions?: string[]}} error @param {Wanted} asked */
    refuse: ({ message, status, suggestions = [] }, asked) => {
      for (const section of [help, nearest, candidates]) fill(section);
      fill(verdict, el("p", { class: "verdict fails", role: "alert" }, message.replace(/^\/request\//, "/"),
        status === 403 && " You need the role auditor, service or admin."),
      suggestions.map((name) => el("button", { type: "button", onclick: () => askInstead({ ...asked, flavor: name }) }, `Use ${name}`)));
    },
  };
}

/**
 * What would help, the most helpful first.
 *
 * @param {Explanation} explanation
 * @returns {Change[]}
 */
function changesOf({ request, stages, unknown, relaxations = [], split_would_fit: splitting = 0 }) {
  const texts = new Map(stages.map(({ at, text }) => [at, text]));
  const textOf = (/** @type {string} */ at) => texts.get(at) ?? at;
  const changes = [
    ...unknown.flatMap(({ name, did_you_mean: similar }) => similar.map((other) =>
      ({ text: `${other} instead of ${name}`, wanted: renamed(request, name, other) }))),
    ...relaxations.flatMap(({ drop, hosts, reduce_to: amount, hosts_reduced: fitting = 0 }) => {
      const dropped = { text: `${drop.map((at) => withoutText(textOf(at))).join(" and ")}: ${counted(hosts, "host")}`, wanted: without(request, drop) };
      if (!amount) return [dropped];
      const less = { text: `with ${textOf(drop[0]).replace(/ \d+/, ` ${number(amount)}`)}: ${counted(fitting, "host")}`,
        wanted: reduced(request, drop[0], amount) };
      // A group that others relate to needs some amount.
      return dropped.wanted ? [less, dropped] : [less];
    }),
  ];
  if (splitting) changes.push({ text: `with amounts from several providers: ${counted(splitting, "host")}`, wanted: split(request) });
  return changes;
}

/** @param {Explanation} explanation */
function nearestOf({ nearest = [], stages }) {
  return [
    nearest.length > 0 && table("Nearest hosts", ["Host", "Lacks"], nearest.map(({ host, lacks }) =>
      [hostLink(host.uuid, host.name), lacks.map(lackText).join(" and ")])),
    stages.length > 0 && table("Constraints", ["Constraint", "Alone#", "Left#"], stages.map(({ text, alone, left, at_least: isCut }) =>
      [text, alone === null ? "–" : number(alone), `${isCut ? "≥ " : ""}${number(left)}`])),
  ];
}

/** @param {string} uuid @param {string} name */
function hostLink(uuid, name) {
  return el("a", { href: link("hosts", uuid) }, name);
}

/** @param {unknown} error @returns {{message: string, status?: number, pointer?: string, suggestions?: string[]}} */
export function refusalOf(error) {
  return error instanceof Error ? error : { message: reason(error) };
}
