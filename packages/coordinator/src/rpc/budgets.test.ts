/** Budgets of tokens: what is counted, what is refused with which figures, and that nothing forgets what was used. */
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { TokenBudget } from '@muster/common/people';
import type { JobSpecFile } from '@muster/common/spec/types';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { trialsOf } from '../../../../test/support/trials.ts';
import type { UserIdentity } from '../caller.ts';
import { addRun } from '../commands/pipelines.ts';
import { createSweep, extendSweep } from '../commands/sweeps.ts';
import { createTrigger, deleteTrigger, pauseTrigger } from '../commands/triggers.ts';
import { countingBytes, startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import type { Command } from '../loop.ts';
import { aCaller, aCheckpoint, aReport, jobIdOf } from '../modelFixture.ts';
import { enforceBudgets } from '../reconcilers/budgetLimits.ts';
import { withEvaluationOf } from '../state/dueEvaluations.ts';
import type { Memory } from '../store/memory/memoryStore.ts';
import { finishJob, startJob } from './jobFixture.ts';
import { sweepActions } from './sweepFixture.ts';

const none: TokenBudget = { gpuHours: null, gpus: null, jobs: null, jobsTotal: null, priority: null };

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

function as(token: string, { address } = coordinator): MusterApi {
  const api = connectMuster({ address, token });
  onTestFinished(() => api.close());
  return api;
}

/** A token with this budget, and a client that uses it. */
async function tokenWith(budget: Partial<TokenBudget>) {
  const { api } = coordinator;
  await api.addUser({ name: 'ann', role: 'user', projects: [] });
  const token = { user: 'ann', label: 'agent', projects: [], verbs: [] };
  const issued = await api.createUserToken({ ...token, budget: { ...none, ...budget } });
  return { ...issued, client: as(issued.token) };
}

const sweeps = sweepActions(() => coordinator);

let requests = 0;
async function submit(api: MusterApi, spec: JobSpecFile = {}, dryRun = false): Promise<JobId> {
  requests += 1;
  const request = {
    specJson: JSON.stringify({ command: ['true'], ...spec }),
    requestId: `submit-${requests}`,
    dryRun,
  };
  return (await api.submit(request)).jobIds[0] as JobId;
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => expect.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  return error instanceof MusterError ? `${error.code}: ${error.message}` : String(error);
}

const gpus = (count: number, more: JobSpecFile = {}): JobSpecFile => ({
  ...more,
  resources: { gpus: count },
});

test('a token with a budget reads, submits and changes, whatever its user may do', async () => {
  const { client } = await tokenWith({ gpus: 4 });
  const caller = await client.getCaller();
  expect(caller).toMatchObject({
    kind: 'user',
    user: 'ann',
    role: 'user',
    verbs: ['read', 'submit', 'change'],
    budget: { ...none, gpus: 4 },
    used: { gpuHours: 0, gpus: 0, jobs: 0, jobsTotal: 0 },
  });
  expect(await refusal(client.listCredentials())).toMatch(/^permission_denied: this token of ann/);
  expect(await coordinator.api.getCaller()).toMatchObject({ kind: 'admin', budget: null, used: null });
  const escaping = { user: 'ann', label: 'x', projects: [], verbs: ['tokens'] as const };
  expect(await refusal(coordinator.api.createUserToken({ ...escaping, budget: { ...none, gpus: 1 } }))).toBe(
    'invalid: verbs: a token with a budget allows read, submit, change at most, because tokens would let its holder escape it',
  );
  expect(await refusal(coordinator.api.createUserToken({ ...escaping, verbs: [], budget: none }))).toBe(
    'invalid: budget: it limits nothing; give one of its limits',
  );
});

test('each limit refuses with what is left and what was asked for', async () => {
  const { client } = await tokenWith({ gpuHours: 10, gpus: 4, jobs: 3, jobsTotal: 5, priority: 60 });
  await submit(client, gpus(3));
  expect(await refusal(submit(client, gpus(2)))).toBe(
    'resource_exhausted: the budget of this token allows 4 GPUs at a time: 2 asked for, 1 left, 3 used',
  );
  expect(await refusal(submit(client, gpus(1, { max_runtime: '11h' })))).toBe(
    'resource_exhausted: the budget of this token allows 10 GPU-hours in all: 11 asked for, 10 left, 0 used',
  );
  expect(await refusal(submit(client, { array: 3 }))).toBe(
    'resource_exhausted: the budget of this token allows 3 jobs at a time: 3 asked for, 2 left, 1 used',
  );
  expect(await refusal(submit(client, { priority: 61 }))).toBe(
    'permission_denied: priority: got 61; the budget of this token allows 60 at most',
  );
  expect(await refusal(submit(client, gpus(2), true)), 'a dry run tells it too').toMatch(/1 left/);
  const { jobs } = await client.listJobs();
  expect(jobs, 'nothing of a refused submit is stored').toHaveLength(1);
  await submit(coordinator.api, gpus(64, { priority: 100 }));
});

test('what ends gives back GPUs and jobs at a time, and not those in all', async () => {
  const { client } = await tokenWith({ gpus: 2, jobs: 1, jobsTotal: 2 });
  const first = await submit(client, gpus(2));
  await submit(client, gpus(1), true).catch(() => {});
  expect(await client.getCaller()).toMatchObject({ used: { gpus: 2, jobs: 1, jobsTotal: 1 } });
  await client.stopJobs([first]);
  expect(await client.getCaller()).toMatchObject({ used: { gpus: 0, jobs: 0, jobsTotal: 1 } });
  const { jobId } = await client.requeueJob(first, 'again');
  expect(await client.getCaller(), 'a requeue of what has ended is a job').toMatchObject({
    used: { gpus: 2, jobs: 1, jobsTotal: 2 },
  });
  await client.stopJobs([jobId]);
  expect(await refusal(submit(client))).toBe(
    'resource_exhausted: the budget of this token allows 2 jobs in all: 1 asked for, 0 left, 2 used',
  );
});

test('a repeated request is one submit, also when the budget is used up by it', async () => {
  const { client } = await tokenWith({ jobsTotal: 1 });
  const request = { specJson: JSON.stringify({ command: ['true'] }), requestId: 'mine' };
  const { jobIds } = await client.submit(request);
  expect(await client.submit(request)).toMatchObject({ jobIds, repeatedRequest: true });
  expect(await client.getCaller()).toMatchObject({ used: { jobsTotal: 1 } });
});

test('an array counts with all its jobs from its submit on, those that are not stored yet too', async () => {
  const { client } = await tokenWith({ gpus: 500, jobs: 250 });
  await client.submit({
    specJson: JSON.stringify(gpus(2, { command: ['true'], array: 240 })),
    requestId: 'a',
  });
  expect(await refusal(submit(client, { array: 11 }))).toBe(
    'resource_exhausted: the budget of this token allows 250 jobs at a time: 11 asked for, 10 left, 240 used',
  );
  expect(await refusal(submit(client, gpus(21)))).toBe(
    'resource_exhausted: the budget of this token allows 500 GPUs at a time: 21 asked for, 20 left, 480 used',
  );
});

test('rotation and a restart keep what was used', async () => {
  const { id, client } = await tokenWith({ jobsTotal: 3 });
  await submit(client);
  await submit(client);
  const rotated = await coordinator.api.rotateUserToken(id);
  expect(await as(rotated.token).getCaller()).toMatchObject({ used: { jobsTotal: 2 } });
  const memory: Memory = coordinator.memory;
  const restarted = await startTestCoordinator({ memory });
  onTestFinished(() => restarted.close());
  const again = as(rotated.token, restarted);
  expect(await again.getCaller()).toMatchObject({ used: { jobs: 2, jobsTotal: 2 } });
  await submit(again);
  expect(await refusal(submit(again))).toMatch(/0 left, 3 used$/);
  const listed = (await restarted.api.listCredentials()).find((each) => each.id === rotated.id);
  expect(listed).toMatchObject({ budget: { jobsTotal: 3 }, usedBudget: { jobsTotal: 3 } });
});

test('jobs are stopped with the cause once their GPU-hours are used up, by the clocks of nodes', async () => {
  const { client, id } = await tokenWith({ gpuHours: 1 });
  const other = await submit(coordinator.api, gpus(1));
  const running = await submit(client, gpus(1));
  const queued = await submit(client, gpus(1));
  const { timeLimits, reconcile } = coordinator;
  await startJob(coordinator, running);
  const report = (runningForMs: number) =>
    timeLimits.note(aReport({ jobId: running, attempt: 1, nodeRank: 0 }, { state: 'running', runningForMs }));
  await coordinator.loop.run({ kind: 'coordinator', part: 'test' }, (draft) => {
    const job = draft.job(running);
    const attempt = job?.state.kind === 'running' ? job.state.attempt : expect.fail('it does not run');
    const tasks = attempt.tasks.map((task) => ({ ...task, gpuUuids: ['GPU-1'] }));
    if (job !== undefined)
      draft.putJob({ ...job, state: { kind: 'running', attempt: { ...attempt, tasks } } });
  });
  report(3_599_999);
  await reconcile();
  expect(coordinator.state.jobs.get(running)?.state.kind).toBe('running');
  report(3_600_000);
  expect(await client.getCaller()).toMatchObject({ used: { gpuHours: 1 } });
  await reconcile();
  expect(coordinator.state.jobs.get(running)?.state.kind, 'with its grace').toBe('stopping');
  const cause = { kind: 'cancelled', message: `the budget of its token is used up: 1 GPU-hours (${id})` };
  expect(await client.getJob(running)).toMatchObject({
    cause: { message: expect.stringContaining(cause.message) },
  });
  expect(await client.getJob(queued)).toMatchObject({ state: 'cancelled' });
  expect(await coordinator.api.getJob(other)).toMatchObject({ state: 'queued' });
  expect(await refusal(submit(client))).toBe(
    'resource_exhausted: the budget of this token allows 1 GPU-hours in all: 0 left, 1 used',
  );
});

test('what a job has used counts after its end, and after its row is gone', async () => {
  const { client } = await tokenWith({ gpuHours: 5 });
  const id = await submit(client);
  await startJob(coordinator, id);
  await coordinator.loop.run({ kind: 'coordinator', part: 'test' }, (draft) => {
    const job = draft.job(id) ?? expect.fail('no job');
    const entry = { cause: null, gpuSeconds: 7_200 };
    draft.putJob({
      ...job,
      ledger: [
        { ...entry, kind: 'productive' },
        { ...entry, kind: 'queued' },
      ],
    });
  });
  await finishJob(coordinator, id);
  coordinator.memory.jobs.delete(id);
  expect(await client.getCaller()).toMatchObject({ used: { gpuHours: 2, jobs: 0, jobsTotal: 1 } });
});

test('a budget ends with the last token that has it, once its jobs have ended', async () => {
  const { id, client } = await tokenWith({ jobs: 3 });
  const job = await submit(client);
  await coordinator.api.revokeCredential(id);
  await coordinator.reconcile();
  expect(coordinator.state.people.budgets.size).toBe(1);
  await coordinator.api.stopJobs([job]);
  await coordinator.reconcile();
  expect(coordinator.state.people.budgets.size).toBe(0);
});

/** One pass of what removes budgets that are no longer used. */
async function enforce(): Promise<number> {
  const { state, loop } = coordinator;
  await Promise.all(enforceBudgets(state, loop, () => null));
  return state.people.budgets.size;
}

const file = { name: 'nightly', project: 'default', spec: '{}' };
const random = countingBytes();

/** What submits jobs later on behalf of the one who has created it, and how it ends. */
const submitters: Readonly<Record<string, readonly [Command<unknown>, Command<unknown>]>> = {
  'a sweep': [
    (draft, nowMs) =>
      createSweep(
        draft,
        { ...file, sampler: 'random', trials: 1, requestId: 'r', digest: '' },
        random,
        nowMs,
      ),
    (draft) => draft.sweeps.every().forEach((sweep) => draft.sweeps.put({ ...sweep, state: 'done' })),
  ],
  'a run of a pipeline': [
    (draft, nowMs) =>
      addRun(
        draft,
        { ...file, params: {}, usesCache: true, rerunOf: null, triggers: [], kept: [], stepCount: 1 },
        random,
        nowMs,
      ),
    (draft) => draft.pipelines.every().forEach((run) => draft.pipelines.put({ ...run, state: 'succeeded' })),
  ],
  'a trigger, also one that is paused': [
    (draft, nowMs) => {
      const source = { kind: 'webhook' } as const;
      const params = { params: {}, usesCache: true, nextAtMs: null, dataDigest: null };
      const wish = { ...file, ...params, pipeline: 'nightly', source, overlap: 'skip' } as const;
      createTrigger(draft, wish, 'ann', nowMs);
      pauseTrigger(draft, 'nightly', { isPaused: true }, nowMs);
    },
    (draft, nowMs) => deleteTrigger(draft, 'nightly', nowMs),
  ],
  'an evaluation that waits, whose job may count in it': [
    (draft) => draft.evaluations.put(withEvaluationOf(jobIdOf(1), undefined, aCheckpoint(10), 0)),
    (draft) => draft.evaluations.remove(jobIdOf(1)),
  ],
};

test.for(Object.entries(submitters))('a budget is kept for %s', async ([, [begin, end]]) => {
  const { id } = await tokenWith({ jobs: 3 });
  const by: UserIdentity = {
    kind: 'user',
    id,
    peer: null,
    user: 'ann',
    role: 'user',
    verbs: ['read', 'submit', 'change'],
    projects: ['default'],
    onlyProjects: null,
    budget: id,
    use: 'change',
  };
  await coordinator.loop.run(by, begin, true);
  await coordinator.api.revokeCredential(id);
  expect(await enforce()).toBe(1);
  await coordinator.loop.run(aCaller, end);
  expect(await enforce()).toBe(0);
});

test('a budget is kept for what was extended while its removal waited', async () => {
  const { id, client } = await tokenWith({ jobs: 3 });
  const { id: sweep } = await sweeps.create({ trials: 1 }, client);
  await coordinator.api.revokeCredential(id);
  await coordinator.api.stopSweep(sweep, 'over');
  await coordinator.sweeps.run();
  const command = { id: sweep, by: 1, trialsMax: 9, requestId: 'more', digest: '' };
  const extended = coordinator.loop.run(aCaller, (draft, nowMs) => extendSweep(draft, command, nowMs));
  const [size] = await Promise.all([enforce(), extended]);
  expect(size).toBe(1);
});

test('what counts in a budget that is gone is refused, and not unlimited', async () => {
  const { id, client } = await tokenWith({ jobs: 3 });
  await coordinator.loop.run(aCaller, (draft) => draft.people.removeBudget(id));
  expect(await refusal(submit(client))).toBe(
    `failed_precondition: the budget ${id} is gone, as no token has it any longer: submit this again with another token`,
  );
});

test('a token with a budget cannot have more run in another budget, or in none', async () => {
  const { client } = await tokenWith({ jobs: 3 });
  const { api } = coordinator;
  await api.changeUser('ann', { projects: ['default'] });
  const { id: sweep } = await sweeps.create();
  const job = await submit(api, { max_runtime: '1h' });
  const steps = { train: { run: 'train' } };
  const trigger = { name: 'nightly', specJson: JSON.stringify({ name: 'nightly', steps }), webhook: true };
  await api.createTrigger(trigger);
  const other = (what: string) =>
    `permission_denied: ${what} does not count in the budget of this token, and would let it use more than that allows: submit what ` +
    'is needed with this token, or ask for this with another one';
  expect(await refusal(client.extendSweep(sweep, 1, 'x'))).toBe(other(sweep));
  expect(await refusal(client.extendJob(job, 1_000))).toBe(other(job));
  expect(await refusal(client.extendJob(job, 1_000, 'y'))).toBe(other(job));
  expect(await refusal(client.runTrigger({ name: 'nightly', requestId: 'z' }))).toBe(
    other('trigger nightly'),
  );
  await client.pauseTrigger('nightly');
  expect(await refusal(client.resumeTrigger('nightly'))).toBe(other('trigger nightly'));
  await api.resumeTrigger('nightly');
  expect(await api.runTrigger({ name: 'nightly', requestId: 'z' })).toMatchObject({ outcome: 'started' });
});

test('a token with a budget has more run of what counts in it', async () => {
  const { client } = await tokenWith({ jobs: 9 });
  const { id: sweep } = await sweeps.create({}, client);
  expect(await client.extendSweep(sweep, 1, 'x')).toMatchObject({ trials: 4 });
  const job = await submit(client, { max_runtime: '1h' });
  expect(await client.extendJob(job, 1_000)).toMatchObject({ extraRuntimeMs: 1_000 });
  const steps = { train: { run: 'train' } };
  await client.createTrigger({
    name: 'mine',
    specJson: JSON.stringify({ name: 'mine', steps }),
    webhook: true,
  });
  expect(await client.runTrigger({ name: 'mine', requestId: 'z' })).toMatchObject({ outcome: 'started' });
});

test('a loop that submits without end is bounded', async () => {
  const { client } = await tokenWith({ jobs: 20, jobsTotal: 50 });
  const calls = trialsOf(10_000, 200);
  let accepted = 0;
  for (let done = 0; done < calls; done += 50) {
    const batch = await Promise.allSettled(Array.from({ length: 50 }, () => submit(client)));
    accepted += batch.filter(({ status }) => status === 'fulfilled').length;
    const { jobs } = await client.listJobs({ states: ['queued'], limit: 1_000 });
    expect(jobs.length).toBeLessThanOrEqual(20);
    await client.stopJobs(jobs.map((each) => each.id));
  }
  expect(accepted).toBe(50);
});
