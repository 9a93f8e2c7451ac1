/** Spaces that tests search. */
import type { Parameter, SearchSpace } from '../space.ts';

export function aSpace(parameters: readonly Parameter[], allows: SearchSpace['allows'] = null): SearchSpace {
  return { parameters, allows };
}

export function aFloat(name: string, fields: Partial<Extract<Parameter, { type: 'float' }>> = {}): Parameter {
  return { name, type: 'float', min: 0, max: 1, log: false, step: null, when: {}, ...fields };
}

export function anInt(name: string, fields: Partial<Extract<Parameter, { type: 'int' }>> = {}): Parameter {
  return { name, type: 'int', min: 1, max: 4, log: false, step: 1, when: {}, ...fields };
}

export function aChoice(name: string, values: readonly (string | number | boolean)[], when = {}): Parameter {
  return { name, type: 'categorical', values, when };
}

/** One parameter of each kind; `momentum` applies to one optimiser only. */
export const everyKind: readonly Parameter[] = [
  aFloat('dropout', { max: 0.5 }),
  aFloat('lr', { min: 1e-5, max: 1e-1, log: true }),
  aFloat('scale', { min: 0.1, max: 0.75, step: 0.1 }),
  anInt('layers', { min: 2, max: 13, step: 3 }),
  anInt('width', { min: 16, max: 4_096, log: true }),
  aChoice('optimizer', ['adam', 'sgd', 'lion']),
  aFloat('momentum', { max: 0.99, when: { optimizer: ['sgd'] } }),
  aChoice('nesterov', [true, false], { optimizer: ['sgd'] }),
];
