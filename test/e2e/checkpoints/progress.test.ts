/** What a job's output and GPUs show while it runs: progress, trouble, hangs; and nodes that are drained. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobView } from '@muster/common/views';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, type Spec, startCluster } from '../../support/cluster.ts';
import { tempDir, waitFor } from '../../support/services.ts';
import { waitForVerdict } from './waitForVerdict.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({
    nodes: 2,
    gpus: 1,
    agentFlags: (name) => [
      '--sample-interval',
      '200ms',
      ...(name === 'node-2' ? ['--on-sigterm', 'drain'] : []),
    ],
  });
});

/** A program that runs `plan`, which is JavaScript: `iter` prints the line of a step, `save` saves, `settle` waits. */
function training(plan: string): string[] {
  const text = `
    const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
    const { join } = require('node:path');
    const { MUSTER_CHECKPOINT_DIR: dir, MUSTER_ATTEMPT } = process.env;
    const attempt = Number(MUSTER_ATTEMPT);
    const save = (step) => {
      const path = join(dir, 'step-' + step + '.json');
      writeFileSync(path + '.tmp', JSON.stringify({ step }));
      renameSync(path + '.tmp', path);
    };
    const settle = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    ${waitForVerdict}
    const iter = (i, loss = 3 - i / 1000) =>
      console.log('iter ' + i + ': loss ' + Number(loss).toFixed(4) + ', time 100.00ms, mfu 30.00%');
    (async () => { ${plan} })();`;
  return [process.execPath, '-e', text];
}

const oneGpu = { nodes: 1, gpus: 1 };

describe('progress', () => {
  test('is shown with the job, as series, as its status file, and stays after its end', async () => {
    const jobId = await cluster.submit({
      command: training(
        'for (let i = 1; i <= 30; i += 1) { iter(i); if (i === 10) save(10); await settle(100); } iter(31);',
      ),
      resources: oneGpu,
    });
    const live = await cluster.untilJob(
      jobId,
      'tells its step',
      ({ training: seen }) => (seen?.latest.step ?? 0) > 5,
    );
    expect(live.training).toMatchObject({
      framework: 'nanogpt',
      latest: { train_loss: expect.closeTo(3, 1) },
    });
    await waitFor(
      'the status names its checkpoint, and its step, which comes by another message',
      () => cluster.api.getTrainingStatus(jobId),
      {
        until: (text) => text.includes('step-10') && text.includes('Step: '),
      },
    );
    const job = await cluster.untilEnded(jobId);
    expect(job).toMatchObject({
      state: 'succeeded',
      training: { latest: { step: 31, train_loss: 2.969 }, rows: 31 },
    });
    expect(job.ledger.find(({ kind }) => kind === 'productive')?.gpuSeconds).toBeGreaterThan(2);
    const series = await waitFor(
      'the series has arrived',
      async () => (await cluster.api.queryMetrics({ jobId, name: 'train_loss' })).series,
      { until: ([first]) => first?.points.at(-1)?.value === 2.969 },
    );
    expect(series).toHaveLength(1);
    const shown = await cluster.muster(['job', jobId]);
    expect(shown.stdout).toMatch(/Training +step 31, loss 2\.969/);
    expect(shown.stdout).toMatch(/Checkpoint +step-10\.json \(step 10\)/);
    const listed = await cluster.muster(['checkpoints', jobId]);
    expect(listed.stdout).toContain('train_loss 2.99');
    const page = await cluster.muster(['job', jobId, '--status']);
    expect(page.stdout).toContain('succeeded');
  });

  test('that turns into NaN is noticed while it runs, and warned of', async () => {
    const jobId = await cluster.submit({
      command: training(
        'for (let i = 1; i <= 20; i += 1) iter(i); iter(21, NaN); iter(22, NaN); await settle(600000);',
      ),
      resources: oneGpu,
    });
    const events = await waitFor('the sign is an event', () => cluster.events(jobId), {
      until: (seen) => seen.some(({ kind }) => kind === 'training.nan_loss'),
    });
    expect(events.filter(({ kind }) => kind === 'training.nan_loss')).toHaveLength(1);
    expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running' });
    await cluster.api.stopJobs([jobId]);
    await cluster.untilEnded(jobId);
  });
});

