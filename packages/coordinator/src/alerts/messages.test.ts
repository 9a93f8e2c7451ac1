import { expect, test } from 'vitest';
import { messageProblem, messageText } from './messages.ts';
import { jobFactNames, namesOfEvery } from './names.ts';

const names = { ...jobFactNames, ...namesOfEvery };

test('placeholders are filled with values and their units, unknown ones named as unknown', () => {
  const facts: Readonly<Record<string, string | number | object>> = {
    workload_name: 'train',
    running_for: 5_400_499,
    gpu_utilization: 12.345_678_9,
    labels: { team: 'vision' },
  };
  const text =
    '{workload_name} of {labels.team} for {running_for}: {gpu_utilization} % {step} {labels.other}';
  expect(messageText(text, (name) => (facts[name] ?? null) as never, names)).toBe(
    'train of vision for 90m: 12.3457 % unknown unknown',
  );
});

test.each([
  ['{workload_name} is {workload_state}', null],
  ['no placeholder', null],
  ['{labels.team} {alert} {severity}', null],
  ['{workload_nam}', /\{workload_nam\}; did you mean \{workload_name\}\?/],
  ['{labels}', /name a label/],
  ['{user.name}', /unknown placeholder \{user\.name\}/],
  ['{}', /unknown placeholder \{\}/],
  ['{__proto__}', /unknown placeholder/],
])('%s', (text, problem) => {
  if (problem === null) expect(messageProblem(text, names)).toBeNull();
  else expect(messageProblem(text, names)).toMatch(problem);
});

test('a value with braces is not filled again', () => {
  expect(messageText('{workload_name}', () => '{user}', names)).toBe('{user}');
});
