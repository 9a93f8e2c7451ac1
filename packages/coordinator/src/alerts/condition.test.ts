import { builtInAlerts } from '@muster/common/builtInAlerts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkCondition } from './condition.ts';
import { type FactValue, jobFactNames, namesOfKind } from './names.ts';
import { SubjectValues } from './subjectValues.ts';

function verdict(text: string, facts: Readonly<Record<string, FactValue>>): boolean | null {
  return checkCondition(text, jobFactNames).evaluate(new SubjectValues((name) => facts[name] ?? null));
}

function problemOf(text: string): string {
  try {
    checkCondition(text, jobFactNames);
    return 'none';
  } catch (error) {
    return `${(error as { column?: number }).column}: ${(error as Error).message}`;
  }
}

test.each<[string, Readonly<Record<string, FactValue>>, boolean | null]>([
  ["workload_state == 'failed'", { workload_state: 'failed' }, true],
  ["workload_state == 'failed'", { workload_state: 'running' }, false],
  [
    "gpu_utilization < 20 && running_for > duration('10m')",
    { gpu_utilization: 19.5, running_for: 600_001 },
    true,
  ],
  [
    "gpu_utilization < 20 && running_for > duration('10m')",
    { gpu_utilization: 19.5, running_for: 600_000 },
    false,
  ],
  ['train_loss.isNaN()', { train_loss: Number.NaN }, true],
  ['train_loss.isNaN()', { train_loss: 0.5 }, false],
  ["checkpoint_age > duration('2h')", { checkpoint_age: 7_200_001 }, true],
  ["running_for - queued_for > duration('1h30m')", { running_for: 6_000_000, queued_for: 0 }, true],
  ["labels.team == 'vision' && 'model' in labels", { labels: { team: 'vision', model: 'x' } }, true],
  ['has(labels.team) ? priority > 50 : false', { labels: {}, priority: 60 }, false],
  ["workload_name.matches('^7b-.*$')", { workload_name: '7b-finetune' }, true],
  ["workload_name in ['a', 'b']", { workload_name: 'b' }, true],
  ['attempt % 2 == 1', { attempt: 3 }, true],
])('%s of %j', (text, facts, expected) => {
  expect(verdict(text, facts)).toBe(expected);
});

test.each([
  ['gpu_utilization < 20', {}],
  ["gpu_utilization < 20 && workload_state == 'running'", { workload_state: 'running' }],
  ["labels.team == 'vision'", { labels: {} }],
  ['attempt / 0 == 1', { attempt: 1 }],
])('%s is unknown where a value of it is', (text, facts) => {
  expect(verdict(text, facts)).toBeNull();
});

test('what is known decides where that is enough', () => {
  expect(verdict("gpu_utilization < 20 && workload_state == 'failed'", { workload_state: 'running' })).toBe(
    false,
  );
  expect(verdict("gpu_utilization < 20 || workload_state == 'failed'", { workload_state: 'failed' })).toBe(
    true,
  );
});

test.each([
  ['gpu_utilisation < 20', /^1: .*did you mean "gpu_utilization"\?/],
  ['running_for > 600', /^12: .*duration\('10m'\)/],
  ['running_for > duration("ten")', /^24: invalid duration "ten"/],
  ['gpu_utilization * 2 > 1.0', /write a number with a point/],
  ['workload_state', /^1: a condition is true or false, and this one is of type string/],
  ['workload_state = "failed"', /^16: cannot be parsed here: unexpected =/],
  ['train_loss.isnan()', /did you mean "isNaN"\?/],
  ['labels.exists(l, l == "a")', /not available/],
  ['workload_name.matches(user)', /takes a pattern in quotes/],
  [String.raw`workload_name.matches('(a{10}){10}')`, /repeats 100 times/],
  ["workload_name.matches('(?<a')", /invalid pattern/],
  ['__proto__ == "a"', /unknown name "__proto__"/],
  ['constructor == "a"', /unknown name/],
  ['', /empty/],
  ['{"a": 1} == {"a": 1}', /not available/],
  [`${'('.repeat(41)}true${')'.repeat(41)}`, /^41: more than 40 parentheses/],
  [`true ${'|| true '.repeat(200)}`, /expected at most 1000/],
])('%s is refused at its column', (text, problem) => {
  expect(problemOf(text)).toMatch(problem);
});

test('every condition that is built in is accepted', () => {
  for (const { condition, kind } of Object.values(builtInAlerts))
    expect(() => checkCondition(condition, namesOfKind[kind]), condition).not.toThrow();
});

const words = [
  ...Object.keys(jobFactNames),
  ..."( ) [ ] { } && || ! - + * / % < > == ? : . , 'a' 1 2.0 true null in duration matches size has isNaN 0xF".split(
    ' ',
  ),
  '"',
  '\\',
  'b"x"',
];
const word = fc.constantFrom(...words);

