/** What happens to jobs before they run: order, reasons to wait, dependencies, arrays, and that repeating is safe. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobView, PendingKind } from '@muster/common/views';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, type Spec, startCluster } from '../support/cluster.ts';
import { tempDir, waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 1, gpus: 2, cpus: 8 });
});

/** A job that holds what it asked for until it is released. */
async function blocker(
  resources: Spec['resources'],
): Promise<{ readonly id: string; release(): Promise<void> }> {
  const gate = join(tempDir('gate').path, 'open');
  const command = `while [ ! -e ${gate} ]; do sleep 0.05; done`;
  const id = await cluster.submit({ command, resources });
  await cluster.until(id, 'running');
  return {
    id,
    async release() {
      writeFileSync(gate, '');
      expect(await cluster.untilEnded(id)).toMatchObject({ state: 'succeeded' });
    },
  };
}

async function waitsFor(jobId: string, kind: PendingKind): Promise<JobView> {
  return waitFor(`${jobId} waits: ${kind}`, () => cluster.api.getJob(jobId), {
    until: ({ state, pending }) => state === 'queued' && pending?.kind === kind,
  });
}

describe('the order of the queue', () => {
  test('is priority, then submission', async () => {
    const all = await blocker({ gpus: 2 });
    const priorities = [10, 90, 50, 90];
    const ids: string[] = [];
    for (const priority of priorities) {
      ids.push(await cluster.submit({ command: 'true', priority, resources: { gpus: 2 } }));
    }
    await waitsFor(ids[0] ?? '', 'no_gpus_free');
    const explanation = await cluster.api.explainJob(ids[0] ?? '');
    expect(explanation.details).toContain('3 queued jobs are ahead of it');
    await all.release();
    for (const id of ids) await cluster.untilEnded(id);
    const allocated = (await cluster.events())
      .filter(({ kind }) => kind === 'attempt.allocated')
      .map(({ subject }) => subject);
    expect(allocated.slice(-4)).toEqual([1, 3, 2, 0].map((index) => ids[index]));
  });

  test('lets a small job by when a large one cannot start yet', async () => {
    const half = await blocker({ gpus: 1 });
    const large = await cluster.submit({ command: 'true', resources: { gpus: 2 } });
    expect(await cluster.run({ command: 'true', resources: { gpus: 1 } })).toMatchObject({
      state: 'succeeded',
    });
    expect(await cluster.api.getJob(large)).toMatchObject({ state: 'queued' });
    await half.release();
    await cluster.untilEnded(large);
  });
});

describe('a job that waits says why', () => {
  test.each<{ resources: Spec['resources']; message: RegExp; remedy: RegExp }>([
    { resources: { gpus: 3 }, message: /^no node has 3 GPUs \(largest has 2\)/, remedy: /at most 2 GPUs/ },
    { resources: { nodes: 2 }, message: /needs 2/, remedy: /nodes/ },
    { resources: { gpus: 1, gpu_type: 'H100' }, message: /^no node has 1 H100 GPU/, remedy: /./ },
    { resources: { cpus: 9 }, message: /^no node has 9 CPUs/, remedy: /./ },
  ])('when $resources never fits', async ({ resources, message, remedy }) => {
    const jobId = await cluster.submit({ command: 'true', resources });
    const { pending } = await waitsFor(jobId, 'never_fits');
    expect(pending?.message).toMatch(message);
    expect(pending?.remedy).toMatch(remedy);
    const explanation = await cluster.api.explainJob(jobId);
    expect(explanation.summary).toBe(`${jobId} is waiting: ${pending?.message}`);
    expect(explanation.nextSteps).toContain(pending?.remedy);
    await cluster.api.stopJobs([jobId]);
  });

  test('when GPUs, processors or memory are taken', async () => {
    const { inventory } = await cluster.api.getNode('node-1');
    const cases: readonly (readonly [PendingKind, taken: Spec['resources'], wanted: Spec['resources']])[] = [
      ['no_gpus_free', { gpus: 2 }, { gpus: 1 }],
      ['no_cpus_free', { cpus: 8 }, { cpus: 1 }],
      ['no_memory_free', { cpus: 1, memory_mb: inventory.memoryMb }, { cpus: 1, memory_mb: 1 }],
    ];
    for (const [kind, taken, wanted] of cases) {
      const holder = await blocker(taken);
      const jobId = await cluster.submit({ command: 'true', resources: wanted });
      await waitsFor(jobId, kind);
      await holder.release();
      expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded' });
    }
  });
});

