/** What a sweep takes over from trials that have ended before it. Pure. */
import { lossOf, type Objective } from './objective.ts';
import type { Observation } from './samplers/sampler.ts';
import {
  applies,
  type Parameter,
  type ParameterValue,
  type Point,
  valueAtIndex,
  valueCount,
} from './space.ts';

/** A trial of an earlier sweep, or one that somebody knows of. */
export interface KnownTrial {
  readonly params: Point;
  /** Of the objective. null: the parameters do not work. */
  readonly value: number | null;
}

/** Of one sweep: they are part of its file. */
export const knownTrialsMax = 200;
/** Of those, the share that goes to the best ones if there are more. */
const bestShare = 0.25;

/** Whether a point is one of a space: it has all parameters that apply, with values that they may have, and no others. */
export function fitsSpace(parameters: readonly Parameter[], point: Point): boolean {
  const needed = parameters.filter((parameter) => applies(parameter, point));
  return (
    needed.length === Object.keys(point).length &&
    needed.every(
      (parameter) => Object.hasOwn(point, parameter.name) && hasValue(parameter, point[parameter.name]),
    )
  );
}

function hasValue(parameter: Parameter, value: ParameterValue | undefined): boolean {
  if (value === undefined) return false;
  if (parameter.type === 'categorical') return parameter.values.includes(value);
  const { min, max, step, log } = parameter;
  if (typeof value !== 'number' || value < min || value > max) return false;
  if (step === null || log) return parameter.type === 'float' || Number.isInteger(value);
  const index = Math.round((value - min) / step);
  return index < valueCount(parameter) && valueAtIndex(parameter, index) === value;
}

/**
 * Those that fit the space, at most so many as a sweep may take: the best ones, and others from all over the rest, since a sampler
 * needs to know what is bad too.
 * @param trials in the order in which they were started
 */
export function takenOver(
  parameters: readonly Parameter[],
  objective: Pick<Objective, 'goal'>,
  trials: readonly KnownTrial[],
): readonly KnownTrial[] {
  const fitting = trials.filter(({ params }) => fitsSpace(parameters, params));
  if (fitting.length <= knownTrialsMax) return fitting;
  const loss = ({ value }: KnownTrial) =>
    value === null ? Number.POSITIVE_INFINITY : lossOf(objective, value);
  const ranked = [...fitting.keys()].sort((a, b) => {
    const [first, second] = [fitting[a], fitting[b]].map((each) => (each === undefined ? 0 : loss(each)));
    return first === second ? a - b : (first ?? 0) < (second ?? 0) ? -1 : 1;
  });
  const best = ranked.slice(0, knownTrialsMax * bestShare);
  const rest = ranked.slice(best.length).sort((a, b) => a - b);
  const room = knownTrialsMax - best.length;
  const spread = Array.from(
    { length: room },
    (_, index) => rest[Math.floor((index * rest.length) / room)] ?? 0,
  );
  const chosen = new Set([...best, ...spread]);
  return fitting.filter((_, index) => chosen.has(index));
}

/** As samplers want them, before the trials of the sweep itself. */
export function knownObservations(
  objective: Pick<Objective, 'goal'>,
  trials: readonly KnownTrial[],
): readonly Observation[] {
  return trials.map(({ params, value }) =>
    value === null
      ? { point: params, state: 'infeasible', loss: null, step: 0 }
      : { point: params, state: 'complete', loss: lossOf(objective, value), step: 0 },
  );
}
