/** `muster` as a process of its own: exit codes, pipes, signals, memory. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { compileCache } from '../../../test/support/services.ts';
import { exitCodes } from './exitCodes.ts';
import { runCli } from './program.ts';
import { aJob, fakeToken, logPiece, silentStream, wire } from './testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, temporaryDir } from './testing/testContext.ts';

/** Those who run a real coordinator want no page: the usual port may be somebody's. */
const noPage = ['--http', 'off', '--log-level', 'silent'];
const mainPath = join(import.meta.dirname, 'main.ts');

interface Muster {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  stderr(): string;
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
}

function startMuster(argv: readonly string[], address: string | null, ipc = false): Muster {
  const child = spawn(process.execPath, [mainPath, ...argv], {
    stdio: ['ignore', 'pipe', 'pipe', ...(ipc ? (['ipc'] as const) : [])],
    env: {
      HOME: temporaryDir(),
      ...compileCache,
      ...(address === null ? {} : { MUSTER_ADDR: address, MUSTER_TOKEN: fakeToken }),
    },
  }) as ChildProcessByStdio<null, Readable, Readable>;
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // Not `close`: it never comes for a child whose channel we have closed.
  const ended = Promise.all([once(child, 'exit'), once(child.stderr, 'close')]).then(
    ([[code, signal]]) => (code ?? signal) as number | string,
  );
  return { child, stderr: () => stderr, ended };
}

test.each([
  [['jbos'], exitCodes.usage, /^muster: unknown command 'jbos'\n/],
  [
    ['coordinator', '--data', '/dev/null/x', '--log-level', 'silent'],
    exitCodes.refused,
    /^muster: the data directory \/dev\/null\/x /,
  ],
  [
    ['coordinator', '--data', 'd', '--listen', '127.0.0.1', ...noPage],
    exitCodes.usage,
    /^muster: invalid address "127\.0\.0\.1" to listen on/,
  ],
  // Below /proc a directory can neither be found nor made.
  [['up', '--data', '/proc/muster/data'], exitCodes.refused, /: ENOENT: .* '\/proc\/muster'\n/],
  [['up', '--data', '/dev/null'], exitCodes.refused, /^muster: cannot use the data directory \/dev\/null: /],
])('%j fails with a sentence and the right code', async (argv, exitCode, message) => {
  const dir = temporaryDir();
  const muster = startMuster(
    argv.map((word) => (word === 'd' ? join(dir, 'd') : word)),
    null,
  );
  expect(await muster.ended).toBe(exitCode);
  expect(muster.stderr()).toMatch(message);
  expect(muster.stderr()).not.toMatch(/^ +at /m);
});

test.each([
  [['jobs'], exitCodes.unreachable, /^muster: no coordinator is known on this machine\n/],
  [
    ['submit', '-f', '/no/such.yaml'],
    exitCodes.usage,
    /^muster: cannot read the job file \/no\/such.yaml: it does not exist\n/,
  ],
  [
    ['coordinator', '--data', 'd', '--advertise', 'gpu-head:7070', ...noPage],
    exitCodes.usage,
    /^muster: --advertise takes a name or an address without a port, such as gpu-head; got "gpu-head:7070"\n/,
  ],
  [
    ['up', '--data', 'd', '--listen', '0.0.0.0:7070'],
    exitCodes.usage,
    /^muster: --listen takes an address of this machine without a port, such as 0\.0\.0\.0/,
  ],
  [
    ['coordinator', '--data', 'd', '--heartbeat', '5s', '--lease', '6s'],
    exitCodes.usage,
    /^muster: --lease has to be at least twice/,
  ],
  [
    ['coordinator', '--data', 'd', '--nats-submit'],
    exitCodes.usage,
    /^muster: --nats-submit needs the NATS to take submits from: --nats URL\n/,
  ],
  [
    ['coordinator', '--data', 'd', '--http', '0.0.0.0:7071'],
    exitCodes.usage,
    /^muster: --http serves on this machine only, such as 127\.0\.0\.1:7071; 0\.0\.0\.0 is open to others\n/,
  ],
  [
    ['coordinator', '--data', 'd', '--otlp', 'http://ann:s3cret@p:4318'],
    exitCodes.usage,
    /^muster: --otlp takes a URL without a password, such as .*; got "http:\/\/p:4318"/,
  ],
  [
    ['coordinator', '--data', 'd', '--otlp', 'http://p:4318', '--trace-ratio', '1.5'],
    exitCodes.usage,
    /^muster: --trace-ratio takes a number from 0 to 1, such as 0.1; got "1.5"/,
  ],
  [
    ['coordinator', '--data', 'd', '--trace-ratio', '0.5'],
    exitCodes.usage,
    /^muster: --trace-ratio needs --otlp, which says where traces go/,
  ],
  [
    ['coordinator', '--data', 'd', '--prometheus-url', 'http://ann:s3cret@p:9090'],
    exitCodes.usage,
    /^muster: --prometheus-url takes a URL without a password, such as .*; got "http:\/\/p:9090"/,
  ],
  [
    ['coordinator', '--data', 'd', '--telemetry-memory', 'much'],
    exitCodes.usage,
    /^muster: --telemetry-memory takes a size with its unit, such as "64G" or "512M"/,
  ],
  [
    ['agent', '--data', 'd', '--name', 'A b', '--coordinator', '127.0.0.1:1'],
    exitCodes.usage,
    /^muster: invalid node name "A b"/,
  ],
  [
    ['agent', '--data', 'd', '--name', 'a', '--coordinator', 'example.org'],
    exitCodes.usage,
    /^muster: --coordinator takes HOST:PORT, such as gpu-head:7070; got "example.org"\n/,
  ],
  [
    ['agent', '--data', 'd', '--name', 'a', '--coordinator', '127.0.0.1:1', '--shutdown-grace', '0s'],
    exitCodes.usage,
    /^muster: --shutdown-grace takes a duration from 1s to 1h, such as 30s; got "0s"\n/,
  ],
])('%j is refused before it starts anything', async (argv, exitCode, message) => {
  const dir = temporaryDir();
  const call = newCall(null);
  const words = argv.map((word) => (word === 'd' ? join(dir, 'd') : word));
  expect(await runCli(words, call.context)).toBe(exitCode);
  expect(call.stderr()).toMatch(message);
  expect(call.stderr()).not.toMatch(/^ +at /m);
  expect(existsSync(join(dir, 'd'))).toBe(false);
});

