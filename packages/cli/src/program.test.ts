import { musterVersion } from '@muster/common/version';
import { expect, test } from 'vitest';
import { commandTable } from './commandTable.ts';
import { exitCodes } from './exitCodes.ts';
import { OutputClosedError } from './io.ts';
import { runCli } from './program.ts';
import { newCall } from './testing/testContext.ts';

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
  expect(await runCli(['--version'], quiet.context)).toBe(exitCodes.refused);
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
