import { causeFacts } from '@muster/common/causeFacts';
import { resumeAdvice } from '@muster/common/signText';
import type { AttemptView, Cause, JobView, TaskView } from '@muster/common/views';
import { describe, expect, it } from 'vitest';
import { aCheckpoint, someMs } from '../modelFixture.ts';
import { explain } from './explain.ts';
import { describeSilence, type SilentNode } from './silence.ts';

const crash: Cause = {
  kind: 'exit_code',
  message: 'rank 1 on node-2 exited with code 1',
  nodeRank: 1,
  node: 'node-2',
  evidence: null,
  blame: 'job',
};

function aView(fields: Partial<JobView> = {}): JobView {
  return {
    id: 'job_000000000001',
    name: 'train',
    project: 'default',
    traceId: '0af7651916cd43dd8448eb211c80319c',
    state: 'queued',
    spec: {},
    submittedAtMs: someMs,
    endedAtMs: null,
    pending: null,
    cause: null,
    attempts: [],
    array: null,
    requeuedFrom: null,
    resumedFrom: null,
    user: 'admin',
    submitSeq: 1,
    excludedNodes: [],
    checkpoints: [],
    training: null,
    ledger: [],
    phases: null,
    preemptions: 0,
    batchScale: 1,
    lrScale: 1,
    extraRuntimeMs: 0,
    failures: 0,
    costUsd: null,
    outputAtMs: null,
    ...fields,
  };
}

function aTaskView(fields: Partial<TaskView> = {}): TaskView {
  return {
    nodeRank: 0,
    node: 'node-1',
    gpuUuids: [],
    state: 'running',
    exit: null,
    frozen: false,
    doing: null,
    address: null,
    gpuIndexes: [],
    ...fields,
  };
}

function anAttemptView(number: number, fields: Partial<AttemptView> = {}): AttemptView {
  return {
    number,
    state: 'running',
    tasks: [aTaskView()],
    cause: null,
    allocatedAtMs: someMs,
    runningAtMs: someMs,
    endedAtMs: null,
    masterAddr: null,
    masterPort: null,
    gpuUsage: null,
    resume: null,
    leaseMs: null,
    signs: [],
    hungAtMs: null,
    firstStepAtMs: null,
    hangs: false,
    ...fields,
  };
}

function aSilentNode(node: string): SilentNode {
  const fence = { frozenInMs: 51_000, fencedInMs: 61_000 };
  return { node, silentForMs: 9_000, fence, isHeld: false, onExpiry: 'freeze' };
}

