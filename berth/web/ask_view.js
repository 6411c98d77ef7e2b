// SPDX-License-Identifier: Apache-2.0
/**
 * Ask where a request fits, and why not elsewhere. The answer follows the fleet; it is to the
 * request that was asked, and says so when the form has another one.
 * @module
 */

import { refine } from "./address.js";
import { ApiError } from "./api.js";
import { CANDIDATES, answerPanel, refusalOf } from "./ask_answer.js";
import { answerMap } from "./ask_map.js";
import { requestForm } from "./ask_request.js";
import { counted, el, field, fill, number, select } from "./dom.js";
import { groupings } from "./fleet_view.js";
import { follower, reason, refusal } from "./parts.js";
import { asRequest, readJSON, split } from "./wanted.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./main.js").View} View */
/** @typedef {import("./wanted.js").Wanted} Wanted */
/** @typedef {import("./answers.js").Explained} Explained */
/** @typedef {import("./answers.js").Explanation} Explanation */
/** @typedef {import("./ask_answer.js").Found} Found */
/** @typedef {{wanted: Wanted, order: string, seconds?: number}} Question */

const ORDERS = ["any", "pack", "spread", "random"].map((value) => ({ value }));
/** Seconds for a question that one second was not enough for; the service takes its own limit. */
const PATIENT = 30;

/**
 * @param {Context} context
 * @param {import("./address.js").Address} address
 * @returns {View}
 */
export function askView(context, { filters }) {
  const { fleet } = context;
  const chosen = {
    order: filters.get("order") ?? "any",
    by: filters.get("by") ?? (fleet.labelKeys.includes("zone") ? "zone" : ""),
    only: filters.get("only") ?? "",
  };
  /** What was asked, and is asked again when the fleet changes. @type {Question | null} */
  let question = null;
  /** The question whose answer is shown. @type {Question | null} */
  let answered = null;
  /** Whether the service refused it: then it would again, whatever changes. */
  let isRefused = false;

  const begun = requestIn(filters);
  const request = requestForm(context, begun.wanted, filters.has("request"), { changed: compare, ask });
  const answer = answerPanel(context, {
    askInstead: (wanted) => {
      request.change(wanted);
      ask();
    },
    askPatiently: () => {
      if (question) begin({ ...question, seconds: PATIENT });
    },
  });
  const picture = fleet.isLoaded ? answerMap(context, chosen, choose) : null;
  const since = el("p", { class: "hint" });
  const outdated = el("p", { class: "problem", role: "status" });
  const following = follower(readAnswer);
  const answers = el("div", {}, answer.verdict, answer.help,
    el("div", { class: "controls" },
      picture && field("Group by", select(groupings(fleet), chosen.by, (by) => choose({ by }))),
      field("Order of candidates", select(ORDERS, chosen.order, (order) => {
        choose({ order });
        if (!question) return;
        question.order = order;
        void following.ask();
      })), since),
    picture ? el("div", { class: "split" }, picture.element, el("aside", {}, picture.legend, answer.nearest))
      : el("div", {}, refusal(context, "berth:fleet", "see the fleet: there is no map, and the answer does not follow it"), answer.nearest),
    answer.candidates);

  /** Say whether the answer is to what the form has. */
  function compare() {
    const isOther = question !== null && JSON.stringify(question.wanted) !== JSON.stringify(request.wanted);
    fill(outdated, isOther && "The request has changed: ask again.");
    answers.classList.toggle("stale", isOther || question !== answered);
    answer.help.inert = isOther;
  }

  /** @param {Partial<typeof chosen>} changed */
  function choose(changed) {
    Object.assign(chosen, changed);
    refine(changed);
    const key = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.key;
    picture?.draw();
    if (key) /** @type {HTMLElement | null} */ (picture?.legend.querySelector(`[data-key="${CSS.escape(key)}"]`))?.focus();
  }

  /** Ask what the form has. */
  async function ask() {
    if (await request.settle()) begin({ wanted: structuredClone(request.wanted), order: chosen.order });
  }

  /** The last answer goes when the next is there. @param {Question} asked */
  function begin(asked) {
    question = asked;
    isRefused = false;
    compare();
    answer.say(el("p", {}, "Asking…"));
    refine({ ...chosen, request: JSON.stringify(asked.wanted) }, true);
    void following.ask();
  }

  /** Read the answer to the question, and show it. @param {AbortSignal} signal */
  async function readAnswer(signal) {
    const asked = /** @type {Question} */ (question);
    const isFollowing = asked === answered;
    const hosts = [...fleet.hosts.keys()];
    try {
      const { explanation, found, splitting } = await askService(context, asked, signal);
      if (signal.aborted) return;
      answered = asked;
      compare();
      answer.show(explanation, found, splitting, isFollowing);
      showTime(explanation);
      if (picture && !picture.show(explanation, hosts, isFollowing)) following.changed();
    } catch (error) {
      if (signal.aborted) return;
      if (isFollowing) showDelay(error);
      else refuse(asked, error);
    }
  }

  /** @param {Explanation} explanation */
  function showTime({ hosts }) {
    fill(since, `As of ${new Date().toLocaleTimeString()}. ${picture ? "The answer follows the fleet. " : ""}`
      + `${number(hosts.fit)} of ${counted(hosts.total, "host")} fit.`);
  }

  /** @param {unknown} error */
  function showDelay(error) {
    fill(since, `Not up to date: ${reason(error)} `, el("button", { type: "button", onclick: ask }, "Ask again"));
  }

  /** @param {Question} asked @param {unknown} error */
  function refuse(asked, error) {
    const refused = refusalOf(error);
    answered = asked;
    isRefused = !(error instanceof ApiError && error.passes);
    compare();
    answer.refuse(refused, asked.wanted);
    picture?.clear();
    fill(since);
    request.mark((refused.pointer ?? "").replace(/^\/request/, ""));
  }

  picture?.draw();
  if (begun.problem) request.tell(begun.problem);
  if (filters.has("request") && !begun.problem) ask();
  else answer.say(el("p", { class: "hint" }, "Paste what failed, or fill in the form; then ask."));
  return {
    title: "Ask",
    element: el("form", { onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      // What is being typed is read first.
      setTimeout(ask);
    } }, request.top, el("div", { class: "split asking" }, request.element, el("div", {}, outdated, answers))),
    changed: () => {
      if (question && !isRefused) following.changed();
      else picture?.draw();
    },
    dispose: () => {
      following.dispose();
      picture?.dispose();
    },
  };
}

