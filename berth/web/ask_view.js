// SPDX-License-Identifier: Apache-2.0
/**
 * Ask where a request fits, and why not elsewhere. The answer follows the fleet; it is to the
 * request that was asked, and says so when the form has another one.
 * @module
 */

import { refine } from "./address.js";
import { CANDIDATES, answerPanel, refusalOf } from "./ask_answer.js";
import { answerMap } from "./ask_map.js";
import { requestForm } from "./ask_request.js";
import { counted, el, field, fill, number, select } from "./dom.js";
import { groupings } from "./fleet_view.js";
import { follower, reason } from "./parts.js";
import { asRequest, readJSON } from "./wanted.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./main.js").View} View */
/** @typedef {import("./wanted.js").Wanted} Wanted */
/** @typedef {import("./answers.js").Explained} Explained */
/** @typedef {import("./answers.js").Explanation} Explanation */
/** @typedef {import("./ask_answer.js").Found} Found */

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
  /** The request that was asked. @type {Wanted | null} */
  let asked = null;
  let isAnswered = false;
  let turn = 0;

  const begun = requestIn(filters);
  const request = requestForm(context, begun.wanted, filters.has("request"), { changed: compare, ask: () => void ask() });
  const answer = answerPanel(context, {
    askInstead: (wanted) => {
      request.change(wanted);
      void ask();
    },
    askPatiently: () => void ask({ seconds: PATIENT }),
  });
  const picture = answerMap(context, chosen, choose);
  const since = el("p", { class: "hint" });
  const outdated = el("p", { class: "problem", role: "status" });
  const following = follower(() => answered({ isQuiet: true }));
  const answers = el("div", {}, answer.verdict, answer.help,
    el("div", { class: "controls" },
      field("Group by", select(groupings(fleet), chosen.by, (by) => choose({ by }))),
      field("Order of candidates", select(ORDERS, chosen.order, (order) => {
        choose({ order });
        if (isAnswered) void ask({ isQuiet: true });
      })), since),
    el("div", { class: "split" }, picture.element, el("aside", {}, picture.legend, answer.nearest)), answer.candidates);

  /** Say whether the answer is to what the form has. */
  function compare() {
    const isOther = asked !== null && JSON.stringify(asked) !== JSON.stringify(request.wanted);
    fill(outdated, isOther && "The request has changed: ask again.");
    answers.classList.toggle("stale", isOther);
    answer.help.inert = isOther;
  }

  /** @param {Partial<typeof chosen>} changed */
  function choose(changed) {
    Object.assign(chosen, changed);
    refine(changed);
    const key = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.key;
    picture.draw();
    if (key) /** @type {HTMLElement | null} */ (picture.legend.querySelector(`[data-key="${CSS.escape(key)}"]`))?.focus();
  }

  /** @param {{isQuiet?: boolean, seconds?: number}} [how] quiet: what is shown stays until there is an answer */
  function ask(how) {
    return following.asked(answered(how));
  }

  /** @param {{isQuiet?: boolean, seconds?: number}} [how] */
  async function answered({ isQuiet = false, seconds } = {}) {
    if (!request.isRead) return;
    const own = ++turn;
    const wanted = isQuiet && asked ? asked : structuredClone(request.wanted);
    if (!isQuiet) begin(wanted);
    try {
      const { explanation, found } = await askService(context, wanted, chosen.order, seconds);
      if (own !== turn) return;
      if (!isQuiet) compare();
      isAnswered = true;
      answer.show(explanation, found, isQuiet);
      showTime(explanation);
      if (!picture.show(explanation, isQuiet)) following.changed();
    } catch (error) {
      if (own !== turn) return;
      if (isQuiet && isAnswered) showDelay(error);
      else refuse(wanted, error);
    }
  }

  /** @param {Wanted} wanted */
  function begin(wanted) {
    asked = wanted;
    compare();
    // The last answer goes when the next is there.
    answers.classList.add("stale");
    answer.say(el("p", {}, "Asking…"));
    refine({ ...chosen, request: JSON.stringify(wanted) }, true);
  }

  /** @param {Explanation} explanation */
  function showTime({ hosts }) {
    fill(since, `As of ${new Date().toLocaleTimeString()}. The answer follows the fleet. `
      + `${number(hosts.fit)} of ${counted(hosts.total, "host")} fit.`);
  }

  /** @param {unknown} error */
  function showDelay(error) {
    fill(since, `Not up to date: ${reason(error)} `, el("button", { type: "button", onclick: () => void ask() }, "Ask again"));
  }

  /** @param {Wanted} wanted @param {unknown} error */
  function refuse(wanted, error) {
    const refusal = refusalOf(error);
    isAnswered = false;
    compare();
    answer.refuse(refusal, wanted);
    picture.clear();
    fill(since);
    request.mark((refusal.pointer ?? "").replace(/^\/request/, ""));
  }

  picture.draw();
  if (begun.problem) request.tell(begun.problem);
  if (filters.has("request") && !begun.problem) void ask();
  else answer.say(el("p", { class: "hint" }, "Paste what failed, or fill in the form; then ask."));
  return {
    title: "Ask",
    element: el("form", { onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      // What is being typed is read first.
      setTimeout(() => ask());
    } }, request.top, el("div", { class: "split asking" }, request.element, el("div", {}, outdated, answers))),
    changed: () => (asked ? following.changed() : picture.draw()),
    dispose: () => {
      turn++;
      following.dispose();
      picture.dispose();
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
 * @param {Wanted} request
 * @param {string} by the order of the candidates
 * @param {number} [seconds]
 * @returns {Promise<{explanation: Explanation, found: Found}>}
 */
async function askService({ api }, request, by, seconds) {
  /** @type {Explained} */
  const answer = await api.post("berth/v1/explain", { request, paint: true, ...(seconds ? { seconds } : {}) });
  // The first alternative that fits counts.
  const explanation = answer.alternatives ? answer.alternatives.find(({ hosts }) => hosts.fit) ?? answer.alternatives[0] : answer;
  if (!explanation.hosts.fit || explanation.unknown.length) return { explanation, found: null };
  const body = { request, order: { by }, limit: CANDIDATES, per_host: 1 };
  return { explanation, found: await api.post("berth/v1/candidates", body).catch((error) => ({ problem: reason(error) })) };
}
