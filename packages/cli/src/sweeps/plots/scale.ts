/** Axes of plots. Pure. */
import { colours, element, label, type Markup } from '../../output/svg.ts';

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** Of the range between the quartiles: values further away than this are drawn at the edge, lest one of them hide all others. */
const fenceRanges = 3;

/** @returns null: there is no finite value */
export function rangeOf(values: readonly number[]): Range | null {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return null;
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? first;
  const reach = fenceRanges * (at(0.75) - at(0.25));
  const min = reach > 0 ? Math.max(first, at(0.25) - reach) : first;
  const max = reach > 0 ? Math.min(last, at(0.75) + reach) : last;
  if (max > min) return { min, max };
  const margin = Math.abs(min) / 10 || 1;
  return { min: min - margin, max: max + margin };
}

/** From 0 to 1; what is outside of the range, or is not a number, stands at its edge. */
export function shareOf({ min, max }: Range, value: number): number {
  // Halves, because the difference of the largest numbers is infinite.
  const share = (value / 2 - min / 2) / (max / 2 - min / 2);
  return Number.isNaN(share) ? 0 : Math.min(Math.max(share, 0), 1);
}

/** Round numbers within a range, about five. */
export function axisTicks({ min, max }: Range): readonly number[] {
  const rough = max / 5 - min / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((each) => each * power >= rough) ?? 10);
  const first = Math.ceil(min / step);
  const count = Math.max(0, Math.min(20, Math.floor(max / step) - first + 1));
  return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** Four digits are enough to read. */
export function numberText(value: number): string {
  const text = String(Number(value.toPrecision(4)));
  return text.length <= 9 ? text : value.toExponential(2);
}

/** Where a plot has its content. */
export interface PlotFrame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Both axes with their numbers, and a grid. */
export function axes(
  { left, top, width, height }: PlotFrame,
  x: Range,
  y: Range,
  names: readonly [string, string],
): readonly Markup[] {
  const bottom = top + height;
  const across = axisTicks(y).flatMap((tick) => {
    const at = bottom - shareOf(y, tick) * height;
    return [
      element('line', { x1: left, x2: left + width, y1: at, y2: at, stroke: colours.grid }),
      label(left - 8, at + 4, numberText(tick), { 'text-anchor': 'end' }),
    ];
  });
  const along = axisTicks(x).map((tick) =>
    label(left + shareOf(x, tick) * width, bottom + 18, numberText(tick), { 'text-anchor': 'middle' }),
  );
  const [xName, yName] = names;
  return [
    ...across,
    ...along,
    element('line', { x1: left, x2: left + width, y1: bottom, y2: bottom, stroke: colours.text }),
    label(left + width / 2, bottom + 38, xName, { 'text-anchor': 'middle' }),
    label(left, top - 10, yName, {}, 60),
  ];
}
