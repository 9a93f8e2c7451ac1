/** Output: every byte of every rank, in order, from the first to the last, whatever happens to Muster meanwhile. */
import { createHash } from 'node:crypto';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LogPiece } from '@muster/common/views';
import type { LogRequest } from '@muster/common/wire/client';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { tempDir, waitFor } from '../support/services.ts';
import { expectSameText } from '../support/text.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2 });
});

const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

/**
 * Writes lines of different lengths for some seconds, to stdout and stderr in turn, each in one write.
 * @param gate a path: it writes the second half once there is a file
 */
function talker(lines: number, linesPerBeat: number, gate = '/'): readonly string[] {
  const program = `
    const { existsSync, writeSync } = require('node:fs');
    let line = 0;
    const beat = setInterval(() => {
      if (line >= ${lines / 2} && !existsSync(${JSON.stringify(gate)})) return;
      for (let i = 0; i < ${linesPerBeat}; i += 1, line += 1) {
        if (line === ${lines}) return clearInterval(beat);
        writeSync(1 + (line % 2), 'line ' + line + ' ' + 'x'.repeat(line % 97) + '\\n');
      }
    }, 5);`;
  return [process.execPath, '-e', program];
}

function outputOf(lines: number): string {
  return Array.from({ length: lines }, (_, line) => `line ${line} ${'x'.repeat(line % 97)}\n`).join('');
}

/** What a client sees of one rank; checks that pieces join without gap or overlap. */
async function read(
  request: LogRequest,
  onPiece: (piece: LogPiece) => Promise<void> = async () => {},
): Promise<string> {
  const client = cluster.newClient();
  const pieces: Uint8Array[] = [];
  let end: number | null = null;
  let complete = 0;
  for await (const piece of client.readLogs(request)) {
    if (end !== null) expect(piece.offset).toBe(end);
    end = piece.offset + piece.data.length;
    pieces.push(piece.data);
    if (piece.complete) complete += 1;
    await onPiece(piece);
  }
  client.close();
  if (request.follow === true) expect(complete).toBe(1);
  return Buffer.concat(pieces).toString('utf8');
}

async function collect(pieces: AsyncIterable<LogPiece>): Promise<readonly LogPiece[]> {
  const collected: LogPiece[] = [];
  for await (const piece of pieces) collected.push(piece);
  return collected;
}

describe('all output is there', () => {
  test('of jobs that die at once', async () => {
    const { jobIds } = await cluster.submitArray(
      { command: 'echo first; echo $MUSTER_ARRAY_INDEX >&2; kill -KILL $$' },
      20,
    );
    for (const [index, id] of jobIds.entries()) {
      await cluster.untilEnded(id);
      expect(await cluster.output(id)).toBe(`first\n${index}\n`);
    }
  });

  test('with stdout and stderr in the order they were written, and without a last newline', async () => {
    const script = 'i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; printf end';
    const job = await cluster.run({ command: script });
    const expected = Array.from({ length: 500 }, (_, i) => `out ${i}\nerr ${i}\n`).join('');
    expectSameText(await cluster.output(job.id), `${expected}end`);
  });

  test('with bytes that are no text', async () => {
    const job = await cluster.run({ command: `printf '\\000\\377\\376\\r\\n\\033[31m'` });
    const pieces = await collect(cluster.api.readLogs({ jobId: job.id, follow: true }));
    expect(pieces.flatMap(({ data }) => [...data])).toEqual([0, 255, 254, 13, 10, 27, 91, 51, 49, 109]);
  });

  test('over an agent that is killed again and again in the middle', async () => {
    const gate = join(tempDir('gate').path, 'open');
    const jobId = await cluster.submit({ command: [...talker(20_000, 20, gate)] });
    await cluster.untilOutput(jobId, 'line 1000 ');
    const node = (await cluster.until(jobId, 'running')).attempts[0]?.tasks[0]?.node;
    const agent = cluster.agents.find(({ options }) => options.title === node) ?? cluster.agent(0);
    const pids = cluster.processesOf(jobId);
    expect(pids).toHaveLength(1);
    for (let round = 0; round < 3; round += 1) {
      await agent.restart();
      await delay(200 + 300 * round);
    }
    expect(cluster.processesOf(jobId)).toEqual(pids);
    writeFileSync(gate, '');
    expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded', attempts: [{ number: 1 }] });
    expectSameText(await read({ jobId, follow: true }), outputOf(20_000));
  });

  test('of a job that ended while its agent was away', async () => {
    const jobId = await cluster.submit({ command: [...talker(4_000, 20)] });
    await cluster.untilOutput(jobId, 'line 100 ');
    await Promise.all(cluster.agents.map((agent) => agent.kill()));
    await waitFor('the job is gone', () => cluster.processesOf(jobId), {
      until: (pids) => pids.length === 0,
    });
    await Promise.all(cluster.agents.map((agent) => agent.start()));
    expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded' });
    expectSameText(await read({ jobId, follow: true }), outputOf(4_000));
  });

  test('over a coordinator that is away for three seconds in the middle', async () => {
    const gate = join(tempDir('gate').path, 'open');
    const jobId = await cluster.submit({ command: [...talker(20_000, 20, gate)] });
    await cluster.untilOutput(jobId, 'line 1000 ');
    const pids = cluster.processesOf(jobId);
    await cluster.coordinator.kill();
    await delay(3_000);
    await cluster.coordinator.start();
    expect(cluster.processesOf(jobId)).toEqual(pids);
    writeFileSync(gate, '');
    expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded', attempts: [{ number: 1 }] });
    expectSameText(await read({ jobId, follow: true }), outputOf(20_000));
  });

  test('of a flood, in the middle of which coordinator and agent are killed', async () => {
    const jobId = await cluster.submit({ command: ['seq', '1', '4000000'] });
    const node = (await cluster.until(jobId, 'running')).attempts[0]?.tasks[0]?.node;
    const agent = cluster.agents.find(({ options }) => options.title === node) ?? cluster.agent(0);
    for (const [daemon, bytes] of [
      [cluster.coordinator, 2_000_000],
      [agent, 6_000_000],
      [cluster.coordinator, 10_000_000],
    ] as const) {
      for await (const { offset } of cluster.api.readLogs({ jobId, follow: true })) if (offset > bytes) break;
      await daemon.restart();
    }
    const expected = Array.from({ length: 4_000_000 }, (_, index) => `${index + 1}\n`).join('');
    expectSameText(await read({ jobId, follow: true }), expected);
    expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded' });
  });
});

