/** The event log: a gap-free record of everything that happened, for anyone who watches. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { EventView } from '@muster/common/views';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { tempDir, waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2 });
});

const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

const seqs = (events: readonly EventView[]) => events.map(({ seq }) => seq);
const kinds = (events: readonly EventView[]) => events.map(({ kind }) => kind);

/** A client that watches all the time. Whenever its stream breaks, it continues after the last event that it saw. */
function watchFrom(sinceSeq: number) {
  const seen: EventView[] = [];
  const leaving = new AbortController();
  const watching = (async () => {
    while (!leaving.signal.aborted) {
      const request = { sinceSeq: seen.at(-1)?.seq ?? sinceSeq, follow: true };
      try {
        for await (const event of cluster.api.watchEvents(request, leaving.signal)) seen.push(event);
      } catch {
        await delay(20);
      }
    }
  })();
  return {
    seen,
    /** Waits until it has seen as much as there is. */
    async catchUp(): Promise<readonly EventView[]> {
      const { lastEventSeq } = await cluster.api.getCluster();
      await waitFor(`event ${lastEventSeq} is seen`, () => seen.at(-1)?.seq ?? 0, {
        until: (seq) => seq >= lastEventSeq,
      });
      leaving.abort();
      await watching;
      return seen;
    },
  };
}

