// SPDX-License-Identifier: Apache-2.0
/**
 * The service itself: version, engine, workers, revision, counts, health, and where to read more.
 * @module
 */

import { counted, el, fill, number, table } from "./dom.js";
import { facts, part, reason } from "./parts.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {import("./main.js").View} View */

/** Milliseconds between two looks. */
const EVERY = 5000;
/** The rule of the policy for the metrics, of which the permissions say nothing. */
const METRICS = "berth:metrics";

/** @param {Context} context @returns {View} */
export function serviceView(context) {
  const { api, fleet } = context;
  const text = el("pre", { tabindex: 0 });
  const state = part("State", async () => {
    const health = await api.get("readyz").then(() => el("span", { class: "ok" }, "ready"),
      (error) => el("span", { class: "problem" }, reason(error)));
    const metrics = api.forbidden.get(METRICS) ?? await api.text("metrics").catch((error) => {
      if (error.status === 403) api.forbidden.set(METRICS, reason(error));
      return reason(error);
    });
    if (text.textContent !== metrics) fill(text, metrics);
    const figure = (/** @type {RegExp} */ pattern) => pattern.exec(metrics)?.[1];
    const leases = figure(/^berth_leases (\S+)/m);
    const drained = figure(/^berth_drained_providers (\S+)/m);
    return [facts({
      Health: health,
      Version: figure(/^berth_build_info\{.*\bversion="([^"]*)"/m),
      API: `berth ${api.about.version}, Placement 1.0 to 1.39`,
      "Database engine": figure(/^berth_database_info\{.*\bengine="([^"]*)"/m),
      Workers: figure(/^berth_workers (\d+)/m),
      Revision: fleet.isLoaded ? el("code", {}, fleet.revision) : null,
      Fleet: fleet.isLoaded ? `${counted(fleet.hosts.size, "host")}, ${counted(fleet.providers.size, "provider")}`
        + (!Number(drained) ? "" : ` (${number(Number(drained))} drained)`) : null,
      Leases: leases && number(Number(leases)),
      "Signed in": `${api.user ? `as ${api.user}` : api.strategy === "noauth2" ? "not needed" : "with a token"} (auth_strategy = ${api.strategy})`,
    })];
  });
  const bounds = Object.entries(api.about).filter(([name]) => name.startsWith("max_"))
    .map(([name, value]) => [name, number(/** @type {number} */ (value))]);
  const timer = setInterval(state.changed, EVERY);
  return {
    title: "Service",
    element: el("article", {}, el("h1", {}, "Service"), state.element,
      el("h2", {}, "Documents"),
      el("ul", { class: "links" }, [
        ["../../openapi.json", "OpenAPI document of the Placement API"],
        ["../v1/openapi.json", "OpenAPI document of berth's own API"],
        ["../v1", "Version and bounds of berth's own API"],
      ].map(([href, name]) => el("li", {}, el("a", { href, rel: "noreferrer" }, name))),
        el("li", {}, "The guides: the folder docs/ of berth's source")),
      el("details", {}, el("summary", {}, "Metrics (/metrics)"), text),
      el("details", {}, el("summary", {}, "Bounds of requests"), table("Bounds", ["Bound", "Value#"], bounds))),
    changed: (roots) => void (roots === null && state.changed()),
    dispose: () => clearInterval(timer),
  };
}