describe('a job that comes after others', () => {
  test('starts when all of them have succeeded', async () => {
    const first = await blocker({ gpus: 1 });
    const second = await blocker({ gpus: 1 });
    const last = await cluster.submit({ command: 'echo last', after: [first.id, second.id] });
    expect((await waitsFor(last, 'dependency')).pending?.message).toBe(`waiting for ${first.id} to succeed`);
    await first.release();
    expect((await waitsFor(last, 'dependency')).pending?.message).toBe(`waiting for ${second.id} to succeed`);
    await second.release();
    expect(await cluster.untilEnded(last)).toMatchObject({ state: 'succeeded' });
  });

  test('never starts when one of them fails, and says what to do', async () => {
    const failed = await cluster.run({ command: 'exit 1' });
    const jobId = await cluster.submit({ command: 'true', after: [failed.id] });
    expect((await waitsFor(jobId, 'dependency_failed')).pending).toEqual({
      kind: 'dependency_failed',
      message: `dependency ${failed.id} failed`,
      remedy: `\`muster requeue ${failed.id}\` and this job waits for that, or stop this job`,
    });
    await cluster.api.stopJobs([jobId]);
  });

  test('is refused when one of them does not exist', async () => {
    const submitted = cluster.submit({ command: 'true', after: ['job_000000000000'] });
    await expect(submitted).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('job_000000000000'),
    });
  });
});

describe('an array', () => {
  test('of 50 is 50 jobs that differ in their index', async () => {
    const { arrayId, jobIds } = await cluster.submitArray(
      {
        command: 'echo $MUSTER_ARRAY_INDEX of $MUSTER_ARRAY_SIZE as $SEED',
        env: { SEED: 'seed-{array_index}' },
      },
      50,
    );
    expect(new Set(jobIds).size).toBe(50);
    for (const [index, id] of jobIds.entries()) {
      const job = await cluster.untilEnded(id);
      expect(job).toMatchObject({ state: 'succeeded', array: { id: arrayId, index, size: 50 } });
      expect(await cluster.output(id)).toBe(`${index} of 50 as seed-${index}\n`);
    }
    const listed = await cluster.api.listJobs({ arrayId });
    expect(listed.jobs.map(({ id }) => id)).toEqual(jobIds.toReversed());
  });
});

describe('a submit', () => {
  const request = (spec: Spec) => ({ specJson: JSON.stringify(spec), requestId: randomUUID() });
  /** The cluster once no job is active: from here on the test causes every change. */
  const atRest = () =>
    waitFor('nothing runs', () => cluster.api.getCluster(), { until: ({ jobsActive }) => jobsActive === 0 });

  test('that is repeated gives the same job, also when all come at once', async () => {
    const same = request({ command: 'echo once' });
    const answers = await Promise.all(Array.from({ length: 10 }, () => cluster.api.submit(same)));
    answers.push(await cluster.api.submit(same));
    const ids = new Set(answers.flatMap(({ jobIds }) => jobIds));
    expect(ids.size).toBe(1);
    expect(answers.at(-1)?.repeatedRequest).toBe(true);
    const [jobId = ''] = ids;
    await cluster.untilEnded(jobId);
    expect(await cluster.output(jobId)).toBe('once\n');
    expect((await cluster.api.submit(same)).jobIds).toEqual([jobId]);
  });

  test('with the request id of another spec or array size is refused', async () => {
    const { requestId, specJson } = request({ command: 'true' });
    const { jobIds } = await cluster.api.submit({ requestId, specJson });
    const other = cluster.api.submit({ requestId, specJson: JSON.stringify({ command: 'false' }) });
    const message = `request id ${requestId} was used for another request (${jobIds[0]}); choose a new one`;
    await expect(other).rejects.toMatchObject({ code: 'already_exists', message });
    await expect(cluster.api.submit({ requestId, specJson, arraySize: 2 })).rejects.toMatchObject({
      code: 'already_exists',
    });
  });

  test('that is wrong names every mistake and stores nothing', async () => {
    const before = await atRest();
    const wrong = { command: 'true', resources: { gpu: 2 }, priority: 500, max_runtime: '24 hours' };
    const refused = await cluster.api.submit(request(wrong as Spec)).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: 'invalid',
      problems: expect.arrayContaining([
        expect.objectContaining({ path: 'resources.gpu', suggestion: expect.stringContaining('gpus') }),
        expect.objectContaining({ path: 'priority' }),
        expect.objectContaining({ path: 'max_runtime', suggestion: expect.stringContaining('24h') }),
      ]),
    });
    expect(await cluster.api.getCluster()).toEqual(before);
  });

  test('that is a dry run says whether it would start, and stores nothing', async () => {
    const before = await atRest();
    const fits = await cluster.api.submit({ ...request({ command: 'true' }), dryRun: true });
    expect(fits).toMatchObject({ jobIds: [], arrayId: null, wouldWait: null });
    const waits = await cluster.api.submit({
      ...request({ command: 'true', resources: { gpus: 9 } }),
      dryRun: true,
    });
    expect(waits).toMatchObject({ jobIds: [], wouldWait: { kind: 'never_fits' } });
    expect(await cluster.api.getCluster()).toEqual(before);
  });
});