test('whatever is typed is refused with a column, or is a condition that can be evaluated', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 200 }),
    fc.array(word, { maxLength: 40 }).map((typed) => typed.join(' ')),
  );
  const value = fc.oneof(fc.string(), fc.double(), fc.constant(null), fc.boolean());
  fc.assert(
    fc.property(text, value, (typed, fact) => {
      const problem = problemOf(typed);
      if (problem !== 'none') {
        expect(problem).toMatch(/^\d+: ./s);
        return;
      }
      const result = checkCondition(typed, jobFactNames).evaluate(new SubjectValues(() => fact));
      expect([true, false, null]).toContain(result);
    }),
    { numRuns: 500 },
  );
});

test('a deep, long or hostile condition is refused, or evaluated before the time of this test is up', () => {
  const texts = [
    '!'.repeat(999),
    '-'.repeat(999),
    `${'['.repeat(40)}${']'.repeat(40)}`,
    `${'a ? '.repeat(240)}a`,
    `workload_name.matches('${'a?'.repeat(24)}${'a'.repeat(24)}')`,
    `workload_name ${'+ workload_name '.repeat(50)} == 'a'`,
    "workload_name.matches('(a*)*b') && workload_name.matches('(.*)(.*)(.*)(.*)z')",
  ];
  for (const text of texts) {
    if (problemOf(text) !== 'none') continue;
    expect([true, false, null]).toContain(verdict(text, { workload_name: 'a'.repeat(5_000) }));
  }
});

/** What a condition may be made of that costs most: as long as it may be, on texts as long as they may be. */
const costly = [
  ['nested parentheses', `${'('.repeat(40)}true${')'.repeat(40)}`],
  ['negations', `${'!'.repeat(990)}hung`],
  ['nested choices', `${'hung ? true : '.repeat(70)}false`],
  ['texts that grow', `${'workload_name + '.repeat(60)}workload_name == 'a'`],
  ['a text to search for', `workload_name.contains('${'a'.repeat(900)}b')`],
  ['a long list', `workload_name in [${"'aaaa', ".repeat(120)}'b']`],
  [
    'a pattern that backtracks elsewhere',
    "workload_name.matches('(a+)+$b') || workload_name.matches('(a|aa)+$b')",
  ],
  ['many patterns', Array.from({ length: 20 }, () => "workload_name.matches('(.*a){9}c')").join(' || ')],
  ['a pattern of the largest size', "workload_name.matches('(a?){25}a{2}b(.*)(.*)(.*)(.*)(.*)(.*)c')"],
] as const;

test.each(costly)('what costs most is bounded: %s', (_what, text) => {
  const problem = problemOf(text);
  if (problem !== 'none') {
    expect(problem).toMatch(/^\d+: ./);
    return;
  }
  const facts = { workload_name: 'a'.repeat(100_000), hung: true };
  const condition = checkCondition(text, jobFactNames);
  const startedAt = process.cpuUsage();
  expect([true, false, null]).toContain(
    condition.evaluate(new SubjectValues((name) => facts[name as keyof typeof facts] ?? null)),
  );
  const { user, system } = process.cpuUsage(startedAt);
  // A few milliseconds; what is exponential takes ages.
  expect((user + system) / 1_000).toBeLessThan(2_000);
});

test.each([
  ['[1, 2].exists(a, [1, 2].exists(b, [1, 2].all(c, a == b)))', /not available/],
  ['labels.map(l, labels.map(m, m)) == labels', /not available/],
  ["['a'].filter(x, x == 'a') == ['a']", /not available/],
  ["workload_name.matches('((a{7}){7}){7}')", /repeats 343 times/],
  ["workload_name.matches('a{1,1000}')", /repeats 1000 times/],
  [`workload_name.matches('${'a'.repeat(101)}')`, /more than 100 characters/],
  ["workload_name.matches('(a)\\\\1')", /invalid pattern/],
  [`workload_name == '${'a'.repeat(100_000)}'`, /expected at most 1000/],
  [`${'['.repeat(41)}${']'.repeat(41)} == []`, /more than 40 parentheses/],
])('%s is refused before anything is evaluated', (text, problem) => {
  expect(problemOf(text)).toMatch(problem);
});

test('conditions of one subject have in common what they join, and keep their own verdicts', () => {
  const facts: Readonly<Record<string, FactValue>> = { gpu_utilization: 50, workload_state: 'running' };
  const asked: string[] = [];
  const values = new SubjectValues((name) => {
    asked.push(name);
    return facts[name] ?? null;
  });
  const verdicts = [
    "gpu_utilization < 60.0 && workload_state == 'running'",
    "workload_state == 'running' && gpu_utilization < 40.0",
    "workload_state == 'running' && (gpu_utilization < 60.0 && train_loss > 1.0)",
    "train_loss > 1.0 && workload_state == 'failed'",
    'gpu_utilization < 60.0 && gpu_utilization < 60',
  ].map((text) => checkCondition(text, jobFactNames).evaluate(values));
  expect(verdicts).toEqual([true, false, null, false, true]);
  expect(asked).toEqual(['gpu_utilization', 'workload_state', 'train_loss']);
});
