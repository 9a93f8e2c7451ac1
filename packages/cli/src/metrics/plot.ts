/** Curves in a terminal, with axes. Pure. */
import type { MetricPoint, MetricSeries } from '@muster/common/telemetry';
import type { Colours, Style } from '../output/colours.ts';
import { textWidth } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import { Canvas, type Ink, painted } from './canvas.ts';
import { ticksOf, tickText } from './ticks.ts';

export interface PlotCurve {
  readonly points: readonly MetricPoint[];
}

export interface PlotOptions {
  /** Of the whole picture, in columns and lines; 20 by 5 at least. */
  readonly width: number;
  readonly height: number;
  readonly colours: Colours;
  readonly unicode: boolean;
}

const unicodeSigns = { tick: '┤', wall: '│', corner: '└', ground: '─', bad: '✗' } as const;
const asciiSigns = { tick: '|', wall: '|', corner: '+', ground: '-', bad: 'x' } as const;

const curveStyles: readonly Style[] = ['cyan', 'yellow', 'magenta', 'green', 'blue', 'red'];
const curveMarks = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

/**
 * How the curve of this number differs from the others: by its colour where there are colours for all, by a letter otherwise.
 * @param count of all curves
 */
export function inkOf(index: number, count: number, colours: Colours): Ink {
  const style = curveStyles[index % curveStyles.length] ?? 'cyan';
  const mark = count === 1 ? '*' : (curveMarks[index % curveMarks.length] ?? '*');
  return { mark, paint: colours[style] };
}

/** Several curves can only be distinguished by colours in braille. */
function drawsBraille(count: number, { unicode, colours }: PlotOptions): boolean {
  return unicode && (count === 1 || (colours.enabled && count <= curveStyles.length));
}

/** The sign in front of a curve's name, two columns wide. */
export function keyOf(index: number, count: number, options: PlotOptions): string {
  const { mark, paint } = inkOf(index, count, options.colours);
  return drawsBraille(count, options) ? paint('━━') : `${paint(mark)} `;
}

/** What the axis across counts. */
export type Across = 'steps' | 'time';

/** Steps, where every point has one. */
export function acrossOf(curves: readonly PlotCurve[]): Across {
  const hasSteps = ({ points }: PlotCurve) => points.every(({ step }) => typeof step === 'number');
  return curves.every(hasSteps) ? 'steps' : 'time';
}

/** Of several ranks the lowest; its attempts one behind the other. */
export function curveOf(series: readonly MetricSeries[]): PlotCurve {
  const rank = Math.min(...series.map(rankOf));
  const own = series.filter((each) => rankOf(each) === rank);
  const [first] = own;
  // Of several GPUs the first one.
  const ofOne = own.filter(({ gpuUuid }) => gpuUuid === first?.gpuUuid);
  return {
    points: ofOne.toSorted((a, b) => (a.attempt ?? 0) - (b.attempt ?? 0)).flatMap(({ points }) => points),
  };
}

function rankOf({ nodeRank }: MetricSeries): number {
  return nodeRank ?? 0;
}

interface Range {
  readonly low: number;
  readonly high: number;
}

/** A point by its place; `y` null: not finite. */
interface Spot {
  /** Of a bucket: its middle. */
  readonly x: number;
  /** Where a bucket begins and ends; of a row both are `x`. */
  readonly from: number;
  readonly to: number;
  readonly y: number | null;
  readonly low: number | null;
  readonly high: number | null;
  /** Something in it is not finite. */
  readonly isBad: boolean;
}

/**
 * @param curves with a point each, at least
 * @param unit of the values
 * @returns lines without trailing blanks
 */
