/** One job, from its submission to its end, in every way it can end. */
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, type Spec, startCluster } from '../support/cluster.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2 });
});

/** Runs until it is ended, and says when its traps are set. */
const endless = 'echo ready; while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

async function running(spec: Partial<Spec> & Pick<Spec, 'command'>): Promise<string> {
  const jobId = await cluster.submit(spec);
  await cluster.untilOutput(jobId, 'ready\n');
  await cluster.until(jobId, 'running');
  return jobId;
}

describe('a job that ends by itself', () => {
  test('succeeds with exit code 0, and all it printed is there', async () => {
    const job = await cluster.run({ name: 'greeting', command: 'echo out; echo err >&2; echo out again' });
    expect(job).toMatchObject({ name: 'greeting', state: 'succeeded', cause: null, pending: null });
    const [attempt] = job.attempts;
    expect(job.attempts).toHaveLength(1);
    expect(attempt).toMatchObject({ number: 1, state: 'ended', cause: null });
    expect(attempt?.tasks[0]).toMatchObject({
      state: 'ended',
      exit: { exitCode: 0, signal: null, logBytes: 18 },
    });
    expect(await cluster.output(job.id)).toBe('out\nerr\nout again\n');
  });

  test('gets its command, arguments, environment and working directory as they were written', async () => {
    const script = 'printf "%s|" "$@" "$GREETING" "$MUSTER_JOB_NAME" "$PWD"';
    const spec = { name: 'words', command: ['sh', '-c', script, 'sh'], args: ['a b', '', '$HOME "q"'] };
    const job = await cluster.run({ ...spec, env: { GREETING: 'ünïcode\nlines' }, workdir: '/usr' });
    expect(await cluster.output(job.id)).toBe('a b||$HOME "q"|ünïcode\nlines|words|/usr|');
  });

  test('fails with its exit code, and the cause names rank and node', async () => {
    const job = await cluster.run({ command: 'echo trouble; exit 3' });
    const [task] = job.attempts[0]?.tasks ?? [];
    const cause = {
      kind: 'exit_code',
      message: `rank 0 on ${task?.node} exited with code 3`,
      nodeRank: 0,
      node: task?.node,
      blame: 'job',
      evidence: { line: null, text: 'exit code 3', rank: null },
    };
    expect(job).toMatchObject({ state: 'failed', cause });
    expect(job.attempts[0]?.cause).toEqual(cause);
    expect(task?.exit).toMatchObject({ exitCode: 3, signal: null, statusLost: false });
    expect(await cluster.output(job.id)).toBe('trouble\n');
    const explanation = await cluster.api.explainJob(job.id);
    expect(explanation.summary).toBe(`${job.id} failed: ${cause.message}`);
    expect(explanation.nextSteps).toContain(`run it again: muster requeue ${job.id}`);
  });

  test('fails by a signal, which the cause names', async () => {
    const job = await cluster.run({ command: 'kill -SEGV $$' });
    expect(job).toMatchObject({ state: 'failed', cause: { kind: 'exit_code', nodeRank: 0 } });
    expect(job.cause?.message).toMatch(/^rank 0 on node-\d was ended by SIGSEGV$/);
    expect(job.attempts[0]?.tasks[0]?.exit).toMatchObject({ exitCode: null, signal: 'SIGSEGV' });
  });

  test.each<{ what: string; spec: Spec; message: RegExp }>([
    {
      what: 'a command that does not exist',
      spec: { command: ['no-such-program', '--flag'] },
      message:
        /^rank 0 on node-\d did not start: no-such-program was not found in PATH on this node: install it there/,
    },
    {
      what: 'a working directory that does not exist',
      spec: { command: ['true'], workdir: '/no/such/place' },
      message:
        /^rank 0 on node-\d did not start: the working directory \/no\/such\/place does not exist on this node/,
    },
  ])('that names $what fails as command_not_found with the remedy', async ({ spec, message }) => {
    const job = await cluster.run(spec);
    expect(job).toMatchObject({ state: 'failed', cause: { kind: 'command_not_found', nodeRank: 0 } });
    expect(job.cause?.message).toMatch(message);
    expect(job.attempts).toHaveLength(1);
    const { message: problem = 'nothing', ...place } = job.attempts[0]?.tasks[0]?.exit?.startError ?? {};
    expect(job.cause).toMatchObject({ ...place, message: expect.stringContaining(problem) });
    expect(await cluster.output(job.id)).toBe('');
  });

  test('leaves no process behind, not even one that hides from its session', async () => {
    const hidden = `setsid sh -c 'trap "" TERM HUP; exec sleep 1000' & sleep 1000 &`;
    const jobId = await cluster.submit({ command: `${hidden} exit 0` });
    expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded' });
    expect(cluster.processesOf(jobId)).toEqual([]);
  });
});

