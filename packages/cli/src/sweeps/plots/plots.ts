/** The plots of a sweep, each a figure. Pure. */
import type { TrialView } from '@muster/common/sweeps';
import type { Parameter } from '@muster/experiments/space';
import { boundsOf, toScale } from '@muster/experiments/space';
import { colours, element, type Figure, gradientColour, label, type Markup } from '../../output/svg.ts';
import type { SweepImportance } from '../importance.ts';
import type { PlotName } from './names.ts';
import { axes, numberText, type PlotFrame, type Range, rangeOf, shareOf } from './scale.ts';

export interface TrialCurveView {
  readonly trial: number;
  /** By step. */
  readonly points: readonly { readonly step: number; readonly value: number }[];
}

export interface SweepPlotData {
  readonly metric: string;
  readonly goal: 'min' | 'max';
  readonly parameters: readonly Parameter[];
  /** By number. */
  readonly trials: readonly TrialView[];
  /** Of the trials whose learning curves are drawn. */
  readonly curves: readonly TrialCurveView[];
  readonly importance: SweepImportance;
}

const width = 960;
const height = 420;
const frame: PlotFrame = { left: 80, top: 64, width: width - 112, height: height - 120 };

export function plotOf(name: PlotName, data: SweepPlotData): Figure {
  return plots[name](data);
}

const plots: Readonly<Record<PlotName, (data: SweepPlotData) => Figure>> = {
  parallel: parallelCoordinates,
  curves: learningCurves,
  history: bestOverTrials,
  importance: importanceBars,
};

function nothing(title: string, why: string): Figure {
  return { title, width, height: 100, parts: [label(16, 60, why, {}, 200)] };
}

