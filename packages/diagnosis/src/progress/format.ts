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

/**
 * @returns null where the text says that it is not a (finite) number or not known; undefined where it is no number at all
 */
export function numberIn(text: string): number | null | undefined {
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
  const value = numberOrNull(milliseconds);
  return value === null || milliseconds === undefined ? null : thousandthOf(milliseconds, value);
}

function thousandthOf(text: string, value: number): number {
  return /^[-+\d.]+$/.test(text) ? Number(`${text}e-3`) : value / 1000;
}
