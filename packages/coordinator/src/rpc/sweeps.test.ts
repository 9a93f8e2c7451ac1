/** Sweeps by the API, with trials that are begun and ended by hand. */
import { MusterError } from '@muster/common/errors';
import { isJobId, type JobId } from '@muster/common/ids';
import type { SweepView } from '@muster/common/sweeps';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { report } from '../commands/nodes.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint, aNode, anExit, aReport } from '../modelFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { startJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const file = {
  name: 'tune',
  sampler: 'random',
  trials: 3,
  parallel: 2,
  objective: { metric: 'train_loss', goal: 'min' },
  parameters: { lr: { type: 'float', min: 0, max: 1 }, optimizer: ['adam', 'sgd'] },
  job: { command: ['train', '--lr={lr}', '--optimizer={optimizer}'] },
};

let requests = 0;
function create(change: object = {}, api: MusterApi = coordinator.api): Promise<SweepView> {
  requests += 1;
  return api.createSweep({ specJson: JSON.stringify({ ...file, ...change }), requestId: `r${requests}` });
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => expect.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  return error instanceof MusterError ? `${error.code}: ${error.message}` : String(error);
}

async function trialsOf(id: string) {
  await coordinator.sweeps.run();
  return coordinator.api.listTrials(id);
}

async function finish(jobId: JobId, code: number): Promise<void> {
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const ended = aReport(task, { state: 'ended', exit: anExit({ exitCode: code }) });
  await coordinator.loop.run(aCaller, (draft, nowMs) =>
    report(draft, aNode('node-1').name, [ended], () => null, nowMs),
  );
}

/** Runs a trial to its end. @param loss of its last line; null: it is not a finite number */
async function endTrial(
  jobId: string,
  loss: number | null,
  exitCode = 0,
  others: Readonly<Record<string, number>> = {},
): Promise<void> {
  if (!isJobId(jobId)) throw new Error(`${jobId} is not a job`);
  await startJob(coordinator, jobId);
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const { rowKeeping } = coordinator;
  const values = loss === null ? { step: 7 } : { train_loss: loss, step: 7, ...others };
  const row = { position: 10, atMs: coordinator.wallMs(), values, lossNotFinite: loss === null };
  await rowKeeping.rows.append(task, [row], 2 ** 20, coordinator.wallMs());
  rowKeeping.noteComplete(task);
  await finish(jobId, exitCode);
  await coordinator.sweeps.run();
}

test('trials are jobs with their parameters, as many as may run, and the best of them is known at the end', async () => {
  const sweep = await create();
  expect(sweep).toMatchObject({ name: 'tune', state: 'running', trials: 3, best: null });
  const first = await trialsOf(sweep.id);
  expect(first.map(({ number, state }) => [number, state])).toEqual([
    [0, 'running'],
    [1, 'running'],
  ]);
  const { spec } = await coordinator.api.getJob(first[1]?.jobId ?? '');
  expect(spec).toMatchObject({
    name: 'train-1',
    params: first[1]?.params,
    labels: { 'muster.sweep': sweep.id, 'muster.trial': '1' },
  });
  await endTrial(first[1]?.jobId ?? '', 0.5);
  await endTrial(first[0]?.jobId ?? '', 0.75);
  const [, , third] = await trialsOf(sweep.id);
  await endTrial(third?.jobId ?? '', 0.6);
  expect(await coordinator.api.getSweep('tune')).toMatchObject({
    state: 'done',
    complete: 3,
    running: 0,
    best: { number: 1, value: 0.5, step: 7, params: first[1]?.params },
  });
  const events = await coordinator.store.readEvents(0, 100, null);
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind.startsWith('sweep.'));
  expect(kinds).toEqual([
    'sweep.created',
    ...Array.from({ length: 3 }, () => 'sweep.trial_ended'),
    'sweep.ended',
  ]);
});

