// SPDX-License-Identifier: Apache-2.0
/**
 * Colours that people with any kind of colour vision can tell apart.
 *
 * Fullness goes from light blue to red-brown. Each step is darker than the one before by the same
 * ratio, for those who see no hue, and both ends stand out from the light and the dark background.
 * Reasons are Paul Tol's "light" qualitative colours (https://personal.sron.nl/~pault/).
 * @module
 */

/** Of fullness, in tenths; the last is for 100 %. */
const FULLNESS = [
  "#b8d9f0", "#9ec8e7", "#87b9dc", "#6eaad5", "#509ec5",
  "#a38426", "#9f731a", "#9e6014", "#9c4c13", "#983816", "#8f2514",
];

const REASONS = ["#ee8866", "#77aadd", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00"];
/** The number of constraints that have a colour of their own. */
export const REASONS_MAX = REASONS.length;
/** Of all other constraints. */
export const OTHER_REASONS = "#dddddd";

/** A host that fits: dark among the pale colours of the reasons, for any colour vision. */
export const FITS = "#0b7a3b";
/** A host that was not decided in time. */
export const UNDECIDED = "#5b6470";
/** A host without inventory of the class. */
export const NOTHING = "#c9ccd1";

/** The number of colours of fullness. */
export const STEPS = FULLNESS.length;

/**
 * The step of a fullness: 0 for nothing used, the last for all of it.
 *
 * @param {number} fullness 0..1
 */
export function stepOf(fullness) {
  return fullness >= 1 ? STEPS - 1 : Math.max(0, Math.floor(fullness * (STEPS - 1)));
}

/** @param {number} step */
export function ofStep(step) {
  return FULLNESS[step];
}

/** @param {number} step */
export function stepText(step) {
  return step === STEPS - 1 ? "full" : `${step * 10}–${step * 10 + 10} %`;
}

/**
 * @param {number} index of the constraint
 */
export function ofReason(index) {
  return REASONS[index];
}

/**
 * The colour of the lines over a drained host, which can be seen on its own colour.
 *
 * @param {string} colour `#rrggbb`
 */
export function hatchOn(colour) {
  const value = parseInt(colour.slice(1), 16);
  const [red, green, blue] = [value >> 16, (value >> 8) & 255, value & 255].map((channel) => (channel / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.18 ? "#ffffff" : "#000000";
}
