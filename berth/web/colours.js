// SPDX-License-Identifier: Apache-2.0
/**
 * Colours that people with any kind of colour vision can tell apart.
 *
 * Fullness goes from light blue to red-brown. Each step is darker than the one before by the same
 * ratio, for those who see no hue, and both ends stand out from the light and the dark background.
 * The colours of an answer differ from each other for every kind of colour vision (CIEDE2000 of 10
 * and more, simulated after Machado et al. 2009); none that stands for a failure is green.
 * @module
 */

/** Of fullness, in tenths; the last is for 100 %. */
const FULLNESS = [
  "#b8d9f0", "#9ec8e7", "#87b9dc", "#6eaad5", "#509ec5",
  "#a38426", "#9f731a", "#9e6014", "#9c4c13", "#983816", "#8f2514",
];

/** What a tile means in an answer: a colour, and a mark that says the same without it. @typedef {{colour: string, mark: string}} Look */
/**
 * @typedef {object} Palette of an answer
 * @property {string[]} reasons of constraints that hosts fail
 * @property {string} other of all other constraints
 * @property {string} fits
 */

/** On the light background, a host that fits is the darkest tile; on the dark one, the brightest. @type {Record<"light" | "dark", Palette>} */
export const PALETTES = {
  light: { reasons: ["#ff691e", "#78d2f0", "#873cb4", "#d2c396", "#7887ff", "#b48787", "#877896"], other: "#dddddd", fits: "#0b5d2a" },
  dark: { reasons: ["#d2780f", "#9678ff", "#b41e00", "#d2b4e1", "#4b3cc3", "#877896", "#784b4b"], other: "#3a424d", fits: "#5ff09a" },
};
/** A host that was not decided in time. */
export const UNDECIDED = "#5b6470";

/** Whether the reader prefers the dark colour scheme. */
export const isDark = matchMedia("(prefers-color-scheme: dark)");

/** The palette of the colour scheme. */
export function palette() {
  return PALETTES[isDark.matches ? "dark" : "light"];
}

/** The numbers of reasons by what they are about, as long as the page is open. @type {Map<string, number>} */
const numbers = new Map();

/**
 * A number for each reason, by which it has its colour. Each keeps the one that it had in an earlier
 * answer, if that is free; a new one has the same on every page, where it can.
 *
 * @param {string[]} reasons what they are about, the most important first
 * @returns {(number | undefined)[]} undefined for those for which there is no colour left
 */
export function numbered(reasons) {
  const all = PALETTES.light.reasons.map((_, number) => number);
  /** @type {Set<number>} */
  const taken = new Set();
  /** @param {string} reason */
  const freeFor = (reason) => {
    const own = numbers.get(reason);
    if (own !== undefined && !taken.has(own)) return own;
    const free = [hash(reason) % all.length, ...all].filter((number) => !taken.has(number));
    const [kept, current] = [new Set(numbers.values()), new Set(reasons.map((each) => numbers.get(each)))];
    return free.find((number) => !kept.has(number)) ?? free.find((number) => !current.has(number)) ?? free[0];
  };
  return reasons.map((reason) => {
    const number = freeFor(reason);
    if (number === undefined) return undefined;
    taken.add(number);
    numbers.set(reason, number);
    return number;
  });
}

/** @param {string} text */
function hash(text) {
  let value = 0;
  for (const character of text) value = (value * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003;
  return value;
}

/** @param {number | undefined} number of a reason @returns {Look} */
export function lookOf(number) {
  const { reasons, other } = palette();
  return number === undefined ? { colour: other, mark: "" } : { colour: reasons[number], mark: String.fromCharCode(65 + number) };
}

/** A host without inventory of the class. */
export const NOTHING = "#d8d8d8";

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
 * Black or white: what can be seen on a colour, such as the lines over a drained host.
 *
 * @param {string} colour `#rrggbb`
 */
export function inkOn(colour) {
  const value = parseInt(colour.slice(1), 16);
  const [red, green, blue] = [value >> 16, (value >> 8) & 255, value & 255].map((channel) => (channel / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.18 ? "#ffffff" : "#000000";
}
