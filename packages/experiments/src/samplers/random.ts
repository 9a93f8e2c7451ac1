/** Independent points, uniform on the scale of each parameter. */
import { Chance } from '../chance.ts';
import {
  applies,
  EmptySpaceError,
  isAllowed,
  type ParameterValue,
  type Point,
  type SearchSpace,
  valueAtShare,
} from '../space.ts';
import type { SuggestionRequest } from './sampler.ts';

/** Points that are drawn before a space counts as empty. */
const drawsMax = 10_000;

export function sampleRandom({ space, seed, number }: SuggestionRequest): Point {
  return randomPoint(space, new Chance(seed, `random/${number}`));
}

/** @throws {EmptySpaceError} */
export function randomPoint(space: SearchSpace, chance: Chance): Point {
  for (let draw = 0; draw < drawsMax; draw += 1) {
    const point = pointAt(space, () => chance.next());
    if (isAllowed(space, point)) return point;
  }
  throw new EmptySpaceError(`none of ${drawsMax} random points meets the constraints`);
}

/** The point at a share of each parameter's values. @param shareOf is asked for parameters that do not apply, too */
export function pointAt(space: SearchSpace, shareOf: (index: number) => number): Point {
  const point: Record<string, ParameterValue> = {};
  for (const [index, parameter] of space.parameters.entries()) {
    const share = shareOf(index);
    if (applies(parameter, point)) point[parameter.name] = valueAtShare(parameter, share);
  }
  return point;
}
