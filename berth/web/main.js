// SPDX-License-Identifier: Apache-2.0
/**
 * The page: who is signed in, which view is open, and whether it is live.
 * @module
 */

import { current, link } from "./address.js";
import { Api, ApiError, pause } from "./api.js";
import { askView } from "./ask_view.js";
import { capacityView } from "./capacity_view.js";
import { el, field, fill, number } from "./dom.js";
import { drainsView } from "./drains_view.js";
import { Fleet } from "./fleet_state.js";
import { fleetView } from "./fleet_view.js";
import { consumerView, hostView } from "./host_view.js";
import { flavorsView, labelsView, leasesView } from "./lists_view.js";
import { reason, refusal } from "./parts.js";
import { searchBox } from "./search.js";
import { serviceView } from "./service_view.js";

/** @typedef {{api: Api, fleet: Fleet, go: (address: string) => void}} Context */
/**
 * @typedef {object} View
 * @property {string} title
 * @property {HTMLElement} element
 * @property {(roots: Set<string> | null) => void} [changed] the fleet changed: these hosts; null: anything
 * @property {() => void} [dispose]
 */

/**
 * The views; `fleet`: they show nothing without the fleet, or less to whoever may not read it. Both
 * wait until it has been read.
 *
 * @type {Record<string, {text?: string, fleet?: "needed" | "used",
 *   open: (context: Context, address: import("./address.js").Address) => View}>}
 */
const VIEWS = {
  fleet: { text: "Fleet", fleet: "needed", open: fleetView },
  ask: { text: "Ask", fleet: "used", open: askView },
  capacity: { text: "Capacity", fleet: "used", open: capacityView },
  drains: { text: "Drains", open: drainsView },
  leases: { text: "Leases", open: leasesView },
  flavors: { text: "Flavors", open: flavorsView },
  labels: { text: "Labels", fleet: "used", open: labelsView },
  service: { text: "Service", open: serviceView },
  hosts: { fleet: "needed", open: hostView },
  consumers: { open: consumerView },
};

/** Milliseconds between two repaints for changes. */
const REPAINT = 250;
const AGAIN = " The page tries again by itself.";

/** @param {string} id */
function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

const header = byId("header");
const notices = byId("notices");
const content = byId("content");
const api = new Api();
const fleet = new Fleet(api);
/** @type {Context} */
const context = { api, fleet, go: (address) => void (location.hash = address) };
/** @type {View | null} */
let view = null;
/** Whether the view was opened without the fleet, of which it would show something. */
let lacksFleet = false;
/** When the page ceased to be live; null while it is. @type {Date | null} */
let lostAt = null;
let repainting = 0;
/** @type {Set<string> | null} */
let waiting = new Set();

const search = searchBox(context);
const light = el("span", { class: "light", role: "status" });
const links = Object.entries(VIEWS).filter(([, { text }]) => text).map(([name, { text }]) => el("a", { href: link(name) }, text));

/** The header of whoever is signed in, or of nobody. */
function showHeader() {
  fill(header,
    el("a", { class: "brand", href: link("fleet") }, "berth"),
    api.isSignedIn && [
      el("nav", { "aria-label": "Views" }, links), search, light,
      api.strategy !== "noauth2" && el("button", { type: "button", onclick: signOut, title: api.user && `Signed in as ${api.user}` }, "Sign out"),
    ]);
}

function showLight() {
  light.className = fleet.isLive ? "light live" : "light";
  light.hidden = fleet.isRefused && !fleet.isLoaded;
  fill(light, fleet.isLive ? "Live" : fleet.isLoaded || fleet.trouble ? "Not live" : "Reading");
  // What could not be read in the meantime is read now; a policy may have changed with the service.
  if (fleet.isLive && lostAt) void api.readRights().catch(() => undefined).then(() => changed(null));
  lostAt = fleet.isLive ? null : lostAt ?? new Date();
  fill(notices, lostAt && fleet.trouble && (fleet.isLoaded || !fleet.isRefused) && el("p", { class: "problem" }, fleet.isLoaded
    ? `${fleet.trouble} You see the fleet as it was at ${lostAt.toLocaleTimeString()}.${fleet.isReading || fleet.isRefused ? "" : AGAIN}`
    : `The fleet cannot be read. ${fleet.trouble}${AGAIN}`));
  const progress = document.getElementById("progress");
  if (progress && fleet.isRefused) open();
  else if (progress) fill(progress, progressText());
}

function progressText() {
  return fleet.trouble ? "This view needs the fleet." : "Reading the fleet…";
}

