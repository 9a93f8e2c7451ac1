import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { fillPlaceholders, fillVariables, type PlaceholderValues } from './placeholders.ts';

const first: PlaceholderValues = { resumeFrom: null, artifacts: null, batchScale: 1, lrScale: 1 };
const again: PlaceholderValues = {
  resumeFrom: '/ckpt/step_10.pt',
  artifacts: null,
  batchScale: 0.5,
  lrScale: 0.1,
};

const filled = (
  command: readonly string[],
  values: PlaceholderValues,
  params: Readonly<Record<string, string | number>> = {},
  args: readonly string[] = [],
) => {
  const result = fillPlaceholders({ command, args, params }, values);
  return [...result.command, ...result.args];
};

describe('{resume}', () => {
  test.each([
    [['train', '{resume}'], ['train'], ['train', '/ckpt/step_10.pt']],
    [
      ['train', '--from={resume}'],
      ['train', '--from='],
      ['train', '--from=/ckpt/step_10.pt'],
    ],
    [
      ['train', '{resume:--resume=}', '-v'],
      ['train', '-v'],
      ['train', '--resume=/ckpt/step_10.pt', '-v'],
    ],
    [
      ['train', '', '{resume}x'],
      ['train', '', 'x'],
      ['train', '', '/ckpt/step_10.ptx'],
    ],
  ])('%j', (command, onFirst, onNext) => {
    expect(filled(command, first)).toEqual(onFirst);
    expect(filled(command, again)).toEqual(onNext);
    expect(filled([], first, {}, command)).toEqual(onFirst);
    expect(filled([], again, {}, command)).toEqual(onNext);
  });

  test('a name of it in params changes nothing', () => {
    expect(filled(['{resume}'], again, { resume: 'mine' })).toEqual(['/ckpt/step_10.pt']);
  });
});

describe('in the text of a shell', () => {
  const path = `/ckpt/it's "$HOME" \\ \`date\`; rm -rf x`;
  test.each([
    ['printf %s {resume}', path],
    ['printf %s "{resume}"', path],
    ["printf %s '{resume}'", path],
    ['printf %s {resume:--resume=}', `--resume=${path}`],
    [`printf %s "it's "{resume}`, `it's ${path}`],
    [`printf %s \\"{resume}`, `"${path}`],
  ])('%s is read as that very path', (script, printed) => {
    const [shell = '', ...args] = filled(['/bin/sh', '-c', script], { ...again, resumeFrom: path });
    expect(execFileSync(shell, args, { encoding: 'utf8' })).toBe(printed);
  });

  test('nothing is put in quotes that needs none, nor what the script gets as an argument', () => {
    expect(filled(['/bin/bash', '-ec', 'train {resume}'], again)).toEqual([
      '/bin/bash',
      '-ec',
      'train /ckpt/step_10.pt',
    ]);
    const spaced = { ...again, resumeFrom: '/a b' };
    expect(filled(['/bin/sh', '-c', '"$@"', 'sh'], spaced, {}, ['{resume}'])).toEqual([
      '/bin/sh',
      '-c',
      '"$@"',
      'sh',
      '/a b',
    ]);
    expect(filled(['bash', 'train.sh', '-c', '{resume}'], spaced)).toEqual([
      'bash',
      'train.sh',
      '-c',
      '/a b',
    ]);
  });

  test('the text stays there when nothing is left of it', () => {
    expect(filled(['/bin/sh', '-c', '{resume}'], first)).toEqual(['/bin/sh', '-c', '']);
  });
});

describe('{name} of params', () => {
  test.each([
    ['batch_size', 32, '16'],
    ['micro_batch_size', '7', '3'],
    ['train_bs', 1, '1'],
    ['batch', 3, '1'],
    ['lr', 0.0003, '0.00003'],
    ['max_learning_rate', '3e-4', '0.00003'],
    ['learning_rate', 1e-6, '1e-7'],
    ['batch_sizes', 32, '32'],
    ['colr', 1, '1'],
    ['batch_size', 'auto', 'auto'],
    ['epochs', 3, '3'],
  ])('%s %j', (name, value, scaled) => {
    const command = [`--x={${name}}`];
    expect(filled(command, again, { [name]: value })).toEqual([`--x=${scaled}`]);
    expect(filled(command, first, { [name]: value })).toEqual([`--x=${value}`]);
  });

  test('what is not declared stays: other programs have braces, too', () => {
    const command = ['awk', '{print $1}', '{"lr": 1}', '{lr}', '{constructor}', '${HOME}', '{batch_size:x}'];
    expect(filled(command, again, { batch_size: 1 })).toEqual(command);
  });
});

test('the directory of artifacts stands in commands, quoted for a shell, and in variables', () => {
  const values = { ...first, artifacts: '/data of agent/artifacts' };
  expect(filled(['train', '--data={muster_artifacts}/inputs/data'], values)).toEqual([
    'train',
    '--data=/data of agent/artifacts/inputs/data',
  ]);
  expect(filled(['sh', '-c', 'cat {muster_artifacts}/inputs/data'], values)[2]).toBe(
    "cat '/data of agent/artifacts'/inputs/data",
  );
  expect(filled(['train', '{muster_artifacts}'], first)).toEqual(['train', '{muster_artifacts}']);
  const env = { A: '{muster_artifacts}/inputs/a\n{muster_artifacts}/inputs/b' };
  expect(fillVariables(env, '/x')).toEqual({ A: '/x/inputs/a\n/x/inputs/b' });
  expect(fillVariables(env, null)).toBe(env);
});