test('a coordinator that was killed continues a sweep, and starts no trial twice', async () => {
  const sweep = await create({ parallel: 1, sampler: 'tpe' });
  const [before] = await trialsOf(sweep.id);
  const { memory } = coordinator;
  const next = await startTestCoordinator({ memory });
  await coordinator.close();
  coordinator = next;
  expect(await trialsOf(sweep.id)).toEqual([before]);
  // It knows nothing of the end of rows that were complete before.
  const jobId = before?.jobId as JobId;
  await startJob(coordinator, jobId);
  await finish(jobId, 0);
  expect(await trialsOf(sweep.id)).toMatchObject([{ state: 'running' }]);
  coordinator.clock.nowMs += 10_000;
  expect(await trialsOf(sweep.id)).toMatchObject([{ state: 'failed', cause: 'no_metric' }, { number: 1 }]);
});

test('a trial whose loss is not finite is infeasible, and the sweep gives up after failures in a row', async () => {
  const sweep = await create({
    parallel: 1,
    trials: 9,
    max_failures: 2,
    job: { ...file.job, retry: { max_attempts: 1 } },
  });
  for (const code of [1, 0, 1, 1]) {
    const running = (await trialsOf(sweep.id)).at(-1);
    await endTrial(running?.jobId ?? '', code === 0 ? null : 0.5, code);
  }
  const states = (await trialsOf(sweep.id)).map(({ state, cause }) => `${state} ${cause}`);
  expect(states).toEqual(['failed exit_code', 'infeasible nan_loss', 'failed exit_code', 'failed exit_code']);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({
    state: 'failed',
    reason: 'the last 2 trials have failed: exit_code',
  });
});

/** A line of the output of a running trial. */
async function print(jobId: JobId, step: number, loss: number, epoch?: number): Promise<void> {
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const atMs = coordinator.wallMs();
  const values = { train_loss: loss, step, ...(epoch === undefined ? {} : { epoch }) };
  const row = { position: step, atMs, values, lossNotFinite: false };
  await coordinator.rowKeeping.rows.append(task, [row], 2 ** 20, atMs);
  await coordinator.sweeps.run();
}

test('a trial that is worse than others at a rung saves and ends, and never counts as best', async () => {
  const sweep = await create({ trials: 2, early_stopping: { rule: 'asha', min_steps: 10, reduction: 2 } });
  const [first, second] = (await trialsOf(sweep.id)).map(({ jobId }) => jobId as JobId);
  if (first === undefined || second === undefined) throw new Error('two trials were expected');
  await startJob(coordinator, first);
  await startJob(coordinator, second);
  await print(first, 5, 0.8);
  await print(second, 10, 0.5);
  expect((await coordinator.api.getJob(first)).state).toBe('running');
  await print(first, 12, 0.75);
  expect((await coordinator.api.getJob(first)).state).toBe('stopping');
  // What it prints while it saves does not count.
  await print(first, 13, 0.1);
  await finish(first, 0);
  expect((await trialsOf(sweep.id))[0]).toMatchObject({
    state: 'pruned',
    value: 0.75,
    step: 12,
    cause: null,
  });
  await print(second, 20, 0.9);
  coordinator.rowKeeping.noteComplete({ jobId: second, attempt: 1, nodeRank: 0 });
  await finish(second, 0);
  await coordinator.sweeps.run();
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({
    state: 'done',
    pruned: 1,
    complete: 1,
    best: { number: 1, value: 0.9 },
  });
});

/** It has saved, and its rows have arrived. */
async function saveAndEnd(jobId: JobId, step: number): Promise<void> {
  const of = { attempt: 1, nodeRank: 0 } as const;
  const saved = {
    kind: 'checkpoint',
    ...of,
    checkpoint: aCheckpoint(step),
    shared: true,
    afterStop: true,
  } as const;
  await coordinator.loop.run(aCaller, (draft, nowMs) => applyJobEvent(draft, jobId, saved, nowMs));
  coordinator.rowKeeping.noteComplete({ jobId, attempt: 1, nodeRank: 0 });
  await finish(jobId, 0);
  await coordinator.sweeps.run();
}