describe('explain', () => {
  it('says why a queued job waits, what is ahead of it, and what would help', () => {
    const pending = {
      kind: 'never_fits',
      message: 'no node has 16 GPUs',
      remedy: 'ask for at most 8',
    } as const;

    expect(explain(aView({ pending }), 2, [])).toEqual({
      summary: 'job_000000000001 is waiting: no node has 16 GPUs',
      details: ['reason: never_fits', '2 queued jobs are ahead of it'],
      nextSteps: ['ask for at most 8', 'see what is running: muster nodes'],
    });
    expect(explain(aView({ pending: { ...pending, remedy: null } }), 0, [])).toMatchObject({
      details: ['reason: never_fits', 'first in the queue'],
      nextSteps: ['see what is running: muster nodes'],
    });
    expect(explain(aView({ pending }), 1, []).details).toContain('1 queued job is ahead of it');
  });

  it('says so when the scheduler has not looked yet', () => {
    expect(explain(aView(), 0, []).summary).toContain('has not looked at it yet');
  });

  it('tells of earlier attempts', () => {
    const attempts = [anAttemptView(1, { state: 'ended', cause: crash }), anAttemptView(2)];

    expect(explain(aView({ state: 'running', attempts }), 0, [])).toEqual({
      summary: 'job_000000000001 is running, attempt 2',
      details: ['rank 0 on node-1: running', `attempt 1: ${crash.message}`],
      nextSteps: ['nothing needs to be done; follow its output: muster logs -f job_000000000001'],
    });
  });

  it.each(['running', 'stopping'] as const)(
    'does not take a silent node of a %s job for a dead one',
    (state) => {
      const silent = aSilentNode('node-1');
      const { summary, details, nextSteps } = explain(aView({ state, attempts: [anAttemptView(1)] }), 0, [
        silent,
      ]);

      expect(summary).toMatch(/; node-1 has been silent for 9 s$/);
      expect(details).toContain(describeSilence(silent, false));
      expect(nextSteps[0]).toMatch(/^check node-1: /);
      expect(nextSteps[1]).toBe('if node-1 is certainly off, do not wait: muster node confirm-dead node-1');
      expect(nextSteps.join()).not.toContain('nothing needs to be done');
    },
  );

  it('says why an attempt on silent nodes is not ended', () => {
    const silent = ['node-1', 'node-2'].map(aSilentNode);
    const running = aView({ state: 'running', attempts: [anAttemptView(1)] });
    const { details } = explain(running, 0, silent, 'most nodes are silent');

    expect(details.filter((detail) => detail.includes('for now the attempt is not ended'))).toHaveLength(2);
    expect(details.at(-1)).toBe('nothing is rescheduled now: most nodes are silent');
  });

  it('names the nodes that the next attempt does without, and what happened on them', () => {
    const job = aView({ excludedNodes: [{ node: 'node-2', cause: crash }] });

    expect(explain(job, 0, []).details).toContain(
      `node-2 is excluded while alternatives exist: ${crash.message}`,
    );
  });

  it('says how many nodes a job got of those that it can use, and what they are doing', () => {
    const tasks = [
      aTaskView({ state: 'assigned', doing: 'pulling the image' }),
      aTaskView({ nodeRank: 1, node: 'node-2', frozen: true }),
    ];
    const spec = { resources: { nodes: { min: 1, max: 4 }, gpus: 8 } };
    const job = aView({ state: 'starting', spec, attempts: [anAttemptView(1, { tasks })] });

    expect(explain(job, 0, []).details).toEqual([
      'rank 0 on node-1: assigned, pulling the image',
      'rank 1 on node-2: running, frozen until contact with the coordinator is restored',
      'it has 2 nodes of the 1 to 4 that it can use',
    ]);
  });

  it.each(['command_not_found', 'host_oom', 'cuda_oom', 'unknown'] as const)('advises on %s', (kind) => {
    const cause = { ...crash, kind };
    const { summary, details, nextSteps } = explain(aView({ state: 'failed', cause }), 0, []);

    expect(summary).toBe(`job_000000000001 failed: ${crash.message}`);
    expect(details).toContain(`cause: ${kind} (attributed to: job)`);
    expect(nextSteps[0], 'the advice comes first').toBe(causeFacts[kind].advice);
    expect(nextSteps.at(-1)).toBe('run it again: muster requeue job_000000000001');
  });

  it('sends nobody to the output of a task that its node refused to start', () => {
    const message = 'rank 0 on node-1 did not start: the working directory /root may not be entered by alice';
    const cause = { ...crash, kind: 'exit_code', message } as const;
    const { nextSteps } = explain(aView({ state: 'failed', cause }), 0, []);
    expect(nextSteps.join(' ')).not.toContain('output');
    expect(nextSteps[0]).toMatch(/^Its node refused to start it: /);
  });

  it('advises on a missing module by what the job ran in', () => {
    const cause = { ...crash, kind: 'import_error' } as const;
    const advice = (spec: Readonly<Record<string, unknown>>) =>
      explain(aView({ state: 'failed', cause, spec }), 0, []).nextSteps[0];
    expect(advice({ image: 'torch:2' })).toContain('to the image torch:2');
    expect(advice({ env: { VIRTUAL_ENV: '/v' } })).toContain('into /v, and check that every node has it');
    expect(advice({ env: { CONDA_PREFIX: '/c' } })).toContain('into /c,');
    expect(advice({})).toContain('activate your venv or conda environment before muster submit');
  });

  it('shows what a cause is known from', () => {
    const evidence = { line: 1_042, text: 'torch.OutOfMemoryError: CUDA out of memory', rank: 3 };
    const cause: Cause = { ...crash, kind: 'cuda_oom', evidence };
    const attempts = [anAttemptView(1, { state: 'ended', cause })];

    expect(explain(aView({ attempts }), 0, []).details).toContain(
      '  evidence, line 1042 of rank 3: torch.OutOfMemoryError: CUDA out of memory',
    );
    const xid = { line: null, text: 'Xid 79: GPU has fallen off the bus', rank: null };
    const failed = aView({ state: 'failed', cause: { ...cause, evidence: xid, blame: 'unknown' } });
    expect(explain(failed, 0, []).details).toContain('  evidence: Xid 79: GPU has fallen off the bus');
  });

  it('groups equal ends, cuts what is long, and does not send the reader back to itself', () => {
    const line = `torch.cuda.OutOfMemoryError: CUDA out of memory. ${'Tried to allocate 2.50 GiB. '.repeat(12)}`;
    const oom = (at: number): Cause => ({
      ...crash,
      kind: 'cuda_oom',
      message: `rank 1 on node-1 exited with code 1: ${line}`,
      evidence: { line: at, text: line, rank: 1 },
    });
    const ends = [oom(13), oom(14), oom(27), crash, oom(13)];
    const attempts = ends.map((cause, index) => anAttemptView(index + 1, { state: 'ended', cause }));
    const pending = {
      kind: 'circuit_open',
      message: '3 failures without a newer checkpoint: next retry in 60 s',
      remedy: '`muster explain` tells why',
    } as const;

    const waiting = explain(aView({ attempts, pending, cause: oom(13) }), 0, []);
    const ofAttempts = waiting.details.filter((detail) => detail.startsWith('attempt'));
    expect(ofAttempts).toEqual([
      'attempts 1-3: CUDA OOM on rank 1',
      `attempt 4: ${crash.message}`,
      'attempt 5: CUDA OOM on rank 1',
    ]);
    expect(Math.max(...waiting.details.map((detail) => detail.length))).toBeLessThan(200);
    expect(waiting.nextSteps[0]).toBe(causeFacts.cuda_oom.advice);
    expect(waiting.nextSteps.join()).not.toContain('explain');

    const failed = explain(aView({ state: 'failed', attempts, cause: oom(13) }), 0, []);
    expect(failed.summary).toContain('failed after 5 attempts: rank 1 on node-1 exited with code 1');
    expect(failed.summary.length).toBeLessThan(220);
    expect(failed.details.filter((detail) => detail.includes('evidence'))).toHaveLength(2);
  });

  it('tells what was noticed of the training, however the job has ended, with advice', () => {
    const signs = [{ kind: 'nan_loss', step: 80, lastGoodStep: 70 }] as const;
    const ended = explain(
      aView({ state: 'succeeded', attempts: [anAttemptView(1, { state: 'ended', signs })] }),
      0,
      [],
    );
    expect(ended).toEqual({
      summary: 'job_000000000001 succeeded; loss NaN since step 80',
      details: ['in attempt 1: loss NaN at step 80 (last normal step: 70)'],
      nextSteps: [causeFacts.nan_loss.advice, 'its output: muster logs job_000000000001'],
    });
    const hanging = { hungAtMs: someMs, hangs: true };
    const running = explain(aView({ state: 'running', attempts: [anAttemptView(1, hanging)] }), 0, []);
    expect(running.summary).toBe('job_000000000001 is running, attempt 1; hangs now');
    expect(running.nextSteps[0]).toBe(causeFacts.hung.advice);
  });

  it('tells what an attempt began from, what the next one does, and what recovery has changed', () => {
    const oom = { ...crash, kind: 'cuda_oom' } as const;
    const nan = { ...crash, kind: 'nan_loss' } as const;
    const attempts = [
      anAttemptView(1, { state: 'ended', cause: nan }),
      anAttemptView(2, { state: 'ended', cause: oom }),
    ];
    const resume = { name: 'checkpoint-500', step: 500 };
    const scaled = { batchScale: 0.5, lrScale: 0.1 * 0.1 };

    const waiting = explain(aView({ attempts, ...scaled }), 0, [], null, resume).details;
    expect(waiting).toContain('its next attempt is offered checkpoint-500 (step 500)');
    expect(waiting).toContain('MUSTER_BATCH_SCALE=0.5 offered after cuda_oom');
    expect(waiting).toContain('MUSTER_LR_SCALE=0.01 offered after nan_loss');
    expect(explain(aView({ attempts }), 0, [], null, null).details).toContain(
      'its next attempt starts from scratch',
    );

    const third = [...attempts, anAttemptView(3, { resume })];
    const running = explain(aView({ state: 'running', attempts: third, ...scaled }), 0, []).details;
    expect(running).toContain('offered checkpoint-500 (step 500); its output has not confirmed it');
    expect(running).toContain('MUSTER_BATCH_SCALE=0.5 offered after cuda_oom');
  });

  it('tells that an attempt has resumed only once its output shows that, and warns of one that has not', () => {
    const resume = { name: 'checkpoint-500', step: 500 };
    const signed = (kind: 'resume_confirmed' | 'resume_ignored', step: number) =>
      explain(
        aView({
          state: 'running',
          attempts: [anAttemptView(2, { resume, signs: [{ kind, step, lastGoodStep: null }] })],
        }),
        0,
        [],
      );
    const confirmed = signed('resume_confirmed', 501);
    expect(confirmed.details).toContain('resumed from checkpoint-500 (step 500)');
    expect(confirmed.summary).toBe('job_000000000001 is running, attempt 2');
    expect(confirmed.nextSteps).toHaveLength(1);

    const ignored = signed('resume_ignored', 0);
    expect(ignored.details).toContain(
      'offered checkpoint-500 (step 500), not loaded: the output begins at step 0',
    );
    expect(ignored.summary).toContain('; checkpoint not loaded: the output begins at step 0');
    expect(ignored.nextSteps[0]).toBe(resumeAdvice);
  });

  it('names the newest good checkpoint, and those that are of no use', () => {
    const checkpoints = [
      aCheckpoint(400, { shared: true }),
      aCheckpoint(500, { shared: false, node: 'node-2' }),
      aCheckpoint(600, { suspect: true }),
      aCheckpoint(700, { verdict: 'corrupt', problem: 'the file ends early' }),
    ];

    expect(explain(aView({ checkpoints }), 0, []).details.slice(2)).toEqual([
      'newest good checkpoint: checkpoint-500 (step 500), on node-2 only',
      'checkpoint-600 (step 600) is suspect: attempts that were offered it failed in the same way, so it is not used',
      'checkpoint-700 (step 700) is corrupt: the file ends early',
    ]);
  });

  it('tells both jobs which one preempted the other, and why', () => {
    const message =
      'preempted by job_h (priority 80 over 20); 3 GPU-minutes since its last checkpoint of step 500';
    const cause: Cause = { ...crash, kind: 'preempted', message, blame: 'platform' };
    const attempts = [anAttemptView(1, { state: 'ended', cause })];
    const spec = { retry: { max_preemptions: 3 } };
    const victim = explain(aView({ attempts, preemptions: 2, spec }), 0, []).details;
    expect(victim).toContain(`attempt 1: ${message}`);
    expect(victim).toContain('preempted 2 times, of at most 3 (retry.max_preemptions)');

    const pending = {
      kind: 'preempting',
      message: 'waiting for job_v (priority 20) to save and release its GPUs',
      remedy: null,
    } as const;
    expect(explain(aView({ pending }), 0, []).summary).toBe(`job_000000000001 is ${pending.message}`);
  });

  it.each(['starting', 'stopping', 'succeeded', 'cancelled'] as const)(
    'has a next step for a job that is %s',
    (state) => {
      const { summary, nextSteps } = explain(
        aView({ state, cause: crash, attempts: [anAttemptView(1)] }),
        0,
        [],
      );

      expect(summary).toContain('job_000000000001');
      expect(nextSteps.length).toBeGreaterThan(0);
    },
  );
});