function path(points: readonly (readonly [x: number, y: number])[]): string {
  return points
    .map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`)
    .join('');
}

type ValuedTrial = TrialView & { readonly value: number };

function withValue({ trials }: SweepPlotData): readonly ValuedTrial[] {
  return trials.filter(
    (trial): trial is ValuedTrial => trial.state === 'complete' && Number.isFinite(trial.value),
  );
}

/** Less is better. */
function lossIn({ goal }: Pick<SweepPlotData, 'goal'>, value: number): number {
  return goal === 'min' ? value : -value;
}

/** More axes or lines cannot be told apart. */
const axesMax = 14;
const linesMax = 500;

function parallelCoordinates(data: SweepPlotData): Figure {
  const title = `Parallel coordinates: parameters and ${data.metric}`;
  const all = withValue(data).toSorted((a, b) => lossIn(data, a.value) - lossIn(data, b.value));
  const range = rangeOf(all.map(({ value }) => value));
  if (range === null) return nothing(title, 'No trial has a value yet.');
  const shown = mostImportant(data);
  const step = frame.width / shown.length;
  const yOf = (share: number) => frame.top + (1 - share) * frame.height;
  const absentY = frame.top + frame.height + 22;
  // The best are drawn last, on top of the others.
  const lines = all
    .slice(0, linesMax)
    .map((trial, rank, drawn) => {
      const places = shown.map((parameter, index) => {
        const share = parameterShare(parameter, trial.params[parameter.name]);
        return [frame.left + index * step, share === null ? absentY : yOf(share)] as const;
      });
      const end = [frame.left + shown.length * step, yOf(shareOf(range, trial.value))] as const;
      const stroke = gradientColour(drawn.length === 1 ? 0 : rank / (drawn.length - 1));
      const look = {
        fill: 'none',
        stroke,
        'stroke-width': rank === 0 ? 3 : 1.2,
        'stroke-opacity': rank === 0 ? 1 : 0.6,
      };
      return element('path', { d: path([...places, end]), ...look }, [
        element('title', {}, [trialText(trial)]),
      ]);
    })
    .reverse();
  const isAnyAbsent = shown.some(({ when }) => Object.keys(when).length > 0);
  return {
    title,
    width,
    height,
    parts: [
      ...lines,
      ...shown.flatMap((parameter, index) =>
        parameterAxis(parameter, frame.left + index * step, step, index),
      ),
      ...valueAxis(data.metric, range),
      ...(isAnyAbsent
        ? [label(16, absentY + 22, 'below the axis: the parameter does not apply', {}, 60)]
        : []),
    ],
  };
}

/** In their own order. */
function mostImportant({ parameters, importance }: SweepPlotData): readonly Parameter[] {
  if (parameters.length <= axesMax) return parameters;
  const ranked = importance.parameters.slice(0, axesMax).map(({ name }) => name);
  const chosen = ranked.length === 0 ? parameters.slice(0, axesMax).map(({ name }) => name) : ranked;
  return parameters.filter(({ name }) => chosen.includes(name));
}

/** @returns null: it does not apply */
function parameterShare(parameter: Parameter, value: unknown): number | null {
  if (value === undefined) return null;
  if (parameter.type === 'categorical') {
    const index = parameter.values.findIndex((each) => each === value);
    if (index === -1) return null;
    return parameter.values.length === 1 ? 0.5 : index / (parameter.values.length - 1);
  }
  const { low, high } = boundsOf(parameter);
  return high > low ? shareOf({ min: low, max: high }, toScale(parameter, Number(value))) : 0.5;
}

const categoriesNamedMax = 12;

function parameterAxis(parameter: Parameter, x: number, step: number, index: number): readonly Markup[] {
  const letters = Math.max(6, Math.floor(step / 7));
  const bottom = frame.top + frame.height;
  const line = element('line', { x1: x, x2: x, y1: frame.top, y2: bottom, stroke: colours.text });
  const anchor = { 'text-anchor': index === 0 ? 'start' : 'middle' };
  const name = label(x, frame.top - 12, parameter.name, { ...anchor, 'font-weight': 600 }, letters);
  if (parameter.type !== 'categorical')
    return [
      line,
      name,
      label(x + 4, frame.top + 12, numberText(parameter.max), {}, letters),
      label(x + 4, bottom - 4, numberText(parameter.min), {}, letters),
    ];
  const named = parameter.values.length <= categoriesNamedMax ? parameter.values : [];
  const names = named.map((value) => {
    const y = bottom - (parameterShare(parameter, value) ?? 0) * frame.height;
    return label(x + 4, y + 4, String(value), {}, letters);
  });
  return [line, name, ...names];
}

function valueAxis(metric: string, range: Range): readonly Markup[] {
  const x = frame.left + frame.width;
  const bottom = frame.top + frame.height;
  const end = { 'text-anchor': 'end' };
  return [
    element('line', { x1: x, x2: x, y1: frame.top, y2: bottom, stroke: colours.text }),
    label(x, frame.top - 12, metric, { ...end, 'font-weight': 600 }),
    label(x - 4, frame.top + 12, numberText(range.max), end),
    label(x - 4, bottom - 4, numberText(range.min), end),
  ];
}

function trialText({ number, value, deviation, seeds, params }: TrialView): string {
  const given = Object.entries(params).map(([name, each]) => `${name}=${String(each)}`);
  const spread = deviation === null ? '' : ` ± ${numberText(deviation)} over ${seeds.length} seeds`;
  return `trial ${number}: ${value === null ? 'no value' : numberText(value)}${spread}; ${given.join(', ')}`;
}

function learningCurves(data: SweepPlotData): Figure {
  const title = `Learning curves: ${data.metric}`;
  const curves = data.curves.filter(({ points }) => points.length > 0);
  const y = rangeOf(curves.flatMap(({ points }) => points.map(({ value }) => value)));
  const steps = curves.flatMap(({ points }) => points.map(({ step }) => step));
  if (y === null) return nothing(title, 'No trial has printed the metric with a step.');
  const x = {
    min: steps.reduce((least, step) => Math.min(least, step), 0),
    max: steps.reduce((most, step) => Math.max(most, step), 1),
  };
  const best = bestOf(data)?.number;
  const lines = curves
    .toSorted((a, b) => Number(a.trial === best) - Number(b.trial === best))
    .map(({ trial, points }) => {
      const isBest = trial === best;
      const d = path(
        points.map(({ step, value }) => [
          frame.left + shareOf(x, step) * frame.width,
          frame.top + (1 - shareOf(y, value)) * frame.height,
        ]),
      );
      const look = { fill: 'none', stroke: isBest ? colours.best : colours.line };
      const strength = { 'stroke-width': isBest ? 2.5 : 1, 'stroke-opacity': isBest ? 1 : 0.45 };
      const shown = data.trials.find(({ number }) => number === trial);
      const note = element('title', {}, [shown === undefined ? `trial ${trial}` : trialText(shown)]);
      return element('path', { d, ...look, ...strength }, [note]);
    });
  return { title, width, height, parts: [...axes(frame, x, y, ['step', data.metric]), ...lines] };
}

function bestOf(data: SweepPlotData): ValuedTrial | null {
  return withValue(data).reduce<ValuedTrial | null>(
    (best, each) => (best === null || lossIn(data, each.value) < lossIn(data, best.value) ? each : best),
    null,
  );
}

function bestOverTrials(data: SweepPlotData): Figure {
  const title = `Best ${data.metric} over trials`;
  const all = withValue(data);
  const y = rangeOf(all.map(({ value }) => value));
  if (y === null) return nothing(title, 'No trial has a value yet.');
  const x = { min: 0, max: Math.max(1, data.trials.length - 1) };
  const xOf = (number: number) => frame.left + shareOf(x, number) * frame.width;
  const yOf = (value: number) => frame.top + (1 - shareOf(y, value)) * frame.height;
  const dots = all.map((trial) =>
    element(
      'circle',
      { cx: xOf(trial.number), cy: yOf(trial.value), r: 3, fill: colours.line, 'fill-opacity': 0.6 },
      [element('title', {}, [trialText(trial)])],
    ),
  );
  // One standard deviation of its seeds to both sides.
  const spreads = all.flatMap(({ number, value, deviation }) => {
    if (deviation === null) return [];
    const at = { x1: xOf(number), x2: xOf(number), stroke: colours.line };
    return [element('line', { ...at, y1: yOf(value + deviation), y2: yOf(value - deviation) })];
  });
  const steps: (readonly [number, number])[] = [];
  let best: number | null = null;
  for (const { number, value } of all) {
    if (best !== null) steps.push([xOf(number), yOf(best)]);
    if (best === null || lossIn(data, value) < lossIn(data, best)) best = value;
    steps.push([xOf(number), yOf(best)]);
  }
  const line = element('path', { d: path(steps), fill: 'none', stroke: colours.best, 'stroke-width': 2 });
  return {
    title,
    width,
    height,
    parts: [...axes(frame, x, y, ['trial', data.metric]), ...spreads, ...dots, line],
  };
}

const barHeight = 26;
const barsMax = 30;

function importanceBars({ importance, metric }: SweepPlotData): Figure {
  const title = `Importance of parameters for ${metric}`;
  const { parameters, trials } = importance;
  if (parameters.length === 0)
    return nothing(title, `${trials} trials are complete, which tell nothing yet.`);
  const shown = parameters.slice(0, barsMax);
  const left = 220;
  const room = width - left - 90;
  const bars = shown.flatMap(({ name, share }, index) => {
    const y = 48 + index * barHeight;
    return [
      label(left - 10, y + 15, name, { 'text-anchor': 'end' }, 28),
      element('rect', { x: left, y, width: share * room, height: barHeight - 8, fill: colours.line }),
      label(left + share * room + 8, y + 15, `${Math.round(share * 100)} %`),
    ];
  });
  return { title, width, height: 64 + shown.length * barHeight, parts: bars };
}