describe('stop', () => {
  test('of a queued job cancels it at once', async () => {
    const jobId = await cluster.submit({ command: 'true', resources: { gpus: 64 } });
    const [stopped] = (await cluster.api.stopJobs([jobId], 'not needed any more')).jobs;
    const cause = { kind: 'cancelled', message: 'not needed any more', nodeRank: null, node: null };
    expect(stopped).toMatchObject({ id: jobId, state: 'cancelled', cause, attempts: [] });
  });

  test('of a job that is starting cancels it without waiting for a node that does not answer', async () => {
    const silent = cluster.agent(1);
    silent.pause();
    try {
      const jobId = await cluster.submit({ command: 'echo never', resources: { nodes: 2 } });
      await cluster.until(jobId, 'starting');
      const [stopped] = (await cluster.api.stopJobs([jobId])).jobs;
      expect(stopped).toMatchObject({ state: 'cancelled', cause: { kind: 'cancelled' } });
      expect(await cluster.output(jobId)).toBe('');
    } finally {
      silent.resume();
    }
    await cluster.untilOnline();
  });

  test('of a running job sends SIGTERM and lets it save', async () => {
    const jobId = await running({ command: `trap 'echo saved; exit 0' TERM; ${endless}` });
    const [stopping] = (await cluster.api.stopJobs([jobId])).jobs;
    expect(stopping).toMatchObject({
      state: 'stopping',
      cause: { kind: 'cancelled', message: 'stopped by a user' },
    });
    const job = await cluster.untilEnded(jobId);
    expect(job).toMatchObject({ state: 'cancelled', cause: { kind: 'cancelled' } });
    expect(job.attempts[0]?.tasks[0]?.exit).toMatchObject({ exitCode: 0, signal: null });
    expect(await cluster.output(jobId)).toBe('ready\nsaved\n');
  });

  test('kills what is left when the grace is over', async () => {
    const jobId = await running({ command: `trap 'echo heard' TERM; ${endless}`, stop_grace: '3s' });
    await cluster.api.stopJobs([jobId]);
    const job = await cluster.untilEnded(jobId);
    expect(job.state).toBe('cancelled');
    expect(job.attempts[0]?.tasks[0]?.exit).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
    expect(await cluster.output(jobId)).toBe('ready\nheard\n');
    expect(cluster.processesOf(jobId)).toEqual([]);
  });

  test('of a stopping job changes nothing, and neither does that of an ended one', async () => {
    const jobId = await running({ command: `trap 'sleep 0.5; exit 0' TERM; ${endless}` });
    await cluster.api.stopJobs([jobId], 'the first reason');
    await cluster.api.stopJobs([jobId], 'the second reason');
    const job = await cluster.untilEnded(jobId);
    expect(job.cause?.message).toBe('the first reason');
    const [again] = (await cluster.api.stopJobs([jobId], 'the third reason')).jobs;
    expect(again).toEqual(job);
  });

  test('takes prefixes and arrays, and refuses the whole call for an id that nobody has', async () => {
    const { arrayId, jobIds } = await cluster.submitArray({ command: 'true', resources: { gpus: 64 } }, 3);
    const unknown = cluster.api.stopJobs([arrayId, 'job_000000000000']);
    await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
    expect(await cluster.api.getJob(jobIds[0] ?? '')).toMatchObject({ state: 'queued' });
    const { jobs: stopped } = await cluster.api.stopJobs([arrayId]);
    expect(stopped.map(({ id, state }) => `${id} ${state}`).sort()).toEqual(
      jobIds.map((id) => `${id} cancelled`).sort(),
    );
    const alone = await cluster.submit({ command: 'true', resources: { gpus: 64 } });
    expect((await cluster.api.stopJobs([alone.slice(0, -1)])).jobs).toMatchObject([
      { id: alone, state: 'cancelled' },
    ]);
  });
});