async function startNewest(id: string, number: number): Promise<JobId> {
  const jobId = (await trialsOf(id))[number]?.jobId as JobId;
  await startJob(coordinator, jobId);
  await coordinator.sweeps.run();
  return jobId;
}

test('a trial with a checkpoint is paused, and is resumed from it once it is among the best', async () => {
  const sweep = await create({
    trials: 4,
    parallel: 1,
    early_stopping: { rule: 'asha', min_steps: 10, reduction: 2 },
    job: { ...file.job, checkpoint: { dir: '/checkpoints/{trial}' } },
  });
  const first = await startNewest(sweep.id, 0);
  await print(first, 10, 0.2);
  await saveAndEnd(first, 10);
  const second = await startNewest(sweep.id, 1);
  await print(second, 10, 0.5);
  expect((await coordinator.api.getJob(second)).state).toBe('stopping');
  await saveAndEnd(second, 12);
  expect((await trialsOf(sweep.id))[1]).toMatchObject({
    state: 'paused',
    value: 0.5,
    step: 10,
    earlierJobs: [],
  });
  // Of four trials it is among the better half.
  for (const number of [2, 3]) {
    const jobId = await startNewest(sweep.id, number);
    await print(jobId, 10, 0.7 + number / 10);
    await finish(jobId, 0);
    await coordinator.sweeps.run();
  }
  const resumed = (await trialsOf(sweep.id))[1];
  expect(resumed).toMatchObject({ state: 'running', value: null, earlierJobs: [second] });
  expect(await coordinator.api.getJob(resumed?.jobId ?? '')).toMatchObject({
    resumedFrom: { jobId: second, step: 12 },
    spec: { labels: { 'muster.trial': '1' }, params: resumed?.params },
  });
  const third = await startNewest(sweep.id, 1);
  // It is as bad as before at that rung, and runs to its end.
  await print(third, 13, 0.1);
  await saveAndEnd(third, 14);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({
    state: 'done',
    complete: 2,
    paused: 0,
    pruned: 2,
    best: { number: 1, value: 0.1, jobId: third },
  });
  const events = await coordinator.store.readEvents(0, 200, null);
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind.startsWith('sweep.trial'));
  expect(kinds.filter((kind) => kind === 'sweep.trial_paused')).toHaveLength(1);
  expect(kinds.filter((kind) => kind === 'sweep.trial_resumed')).toHaveLength(1);
  expect(kinds.filter((kind) => kind === 'sweep.trial_ended')).toHaveLength(4);
});

test('rungs by epoch compare what lines with an epoch show', async () => {
  const sweep = await create({ trials: 2, early_stopping: { rule: 'asha', min_epochs: 0.5, reduction: 2 } });
  const [first, second] = (await trialsOf(sweep.id)).map(({ jobId }) => jobId as JobId);
  if (first === undefined || second === undefined) throw new Error('two trials were expected');
  for (const jobId of [first, second]) await startJob(coordinator, jobId);
  await print(first, 100, 0.9, 0.25);
  await print(second, 100, 0.5, 0.5);
  expect((await coordinator.api.getJob(first)).state).toBe('running');
  await print(first, 200, 0.8, 0.5);
  expect(await coordinator.api.getJob(first)).toMatchObject({ state: 'stopping' });
  await finish(first, 0);
  expect((await trialsOf(sweep.id))[0]).toMatchObject({ state: 'pruned', value: 0.8, step: null });
});

test('what is paused when a sweep ends is pruned', async () => {
  const sweep = await create({ trials: 2, parallel: 1, early_stopping: { rule: 'asha', min_steps: 10 } });
  const first = await startNewest(sweep.id, 0);
  await print(first, 10, 0.2);
  await saveAndEnd(first, 10);
  const second = await startNewest(sweep.id, 1);
  await print(second, 10, 0.5);
  await saveAndEnd(second, 10);
  expect((await trialsOf(sweep.id))[1]).toMatchObject({ state: 'pruned', value: 0.5, step: 10 });
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ state: 'done', complete: 1, pruned: 1 });
});