describe('a resume', () => {
  /** Fails at step 10, which it has saved; the next attempt begins at `again`. */
  const failing = (again: number): Spec => ({
    command: training(`
      const first = attempt === 1 ? 1 : ${again};
      for (let i = first; i < first + 10; i += 1) iter(i);
      if (attempt > 1) return;
      save(10); await verdictOn('step-10.json'); process.exit(1);`),
    resources: oneGpu,
    retry: { max_attempts: 2, on: ['exit_code'], backoff: { initial: '100ms', max: '100ms' } },
  });

  test('is offered until the output shows that the program has loaded it, or has not', async () => {
    const ids = [await cluster.submit(failing(11)), await cluster.submit(failing(1))] as const;
    const [loaded, ignored] = await Promise.all(ids.map((id) => cluster.untilEnded(id)));
    const resume = { name: 'step-10.json', step: 10 };
    const signed = (kind: string, step: number) => ({
      state: 'succeeded',
      attempts: [
        { resume: null, signs: [] },
        { resume, signs: [{ kind, step }] },
      ],
    });
    expect(loaded).toMatchObject(signed('resume_confirmed', 11));
    expect(ignored).toMatchObject(signed('resume_ignored', 1));

    const [first, second] = await Promise.all(ids.map((id) => cluster.muster(['job', id])));
    expect(first?.stdout).toContain('Start  resumed from step-10.json (step 10)\n');
    expect(first?.stdout).not.toContain('Signs');
    expect(second?.stdout).toMatch(/State +succeeded \(resume ignored\)/);
    expect(second?.stdout).toMatch(
      /Start {2}offered step-10\.json \(step 10\), not loaded: the output begins at step 1\n/,
    );
    const why = await cluster.muster(['explain', ids[1]]);
    expect(why.stdout).toContain(
      'succeeded after 2 attempts; checkpoint not loaded: the output begins at step 1',
    );
    expect(why.stdout).toContain('MUSTER_RESUME_FROM');
    // What the program that began again has not saved is still there.
    expect(ignored?.checkpoints).toMatchObject([
      { name: 'step-10.json', verdict: 'verified', suspect: false },
    ]);
  });
});

describe('a hang', () => {
  const setGpus = (state: string) => {
    for (const agent of cluster.agents)
      writeFileSync(join(cluster.agentDataDir(agent), 'simulated-gpus'), `${state}\n`);
  };
  afterEach(() => setGpus(''));

  const hanging = (onHang: Spec['on_hang']): Spec => ({
    command: training(`
      if (attempt > 1) { iter(100); return; }
      for (let i = 1; !existsSync(join(dir, 'enough')); i += 1) { iter(i); await settle(50); }
      save(40); await settle(600000);`),
    resources: oneGpu,
    on_hang: onHang,
    stop_grace: '1s',
    retry: { backoff: { initial: '100ms', max: '100ms' } },
  });

  /**
   * Lets a job print until its agent has read its output so often that it knows what is usual, which takes as long as it
   * takes on a busy machine, and waits until the job has saved and stopped to print.
   */
  async function untilQuiet(jobId: string): Promise<void> {
    const steps = new Set<number>();
    const { attempts } = await waitFor('it shows what is usual', () => cluster.api.getJob(jobId), {
      until: ({ training: seen }) => {
        if (seen?.latest.step !== undefined) steps.add(seen.latest.step);
        return steps.size > 8;
      },
    });
    const node = attempts[0]?.tasks[0]?.node ?? '';
    writeFileSync(join(cluster.agentsDir, node, 'checkpoints', jobId, 'enough'), '');
    await cluster.untilJob(jobId, 'has saved', ({ checkpoints }) => checkpoints.length === 1);
  }

  test('is named with the GPUs standing still, and the job goes on from its checkpoint when it asks for that', async () => {
    const jobId = await cluster.submit(hanging({ action: 'restart', times: 3, at_least: '2s' }));
    await untilQuiet(jobId);
    setGpus('pinned');
    const job = await cluster.untilEnded(jobId);
    expect(job).toMatchObject({
      state: 'succeeded',
      attempts: [
        { cause: { kind: 'hung', node: expect.stringMatching(/^node-/) } },
        { resume: { step: 40 } },
      ],
    });
    expect(job.ledger.some(({ kind }) => kind === 'hang')).toBe(true);
  });

  test('is warned of by default, and silence alone is none', async () => {
    const jobId = await cluster.submit(hanging({ action: 'warn', times: 3, at_least: '2s' }));
    await untilQuiet(jobId);
    const kinds = async () => (await cluster.events(jobId)).map(({ kind }) => kind);
    // Its GPUs are busy all the time: for longer than it takes to report a hang of pinned GPUs, nothing is reported.
    const since = await waitFor(
      'some heartbeats of silence',
      async () => {
        const job = await cluster.api.getJob(jobId);
        return Date.now() - (job.training?.atMs ?? Date.now());
      },
      { until: (quietMs) => quietMs > 6_000 },
    );
    expect(since).toBeGreaterThan(0);
    expect(await kinds()).not.toContain('attempt.hung');
    setGpus('idle');
    await waitFor('it is called a hang', kinds, {
      until: (seen) => seen.includes('attempt.hung'),
    });
    expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running' });
    await cluster.api.stopJobs([jobId]);
    await cluster.untilEnded(jobId);
  });
});

