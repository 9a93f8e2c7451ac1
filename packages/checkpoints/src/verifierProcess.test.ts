import { readFileSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { waitFor } from '../../../test/support/services.ts';
import { checkpointDir } from './testing/checkpointDir.ts';
import { torchEntries, zipOf } from './testing/torchFile.ts';
import { unverifiable } from './verification.ts';
import { VerifierProcess, type VerifierProcessOptions } from './verifierProcess.ts';

const program = fileURLToPath(new URL('./verifier/main.ts', import.meta.url));
const torch = zipOf(torchEntries(Buffer.alloc(100_000, 1)));

function aVerifier(options: Partial<VerifierProcessOptions> = {}) {
  const warnings: string[] = [];
  const log: Logger = {
    info() {},
    debug() {},
    warn: (_fields, message) => warnings.push(message),
    error: (_fields, message) => warnings.push(message),
  };
  const parts = { program, nodePath: process.execPath, log, isUrgent: true };
  const verifier = new VerifierProcess({ ...parts, ...options });
  onTestFinished(() => verifier.close());
  return { verifier, warnings };
}

/** One that is read so slowly that it is not done before the test is. */
function slowOrder() {
  const root = checkpointDir({ 'ckpt.pt': torch });
  return { root, name: 'ckpt.pt', depth: 'deep', bytesPerSecondMax: 1 } as const;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function started(verifier: VerifierProcess): Promise<number> {
  await waitFor('it runs', () => verifier.pid !== null);
  return verifier.pid ?? 0;
}

test('verdicts come from a process of its own, behind all others, in order', async () => {
  const root = checkpointDir({ 'ckpt.pt': torch, 'step-5.pt': torch.subarray(0, -9) });
  const { verifier, warnings } = aVerifier({ isUrgent: false });
  expect(verifier.pid).toBeNull();
  const verdicts = await Promise.all([
    verifier.verify({ root, name: 'ckpt.pt', depth: 'deep' }),
    verifier.verify({ root, name: 'step-5.pt', depth: 'quick' }),
    verifier.verify({ root, name: 'gone.pt', depth: 'quick' }),
  ]);
  expect(verdicts).toMatchObject([
    { verdict: 'verified', depth: 'deep', bytes: torch.length },
    { verdict: 'corrupt', depth: 'quick', step: 5 },
    { verdict: 'unverified', problem: 'it does not exist' },
  ]);
  const pid = await started(verifier);
  expect(pid).not.toBe(process.pid);
  expect(getPriority(pid)).toBe(19);
  expect(warnings).toEqual([]);
});

test('one that is urgent is behind nobody', async () => {
  const { verifier } = aVerifier();
  const root = checkpointDir({ 'ckpt.pt': torch });
  expect(await verifier.verify({ root, name: 'ckpt.pt', depth: 'quick' })).toMatchObject({
    verdict: 'verified',
  });
  expect(getPriority(await started(verifier))).toBe(getPriority());
});

test('it ends by itself when nothing is left to do, and is started again when something is', async () => {
  const root = checkpointDir({ 'ckpt.pt': torch });
  const { verifier, warnings } = aVerifier({ idleSeconds: 0.2 });
  const verify = () => verifier.verify({ root, name: 'ckpt.pt', depth: 'quick' });
  expect(await verify()).toMatchObject({ verdict: 'verified' });
  const first = await started(verifier);
  await waitFor('it is gone', () => verifier.pid === null && !isAlive(first));
  expect(await verify()).toMatchObject({ verdict: 'verified' });
  expect(verifier.pid).not.toBe(first);
  expect(warnings).toEqual([]);
});

test('it works on something for longer than it would wait for it', async () => {
  const root = checkpointDir({ 'ckpt.pt': torch });
  const { verifier, warnings } = aVerifier({ idleSeconds: 0.1 });
  // Takes half a second at this rate.
  const order = { root, name: 'ckpt.pt', depth: 'deep', bytesPerSecondMax: 200_000 } as const;
  expect(await verifier.verify(order)).toMatchObject({ verdict: 'verified', depth: 'deep' });
  expect(warnings).toEqual([]);
});

test('what is aborted is answered, and the next one is verified by the same process', async () => {
  const { verifier, warnings } = aVerifier();
  const controller = new AbortController();
  const root = checkpointDir({ 'ckpt.pt': torch });
  await verifier.verify({ root, name: 'ckpt.pt', depth: 'quick' });
  const slow = verifier.verify(slowOrder(), controller.signal);
  const next = verifier.verify({ root, name: 'ckpt.pt', depth: 'quick' });
  const pid = await started(verifier);
  controller.abort(new Error('the job was cancelled'));
  await expect(slow).rejects.toThrow('the job was cancelled');
  expect(await next).toMatchObject({ verdict: 'verified' });
  expect(verifier.pid).toBe(pid);
  expect(warnings).toEqual([]);
});

test('one that is killed is started again for the same checkpoint', async () => {
  const { verifier, warnings } = aVerifier();
  const slow = verifier.verify(slowOrder()).catch((error: unknown) => error);
  const first = await started(verifier);
  process.kill(first, 'SIGKILL');
  await waitFor('another one runs', () => verifier.pid !== null && verifier.pid !== first);
  expect(warnings).toEqual(['the verifier of checkpoints died']);
  const second = await started(verifier);
  process.kill(second, 'SIGKILL');
  expect(await slow).toMatchObject({
    verdict: 'unverified',
    problem: 'the verifier died of it twice: signal SIGKILL',
  });
});

test('one that does not hear when it is asked to stop is killed', async () => {
  const { verifier } = aVerifier();
  const controller = new AbortController();
  const slow = verifier.verify(slowOrder(), controller.signal);
  const pid = await started(verifier);
  process.kill(pid, 'SIGSTOP');
  controller.abort(new Error('enough'));
  await expect(slow).rejects.toThrow('enough');
  await waitFor('it is gone', () => !isAlive(pid));
});

test('it ends with whoever asked', async () => {
  const { verifier } = aVerifier();
  const slow = verifier.verify(slowOrder()).catch((error: unknown) => error);
  const pid = await started(verifier);
  const closed = new Error('the verifier of this agent is closed');
  await verifier.close();
  expect(isAlive(pid)).toBe(false);
  expect(await slow).toEqual(closed);
  await expect(verifier.verify(slowOrder())).rejects.toEqual(closed);
});

test.each([
  ['ends at once', 'process.exit(0)', 'exit status 0'],
  ['crashes', 'throw new Error("broken")', 'exit status 1'],
  [
    'says what is no message',
    'console.log("hello"); setInterval(() => {}, 1000)',
    'it sent an invalid message',
  ],
])('a program that %s is no endless loop', async (_what, code, how) => {
  const root = checkpointDir({ 'program.mjs': code, 'ckpt.pt': torch });
  const { verifier, warnings } = aVerifier({ program: join(root, 'program.mjs') });
  expect(await verifier.verify({ root, name: 'ckpt.pt', depth: 'quick' })).toMatchObject({
    verdict: 'unverified',
    problem: expect.stringContaining(how),
  });
  expect(warnings).toHaveLength(2);
});

test('one that ends for want of work just when it is asked is no failure', async () => {
  const found = JSON.stringify(unverifiable('as it says'));
  const root = checkpointDir({
    'program.mjs': `
      let asked = 0;
      process.stdin.setEncoding('utf8').on('data', (text) => {
        asked += 1;
        if (asked === 2) process.exit(0);
        console.log(JSON.stringify({ kind: 'verified', id: JSON.parse(text).id, verification: ${found} }));
      });`,
  });
  const { verifier, warnings } = aVerifier({ program: join(root, 'program.mjs') });
  const verify = () => verifier.verify({ root, name: 'ckpt.pt', depth: 'quick' });
  expect(await verify()).toMatchObject({ problem: 'as it says' });
  expect(await verify()).toMatchObject({ problem: 'as it says' });
  expect(warnings).toEqual([]);
});

test('its memory is bounded by what it reads at once', async () => {
  const root = checkpointDir();
  writeFileSync(join(root, 'ckpt.pt'), zipOf(torchEntries(Buffer.alloc(200 * 1024 * 1024))));
  const { verifier } = aVerifier();
  expect(await verifier.verify({ root, name: 'ckpt.pt', depth: 'deep' })).toMatchObject({
    verdict: 'verified',
  });
  const peakKib = Number(
    /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${await started(verifier)}/status`, 'utf8'))?.[1],
  );
  expect(peakKib / 1024).toBeLessThan(150);
});
