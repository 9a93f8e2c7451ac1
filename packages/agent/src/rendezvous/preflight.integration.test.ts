import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import type { PathCheck, PreflightResult } from '@muster/common/gangs';
import type { JobId, TaskRef } from '@muster/common/ids';
import { afterEach, describe, expect, test } from 'vitest';
import { patienceMs } from '../../../../test/support/patience.ts';
import type { TaskLaunch } from '../drivers/driver.ts';
import type { HeldPort } from '../launch/masterPort.ts';
import { DriverError } from '../taskFacts/errors.ts';
import { type RunProgram, readResult } from './preflight.ts';
import { createRendezvous, type NodeRendezvous } from './rendezvous.ts';

const jobId = 'job_0123456789ab' as JobId;
const taskOf = (nodeRank: number): TaskRef => ({ jobId, attempt: 3, nodeRank });
const launch = {
  command: ['train'],
  env: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8' },
} as unknown as TaskLaunch;

/** With the Python of this system, which has PyTorch; programs of a test are gone when it ends. */
const realProgram: RunProgram = (_task, { command, env }, abort) =>
  new Promise((resolve, reject) => {
    const [file = '', ...args] = command;
    execFile(file, args, { env: { ...env }, signal: abort }, (error, stdout, stderr) => {
      if (abort.aborted) reject(abort.reason);
      else resolve({ exitCode: error === null ? 0 : 1, output: stderr + stdout });
    });
  });

const printing =
  (output: string, exitCode = 0): RunProgram =>
  () =>
    Promise.resolve({ exitCode, output });

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

interface Member {
  readonly node: NodeRendezvous;
  readonly held: HeldPort;
}

const members: Member[] = [];
afterEach(() => Promise.all(members.splice(0).map(({ held }) => held.release())));

/** A gang whose every node is on loopback, asked as the coordinator asks: rank 0 and the next one. */
async function gangOf(
  programs: readonly RunProgram[],
): Promise<(timeoutMs: number) => Promise<PreflightResult[]>> {
  for (const [rank, runProgram] of programs.entries()) {
    const node = createRendezvous({
      nodeName: `node-${rank}`,
      coordinator: '127.0.0.1:7070',
      labels: {},
      network: () => ({ nics: [], rdmaDevices: [], addresses: {} }),
      ports: await Promise.all([freePort(), freePort(), freePort()]),
      runProgram,
      monotonicMs: () => performance.now(),
      chance: () => 0,
    });
    members.push({ node, held: await node.hold(taskOf(rank)) });
  }
  const addresses = members.map(() => '127.0.0.1');
  const peerOf = (nodeRank: number) => ({
    nodeRank,
    node: `node-${nodeRank}`,
    address: '127.0.0.1',
    port: members[nodeRank]?.held.port ?? 0,
  });
  return (timeoutMs) =>
    Promise.all(
      members.map(async ({ node }, rank) => {
        const others = [...new Set([0, (rank + 1) % members.length])].filter((each) => each !== rank);
        const check: PathCheck = {
          round: 1,
          addresses,
          peers: others.map(peerOf),
          preflight: { master: { addr: '127.0.0.1', port: peerOf(0).port }, timeoutMs },
        };
        const { paths, preflight } = await node.check(
          taskOf(rank),
          launch,
          check,
          new AbortController().signal,
        );
        expect(paths.every(({ error }) => error === null)).toBe(true);
        if (preflight === null) throw new Error('no preflight was run');
        return preflight;
      }),
    );
}

