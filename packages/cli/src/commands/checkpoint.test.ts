import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { torchEntries, zipOf } from '@muster/checkpoints/testing/torchFile';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { newCall, type TestOptions, temporaryDir } from '../testing/testContext.ts';
import type { VerifiedPath } from './checkpoint.ts';

const torch = zipOf(torchEntries(Buffer.alloc(10_000_000, 1)));

function aDir(files: Readonly<Record<string, string | Uint8Array>>): string {
  const root = temporaryDir();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

/** Without a coordinator: none is needed. */
async function verify(args: readonly string[], options: TestOptions = {}) {
  const call = newCall(null, options);
  const exitCode = await runCli(['checkpoint', 'verify', ...args], call.context);
  return { exitCode, stdout: call.stdout(), stderr: call.stderr() };
}

function parsed(stdout: string): readonly VerifiedPath[] {
  return (JSON.parse(stdout) as { checkpoints: readonly VerifiedPath[] }).checkpoints;
}

test('a line for each checkpoint of a directory, and exit code 1 for a corrupt one', async () => {
  const root = aDir({
    'step-1.pt': torch,
    'step-2.pt': torch.subarray(0, -5),
    'epoch_1/notes.bin': 'x',
    'train.log': 'x',
  });
  const { exitCode, stdout, stderr } = await verify([root]);
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.problemFound, stderr: '' });
  expect(stdout.replaceAll(root, 'DIR').replaceAll(/ +[\d.]+ (?:[KMG]i)?B\/s/g, '  RATE')).toBe(
    [
      'unverified  -                   1 B  RATE  DIR/epoch_1: notes.bin has an unknown format',
      'verified    step 1          9.5 MiB  RATE  DIR/step-1.pt',
      'corrupt     step 2          9.5 MiB            -  DIR/step-2.pt: it was cut off: the directory that PyTorch writes at the end is missing',
      '',
    ].join('\n'),
  );
});

test('paths of checkpoints themselves, links and relative ones too; exit code 0 where none is corrupt', async () => {
  const root = aDir({ 'a/any.pt': torch, 'b/model.pt': torch, 'checkpoint-5/global_step5/x.pt': torch });
  symlinkSync(join(root, 'a/any.pt'), join(root, 'link'));
  const paths = ['link', 'b', join(root, 'checkpoint-5')];
  const { exitCode, stdout } = await verify([...paths, '-o', 'json'], { environment: { workingDir: root } });
  expect(exitCode).toBe(exitCodes.ok);
  expect(parsed(stdout)).toMatchObject([
    {
      path: join(root, 'a/any.pt'),
      verdict: 'verified',
      depth: 'deep',
      bytes: torch.length,
      durationMs: expect.any(Number),
    },
    { path: join(root, 'b'), verdict: 'verified' },
    { path: join(root, 'checkpoint-5'), verdict: 'verified', step: 5 },
  ]);
});

test('a directory called like a checkpoint is one unless others lie in it, or a pattern says what is', async () => {
  const root = aDir({ 'ckpt/step_1.pt': torch, 'ckpt/step_2.pt': torch, 'final/model.pt': torch });
  const namesIn = async (...args: string[]) => {
    const { stdout } = await verify([...args, '--quick', '-o', 'json']);
    return parsed(stdout).map(({ path }) => path.slice(root.length + 1));
  };
  expect(await namesIn(join(root, 'ckpt'), join(root, 'final'))).toEqual([
    'ckpt/step_1.pt',
    'ckpt/step_2.pt',
    'final',
  ]);
  expect(await namesIn(join(root, 'final'), '--pattern', 'mod*')).toEqual(['final/model.pt']);
});

test('quickly: without a digest and without a rate', async () => {
  const root = aDir({ 'step-1.pt': torch });
  expect((await verify([root, '--quick'])).stdout).toBe(
    `verified    step 1          9.5 MiB            -  ${join(root, 'step-1.pt')}\n`,
  );
  const { stdout } = await verify([root, '--quick', '-o', 'json']);
  expect(parsed(stdout)).toMatchObject([{ depth: 'quick', digest: null }]);
});

test('a pattern says what checkpoints are called', async () => {
  const root = aDir({ 'run-7.bin': torch, 'step-1.pt': torch });
  const { stdout } = await verify([root, '--pattern', 'run-{step}.bin', '-o', 'json']);
  expect(parsed(stdout)).toMatchObject([{ path: join(root, 'run-7.bin'), verdict: 'verified', step: 7 }]);
  const none = await verify([root, '--pattern', 'save-{step}']);
  expect(none).toMatchObject({
    exitCode: exitCodes.notFound,
    stderr: expect.stringContaining('holds no checkpoint'),
  });
  expect(await verify([root, '--pattern', '/x'])).toMatchObject({
    exitCode: exitCodes.usage,
    stderr: expect.stringContaining('--pattern takes a relative path'),
  });
});

test('a path that is not there is an error before anything is read', async () => {
  const root = aDir({ 'step-1.pt': torch });
  expect(await verify([root, join(root, 'gone')])).toMatchObject({
    exitCode: exitCodes.usage,
    stdout: '',
    stderr: expect.stringContaining('gone: it does not exist'),
  });
});

test('Ctrl-C ends it after the chunk that is being read', async () => {
  const root = aDir({ 'step-1.pt': torch, 'step-2.pt': torch });
  const call = newCall(null);
  const ended = runCli(['checkpoint', 'verify', root], call.context);
  // Nobody hears it before the reading begins.
  const timer = setInterval(() => call.pressCtrlC(), 1);
  expect(await ended).toBe(exitCodes.interrupted);
  clearInterval(timer);
  expect(call.stdout()).not.toContain('step-2.pt');
});
