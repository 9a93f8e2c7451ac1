/** Durations as people write them: `24h`, `1h30m`, `90s`, `500ms`, `2d`, or a bare number of seconds. */

const unitsMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;
type Unit = keyof typeof unitsMs;

/** Each unit at most once, largest first, so that a typing slip such as `1m2m` is refused and not added up. */
const number = String.raw`\d+(?:\.\d+)?`;
const ordered = `(?=\\d)(?:${number}d)?(?:${number}h)?(?:${number}m)?(?:${number}s)?(?:${number}ms)?`;
export const durationPattern = new RegExp(`^(?:${ordered}|${number})$`);

/** Bounds the work on hostile text; the longest sensible duration is far shorter. */
const lengthMax = 64;

/** @returns whole milliseconds ≥ 0, or null for text that is no duration or finer than a millisecond */
export function parseDurationMs(written: string | number): number | null {
  const text = String(written);
  if (text.length > lengthMax || !durationPattern.test(text)) return null;
  const parts = [...text.matchAll(/([\d.]+)(ms|[dhms])?/g)];
  const total = parts.reduce(
    (sum, [, amount, unit = 's']) => sum + Number(amount) * unitsMs[unit as Unit],
    0,
  );
  // 1.1 × 60,000 is 66,000.00000000001 in binary floating point.
  const whole = Math.round(total);
  return Number.isSafeInteger(whole) && Math.abs(total - whole) < 1e-6 ? whole : null;
}

/** The shortest exact form with one unit: 90,000 → `90s`, 5,400,000 → `90m`. The inverse of `parseDurationMs`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s';
  const unit = (Object.keys(unitsMs) as Unit[]).find((candidate) => ms % unitsMs[candidate] === 0) ?? 'ms';
  return `${ms / unitsMs[unit]}${unit}`;
}

const unitWords: readonly (readonly [RegExp, Unit])[] = [
  [/(?:milliseconds?|millis|msecs?)/g, 'ms'],
  [/(?:days?)/g, 'd'],
  [/(?:hours?|hrs?)/g, 'h'],
  [/(?:minutes?|mins?)/g, 'm'],
  [/(?:seconds?|secs?)/g, 's'],
];

/** The duration probably meant: `24 hours` → `24h`, `01:30:00` → `90m`. null when nothing comes to mind. */
export function suggestDuration(text: string): string | null {
  if (text.length > lengthMax) return null;
  const clock = /^(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)$/.exec(text);
  if (clock) {
    const [days, hours, minutes, seconds] = clock.slice(1).map((digits) => Number(digits ?? 0));
    return formatDuration(parseDurationMs(`${days}d${hours}h${minutes}m${seconds}s`) ?? 0);
  }
  const spaceless = text.toLowerCase().replaceAll(/[\s,]+|and/g, '');
  const short = unitWords.reduce((rest, [words, unit]) => rest.replaceAll(words, unit), spaceless);
  return short !== text && parseDurationMs(short) !== null ? short : null;
}