describe('with PyTorch', () => {
  test('every pair is measured from both ends, and the whole', async () => {
    const preflight = await gangOf([realProgram, realProgram, realProgram]);
    const results = await preflight(300_000);
    for (const [rank, result] of results.entries()) {
      expect(result).toMatchObject({ error: null, backend: 'gloo' });
      const others = [0, 1, 2].filter((each) => each !== rank);
      expect(result.pairs.map(({ nodeRank }) => nodeRank).sort((a, b) => a - b)).toEqual(others);
      // Loopback moves less than a terabyte a second on any machine; how much depends on what else runs there.
      for (const { bytesPerS } of result.pairs) {
        expect(bytesPerS).toBeGreaterThan(0);
        expect(bytesPerS).toBeLessThan(1e12);
      }
      expect(result.allReduceBytesPerS).toBeGreaterThan(0);
    }
    // The port of the job itself was held all the time.
    await expect(members[0]?.held.release()).resolves.toBeUndefined();
  });

  test('who does not come is named', async () => {
    const preflight = await gangOf([realProgram, realProgram, printing('cannot start today\n', 3)]);
    // Half of it is for the rendezvous; the other half is for a Python that takes long to import PyTorch.
    const [first, second, third] = await preflight(120_000);
    expect(third?.error).toBe('node-2: the preflight ended without a result: cannot start today');
    for (const [rank, result] of [first, second].entries()) {
      expect(result?.error).toMatch(
        new RegExp(
          `^node-${rank}: (?:node-2|node rank 2 at 127\\.0\\.0\\.1) did not join the preflight within 60 s$`,
        ),
      );
    }
  });
});

describe('without PyTorch the agents measure', () => {
  const notFound = () => Promise.reject(new DriverError('command_not_found', 'python3 was not found'));
  test.each<[string, RunProgram]>([
    ['no Python', notFound],
    ['no Python in the image', printing('sh: 1: exec: python3: not found\n', 127)],
    ['Python without PyTorch', printing('MUSTER-PREFLIGHT {"missing": "No module named torch"}\n')],
  ])('%s', async (_what, program) => {
    const preflight = await gangOf([program, program, program]);
    const results = await preflight(patienceMs);
    for (const [rank, result] of results.entries()) {
      expect(result).toEqual({
        error: null,
        backend: 'tcp',
        pairs: [{ nodeRank: (rank + 1) % 3, bytesPerS: expect.any(Number) }],
        allReduceBytesPerS: null,
      });
      expect(result.pairs[0]?.bytesPerS).toBeGreaterThan(0);
    }
  });
});

test('a program that does not end is ended, and its time is reported', async () => {
  const hangs: RunProgram = (_task, _launch, abort) =>
    new Promise((_, reject) => {
      abort.addEventListener('abort', () => reject(abort.reason));
    });
  const preflight = await gangOf([hangs, hangs]);
  const results = await preflight(200);
  expect(results.map(({ error }) => error)).toEqual(
    [0, 1].map((rank) => `node-${rank}: the preflight did not end within 0.2 s`),
  );
});

test('a node that cannot run anything says why', async () => {
  const fails: RunProgram = () => Promise.reject(new DriverError('image_pull', 'no such image'));
  const preflight = await gangOf([fails, fails]);
  expect((await preflight(patienceMs))[1]?.error).toBe('node-1: no such image');
});

describe('what a program says', () => {
  test('the last result counts, whatever is before and after it', () => {
    const result =
      '{"backend": "nccl", "pairs": [{"nodeRank": 1, "bytesPerS": 5, "x": 1}], "allReduceBytesPerS": 7}';
    expect(
      readResult(`banner\nMUSTER-PREFLIGHT {"error": "early"}\nMUSTER-PREFLIGHT ${result}\nbye\n`, 'a'),
    ).toEqual({
      error: null,
      backend: 'nccl',
      pairs: [{ nodeRank: 1, bytesPerS: 5 }],
      allReduceBytesPerS: 7,
    });
  });

  test.each([
    ['', 'it printed nothing'],
    ['Segmentation fault\n', 'Segmentation fault'],
    ['MUSTER-PREFLIGHT nonsense\n', 'cannot be read'],
    ['MUSTER-PREFLIGHT []\n', 'cannot be read'],
    ['MUSTER-PREFLIGHT {"error": "boom"}\n', 'a: boom'],
  ])('%j is an error', (output, words) => expect(readResult(output, 'a')?.error).toContain(words));

  test('numbers that cannot be are left out', () => {
    const pairs = [
      { nodeRank: -1, bytesPerS: 5 },
      { nodeRank: 1, bytesPerS: -5 },
      { nodeRank: 1, bytesPerS: 1e300 },
      { nodeRank: 1.5, bytesPerS: 5 },
      'x',
      null,
    ];
    const line = `MUSTER-PREFLIGHT ${JSON.stringify({ pairs, allReduceBytesPerS: 'fast' })}\n`;
    expect(readResult(line, 'a')).toEqual({
      error: null,
      backend: 'gloo',
      pairs: [],
      allReduceBytesPerS: null,
    });
  });
});
