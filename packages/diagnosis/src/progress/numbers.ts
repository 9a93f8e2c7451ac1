/** Numbers as programs print them. */

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
/** A double holds every integer of this many digits exactly. */
const exactDigitsMax = 15;

/**
 * Nearly every number of a log is a sign, a few digits and a point. Reading it here takes a fraction of the time that a pattern
 * and `Number` take, and lines of metrics are made of little else. The result is theirs to the last bit: integer and power of
 * ten are exact, and the quotient of two exact doubles is the double nearest to the true one.
 *
 * @param thousandths whether to move the point by three digits
 * @returns undefined: it has another form, or is not a number
 */
function shortNumber(text: string, thousandths = false): number | undefined {
  const sign = text.charCodeAt(0);
  let [integer, digits, decimals] = [0, 0, -1];
  for (let at = sign === minus || sign === plus ? 1 : 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= zero && code <= nine) {
      integer = integer * 10 + (code - zero);
      digits += 1;
      if (decimals >= 0) decimals += 1;
    } else if (code === point && decimals < 0) decimals = 0;
    else return undefined;
  }
  if (digits === 0 || digits > exactDigitsMax) return undefined;
  const size = integer / (powersOfTen[Math.max(0, decimals) + (thousandths ? 3 : 0)] ?? Number.NaN);
  return sign === minus ? -size : size;
}

const powersOfTen: readonly number[] = Array.from({ length: exactDigitsMax + 4 }, (_, power) => 10 ** power);

/**
 * @returns null where the text stands for no (finite) number, or for one that is not known; undefined where it is no number at all
 */
export function numberIn(text: string): number | null | undefined {
  const short = shortNumber(text);
  if (short !== undefined) return short;
  if (plainNumber.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? value : null;
  }
  if (groupedNumber.test(text)) return Number(text.replaceAll(',', ''));
  return notANumber.test(text) ? null : undefined;
}

/**
 * Moves the decimal point in the text: a division would turn 25593.4 ms into 25.593400000000003 s.
 *
 * @param text in milliseconds
 * @returns as `numberIn`, in seconds
 */
export function secondsIn(text: string): number | null | undefined {
  const short = shortNumber(text, true);
  if (short !== undefined) return short;
  const value = numberIn(text);
  if (typeof value !== 'number') return value;
  return /^[-+\d.]+$/.test(text) ? Number(`${text}e-3`) : value / 1000;
}