function open() {
  view?.dispose?.();
  view = null;
  if (fleet.isRefused && !fleet.isLoaded && /^#?\/?$/.test(location.hash)) history.replaceState(null, "", link("ask"));
  const address = current();
  const name = Object.hasOwn(VIEWS, address.view) ? address.view : "fleet";
  for (const each of links) {
    if (each.hash === link(name)) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  const use = VIEWS[name].fleet;
  lacksFleet = use !== undefined && !fleet.isLoaded;
  if (lacksFleet && !fleet.isRefused) {
    fill(content, el("p", { id: "progress" }, progressText()));
    return;
  }
  try {
    view = lacksFleet && use === "needed" ? refusedView() : VIEWS[name].open(context, address);
  } catch (error) {
    view = brokenView(error);
  }
  document.title = `${view.title} – berth`;
  fill(content, view.element);
}

/** What stands for a view of which the caller may see nothing. @returns {View} */
function refusedView() {
  return { title: "Fleet", element: el("article", {}, el("h1", {}, "Fleet"), refusal(context, "berth:fleet", "see the fleet") || "") };
}

/** What stands for a view that an address, or an answer, has broken. @param {unknown} error @returns {View} */
function brokenView(error) {
  return { title: "Problem", element: el("article", {}, el("h1", {}, "This view cannot be shown"),
    el("p", { class: "problem", role: "alert" }, reason(error)),
    el("p", {}, "The address may have been cut off or mistyped. ", el("a", { href: link("fleet") }, "Show the fleet"))) };
}

/** Another view begins at its top, for the eyes and for the keyboard. */
function navigate() {
  if (!api.isSignedIn) return;
  open();
  // Once more for each view that somebody opens: the policy may have changed.
  if (fleet.isRefused) void api.readRights().catch(() => undefined).then(() => fleet.follow());
  window.scrollTo(0, 0);
  content.focus({ preventScroll: true });
}

/** @param {Set<string> | null} roots */
function changed(roots) {
  if (!view || (lacksFleet && fleet.isLoaded)) {
    open();
    return;
  }
  if (roots && waiting) roots.forEach((root) => waiting?.add(root));
  else waiting = null;
  if (repainting) return;
  repainting = window.setTimeout(() => {
    repainting = 0;
    const moved = waiting;
    waiting = new Set();
    try {
      view?.changed?.(moved);
    } catch (error) {
      // A picture that no longer follows the fleet must not stay there as if it did.
      view?.dispose?.();
      view = brokenView(error);
      fill(content, view.element);
    }
  }, REPAINT);
}

/** @param {string} [trouble] */
function showSignIn(trouble) {
  view?.dispose?.();
  view = null;
  showHeader();
  document.title = "Sign in – berth";
  const hasPassword = api.strategy === "http_basic";
  const user = el("input", { autocomplete: "username", required: true, spellcheck: "false" });
  const secret = el("input", { type: "password", autocomplete: hasPassword ? "current-password" : "off", required: true });
  const keep = el("input", { type: "checkbox" });
  const problem = el("p", { class: "problem", role: "alert" }, trouble);
  /** @param {Event} event */
  async function submit(event) {
    event.preventDefault();
    try {
      await api.signIn(hasPassword ? { user: user.value, password: secret.value } : { token: secret.value.trim() }, keep.checked);
      start();
    } catch (error) {
      fill(problem, error instanceof ApiError && error.status === 401
        ? `The service does not accept ${hasPassword ? "this name and password" : "this token"}.` : reason(error));
    }
  }
  fill(content, el("form", { class: "sign-in", onsubmit: submit }, el("h1", {}, "Sign in"), problem,
    hasPassword && field("User", user),
    field(hasPassword ? "Password" : "Token", secret, hasPassword ? undefined : signInHint()),
    el("label", { class: "check" }, keep, " Stay signed in until this tab is closed"),
    el("button", { type: "submit", class: "primary" }, "Sign in")));
  (hasPassword ? user : secret).focus();
}

function signInHint() {
  return api.strategy === "keystone"
    ? "A token of Keystone: openstack token issue -f value -c id"
    : "A token that berth token create printed.";
}

function signOut() {
  fleet.stop();
  api.signOut();
  showSignIn();
}

function start() {
  showHeader();
  open();
  fleet.follow();
}

/**
 * Ask the service who may sign in and how, until it answers; then begin.
 *
 * @param {string} [trouble] why somebody who was signed in is not any more
 */
async function boot(trouble) {
  for (let attempt = 0; ; attempt++) {
    try {
      await api.introduce();
      break;
    } catch (error) {
      fill(content, el("p", { class: "problem", role: "alert" }, reason(error) + AGAIN));
      await pause(attempt);
    }
  }
  if (api.isSignedIn) start();
  else showSignIn(trouble);
}

fleet.addEventListener("live", showLight);
fleet.addEventListener("loading", (event) => {
  const { read, total } = /** @type {CustomEvent} */ (event).detail;
  const progress = document.getElementById("progress");
  if (progress) fill(progress, `Reading the fleet: ${number(read)} of ${number(total)} providers`);
});
fleet.addEventListener("changed", (event) => changed(/** @type {CustomEvent} */ (event).detail));
api.addEventListener("expired", () => {
  fleet.stop();
  void boot("You are signed out: the service no longer accepts what you signed in with.");
});
window.addEventListener("hashchange", navigate);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address is not that of a view
  content.focus();
});
void boot();