/**
 * The request that an address has, or the one to begin with.
 *
 * @param {URLSearchParams} filters
 * @returns {{wanted: Wanted, problem: string}}
 */
function requestIn(filters) {
  const host = filters.get("host");
  const wanted = { groups: { "": { resources: { VCPU: 1 } } }, ...(host ? { host: { in: [host] } } : {}) };
  const sent = filters.get("request");
  try {
    return { wanted: sent ? asRequest(readJSON(sent)) : wanted, problem: "" };
  } catch (error) {
    return { wanted, problem: `The request in this address cannot be read. ${reason(error)}` };
  }
}

/**
 * @param {Context} context
 * @param {Question} question
 * @param {AbortSignal} signal
 * @returns {Promise<{explanation: Explanation, found: Found, splitting: number}>}
 */
async function askService({ api }, { wanted: request, order: by, seconds }, signal) {
  /** @type {Explained} */
  const answer = await api.post("berth/v1/explain", { request, paint: true, ...(seconds ? { seconds } : {}) }, signal);
  // The first alternative that fits counts.
  const explanation = answer.alternatives ? answer.alternatives.find(({ hosts }) => hosts.fit) ?? answer.alternatives[0] : answer;
  if (!explanation.hosts.fit || explanation.unknown.length) {
    return { explanation, found: null, splitting: await countSplit(api, explanation, signal) };
  }
  const body = { request, order: { by }, limit: CANDIDATES, per_host: 1 };
  const found = await api.post("berth/v1/candidates", body, signal).catch((error) => ({ problem: reason(error) }));
  return { explanation, found, splitting: 0 };
}

/**
 * How many hosts fit if amounts may come from several providers, as the page would ask it: an
 * explanation counts any number of providers.
 *
 * @param {import("./api.js").Api} api
 * @param {Explanation} explanation
 * @param {AbortSignal} signal
 * @returns {Promise<number>}
 */
async function countSplit(api, { request, split_would_fit: count, unknown }, signal) {
  const wanted = count && !unknown.length ? split(request) : null;
  if (!wanted) return 0;
  const asked = api.post("berth/v1/explain", { request: wanted, relaxations: false, nearest_max: 0 }, signal);
  return await asked.then(({ hosts }) => hosts.fit, () => 0);
}
