/** What a sweep searches: parameters, when each of them applies, and which combinations are allowed. Pure. */

export type ParameterValue = number | string | boolean;

/** One point of a space: the values of the parameters that apply there. */
export type Point = Readonly<Record<string, ParameterValue>>;

/** The parameter applies only where each of these others applies and has one of its values. */
export type When = Readonly<Record<string, readonly ParameterValue[]>>;

interface ParameterBase {
  readonly name: string;
  /** Empty: it always applies. */
  readonly when: When;
}

/** Both ends included. With a step, the values are `min`, `min + step` and so on. */
export interface FloatParameter extends ParameterBase {
  readonly type: 'float';
  readonly min: number;
  readonly max: number;
  readonly log: boolean;
  /** null: any value between the ends. Never together with `log`. */
  readonly step: number | null;
}

/** Both ends are included. `min`, `max` and `step` are integers. */
export interface IntParameter extends ParameterBase {
  readonly type: 'int';
  readonly min: number;
  readonly max: number;
  readonly log: boolean;
  /** 1 with `log`. */
  readonly step: number;
}

/** Values without an order. */
export interface CategoricalParameter extends ParameterBase {
  readonly type: 'categorical';
  readonly values: readonly ParameterValue[];
}

export type Parameter = FloatParameter | IntParameter | CategoricalParameter;

export interface SearchSpace {
  /** A parameter stands behind those that its `when` names. */
  readonly parameters: readonly Parameter[];
  /** Whether a point is allowed, which is asked about points with all of their parameters only. null: every point is. */
  readonly allows: ((point: Point) => boolean) | null;
}

/** A space in which no allowed point was found. */
export class EmptySpaceError extends Error {
  override readonly name = 'EmptySpaceError';
}

/** Whether a parameter applies, given those before it. */
export function applies({ when }: Parameter, point: Point): boolean {
  return Object.entries(when).every(([name, values]) => {
    const value = Object.hasOwn(point, name) ? point[name] : undefined;
    return value !== undefined && values.includes(value);
  });
}

export function isAllowed({ allows }: SearchSpace, point: Point): boolean {
  return allows === null || allows(point);
}

/** How many values a parameter has; Infinity for a float without a step. */
export function valueCount(parameter: Parameter): number {
  if (parameter.type === 'categorical') return parameter.values.length;
  const { min, max, step } = parameter;
  // A maximum that is a whole number of steps away must not be lost to rounding.
  return step === null
    ? min === max
      ? 1
      : Number.POSITIVE_INFINITY
    : Math.floor((max - min) / step + 1e-9) + 1;
}

/** The value with an index, from 0; for parameters with a number of values. */
export function valueAtIndex(parameter: Parameter, index: number): ParameterValue {
  if (parameter.type === 'categorical') return parameter.values[index] ?? '';
  return withoutNoise(parameter.min + index * (parameter.step ?? 0));
}

/** The value at a share of a parameter's values, each of which gets an equal part of [0, 1). */
export function valueAtShare(parameter: Parameter, share: number): ParameterValue {
  if (parameter.type === 'categorical' || (parameter.step !== null && !parameter.log)) {
    const count = valueCount(parameter);
    return valueAtIndex(parameter, Math.min(Math.floor(share * count), count - 1));
  }
  const { low, high } = boundsOf(parameter);
  return fromScale(parameter, low + share * (high - low));
}

/**
 * The ends on the scale on which a parameter is uniform: the logarithm with `log`. What has steps reaches half a step further,
 * so that its first and last values are as likely as the others.
 */
export function boundsOf(parameter: FloatParameter | IntParameter): {
  readonly low: number;
  readonly high: number;
} {
  const { min, max, log, step } = parameter;
  const half = parameter.type === 'int' || !log ? (step ?? 0) / 2 : 0;
  // The last value may lie below the maximum.
  const last = step === null || log ? max : min + (valueCount(parameter) - 1) * step;
  return log
    ? { low: Math.log(min - half), high: Math.log(max + half) }
    : { low: min - half, high: last + half };
}

/** A number of the scale of `boundsOf` as the nearest value of the parameter. */
export function fromScale(parameter: FloatParameter | IntParameter, onScale: number): number {
  const { min, max, log, step } = parameter;
  const value = log ? Math.exp(onScale) : onScale;
  if (step === null) return Math.min(Math.max(value, min), max);
  const index = Math.min(Math.max(Math.round((value - min) / step), 0), valueCount(parameter) - 1);
  return withoutNoise(min + index * step);
}

export function toScale({ log }: FloatParameter | IntParameter, value: number): number {
  return log ? Math.log(value) : value;
}

/** 0.1 + 2 × 0.1 is 0.3, as the user would write it. */
function withoutNoise(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(12));
}
