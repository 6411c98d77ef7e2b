// SPDX-License-Identifier: Apache-2.0
/**
 * The answer to a question as a picture: hosts that fit stand out, and every other host has the
 * colour of the first constraint that it fails.
 * @module
 */

import { UNDECIDED, isDark, lookOf, numbered, palette } from "./colours.js";
import { el } from "./dom.js";
import { HostList, amountLines, groupsOf, hostMap, legendTable, press } from "./fleet_view.js";
import { refill } from "./keeping.js";
import { failureText } from "./words.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./fleet_state.js").Host} Host */
/** @typedef {import("./answers.js").Explanation} Explanation */

/** Bytes of a painted host. */
const [FITS_BYTE, UNDECIDED_BYTE] = [255, 254];
/** Keys of the legend beside the pointers of constraints. */
const [FIT, LATE] = ["fits", "undecided"];

/**
 * @param {Context} context
 * @param {{by: string, only: string}} chosen the label by which hosts are grouped, and the entry
 *   of the legend whose hosts are shown alone
 * @param {(changed: {only: string}) => void} choose
 */
export function answerMap(context, chosen, choose) {
  const { fleet } = context;
  const picture = hostMap(context, tipOf);
  const entries = el("div", {});
  const list = new HostList(true);
  const legend = el("section", { "aria-label": "Legend" }, entries, list.element);
  /** @type {Explanation | null} */
  let explanation = null;
  /** The constraint that each host fails first, by its pointer. @type {Map<string, string>} */
  let paint = new Map();
  /** @param {Host} host */
  const keyOf = (host) => paint.get(host.uuid) ?? LATE;

  /** Why a host does not fit, and what it has of the classes asked for. @param {Host} host */
  function tipOf(host) {
    if (!explanation) return amountLines(host);
    const { stages, request } = explanation;
    const stage = stages.find(({ at }) => at === keyOf(host));
    const text = stage ? failureText(stage) : keyOf(host) === FIT ? "fits" : "not decided in time";
    /** @type {Map<string, boolean>} */
    const isWhole = new Map();
    for (const { resources = {}, split = {} } of Object.values(request.groups ?? {})) {
      for (const name of Object.keys(resources)) isWhole.set(name, Boolean(isWhole.get(name)) || !(name in split));
    }
    return [el("div", { class: "reason" }, text), ...amountLines(host, isWhole)];
  }

  function draw() {
    const hosts = fleet.ordered;
    const groups = groupsOf(context, hosts, chosen.by);
    const meanings = explanation ? entriesOf(explanation, paint) : [];
    const looks = new Map(meanings.map((entry) => [entry.key, entry]));
    picture.show(groups, (host) => {
      const key = keyOf(host);
      const { colour = UNDECIDED, mark = "" } = looks.get(key) ?? {};
      return { colour, mark, dim: Boolean(chosen.only) && key !== chosen.only };
    });
    press(entries, chosen.only);
    refill(entries, explanation && legendTable(meanings, hosts, groups, (host, key) => keyOf(host) === key, chosen.only,
      (only) => choose({ only })));
    const listed = explanation && chosen.only ? hosts.filter((host) => keyOf(host) === chosen.only) : [];
    list.element.hidden = !listed.length;
    list.show(listed.length, () => listed);
  }

  isDark.addEventListener("change", draw);
  return {
    element: picture.element, legend, draw,
    /**
     * @param {Explanation} answer
     * @param {string[]} before the hosts that there were when it was asked for
     * @param {boolean} isFollowing whether it answers the same request as the last
     * @returns {boolean} whether the hosts have its colours: those of the last answer stay if hosts
     *   came or went in the meantime
     */
    show: (answer, before, isFollowing) => {
      const painted = paintOf(answer, [...fleet.hosts.keys()]) ?? paintOf(answer, before);
      explanation = answer;
      paint = painted ?? (isFollowing ? paint : new Map());
      // Of a request that was asked before, or in an address that somebody changed.
      if (chosen.only && !entriesOf(answer, paint).some(({ key }) => key === chosen.only)) choose({ only: "" });
      else draw();
      return painted !== null;
    },
    /** There is no answer. */
    clear: () => {
      explanation = null;
      paint = new Map();
      draw();
    },
    dispose: () => {
      isDark.removeEventListener("change", draw);
      picture.dispose();
    },
  };
}

/**
 * What the paint of an answer says of each host: bytes in the order of UUIDs.
 *
 * @param {Explanation} answer
 * @param {string[]} uuids
 * @returns {Map<string, string> | null} null if it is about other hosts
 */
function paintOf({ paint, stages }, uuids) {
  const bytes = Uint8Array.from(atob(paint), (character) => character.charCodeAt(0));
  if (bytes.length !== uuids.length) return null;
  return new Map(uuids.sort().map((uuid, at) =>
    [uuid, bytes[at] === FITS_BYTE ? FIT : bytes[at] === UNDECIDED_BYTE ? LATE : stages[bytes[at]].at]));
}

/** What a constraint is about, however much it asks for and wherever it stands. @param {import("./answers.js").Stage} stage */
function subjectOf({ at, text, has }) {
  return has === undefined ? `${at.replace(/\/\d+$/, "")} ${text}` : at;
}

/**
 * The legend of an answer. The constraints at which most hosts fail have colours of their own.
 *
 * @param {Explanation} explanation
 * @param {Map<string, string>} paint
 * @returns {import("./fleet_view.js").Entry[]}
 */
function entriesOf({ stages, verdict }, paint) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const key of paint.values()) counts.set(key, (counts.get(key) ?? 0) + 1);
  const failed = stages.filter(({ at }) => counts.has(at));
  const most = [...failed].sort((one, other) => (counts.get(other.at) ?? 0) - (counts.get(one.at) ?? 0));
  const numbers = numbered(most.map(subjectOf));
  return [
    { key: FIT, text: verdict === "unknown_name" ? "fits but for the unknown names" : "fits", colour: palette().fits, mark: "✓" },
    ...failed.map((stage) => ({ key: stage.at, text: failureText(stage), ...lookOf(numbers[most.indexOf(stage)]),
      ...(stage.at === "/drains" ? { hatched: true, mark: "" } : {}) })),
    { key: LATE, text: "not decided in time", colour: UNDECIDED, mark: "?" },
  ];
}
