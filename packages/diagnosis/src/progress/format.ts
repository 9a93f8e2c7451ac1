/** What every format of metrics is made of: data and one function of a line's text. */
import type { Framework, MetricRow } from '../words.ts';

export type Values = MetricRow['values'];

export interface LineFormat {
  readonly framework: Framework;
  /** A line without any of these is not one of this format. Found much faster than a pattern, so they spare it most lines. */
  readonly marks: readonly string[];
  /** null: no line of metrics. */
  read(text: string): Values | null;
}

/** As far as Python, C and people write numbers; bounded, so that no line can make a search slow. */
const plainNumber = /^[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,4})?$/;
const groupedNumber = /^[-+]?\d{1,3}(?:,\d{3}){1,8}(?:\.\d{0,20})?$/;
/** Lightning appends `.0` to whatever has no point. */
const notANumber = /^[-+]?(?:nan|inf|infinity|n\/a)(?:\.0)?$/i;

const minus = 0x2d;
const plus = 0x2b;
const point = 0x2e;
const zero = 0x30;
const nine = 0x39;
const upperE = 0x45;
const lowerE = 0x65;
/** So many digits are an integer that a double holds exactly. */
const exactDigitsMax = 15;
/** All that a double holds exactly. */
const powersOfTen: readonly number[] = Array.from({ length: 23 }, (_, power) => Number(`1e${power}`));

/**
 * Nearly every number of a log is a sign, a few digits with a point among them, and at most a small exponent. Reading it here
 * takes a fraction of the time that a pattern and `Number` take, and lines of metrics are made of little else. The result is
 * theirs to the last bit: the integer and the power of ten are exact, and what one operation on two exact doubles returns is
 * the double nearest to the true value.
 *
 * @param pointMovedBy digits to the right
 * @returns undefined: it is another number, or none
 */
function shortNumber(text: string, pointMovedBy: number): number | undefined {
  const sign = text.charCodeAt(0);
  let [integer, digits, power, isFraction] = [0, 0, pointMovedBy, false];
  for (let at = sign === minus || sign === plus ? 1 : 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= zero && code <= nine) {
      integer = integer * 10 + (code - zero);
      digits += 1;
      if (isFraction) power -= 1;
    } else if (code === point && !isFraction) isFraction = true;
    else if (code === lowerE || code === upperE) {
      power += exponentAt(text, at + 1);
      break;
    } else return undefined;
  }
  if (digits === 0 || digits > exactDigitsMax) return undefined;
  const factor = powersOfTen[Math.abs(power)];
  if (factor === undefined) return undefined;
  const size = power < 0 ? integer / factor : integer * factor;
  return sign === minus ? -size : size;
}

/** @returns NaN: it is a large one, or none */
function exponentAt(text: string, from: number): number {
  const sign = text.charCodeAt(from);
  const first = sign === minus || sign === plus ? from + 1 : from;
  let exponent = 0;
  for (let at = first; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < zero || code > nine) return Number.NaN;
    exponent = exponent * 10 + (code - zero);
  }
  if (first === text.length || text.length - first > 2) return Number.NaN;
  return sign === minus ? -exponent : exponent;
}

/**
 * @returns null where the text says that it is not a (finite) number or not known; undefined where it is no number at all
 */
export function numberIn(text: string): number | null | undefined {
  const short = shortNumber(text, 0);
  if (short !== undefined) return short;
  if (plainNumber.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? value : null;
  }
  if (groupedNumber.test(text)) return Number(text.replaceAll(',', ''));
  return notANumber.test(text) ? null : undefined;
}

/**
 * For values that are worth no row of their own. A loss is read with `numberIn`, and a line in which it is no number at all
 * is no line of metrics: as null it would be taken for a loss that is not a number.
 */
export function numberOrNull(text: string | undefined): number | null {
  return text === undefined ? null : (numberIn(text) ?? null);
}

/** Moves the decimal point in the text: a division would turn 25593.4 ms into 25.593400000000003 s. */
export function secondsOf(milliseconds: string | undefined): number | null {
  if (milliseconds === undefined) return null;
  const short = shortNumber(milliseconds, -3);
  if (short !== undefined) return short;
  const value = numberOrNull(milliseconds);
  return value === null ? null : thousandthOf(milliseconds, value);
}

function thousandthOf(text: string, value: number): number {
  return /^[-+\d.]+$/.test(text) ? Number(`${text}e-3`) : value / 1000;
}