test('a coordinator on a taken port names it', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  onTestFinished(() => {
    taken.close();
  });
  const { port } = taken.address() as { port: number };
  const muster = startMuster(
    ['coordinator', '--data', temporaryDir(), '--listen', `127.0.0.1:${port}`, ...noPage],
    null,
  );
  expect(await muster.ended).toBe(exitCodes.refused);
  expect(muster.stderr()).toContain(`127.0.0.1:${port} is in use`);
});

test('a daemon says when it serves, and ends with its supervisor', async () => {
  const argv = ['coordinator', '--data', temporaryDir(), '--listen', '127.0.0.1:0', ...noPage];
  const muster = startMuster(argv, null, true);
  const [message] = await once(muster.child, 'message');
  expect(message).toEqual({ kind: 'serving', address: expect.stringMatching(/^127\.0\.0\.1:\d+$/) });
  muster.child.disconnect();
  expect(await muster.ended).toBe(exitCodes.ok);
  expect(muster.stderr()).toBe('');
});

/** A job of two ranks that prints without end, in lines of 64 bytes. */
const line = `${'x'.repeat(63)}\n`;
const pieceBytes = 64 * 1024;
const endless = (pieces: number, sent: { bytes: number }) => ({
  GetJob: () => wire.job(aJob({ state: 'running', spec: { command: ['yes'], resources: { nodes: 2 } } })),
  ReadLogs: async function* () {
    const data = Buffer.from(line.repeat(pieceBytes / line.length));
    for (let piece = 0; piece < pieces; piece += 1) {
      sent.bytes += data.length;
      yield logPiece(data, { nodeRank: piece % 2, offset: Math.floor(piece / 2) * pieceBytes });
    }
  },
});

test('100 MB of output pass through a slow pipe without growing memory', async () => {
  const sent = { bytes: 0 };
  const pieces = (100 * 1024 * 1024) / pieceBytes;
  const coordinator = await fakeCoordinator(endless(pieces, sent));
  const muster = startMuster(['logs', 'job_0123456789ab'], coordinator.address);
  let received = 0;
  // As long as nobody reads, the coordinator must not get rid of it all: nothing in between may collect it.
  let before = -1;
  while (sent.bytes === 0 || sent.bytes > before) {
    before = sent.bytes;
    await sleep(200);
  }
  expect(sent.bytes).toBeLessThan(20 * 1024 * 1024);
  let residentMbMax = 0;
  for await (const chunk of muster.child.stdout) {
    if (received % (4 * 1024 * 1024) < (chunk as Buffer).length)
      residentMbMax = Math.max(residentMbMax, residentMb(muster));
    received += (chunk as Buffer).length;
  }
  expect(await muster.ended).toBe(exitCodes.ok);
  const lines = (pieces * pieceBytes) / line.length;
  expect(received).toBe(lines * (line.length + '[0] '.length));
  expect(residentMbMax).toBeGreaterThan(0);
  expect(residentMbMax).toBeLessThan(250);
});

function residentMb({ child }: Muster): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

test('a reader that goes away, as head does, ends the command quietly', async () => {
  const coordinator = await fakeCoordinator(endless(100_000, { bytes: 0 }));
  const muster = startMuster(['logs', 'job_0123456789ab'], coordinator.address);
  await once(muster.child.stdout, 'readable');
  muster.child.stdout.destroy();
  expect(await muster.ended).toBe(exitCodes.ok);
  expect(muster.stderr()).toBe('');
});

test('Ctrl-C detaches', async () => {
  const coordinator = await fakeCoordinator({
    GetJob: () => wire.job(aJob({ state: 'running' })),
    ReadLogs: async function* (_request: unknown, aborted: AbortSignal) {
      yield logPiece('hello\n');
      yield* silentStream(null, aborted);
    },
  });
  const muster = startMuster(['logs', '-f', 'job_0123456789ab'], coordinator.address);
  const [first] = await once(muster.child.stdout, 'data');
  expect(String(first)).toBe('hello\n');
  muster.child.kill('SIGINT');
  expect(await muster.ended).toBe(exitCodes.interrupted);
  expect(muster.stderr()).toContain('Detached. job_0123456789ab is still running.');
});