describe('reading', () => {
  test('live, by several clients at once, each as fast as it can', async () => {
    const jobId = await cluster.submit({ command: [...talker(10_000, 20)] });
    await cluster.untilOutput(jobId, 'line 100 ');
    const slow = read({ jobId, follow: true }, () => delay(20));
    const fast = Promise.all([read({ jobId, follow: true }), read({ jobId, follow: true })]);
    const leaving = cluster.untilOutput(jobId, 'line 500 ');
    await leaving;
    const late = read({ jobId, follow: true });
    for (const seen of [...(await fast), await slow, await late]) expectSameText(seen, outputOf(10_000));
  });

  test('of a job that has not begun waits for it, and ends with it', async () => {
    const first = await cluster.submit({ command: 'sleep 0.5' });
    const jobId = await cluster.submit({ command: 'echo at last', after: [first] });
    expect(await read({ jobId })).toBe('');
    expect(await read({ jobId, follow: true })).toBe('at last\n');

    const never = await cluster.submit({ command: 'true', resources: { gpus: 64 } });
    const following = collect(cluster.api.readLogs({ jobId: never, follow: true }));
    await cluster.api.stopJobs([never]);
    expect(await following).toEqual([]);
  });

  test('only the last lines, and on from there', async () => {
    const jobId = await cluster.submit({ command: `seq 1 1000; echo ready; ${idle}` });
    await cluster.untilOutput(jobId, 'ready\n');
    expect(await read({ jobId, tailLines: 3 })).toBe('999\n1000\nready\n');
    expect(await read({ jobId, tailLines: 5_000 })).toMatch(/^1\n2\n/);
    const following = read({ jobId, follow: true, tailLines: 1 });
    await cluster.api.stopJobs([jobId]);
    expect(await following).toBe('ready\n');
  });

  test('of one rank, or of all', async () => {
    const job = await cluster.run({
      command: 'seq -f "rank $NODE_RANK line %g" 1 100',
      resources: { nodes: 2 },
    });
    const expected = (rank: number) =>
      Array.from({ length: 100 }, (_, i) => `rank ${rank} line ${i + 1}\n`).join('');
    const seen = ['', ''];
    for await (const piece of cluster.api.readLogs({ jobId: job.id, follow: true })) {
      seen[piece.nodeRank] += Buffer.from(piece.data).toString('utf8');
    }
    expect(seen).toEqual([expected(0), expected(1)]);
    expect(await read({ jobId: job.id, nodeRank: 1 })).toBe(expected(1));
    const tooHigh = read({ jobId: job.id, nodeRank: 2 });
    await expect(tooHigh).rejects.toMatchObject({
      code: 'invalid',
      message: `${job.id} has no rank 2: it has ranks 0 to 1`,
    });
    const tooLate = read({ jobId: job.id, attempt: 2 });
    await expect(tooLate).rejects.toMatchObject({
      code: 'not_found',
      message: `${job.id} has no attempt 2: it has had one attempt`,
    });
  });

  test('of a job that has been requeued follows into its next attempt', async () => {
    const script = `echo attempt $MUSTER_ATTEMPT; [ $MUSTER_ATTEMPT = 2 ] || ${idle}`;
    const jobId = await cluster.submit({ command: script });
    await cluster.untilOutput(jobId, 'attempt 1\n');
    const seen: string[] = [];
    const following = (async () => {
      for await (const { attempt, data } of cluster.api.readLogs({ jobId, follow: true })) {
        if (data.length > 0) seen.push(`${attempt}: ${Buffer.from(data).toString('utf8')}`);
      }
    })();
    await cluster.api.requeueJob(jobId, 'unused', { kind: 'newest' }, null, true);
    await following;
    expect(seen).toEqual(['1: attempt 1\n', '2: attempt 2\n']);
  });
});

