/** What no single setting of `phases` can say: targets that cannot be added up, criteria without a target, parameters that are missing. */
import { isMapping, type SpecPath } from './path.ts';
import { namedParameters } from './placeholder.ts';
import type { Finding } from './problems.ts';

type Written = Readonly<Record<string, unknown>>;

const units = ['steps', 'tokens'] as const;

export function* phaseRules(spec: Written): Generator<Finding> {
  const { phases, image, checkpoint } = spec;
  if (!Array.isArray(phases) || phases.length === 0) return;
  const list = phases.map((phase: unknown) => (isMapping(phase) ? phase : null));
  const unit = unitOf(list.find((phase) => phase !== null && unitOf(phase) !== null) ?? {});
  const names = new Map<unknown, number>();
  for (const [index, phase] of list.entries()) {
    if (phase === null) continue;
    const at = ['phases', index];
    yield* targetRules(phase, at, unit);
    yield* criterionRules(phase, at, unit);
    const { name, params } = phase;
    const earlier = names.get(name);
    if (earlier === undefined) names.set(name, index);
    else yield finding([...at, 'name'], `the same as that of phases[${earlier}]`, 'a name of its own');
    if (isMapping(params) && Object.hasOwn(params, '__proto__'))
      yield finding([...at, 'params', '__proto__'], 'is not a valid name', 'another name');
  }
  yield* parameterRules(spec, list);
  const dir = isMapping(checkpoint) ? checkpoint['dir'] : undefined;
  if (image !== undefined && dir === undefined)
    yield finding(
      ['phases'],
      'given for a container without checkpoint.dir, so each phase would start from scratch',
      'checkpoint.dir on one of its volumes',
    );
}

function unitOf(phase: Written): string | null {
  return units.find((unit) => phase[unit] !== undefined) ?? null;
}

/** Progress over all phases is a sum, so all of them count the same. */
function* targetRules(phase: Written, at: SpecPath, unit: string | null): Generator<Finding> {
  const { steps, tokens } = phase;
  if (steps === undefined && tokens === undefined)
    yield finding(at, 'does not say how long it is', 'steps, such as steps: 1000; or tokens');
  else if (steps !== undefined && tokens !== undefined)
    yield finding([...at, 'tokens'], 'given with steps', 'only one of them');
  else if (unitOf(phase) !== unit)
    yield finding(
      [...at, unitOf(phase) ?? ''],
      `given, and other phases count ${unit}`,
      `${unit}, as the other phases`,
    );
}

function* criterionRules(phase: Written, at: SpecPath, unit: string | null): Generator<Finding> {
  const { success, unmet, extend } = phase;
  // The canonical text says what the default is: stop, where there is nothing to extend.
  for (const [key, value] of Object.entries({ unmet: unmet === 'stop' ? undefined : unmet, extend }))
    if (value !== undefined && success === undefined)
      yield finding(
        [...at, key],
        'given without success, which is always met then',
        `success, such as success: eval_loss < 2.9; or no ${key}`,
      );
  if (unmet === 'extend' && extend === undefined)
    yield finding(
      [...at, 'unmet'],
      'extend, and nothing says by how much',
      'extend, such as extend: {steps: 200}',
    );
  if (extend !== undefined && unmet !== undefined && unmet !== 'extend')
    yield finding([...at, 'extend'], 'given with another unmet', 'unmet: extend; or no extend');
  if (!isMapping(extend) || unit === null) return;
  const given = units.filter((each) => extend[each] !== undefined);
  if (given.length !== 1 || given[0] !== unit)
    yield finding(
      [...at, 'extend'],
      given.length === 0
        ? 'does not say by how much'
        : `says ${given.join(' and ')}, and the phases count ${unit}`,
      `${unit}, such as {${unit}: 200}`,
    );
}

/** In a phase without it, `{lr}` would stay as it is, and reach the program as text. */
function* parameterRules(
  { command, args, params }: Written,
  phases: readonly (Written | null)[],
): Generator<Finding> {
  const common = isMapping(params) ? params : {};
  const own = phases.map((phase) => (isMapping(phase?.['params']) ? phase['params'] : {}));
  for (const name of namedParameters([command, args].flat().filter((each) => typeof each === 'string'))) {
    const first = own.findIndex((each) => Object.hasOwn(each, name));
    if (first < 0 || Object.hasOwn(common, name)) continue;
    for (const [index, each] of own.entries()) {
      if (Object.hasOwn(each, name) || phases[index] === null) continue;
      yield finding(
        ['phases', index],
        `has no value of {${name}}, which the command uses and phases[${first}] sets`,
        `params with ${name} in each phase, or one for all of them in the params of the job`,
      );
    }
  }
}

function finding(path: SpecPath, message: string, expected: string): Finding {
  return { path, at: 'value', message, expected, suggestion: null };
}
