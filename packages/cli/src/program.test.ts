import { type ErrorCode, MusterError } from '@muster/common/errors';
import { musterVersion } from '@muster/common/version';
import { describe, expect, test } from 'vitest';
import { commandTable } from './commandTable.ts';
import { exitCodeMeanings, exitCodes } from './exitCodes.ts';
import { OutputClosedError } from './io.ts';
import { runCli } from './program.ts';
import { newCall, run } from './testing/testContext.ts';

async function call(argv: readonly string[]) {
  const { context, stdout, stderr } = newCall(null);
  return { exitCode: await runCli(argv, context), stdout: stdout(), stderr: stderr() };
}

test('--version and --help answer on stdout', async () => {
  expect(await call(['--version'])).toEqual({ exitCode: 0, stdout: `muster ${musterVersion}\n`, stderr: '' });
  const help = await call(['--help']);
  expect(help).toMatchObject({ exitCode: 0, stderr: '' });
  for (const { name, summary } of commandTable)
    expect(help.stdout).toMatch(new RegExp(`^ +${name} +${summary}$`, 'm'));
});

test('the help lists every exit code', async () => {
  const { stdout } = await call(['--help']);
  for (const [code, meaning] of Object.entries(exitCodeMeanings))
    expect(stdout).toMatch(new RegExp(`^ +${code}  ${meaning}$`, 'm'));
});

test('every command has a help of its own, asked for in either order', async () => {
  for (const { name } of commandTable) {
    const { exitCode, stdout } = await call([name, '--help']);
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringContaining(`Usage: muster ${name}`),
    });
    expect(await call(['help', name])).toEqual({ exitCode, stdout, stderr: '' });
  }
});

test('muster alone shows the help and fails, as scripts need it', async () => {
  expect(await call([])).toMatchObject({
    exitCode: exitCodes.usage,
    stdout: expect.stringContaining('Usage:'),
  });
});

test.each([
  [['jbos'], "unknown command 'jbos'\nDid you mean jobs?\nSee: muster --help"],
  [['jobs', '--stat', 'x'], "unknown option '--stat'\nDid you mean --state?\nSee: muster jobs --help"],
  [['job'], "missing required argument 'job'\nSee: muster job --help"],
  [
    ['nodes', 'x'],
    "too many arguments for 'nodes'. Expected 0 arguments but got 1: x.\nSee: muster nodes --help",
  ],
  [['jobs', '--limit', 'many'], '--limit takes a whole number from 1 to 1000000; got "many"'],
  [['jobs', '--', 'x'], 'only `submit` takes a command after `--`'],
  [
    ['completion', 'tcsh'],
    "command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
  ],
])('%j is refused as usage', async (argv, message) => {
  const { exitCode, stdout, stderr } = await call(argv);
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.usage, stdout: '' });
  expect(stderr).toContain(`muster: ${message}`);
});

test('hints name the program as it was called', async () => {
  const { context, stderr } = newCall(null, { environment: { programName: './muster' } });
  await runCli(['jobs'], context);
  expect(stderr()).toContain('./muster up');
});

test('a bug is reported as one, without a stack trace unless asked for', async () => {
  const broken = (debug: boolean) => {
    const { context, stderr } = newCall(null, { environment: { debug } });
    const stdout = {
      ...context.io.stdout,
      write: () => Promise.reject(new TypeError('x is not a function')),
    };
    return { stderr, context: { ...context, io: { ...context.io, stdout } } };
  };
  const quiet = broken(false);
  expect(await runCli(['--version'], quiet.context)).toBe(exitCodes.bug);
  expect(quiet.stderr()).toBe(
    'muster: x is not a function\nThis is a bug in Muster. MUSTER_DEBUG=1 shows where it happened.\n',
  );
  const loud = broken(true);
  await runCli(['--version'], loud.context);
  expect(loud.stderr()).toContain('at dispatch');
});

test('a reader that has seen enough is no failure', async () => {
  const { context, stderr } = newCall(null);
  const stdout = { ...context.io.stdout, write: () => Promise.reject(new OutputClosedError()) };
  expect(await runCli(['--version'], { ...context, io: { ...context.io, stdout } })).toBe(exitCodes.ok);
  expect(stderr()).toBe('');
});

describe('what the coordinator answers', () => {
  const refusing = (code: ErrorCode) => ({
    GetJob: () => {
      throw new MusterError(code, 'it says so');
    },
  });

  test.each<[ErrorCode, number]>([
    ['invalid', 2],
    ['failed_precondition', 3],
    ['already_exists', 3],
    ['resource_exhausted', 3],
    ['not_found', 4],
    ['unavailable', 5],
    ['unauthenticated', 6],
    ['permission_denied', 6],
    ['deadline_exceeded', 7],
    ['internal', 70],
  ])('as %s is exit code %d', async (code, exitCode) => {
    const result = await run(['job', 'job_0123456789ab'], refusing(code));
    expect(result).toMatchObject({ exitCode, stdout: '', stderr: expect.stringContaining('it says so') });
  });

  test('is an object for a program that asked for JSON', async () => {
    const { exitCode, stdout, stderr } = await run(
      ['job', 'job_0123456789ab', '-o', 'json'],
      refusing('unauthenticated'),
    );
    expect({ exitCode, stdout, error: JSON.parse(stderr) }).toEqual({
      exitCode: 6,
      stdout: '',
      error: {
        error: {
          code: 'unauthenticated',
          message: 'it says so',
          hint: 'Check MUSTER_TOKEN, --token-file or --data.',
          problems: [],
        },
      },
    });
  });
});

test.each([
  [['jobs', '--stat', 'x', '-o', 'json']],
  [['jobs', '-ojson', '--stat', 'x']],
  [['jobs', '--output=json', '--stat', 'x']],
])('%j fails with JSON although its flags are wrong', async (argv) => {
  const { exitCode, stderr } = await call(argv);
  expect(exitCode).toBe(exitCodes.usage);
  expect(JSON.parse(stderr)).toEqual({
    error: {
      code: 'invalid_argument',
      message: "unknown option '--stat'",
      hint: 'Did you mean --state?\nSee: muster jobs --help',
      problems: [],
    },
  });
});

test('-o json of the command to run is not ours', async () => {
  const { stderr } = await call(['submit', '--gpu', '1', '--', 'tool', '-o', 'json']);
  expect(stderr).toMatch(/^muster: unknown option/);
});

test('problems of a job spec are entries of the error', async () => {
  const { context, stderr } = newCall(null, { stdin: 'command: train\nresources:\n  gpus: two\n' });
  expect(await runCli(['submit', '-o', 'json', '-f', '-'], context)).toBe(exitCodes.usage);
  expect(JSON.parse(stderr()).error).toMatchObject({
    code: 'invalid_argument',
    message: 'not a valid job: 1 problem',
    hint: null,
    problems: [
      {
        path: 'resources.gpus',
        message: 'got "two"',
        expected: expect.any(String),
        suggestion: null,
        line: 3,
        column: 9,
        flag: null,
      },
    ],
  });
});