function untilElsewhere(jobId: string): Promise<JobView> {
  return cluster.untilJob(
    jobId,
    'runs elsewhere',
    ({ state, attempts }) => state === 'running' && attempts.length === 2,
  );
}

describe('a node that is to be left', () => {
  const saving = (dir: string): Spec => ({
    command: training(`
      process.on('SIGTERM', () => { save(attempt * 10 + 1); process.exit(143); });
      save(attempt * 10); await settle(600000);`),
    resources: oneGpu,
    stop_grace: '20s',
    checkpoint: { dir },
  });

  test('gives its job the time to save, and that goes on elsewhere', async () => {
    const jobId = await cluster.submit(saving(tempDir('shared').path));
    const before = await cluster.untilJob(jobId, 'has saved', ({ checkpoints }) => checkpoints.length === 1);
    const node = before.attempts[0]?.tasks[0]?.node ?? '';
    const flags = ['--deadline', '10s', '--reason', 'spot notice'];
    const { exitCode, stdout, stderr } = await cluster.muster(['node', 'drain', node, ...flags]);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toMatch(new RegExp(`gets no new work. 1 job will be stopped.[^]*${jobId} .* now\\n`));
    const after = await untilElsewhere(jobId);
    expect(after.attempts[0]?.cause).toMatchObject({
      kind: 'preempted',
      message: expect.stringContaining('spot notice'),
    });
    expect(after.attempts[1]).toMatchObject({ resume: { step: 11 } });
    expect(after.attempts[1]?.tasks[0]?.node).not.toBe(node);
    const nodes = await cluster.muster(['nodes']);
    expect(nodes.stdout).toMatch(new RegExp(`${node} +online, drained`));
    await cluster.api.stopJobs([jobId]);
    await cluster.untilEnded(jobId);
    expect((await cluster.muster(['node', 'undrain', node])).exitCode).toBe(0);
  });

  test('because its machine is switched off says so itself: SIGTERM to its agent', async () => {
    await cluster.api.drainNode('node-1', 'keep the next job away', null);
    const jobId = await cluster.submit(saving(tempDir('shared').path));
    const before = await cluster.untilJob(jobId, 'has saved', ({ checkpoints }) => checkpoints.length === 1);
    expect(before.attempts[0]?.tasks[0]?.node).toBe('node-2');
    await cluster.api.undrainNode('node-1');
    const agent = cluster.agent(1);
    const ended = agent.stop();
    const after = await untilElsewhere(jobId);
    expect(after.attempts[0]?.cause).toMatchObject({ kind: 'preempted' });
    expect(after.attempts[1]).toMatchObject({ resume: { step: 11 }, tasks: [{ node: 'node-1' }] });
    expect(await ended).toMatchObject({ exitCode: 0 });
    await cluster.api.stopJobs([jobId]);
    await cluster.untilEnded(jobId);
    // Started again, the agent no longer asks for a drain, and its node is not drained.
    await agent.start();
    await cluster.untilOnline();
    expect(await cluster.api.getNode('node-2')).toMatchObject({ drain: null, drained: false });
  });

  test('gets no new work without a deadline, and what runs there runs on', async () => {
    const jobId = await cluster.submit({
      command: training('save(1); while (!existsSync(join(dir, "end"))) await settle(50);'),
      resources: oneGpu,
    });
    const job = await cluster.untilJob(jobId, 'has saved', ({ checkpoints }) => checkpoints.length === 1);
    const node = job.attempts[0]?.tasks[0]?.node ?? '';
    await cluster.api.drainNode(node, 'new disk', null);
    const next = await cluster.run({ command: 'echo $MUSTER_NODE_RANK', resources: oneGpu });
    expect(next.attempts[0]?.tasks[0]?.node).not.toBe(node);
    await cluster.until(jobId, 'running');
    writeFileSync(join(cluster.agentsDir, node, 'checkpoints', jobId, 'end'), '');
    expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded' });
    await cluster.api.undrainNode(node);
  });
});