describe('requeue', () => {
  test('of a running job stops it and runs it again as its next attempt', async () => {
    const jobId = await running({
      command: `echo attempt $MUSTER_ATTEMPT; [ $MUSTER_ATTEMPT = 2 ] && exit 0; ${endless}`,
    });
    const requeued = await cluster.api.requeueJob(jobId, 'unused', { kind: 'newest' }, null, true);
    expect(requeued).toEqual({ jobId, newJob: false });
    const job = await cluster.untilEnded(jobId);
    expect(job).toMatchObject({ state: 'succeeded', requeuedFrom: null });
    expect(job.attempts.map(({ number, cause }) => [number, cause?.kind])).toEqual([
      [1, 'preempted'],
      [2, undefined],
    ]);
    expect(await cluster.output(jobId, { attempt: 1 })).toBe('attempt 1\nready\n');
    expect(await cluster.output(jobId, { attempt: 2 })).toBe('attempt 2\n');
  });

  test('of an ended job submits its spec again as a new job, once per request id', async () => {
    const first = await cluster.run({ name: 'again', command: 'exit 4' });
    const answer = await cluster.api.requeueJob(first.id, `requeue-${first.id}`);
    expect(answer).toMatchObject({ newJob: true });
    expect(answer.jobId).not.toBe(first.id);
    const second = await cluster.untilEnded(answer.jobId);
    expect(second).toMatchObject({
      name: 'again',
      state: 'failed',
      requeuedFrom: first.id,
      spec: first.spec,
    });
    expect(await cluster.api.getJob(first.id)).toEqual(first);
    expect(await cluster.api.requeueJob(first.id, `requeue-${first.id}`)).toEqual(answer);
  });
});

describe('a retry policy', () => {
  const retry = { max_attempts: 3, backoff: { initial: '100ms', max: '200ms' }, on: ['exit_code'] } as const;

  test('runs the job again until it succeeds', async () => {
    const job = await cluster.run({
      command: '[ $MUSTER_ATTEMPT = 3 ]',
      retry: { ...retry, on: [...retry.on] },
    });
    expect(job).toMatchObject({ state: 'succeeded', cause: null });
    expect(job.attempts.map(({ number, cause }) => [number, cause?.kind])).toEqual([
      [1, 'exit_code'],
      [2, 'exit_code'],
      [3, undefined],
    ]);
    const queued = (await cluster.events(job.id)).filter(({ kind }) => kind === 'job.queued');
    expect(queued.map(({ cloudEvent }) => (cloudEvent['data'] as { backoffMs: number }).backoffMs)).toEqual([
      100, 200,
    ]);
  });

  test('ends when its attempts are used up', async () => {
    const job = await cluster.run({
      command: 'exit 9',
      retry: { ...retry, max_attempts: 2, on: ['exit_code'] },
    });
    expect(job).toMatchObject({ state: 'failed', cause: { kind: 'exit_code' } });
    expect(job.attempts).toHaveLength(2);
  });

  test('leaves causes alone that it does not name', async () => {
    const job = await cluster.run({ command: 'exit 9', retry: { ...retry, on: ['node_lost'] } });
    expect(job.attempts).toHaveLength(1);
  });

  test('makes the job wait in between, and says so', async () => {
    const backoff = { initial: '10m', max: '10m' };
    const jobId = await cluster.submit({
      command: 'exit 5',
      retry: { max_attempts: 2, backoff, on: ['exit_code'] },
    });
    const waiting = await cluster.untilJob(jobId, 'waits', (job) => job.pending?.kind === 'backoff');
    expect(waiting).toMatchObject({ state: 'queued', cause: { kind: 'exit_code' } });
    const [stopped] = (await cluster.api.stopJobs([jobId])).jobs;
    expect(stopped).toMatchObject({ state: 'cancelled' });
  });
});

describe('max_runtime', () => {
  test('ends a job that runs longer, with SIGTERM first', async () => {
    const job = await cluster.run({
      command: `trap 'echo saved; exit 0' TERM; ${endless}`,
      max_runtime: '1s',
    });
    const cause = {
      kind: 'time_limit',
      message: 'ran for its max_runtime of 1 s; it has no known checkpoint',
      nodeRank: null,
      node: null,
    };
    expect(job).toMatchObject({ state: 'failed', cause });
    expect(await cluster.output(job.id)).toBe('ready\nsaved\n');
  });
});
