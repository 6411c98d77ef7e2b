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
import { amountsText, lacksText, warningText, withoutText } from "./words.js";

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
  function verdictOf({ verdict: outcome, summary, complete, hosts, impossible = [], warnings }) {
    return [
      el("p", { class: `verdict ${outcome === "fits" ? "fits" : "fails"}` }, hosts.total ? summary : "The fleet has no hosts yet."),
      el("ul", { class: "impossible" }, impossible.filter(({ text }) => !summary.includes(text)).map(({ text }) => el("li", {}, text))),
      !complete && el("p", {}, "The time ended before everything was counted: figures are lower bounds. ",
        el("button", { type: "button", onclick: askPatiently }, "Take more time")),
      el("ul", { class: "warnings" }, warnings.map((warning) => el("li", {}, warningText(warning)))),
    ];
  }

  /** @param {string} title @param {Change[]} changes */
  function buttons(title, changes) {
    return changes.length ? [
      el("h2", {}, title),
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
        linked(host, fleet.hosts.get(host)?.name ?? host),
        Object.entries(allocations).map(([uuid, { resources }]) => `${fleet.providers.get(uuid)?.name ?? uuid}: ${amountsText(resources)}`).join("; "),
        ...(isScored ? [score?.total.toFixed(3)] : []),
      ])),
      found.more && found.candidates.length === CANDIDATES && el("p", { class: "hint" }, `These are the first ${CANDIDATES} hosts.`),
    ];
  }

  /** @param {Explanation} explanation */
  function nearestOf({ nearest: hosts = [], stages }) {
    const texts = new Map(stages.map(({ at, text }) => [at, text]));
    return [
      hosts.length > 0 && table("Nearest hosts", ["Host", "Lacks"], hosts.map(({ host, lacks, consumers = [], more_consumers: isMore }) =>
        [linked(host.uuid, host.name), el("div", {}, lacksText(lacks, texts),
          consumers.length > 0 && el("div", {}, "Used by ", consumers.map((consumer, at) => [at > 0 && ", ",
            el("a", { href: link("consumers", consumer.uuid) }, consumer.name ?? consumer.uuid)]).flat(), isMore && ", …"))])),
      stages.length > 0 && table("Constraints", ["Constraint", "Alone#", "Left#"], stages.map(({ text, alone, left, at_least: isCut }) =>
        [text, alone === null ? "–" : number(alone), `${isCut ? "≥ " : ""}${number(left)}`])),
    ];
  }

  /** A link to a host, for whoever may see it. @param {string} uuid @param {string} name */
  function linked(uuid, name) {
    return fleet.hosts.has(uuid) ? el("a", { href: link("hosts", uuid) }, name) : name;
  }

  return {
    verdict, help, nearest, candidates,
    /**
     * @param {Explanation} explanation
     * @param {Found} found
     * @param {number} splitting hosts that fit if amounts may come from several providers
     * @param {boolean} isFollowing whether it answers the same request as the last: then what is equal stays
     */
    show: (explanation, found, splitting, isFollowing) => {
      const put = isFollowing ? refill : fill;
      put(verdict, verdictOf(explanation));
      put(help, ...buttons("It would fit", checkedChanges(explanation, splitting)), ...buttons("Did you mean", suggestionsOf(explanation)));
      put(nearest, nearestOf(explanation));
      put(candidates, candidatesOf(found));
    },
    /** @param {...Child} children */
    say: (...children) => fill(verdict, ...children),
    /** @param {{message: string, status?: number, suggestions?: string[]}} error @param {Wanted} asked */
    refuse: ({ message, suggestions = [] }, asked) => {
      for (const section of [help, nearest, candidates]) fill(section);
      fill(verdict, el("p", { class: "verdict fails", role: "alert" }, message.replace(/^\/request\//, "/")),
      suggestions.map((name) => el("button", { type: "button", onclick: () => askInstead({ ...asked, flavor: name }) }, `Use ${name}`)));
    },
  };
}

/**
 * Changes with which some hosts fit, as the service has counted, the most helpful first.
 *
 * @param {Explanation} explanation
 * @param {number} splitting
 * @returns {Change[]}
 */
function checkedChanges({ request, hosts, stages, unknown, relaxations = [] }, splitting) {
  const texts = new Map(stages.map(({ at, text }) => [at, text]));
  const textOf = (/** @type {string} */ at) => texts.get(at) ?? at;
  // What is counted is counted without the constraints that have unknown names.
  const lost = unknown.map(({ at }) => at);
  const rest = [...new Set(unknown.map(({ name }) => withoutText(name)))];
  /** @param {string[]} drop @param {number} count */
  const dropped = (drop, count) => ({
    text: `${[...rest, ...drop.map((at) => withoutText(textOf(at), at))].join(" and ")}: ${counted(count, "host")}`,
    wanted: without(request, [...lost, ...drop]),
  });
  const changes = [
    ...suggested(request, unknown).filter(({ count }) => count).map(({ text, wanted, count = 0 }) =>
      ({ text: `${text}: ${counted(count, "host")}`, wanted })),
    ...(rest.length && hosts.fit ? [dropped([], hosts.fit)].filter(({ wanted }) => wanted) : []),
    ...relaxations.flatMap(({ drop, hosts: count, reduce_to: amount, hosts_reduced: fitting = 0 }) => {
      const change = dropped(drop, count);
      if (!amount || rest.length) return [change];
      const less = { text: `with ${textOf(drop[0]).replace(/ \d+/, ` ${number(amount)}`)}: ${counted(fitting, "host")}`,
        wanted: reduced(request, drop[0], amount) };
      // A group that others relate to needs some amount.
      return change.wanted ? [less, change] : [less];
    }),
  ];
  if (splitting) changes.push({ text: `with amounts from several providers: ${counted(splitting, "host")}`, wanted: split(request) });
  return changes;
}

/**
 * Names that are like the unknown ones, which no one has checked, or with which no host fits.
 *
 * @param {Explanation} explanation
 * @returns {Change[]}
 */
function suggestionsOf({ request, unknown }) {
  return suggested(request, unknown).filter(({ count }) => !count).map(({ text, wanted, count }) =>
    ({ text: count === undefined ? text : `${text}: no host fits`, wanted }));
}
/**
 * Other names for the unknown ones, each with the number of hosts that fit with it, if it is known.
 *
 * @param {Wanted} request
 * @param {import("./answers.js").UnknownName[]} unknown
 */
function suggested(request, unknown) {
  return unknown.flatMap(({ name, did_you_mean: similar, hosts = {} }) => similar.map((other) => ({
    text: `${other} instead of ${name}`,
    wanted: renamed(request, name, other),
    // Of several unknown names, each is replaced by itself.
    count: unknown.length === 1 ? hosts[other] : undefined,
  })));
}

/** @param {unknown} error @returns {{message: string, status?: number, pointer?: string, suggestions?: string[]}} */
export function refusalOf(error) {
  return error instanceof Error ? error : { message: reason(error) };
}