describe('the events of a job', () => {
  test('tell its life in order', async () => {
    const gate = join(tempDir('gate').path, 'open');
    const command = `while [ ! -e ${gate} ]; do sleep 0.05; done`;
    const jobId = await cluster.submit({ name: 'life', command, resources: { nodes: 2, gpus: 1 } });
    await cluster.until(jobId, 'running');
    writeFileSync(gate, '');
    const job = await cluster.untilEnded(jobId);
    const events = await cluster.events(job.id);
    expect(kinds(events)).toEqual([
      'job.submitted',
      'attempt.allocated',
      'attempt.checked',
      'attempt.released',
      'attempt.running',
      'task.ended',
      'task.ended',
      'attempt.ended',
      'job.succeeded',
    ]);
    expect(events.map(({ subjectSeq }) => subjectSeq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('are CloudEvents 1.0', async () => {
    const { id: clusterId } = await cluster.api.getCluster();
    const job = await cluster.run({ name: 'shape', command: 'exit 6', labels: { secret: 'no' } });
    const events = await cluster.events(job.id);
    for (const event of events) {
      const { by, peer = '127.0.0.1', ...attributes } = event.cloudEvent;
      expect([by, peer]).toEqual([expect.stringMatching(/^(?:admin|agent|coordinator: )/), '127.0.0.1']);
      expect(attributes).toEqual({
        specversion: '1.0',
        id: event.id,
        source: `/muster/${clusterId}`,
        type: `muster.${event.kind}`,
        subject: job.id,
        time: new Date(event.timeMs).toISOString(),
        datacontenttype: 'application/json',
        sequence: String(event.seq),
        subjectsequence: String(event.subjectSeq),
        traceid: job.traceId,
        data: expect.objectContaining({ name: 'shape' }),
      });
    }
    const failed = events.find(({ kind }) => kind === 'job.failed');
    expect(failed?.cloudEvent).toMatchObject({ data: { cause: { kind: 'exit_code', nodeRank: 0 } } });
  });
});

describe('a watch', () => {
  test('from any event on shows all that came after it, and no other', async () => {
    await cluster
      .submitArray({ command: 'true' }, 10)
      .then(({ jobIds }) => Promise.all(jobIds.map((id) => cluster.untilEnded(id))));
    const all = await cluster.events();
    expect(seqs(all)).toEqual(all.map((_, index) => index + 1));
    for (const sinceSeq of [0, 1, Math.floor(all.length / 2), all.length - 1, all.length]) {
      const seen: EventView[] = [];
      for await (const event of cluster.api.watchEvents({ sinceSeq })) seen.push(event);
      expect(seen).toEqual(all.slice(sinceSeq));
    }
  });

  test('live shows events as they come, once each', async () => {
    const { lastEventSeq } = await cluster.api.getCluster();
    const watch = watchFrom(lastEventSeq);
    const job = await cluster.run({ command: 'true' });
    const seen = await watch.catchUp();
    expect(seqs(seen)).toEqual(seen.map((_, index) => lastEventSeq + 1 + index));
    expect(kinds(seen.filter(({ subject }) => subject === job.id)).at(-1)).toBe('job.succeeded');
  });

  test('of only what is new begins now', async () => {
    const { lastEventSeq } = await cluster.api.getCluster();
    const leaving = new AbortController();
    const seen: EventView[] = [];
    const watching = (async () => {
      const request = { sinceSeq: -1, follow: true };
      for await (const event of cluster.api.watchEvents(request, leaving.signal)) seen.push(event);
    })();
    // A watch does not report when it has begun: jobs cause events until it shows one.
    while (seen.length === 0) await cluster.run({ command: 'true' });
    leaving.abort();
    await watching;
    expect(seen[0]?.seq).toBeGreaterThan(lastEventSeq);
  });

  test('misses nothing over restarts of the coordinator', async () => {
    const { lastEventSeq } = await cluster.api.getCluster();
    const watch = watchFrom(lastEventSeq);
    for (let round = 0; round < 3; round += 1) {
      await cluster.submitArray({ command: 'sleep 0.1' }, 10);
      await cluster.coordinator.restart();
    }
    await waitFor('all jobs have ended', () => cluster.api.getCluster(), {
      until: ({ jobsActive, jobsQueued }) => jobsActive + jobsQueued === 0,
    });
    const seen = await watch.catchUp();
    expect(seqs(seen)).toEqual(seen.map((_, index) => lastEventSeq + 1 + index));
    expect(kinds(seen).filter((kind) => kind === 'job.succeeded')).toHaveLength(30);
  });

  test('on the command line goes on after --since, one CloudEvent a line', async () => {
    const all = await cluster.events();
    const since = all.length - 5;
    const { exitCode, stdout } = await cluster.muster(['events', '--since', String(since), '-o', 'json']);
    expect(exitCode).toBe(0);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toEqual(all.slice(since).map(({ cloudEvent }) => cloudEvent));
  });
});

test('a node that is lost and found again says so, and what runs on it goes on', async () => {
  const jobId = await cluster.submit({ command: `echo ready; ${idle}` });
  await cluster.untilOutput(jobId, 'ready\n');
  const node = (await cluster.until(jobId, 'running')).attempts[0]?.tasks[0]?.node ?? '';
  const agent = cluster.agents.find(({ options }) => options.title === node) ?? cluster.agent(0);
  await agent.kill();
  await waitFor(`${node} is called silent`, async () => kinds(await cluster.events(node)).at(-1), {
    until: (kind) => kind === 'node.silent',
  });
  expect(await cluster.api.getNode(node)).toMatchObject({ state: 'silent' });
  expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running' });
  const { details } = await cluster.api.explainJob(jobId);
  expect(details.join('\n')).toContain(`node ${node} has been silent for`);
  const both = await cluster.submit({ command: 'true', resources: { nodes: 2 } });
  await waitFor('a job for both nodes waits', () => cluster.api.getJob(both), {
    until: ({ pending }) => pending?.kind === 'no_nodes',
  });
  await agent.start();
  await cluster.untilOnline();
  const sinceSilent = kinds(await cluster.events(node))
    .join(' ')
    .split('node.silent')
    .at(-1);
  expect(sinceSilent).toContain('node.online');
  expect(await cluster.untilEnded(both)).toMatchObject({ state: 'succeeded' });
  expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running', attempts: [{ number: 1 }] });
  await cluster.api.stopJobs([jobId]);
  await cluster.untilEnded(jobId);
});
