/**
 * The values of one job, one node or the cluster at one moment, as conditions take them: each is looked up once, whatever the number
 * of conditions, and so is each part that conditions have in common. Pure.
 */
import type { FactOf, FactValue, KnownName } from './names.ts';

/** Characters of a text that a condition looks at. */
const factLengthMax = 1_024;

export class SubjectValues {
  /** By name, as the evaluator takes them. One that is unknown is not there. */
  readonly bindings: Readonly<Record<string, never>> = {};
  /** Of parts of conditions. */
  readonly verdicts = new Map<object, boolean | null>();
  private readonly asked = new Set<string>();
  private readonly factOf: FactOf;

  constructor(factOf: FactOf) {
    this.factOf = factOf;
  }

  /** To be called for each name of a condition before it is evaluated. */
  bind(name: string, type: KnownName['type']): void {
    if (this.asked.has(name)) return;
    this.asked.add(name);
    const value = this.factOf(name);
    if (value !== null) Object.assign(this.bindings, { [name]: inCel(value, type) });
  }
}

function inCel(value: NonNullable<FactValue>, type: KnownName['type']): unknown {
  if (typeof value === 'string') return value.slice(0, factLengthMax);
  if (typeof value === 'number') return type === 'int' ? BigInt(Math.trunc(value)) : value;
  return type === 'map(string, string)' ? new Map(Object.entries(value)) : value;
}