export function drawPlot(
  curves: readonly PlotCurve[],
  unit: string,
  options: PlotOptions,
): readonly string[] {
  const across = acrossOf(curves);
  const startMs = Math.min(...curves.flatMap(({ points }) => points.slice(0, 1).map(({ atMs }) => atMs)));
  const spots = curves.map(({ points }) => points.map((point) => spotOf(point, across, startMs)));
  const xs = rangeOf(spots.flatMap((each) => each.flatMap(({ from, to }) => [from, to])));
  const ys = widened(
    rangeOf(
      spots.flatMap((each) => each.flatMap(({ y, low, high }) => [y, low, high].filter((v) => v !== null))),
    ),
  );
  const rows = Math.max(2, options.height - 3);
  const yTicks = ticksOf(ys.low, ys.high, Math.max(1, rows / 3));
  const labels = yTicks.map(tickText);
  const gutter = Math.max(...labels.map(textWidth), 1);
  const columns = Math.max(8, options.width - gutter - 2);
  const canvas = new Canvas(columns, rows, drawsBraille(curves.length, options));
  const placeX = (x: number) => place(x, xs, canvas.width);
  const placeY = (y: number) => place(y, ys, canvas.height);
  for (const [index, each] of spots.entries())
    drawCurve(canvas, each, inkOf(index, curves.length, options.colours), placeX, placeY);
  const byRow = new Map(yTicks.map((y, index) => [rows - 1 - place(y, ys, rows), labels[index] ?? '']));
  const { dim, red } = options.colours;
  const { tick, wall, corner, ground, bad } = options.unicode ? unicodeSigns : asciiSigns;
  const drawn = canvas.lines().map((line, row) => {
    const label = byRow.get(row);
    return `${dim(`${(label ?? '').padStart(gutter)} ${label === undefined ? wall : tick}`)}${line}`;
  });
  const badColumns = new Set(
    spots.flatMap((each) => each.filter(({ isBad }) => isBad).map(({ x }) => place(x, xs, columns))),
  );
  const floor = painted(
    Array.from({ length: columns }, (_, column) =>
      badColumns.has(column) ? { text: bad, paint: red } : { text: ground, paint: dim },
    ),
  );
  return [
    dim(`${''.padStart(gutter)} ${unit}`),
    ...drawn,
    `${dim(`${''.padStart(gutter)} ${corner}`)}${floor}`,
    dim(`${''.padStart(gutter + 2)}${xLabels(xs, columns, across)}`),
  ];
}

function spotOf(
  { atMs, value, step, bucket, notFinite = 0 }: MetricPoint,
  across: Across,
  startMs: number,
): Spot {
  const to = across === 'steps' ? (step ?? 0) : (atMs - startMs) / 1_000;
  const from = across === 'steps' ? (bucket?.firstStep ?? to) : to;
  return {
    x: (from + to) / 2,
    from,
    to,
    y: value,
    low: bucket?.min ?? null,
    high: bucket?.max ?? null,
    isBad: notFinite > 0,
  };
}

function drawCurve(
  canvas: Canvas,
  spots: readonly Spot[],
  ink: Ink,
  placeX: (x: number) => number,
  placeY: (y: number) => number,
): void {
  let before: { readonly x: number; readonly y: number } | null = null;
  for (const { x, y, low, high } of spots) {
    const at = placeX(x);
    if (low !== null && high !== null) canvas.line(at, placeY(low), at, placeY(high), ink);
    if (y === null) {
      before = null;
      continue;
    }
    const here = { x: at, y: placeY(y) };
    // A resume from an earlier step begins another line.
    if (before === null || here.x < before.x) canvas.dot(here.x, here.y, ink);
    else canvas.line(before.x, before.y, here.x, here.y, ink);
    before = here;
  }
}

/** @returns from 0 to `size - 1` */
function place(value: number, { low, high }: Range, size: number): number {
  if (high <= low) return Math.floor((size - 1) / 2);
  return Math.round(((value - low) / (high - low)) * (size - 1));
}

function rangeOf(values: readonly number[]): Range {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? { low: 0, high: 1 } : { low, high };
}

/** A line that stays where it is lies in the middle. */
function widened({ low, high }: Range): Range {
  if (high > low) return { low, high };
  const half = Math.abs(low) / 10 || 0.5;
  return { low: low - half, high: high + half };
}

/** The first and the last value, and as many between them as fit. */
function xLabels(xs: Range, columns: number, across: Across): string {
  const textOf = (x: number) => (across === 'steps' ? tickText(x) : durationText(x * 1_000));
  const last = across === 'steps' ? `step ${textOf(xs.high)}` : `${textOf(xs.high)} since start`;
  const line = Array.from({ length: columns }, () => ' ');
  const put = (text: string, from: number): void => {
    const start = Math.max(0, from);
    const end = start + text.length;
    if (end > columns || line.slice(Math.max(0, start - 2), end + 2).some((each) => each !== ' ')) return;
    line.splice(start, text.length, ...text.split(''));
  };
  put(last, columns - last.length);
  if (xs.high > xs.low) put(textOf(xs.low), 0);
  for (const tick of ticksOf(xs.low, xs.high, columns / 14)) {
    // Half a step is none.
    if (across === 'steps' && !Number.isInteger(tick)) continue;
    const text = textOf(tick);
    if (xs.high > xs.low) put(text, place(tick, xs, columns) - Math.floor(text.length / 2));
  }
  return line.join('').trimEnd();
}
