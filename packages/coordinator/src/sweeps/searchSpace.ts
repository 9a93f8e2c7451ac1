/** The space that a sweep searches, with its constraints as a function. The library behind them is loaded when there is one. */
import { MusterError } from '@muster/common/errors';
import type { SweepSpec } from '@muster/experiments/file/sweepFile';
import { type Parameter, type Point, type SearchSpace, valueAtIndex } from '@muster/experiments/space';
import type { CheckedCondition } from '../alerts/condition.ts';
import type { KnownName } from '../alerts/names.ts';
import { SubjectValues } from '../alerts/subjectValues.ts';

/** @throws {MusterError} `invalid` for a constraint that is not a condition over the parameters, with the column */
export async function spaceOfSweep({
  parameters,
  constraints,
}: Pick<SweepSpec, 'parameters' | 'constraints'>): Promise<SearchSpace> {
  if (constraints.length === 0) return { parameters, allows: null };
  const { checkCondition } = await import('../alerts/condition.ts');
  const names = Object.fromEntries(
    parameters.flatMap((parameter): [string, KnownName][] => {
      const type = typeOf(parameter);
      return type === null ? [] : [[parameter.name, { type, meaning: 'a parameter' }]];
    }),
  );
  const checked = constraints.map((text, index): CheckedCondition => {
    try {
      return checkCondition(text, names);
    } catch (error) {
      const { column, message } = error as { column?: number; message: string };
      const path = `constraints[${index}]`;
      const what = `${column === undefined ? '' : `column ${column}: `}${message}`;
      const problem = { path, message: what, expected: null, suggestion: null };
      throw new MusterError('invalid', `${path}: ${what}`, { problems: [problem] });
    }
  });
  // A constraint on a parameter that does not apply holds: it has nothing to say about the point.
  return {
    parameters,
    allows: (point) => {
      const values = new SubjectValues(factOf(point));
      return checked.every((each) => each.evaluate(values) !== false);
    },
  };
}

function factOf(point: Point) {
  return (name: string) => (Object.hasOwn(point, name) ? (point[name] ?? null) : null);
}

/** In CEL. null: its values have several types, so that no condition can use it. */
function typeOf(parameter: Parameter): KnownName['type'] | null {
  if (parameter.type !== 'categorical') return parameter.type === 'int' ? 'int' : 'double';
  const types = new Set(
    parameter.values.map((_, index) => {
      const value = valueAtIndex(parameter, index);
      if (typeof value === 'string') return 'string';
      if (typeof value === 'boolean') return 'bool';
      return Number.isInteger(value) ? 'int' : 'double';
    }),
  );
  if (types.size === 2 && types.has('int') && types.has('double')) return 'double';
  const [only] = types;
  return types.size === 1 ? (only ?? null) : null;
}