test('a stop ends the trials, and an extension continues', async () => {
  const sweep = await create();
  const running = await trialsOf(sweep.id);
  expect(await coordinator.api.stopSweep(sweep.id, 'enough')).toMatchObject({ reason: 'enough' });
  expect(await trialsOf(sweep.id)).toMatchObject(
    running.map(() => ({ state: 'stopped', cause: 'cancelled' })),
  );
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ state: 'stopped', stopped: 2 });
  expect(await refusal(coordinator.api.stopSweep(sweep.id, ''))).toContain('failed_precondition');
  await coordinator.api.extendSweep(sweep.id, 2, 'more');
  expect(await coordinator.api.extendSweep(sweep.id, 2, 'more')).toMatchObject({
    trials: 5,
    state: 'running',
  });
  expect((await trialsOf(sweep.id)).filter(({ state }) => state === 'running')).toHaveLength(2);
});

test('a grid has each of its points once, and cannot be extended', async () => {
  const sweep = await create({
    sampler: 'grid',
    trials: undefined,
    parallel: 10,
    parameters: { optimizer: ['adam', 'sgd'], layers: { type: 'int', min: 1, max: 3 } },
    constraints: ["optimizer == 'adam' || layers != 2"],
  });
  expect(sweep.trials).toBe(5);
  const trials = await trialsOf(sweep.id);
  expect(new Set(trials.map(({ params }) => JSON.stringify(params))).size).toBe(5);
  expect(await refusal(coordinator.api.extendSweep(sweep.id, 1, 'x'))).toContain('points of a grid');
});

test('without a number at the same time, one trial at most waits for room', async () => {
  const sweep = await create({ parallel: undefined, trials: 10 });
  const [first] = await trialsOf(sweep.id);
  expect(await trialsOf(sweep.id)).toHaveLength(1);
  await startJob(coordinator, first?.jobId as JobId);
  expect(await trialsOf(sweep.id)).toHaveLength(2);
});

test.each<readonly [object, string]>([
  [{ sampler: 'bayes' }, 'invalid: invalid sweep: sampler: got "bayes"'],
  [{ constraints: ['width < 3'] }, 'invalid: constraints[0]: column 1: unknown name "width"'],
  [
    { constraints: ['lr * 2 < 1'] },
    'invalid: constraints[0]: column 3: * cannot be applied to double and int',
  ],
  [{ constraints: ['lr > 2.0'] }, 'invalid: constraints: no point of the space meets them'],
  [{ job: { ...file.job, secrets: ['wandb'] } }, 'wandb'],
])('a sweep with %j is refused, and nothing is started', async (change, expected) => {
  expect(await refusal(create(change))).toContain(expected);
  expect(await coordinator.api.listSweeps()).toEqual({ sweeps: [], more: false });
});

test('a dry run starts nothing, and a repeated request starts nothing more', async () => {
  const request = { specJson: JSON.stringify(file), requestId: 'once' };
  expect(await coordinator.api.createSweep({ ...request, dryRun: true })).toMatchObject({
    id: '',
    trials: 3,
  });
  const [first, second] = await Promise.all([
    coordinator.api.createSweep(request),
    coordinator.api.createSweep(request),
  ]);
  expect(second.id).toBe(first.id);
  expect((await coordinator.api.listSweeps({ active: true })).sweeps).toHaveLength(1);
  const other = { ...request, specJson: JSON.stringify({ ...file, trials: 4 }) };
  expect(await refusal(coordinator.api.createSweep(other))).toContain('already_exists');
});

