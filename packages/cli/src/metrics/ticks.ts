/** Where an axis is labelled, and how. Pure. */

/**
 * Round numbers within a range: multiples of 1, 2 or 5 times a power of ten.
 * @param wanted about how many, at least 2
 * @returns ascending; two at least where `low < high`
 */
export function ticksOf(low: number, high: number, wanted: number): readonly number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(2, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  // From the coarsest that is asked for to one of which two are within the range in any case.
  const distances = [10, 5, 2, 1, 0.5].map((each) => each * power).filter((each) => each <= (high - low) / 2);
  const coarse = distances.findLast((each) => each >= rough) ?? distances[0] ?? power / 2;
  return [coarse, ...distances.filter((each) => each < coarse)]
    .map((distance) => multiples(low, high, distance))
    .find((ticks, index, all) => ticks.length >= 2 || index === all.length - 1) as readonly number[];
}

function multiples(low: number, high: number, distance: number): readonly number[] {
  const first = Math.ceil(low / distance);
  const count = Math.max(0, Math.min(100, Math.floor(high / distance) - first + 1));
  return Array.from({ length: count }, (_, index) => roundTo((first + index) * distance, distance));
}

/** What multiplying by 0.1 adds in the sixteenth digit is no part of a label. */
function roundTo(value: number, distance: number): number {
  const digits = Math.max(0, Math.min(20, 1 - Math.floor(Math.log10(distance))));
  return distance >= 1 ? Math.round(value) : Number(value.toFixed(digits));
}

/** `2.31`, `0.00003`, `12000`, `1.5M`, `3e+30`. */
export function tickText(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-6)) return value.toPrecision(3).replace(/\.?0+e/, 'e');
  for (const [unit, symbol] of units)
    if (size >= unit) return `${Number((value / unit).toPrecision(4))}${symbol}`;
  return String(Number(value.toPrecision(5)));
}

/** A step of 120,000 stays one that can be typed. */
const units = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
] as const;
