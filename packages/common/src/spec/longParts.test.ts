import { describe, expect, test } from 'vitest';
import { specProblemsMax } from './limits.ts';
import { type CheckResult, checkJobSpec, validateJobSpec } from './validate.ts';

/** As many as fit into a spec. */
const many = 60_000;
const listOf = (item: unknown, length = many) => Array.from({ length }, () => item);
const mappingOf = (item: (index: number) => readonly [string, unknown]) =>
  Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => item(index)));

const findingsOf = (result: CheckResult) => (result.ok ? [] : result.findings);
const spec = { name: 'train', command: ['true'] };

describe('of a great many problems only so many are worked out', () => {
  test.each([
    ['args', { ...spec, args: listOf({}) }],
    ['a command', { ...spec, command: listOf(null) }],
    ['volumes', { ...spec, volumes: listOf('') }],
    ['names of variables', { ...spec, env: mappingOf((index) => [`${index}`, 'a']) }],
    ['values of variables', { ...spec, env: mappingOf((index) => [`A${index}`, []]) }],
    ['labels', { ...spec, labels: mappingOf((index) => [`a${index}`, {}]) }],
    ['params', { ...spec, params: mappingOf((index) => [`a${index}`, true]) }],
    ['GPU models', { ...spec, resources: { gpu_type: listOf('') } }],
    ['causes', { ...spec, retry: { on: listOf('oom') } }],
    ['unknown keys', { ...spec, ...mappingOf((index) => [`key${index}`, 1]) }],
  ])('%s', (_, wrong) => {
    const findings = findingsOf(checkJobSpec(wrong));
    expect(findings.length).toBeGreaterThan(specProblemsMax);
    // A piece more than what is shown, not one for each item.
    expect(findings.length).toBeLessThan(1_000);
    const shown = validateJobSpec(wrong);
    expect(shown.ok ? [] : shown.problems).toHaveLength(specProblemsMax + 1);
  });

  test('too many jobs to wait for are one', () => {
    expect(findingsOf(checkJobSpec({ ...spec, after: listOf('x') }))).toHaveLength(1);
  });
});

describe('a long part', () => {
  test.each([0, 255, 256, 300, 511, 512, 59_999])('with one wrong item, at %d, names it', (wrong) => {
    const args = listOf('a').with(wrong, {});
    const findings = findingsOf(checkJobSpec({ ...spec, args }));
    expect(findings).toEqual([expect.objectContaining({ path: ['args', wrong], message: 'got a mapping' })]);
  });

  test('that is right is whole, wherever it is', () => {
    const args = listOf(1);
    const env = mappingOf((index) => [`A${index}`, index]);
    const models = listOf('', 1_000).map((_, index) => `H${index}`);
    const result = checkJobSpec({ ...spec, args, env, resources: { gpus: 2, gpu_type: models } });
    if (!result.ok) throw new Error(JSON.stringify(result.findings));
    expect(result.spec.args).toEqual(listOf('1'));
    expect(Object.keys(result.spec.env)).toHaveLength(20_000);
    expect(result.spec.env).toMatchObject({ A0: '0', A19999: '19999' });
    expect(result.spec.resources).toMatchObject({ gpus: 2, gpuType: models });
  });

  test('with a key that JavaScript has a use for is refused however late it comes', () => {
    const env = JSON.parse(
      `{${'x'
        .repeat(400)
        .split('')
        .map((x, index) => `"${x}${index}": 1,`)
        .join('')}"__proto__": 1}`,
    ) as object;
    expect(findingsOf(checkJobSpec({ ...spec, env }))).toMatchObject([{ path: ['env', '__proto__'] }]);
  });

  test('does not hide what else is wrong', () => {
    const findings = findingsOf(checkJobSpec({ ...spec, args: listOf({}), priority: 101, volumes: ['a'] }));
    expect(findings.map(({ path }) => path[0])).toEqual(
      expect.arrayContaining(['priority', 'volumes', 'args']),
    );
  });
});
