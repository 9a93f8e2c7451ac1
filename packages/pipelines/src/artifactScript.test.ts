import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../../test/support/services.ts';
import {
  type CheckedArtifact,
  readArtifactReport,
  type WantedArtifact,
  withArtifacts,
} from './artifactScript.ts';

function run(
  program: string,
  inputs: readonly CheckedArtifact[],
  outputs: readonly WantedArtifact[],
  env: NodeJS.ProcessEnv = {},
) {
  const [file = '', ...args] = withArtifacts(['/bin/sh', '-c', program], inputs, outputs);
  const { status, stdout } = spawnSync(file, args, {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...env },
  });
  return { status, ...readArtifactReport(stdout, outputs) };
}

function anOutput(type: 'directory' | 'file'): WantedArtifact {
  return { name: 'data', type, path: join(tempDir('artifact').path, 'deep', 'x y') };
}

test('an output has the size and the digest of its files, wherever it lies and in whichever order they were written', () => {
  const one = anOutput('directory');
  const two = anOutput('directory');
  const first = run(`cd '${one.path}' && printf abc > b && mkdir 'n s' && printf d > 'n s/a'`, [], [one]);
  const second = run(`cd '${two.path}' && mkdir 'n s' && printf d > 'n s/a' && printf abc > b`, [], [two]);
  expect(first).toEqual({
    status: 0,
    problem: null,
    outputs: [{ ...one, bytes: 4, digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) }],
  });
  expect(second.outputs[0]?.digest).toBe(first.outputs[0]?.digest);
  const file = anOutput('file');
  const sum = execFileSync('sha256sum', { input: 'abc', encoding: 'utf8' }).slice(0, 64);
  expect(run(`printf abc > '${file.path}'`, [], [file]).outputs).toEqual([
    { ...file, bytes: 3, digest: `sha256:${sum}` },
  ]);
});

test('an output that is missing or empty fails the step, and a program that fails keeps its exit code', () => {
  const file = anOutput('file');
  expect(run('true', [], [file])).toEqual({
    status: 66,
    outputs: [],
    problem: `output data: there is no file at ${file.path} after the program has ended`,
  });
  const directory = anOutput('directory');
  expect(run('true', [], [directory])).toMatchObject({
    status: 66,
    problem: expect.stringContaining('is empty'),
  });
  expect(run('exit 7', [], [file])).toEqual({ status: 7, outputs: [], problem: null });
});

test('an input that has vanished or changed keeps the program from running', () => {
  const made = anOutput('directory');
  const { outputs } = run(`printf abc > '${made.path}/a'`, [], [made]);
  const digest = outputs[0]?.digest ?? '';
  const out = anOutput('file');
  const program = `cat '${made.path}/a' > '${out.path}'`;
  expect(run(program, [{ ...made, digest }], [out])).toMatchObject({ status: 0, problem: null });
  writeFileSync(join(made.path, 'a'), 'abd');
  const never = join(out.path, '..', 'never');
  expect(run(`touch '${never}'`, [{ ...made, digest }], [])).toMatchObject({
    status: 65,
    problem: expect.stringMatching(
      /^input data: .* has changed since its step has made it; its digest is not sha256:/,
    ),
  });
  // Another rank leaves it to rank 0.
  expect(run('true', [{ ...made, digest }], [], { RANK: '1' }).status).toBe(0);
  rmSync(made.path, { recursive: true });
  expect(run(`touch '${never}'`, [{ ...made, digest }], [])).toMatchObject({
    status: 65,
    problem: expect.stringContaining('it has vanished since its step has made it'),
  });
});

test('an input that cannot be read is not told as changed', () => {
  const made = anOutput('file');
  const { outputs } = run(`printf abc > '${made.path}'`, [], [made]);
  const digest = outputs[0]?.digest ?? '';
  // An image without sha256sum.
  const tools = tempDir('tools').path;
  symlinkSync('/usr/bin/cut', join(tools, 'cut'));
  expect(run('true', [{ ...made, digest }], [], { PATH: tools })).toEqual({
    status: 65,
    outputs: [],
    problem: `input data: ${made.path} cannot be read: see the lines above`,
  });
});

test('links count as what they lead to', () => {
  const made = anOutput('directory');
  const { outputs } = run(`printf abc > '${made.path}/a'`, [], [made]);
  const other = tempDir('links').path;
  mkdirSync(join(other, 'd'));
  symlinkSync(join(made.path, 'a'), join(other, 'd', 'a'));
  const digest = outputs[0]?.digest ?? '';
  expect(run('true', [{ ...made, path: join(other, 'd'), digest }], []).status).toBe(0);
});

test('a signal reaches the program, and the step waits for it', () => {
  const out = anOutput('file');
  const program = `trap 'printf saved > "${out.path}"; exit 0' TERM; kill -TERM $PPID; while :; do sleep 0.01; done`;
  expect(run(program, [], [out])).toMatchObject({ status: 0, outputs: [{ bytes: 5 }] });
});

test('without artifacts the command stays what it is', () => {
  expect(withArtifacts(['python', 'x.py'], [], [])).toEqual(['python', 'x.py']);
});