test('the end of a job’s output on a node that is silent is not waited for, and what is missing is reported', async () => {
  const job = await cluster.run({ command: 'echo from $NODE_RANK', resources: { nodes: 2 } });
  expect(await read({ jobId: job.id, nodeRank: 1, follow: true })).toBe('from 1\n');
  const node = job.attempts[0]?.tasks[1]?.node ?? '';
  // As if the node had sent no more than this.
  truncateSync(join(cluster.dataDir, 'logs', job.id, '1.1.log'), 4);

  const online = cluster.startMuster(['logs', '-f', job.id]);
  await online.untilPrinted('[0] from 0\n');
  const agent = cluster.agents.find(({ options }) => options.title === node) ?? cluster.agent(0);
  await agent.kill();

  const { exitCode, stdout, stderr } = await online.ended;
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '[0] from 0\n[1] from\n' });
  expect(stderr).toMatch(
    new RegExp(`^${node} has not sent the end of rank 1's output \\(3 B\\); it is silent for [\\d.]+ s\\n`),
  );
  await agent.start();
  await cluster.untilOnline([agent]);
});

/**
 * Three seconds without a heartbeat make a node silent. A machine that is busy with something else silences both nodes for some
 * seconds; the output of a task would silence its own node, or both for as long as it lasts.
 */
class Silences {
  /** For how long one node was silent while the other was heard. */
  apartMsMax = 0;
  /** The longest silence of both. */
  togetherMsMax = 0;
  private apartSinceMs: number | null = null;

  see(silentForMs: readonly number[]): void {
    const count = silentForMs.filter((ms) => ms > 3_000).length;
    const isApart = count > 0 && count < silentForMs.length;
    const nowMs = performance.now();
    this.apartSinceMs = isApart ? (this.apartSinceMs ?? nowMs) : null;
    this.apartMsMax = Math.max(this.apartMsMax, nowMs - (this.apartSinceMs ?? nowMs));
    this.togetherMsMax = Math.max(this.togetherMsMax, Math.min(...silentForMs));
  }
}

test('100 MB from one task arrive whole, and cost neither memory nor heartbeats', async () => {
  const lastLine = 12_400_000;
  const daemons = [cluster.coordinator, ...cluster.agents];
  const before = daemons.map((daemon) => daemon.residentMb);
  const grownMb = daemons.map(() => 0);
  const silences = new Silences();
  const watching = new AbortController();
  const watch = (async () => {
    while (!watching.signal.aborted) {
      for (const [index, daemon] of daemons.entries()) {
        grownMb[index] = Math.max(grownMb[index] ?? 0, daemon.residentMb - (before[index] ?? 0));
      }
      silences.see(
        (await cluster.api.listNodes()).map((node) => node.silentForMs ?? Number.POSITIVE_INFINITY),
      );
      await delay(100);
    }
  })();

  const jobId = await cluster.submit({ command: ['seq', '1', String(lastLine)] });
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const { data } of cluster.api.readLogs({ jobId, follow: true })) {
    hash.update(data);
    bytes += data.length;
  }
  watching.abort();
  await watch;

  const expected = createHash('sha256');
  let expectedBytes = 0;
  for (let line = 1; line <= lastLine; line += 50_000) {
    const last = Math.min(line + 49_999, lastLine);
    const text = Array.from({ length: last - line + 1 }, (_, index) => `${line + index}\n`).join('');
    expected.update(text);
    expectedBytes += text.length;
  }
  expect(bytes).toBe(expectedBytes);
  expect(bytes).toBeGreaterThan(100_000_000);
  expect(hash.digest('hex')).toBe(expected.digest('hex'));
  expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded' });
  for (const grown of grownMb) expect(grown).toBeLessThan(80);
  expect(silences.apartMsMax).toBeLessThan(3_000);
  expect(silences.togetherMsMax).toBeLessThan(8_000);
});