test('sweeps of private projects are seen by their users and operators, and changed by those who may change their jobs', async () => {
  const { api, address } = coordinator;
  await api.addUser({ name: 'ann', role: 'user', projects: ['lab'] });
  await api.addUser({ name: 'bob', role: 'user', projects: [] });
  const as = async (user: string) => {
    const { token } = await api.createUserToken({ user, label: 'x', projects: [], verbs: [] });
    const client = connectMuster({ address, token });
    onTestFinished(() => client.close());
    return client;
  };
  const [ann, bob] = [await as('ann'), await as('bob')];
  const ofLab = { job: { ...file.job, project: 'lab' } };
  expect(await refusal(create(ofLab, bob))).toContain('permission_denied');
  const sweep = await create(ofLab, ann);
  expect((await trialsOf(sweep.id)).length).toBeGreaterThan(0);
  expect(await bob.getSweep('tune')).toMatchObject({ id: sweep.id, user: 'ann' });
  expect(await refusal(bob.stopSweep('tune', ''))).toContain('permission_denied');
  await api.setProject({ name: 'lab', isPrivate: true });
  expect(await refusal(bob.getSweep('tune'))).toBe(
    'not_found: there is no sweep tune; `muster sweep list` lists them',
  );
  expect(await ann.stopSweep('tune', '')).toMatchObject({ id: sweep.id });
});

test('a sweep takes over the trials of an earlier one that fit, and keeps them', async () => {
  const earlier = await create({ trials: 2 });
  for (const { jobId, number } of await trialsOf(earlier.id))
    await endTrial(jobId, number === 0 ? 0.5 : null);
  const [complete, infeasible] = await trialsOf(earlier.id);
  const request = {
    specJson: JSON.stringify({ ...file, name: 'warm', sampler: 'tpe', warm_start: ['tune'] }),
    requestId: 'warm',
  };
  const dry = await coordinator.api.createSweep({ ...request, dryRun: true });
  const warm = await coordinator.api.createSweep(request);
  const known = [{ params: complete?.params, value: 0.5 }, { params: infeasible?.params }];
  expect([dry.spec['warm_start'], warm.spec['warm_start']]).toEqual([known, known]);
  // The earlier one goes on, and the same request still means the same sweep.
  await coordinator.api.extendSweep(earlier.id, 1, 'more');
  const third = (await trialsOf(earlier.id)).at(-1);
  await endTrial(third?.jobId ?? '', 0.1);
  expect(await coordinator.api.createSweep(request)).toMatchObject({
    id: warm.id,
    spec: { warm_start: known },
  });
});

test('a warm start is refused where it means nothing', async () => {
  const earlier = await create();
  await trialsOf(earlier.id);
  const tpe = { sampler: 'tpe', warm_start: [earlier.id] };
  expect(await refusal(create(tpe))).toMatch(/invalid: warm_start: .*none of its trials has ended/);
  const maximise = { ...tpe, objective: { metric: 'train_loss', goal: 'max' } };
  expect(await refusal(create(maximise))).toMatch(/its objective is min train_loss; expected max train_loss/);
  expect(await refusal(create({ ...tpe, sampler: 'random' }))).toMatch(/warm_start: means nothing to/);
  expect(await refusal(create({ ...tpe, warm_start: ['none'] }))).toMatch(
    /not_found: there is no sweep none/,
  );
});

test('a trial has a value for each of several objectives, or none', async () => {
  const objectives = [{ metric: 'train_loss' }, { metric: 'tokens_per_second' }];
  const sweep = await create({ objective: undefined, objectives, trials: 2 });
  const [first, second] = await trialsOf(sweep.id);
  await endTrial(first?.jobId ?? '', 0.5, 0, { tokens_per_second: 1_000 });
  await endTrial(second?.jobId ?? '', 0.1);
  expect(await trialsOf(sweep.id)).toMatchObject([
    { state: 'complete', value: 0.5, furtherValues: [1_000] },
    { state: 'failed', value: null, furtherValues: [], cause: 'no_metric' },
  ]);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ state: 'done', best: { number: 0 } });
});
