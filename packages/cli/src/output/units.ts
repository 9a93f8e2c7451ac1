/** Values of metrics for people, as text and as bars. Pure. */
import { bytesText, memoryText, shortTimeText } from './times.ts';

/** What was not read: never a 0. */
export const absent = '-';

const decimals: Readonly<Record<string, number>> = { percent: 0, watts: 0, celsius: 0, ratio: 2 };
/** Of values that may be of any size. */
const significant = new Set(['loss', 'rate', 'norm', 'epochs', 'steps', 'tokens/s', 'samples/s']);
const symbols: Readonly<Record<string, string>> = { percent: '%', watts: 'W', celsius: '°C' };

/** `92 %`, `612 W`, `71 GiB`, `0.44`, `4.2 kJ`; `-` for null. */
export function valueText(value: number | null, unit: string): string {
  if (value === null) return absent;
  if (unit === 'MiB') return memoryText(value);
  if (unit === 'joules') return energyText(value);
  if (unit === 'bytes/s') return rateText(value);
  if (unit === 'seconds') return shortTimeText(value);
  // A learning rate of 0.00003 must not be shown as 0.0.
  if (significant.has(unit)) return String(Number(value.toPrecision(5)));
  const symbol = symbols[unit];
  return `${value.toFixed(decimals[unit] ?? 1)}${symbol === undefined ? '' : ` ${symbol}`}`;
}

function energyText(joules: number): string {
  if (joules < 10_000) return `${joules.toFixed(0)} J`;
  return joules < 10_000_000 ? `${(joules / 1_000).toFixed(0)} kJ` : `${(joules / 1_000_000).toFixed(0)} MJ`;
}

/** @param ratio 0 to 1 */
export function ratioText(ratio: number | null): string {
  return ratio === null ? absent : `${(100 * ratio).toFixed(0)} %`;
}

/** `300 KiB/s`. */
export function rateText(bytesPerSecond: number | null): string {
  return bytesPerSecond === null ? absent : `${bytesText(Math.round(bytesPerSecond))}/s`;
}

/** A row of small bars. Pure. */

const unicodeBars = '▁▂▃▄▅▆▇█';
const asciiBars = '_.-:=+*#';

/**
 * One character a value: the lowest bar for `max / 8` and less, the highest for `max`. What is null is left blank, so that
 * a gap in the readings does not look like idleness.
 */
export function sparkline(values: readonly (number | null)[], max: number, unicode: boolean): string {
  const bars = unicode ? unicodeBars : asciiBars;
  return values
    .map((value) => {
      if (value === null) return ' ';
      const share = max > 0 ? value / max : 0;
      return bars.charAt(Math.min(bars.length - 1, Math.max(0, Math.ceil(share * bars.length) - 1)));
    })
    .join('');
}

/** `███▌      `, `#####-----`: how full something is, in `columns` columns. */
export function fullness(share: number, columns: number, unicode: boolean): string {
  const filled = Math.min(1, Math.max(0, share)) * columns;
  if (!unicode) {
    const whole = Math.round(filled);
    return '#'.repeat(whole) + '-'.repeat(columns - whole);
  }
  const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
  const whole = Math.floor(filled);
  const rest = whole < columns ? (eighths[Math.floor((filled - whole) * 8)] ?? '') : '';
  return ('█'.repeat(whole) + rest).padEnd(columns, '░');
}
