/** Every point of a space, the values of the last parameter changing first. */
import {
  applies,
  isAllowed,
  type Parameter,
  type Point,
  type SearchSpace,
  valueAtIndex,
  valueCount,
} from '../space.ts';
import type { SuggestionRequest } from './sampler.ts';

/** A grid of more points than this is refused before it is tried. */
export const gridPointsMax = 100_000;

export function sampleGrid({ space, number }: SuggestionRequest): Point | null {
  let found = 0;
  for (const point of gridPoints(space)) {
    if (found === number) return point;
    found += 1;
  }
  return null;
}

/** The parameters that have no finite number of values, which a grid cannot have. */
export function endless(space: SearchSpace): readonly Parameter[] {
  return space.parameters.filter((parameter) => !Number.isFinite(valueCount(parameter)));
}

/** @returns the number of points that are allowed; null: more than `gridPointsMax` are there, allowed or not */
export function gridSize(space: SearchSpace): number | null {
  let allowed = 0;
  let looked = 0;
  for (const point of pointsBelow(space, 0, {})) {
    looked += 1;
    if (looked > gridPointsMax) return null;
    if (isAllowed(space, point)) allowed += 1;
  }
  return allowed;
}

function* gridPoints(space: SearchSpace): Generator<Point> {
  for (const point of pointsBelow(space, 0, {})) if (isAllowed(space, point)) yield point;
}

function* pointsBelow(space: SearchSpace, depth: number, point: Point): Generator<Point> {
  const parameter = space.parameters[depth];
  if (parameter === undefined) yield point;
  else if (!applies(parameter, point)) yield* pointsBelow(space, depth + 1, point);
  else
    for (let index = 0; index < valueCount(parameter); index += 1)
      yield* pointsBelow(space, depth + 1, {
        ...point,
        [parameter.name]: valueAtIndex(parameter, index),
      });
}
