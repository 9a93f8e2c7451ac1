/** Sweeps by the API, with trials that are begun and ended by hand. */
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import { connectMuster } from '@muster/common/wire/client';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller } from '../modelFixture.ts';
import { endedSweepsMax } from '../sweeps/endedSweeps.ts';
import { startJob } from './jobFixture.ts';
import { aSweepFile, sweepActions } from './sweepFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const file = aSweepFile;
const { create, trialsOf, finish, endTrial } = sweepActions(() => coordinator);

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => expect.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  return error instanceof MusterError ? `${error.code}: ${error.message}` : String(error);
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
  const jobId = before?.jobId as JobId;
  await startJob(coordinator, jobId);
  await finish(jobId, 0, { rowsEnd: 0 });
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
  // The earlier sweep continues, and the same request still means the same sweep.
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

test('with seeds a trial is the mean of its jobs, each of which is started once whenever the coordinator is killed', async () => {
  const sweep = await create({
    seeds: 2,
    trials: 2,
    parallel: 2,
    job: { command: ['train', '--lr={lr}', '--seed={seed}'] },
  });
  const restart = async () => {
    const next = await startTestCoordinator({ memory: coordinator.memory });
    await coordinator.close();
    coordinator = next;
  };
  const jobOf = async (number: number, seed: number) =>
    (await trialsOf(sweep.id))[number]?.seeds[seed]?.jobId ?? '';
  const [only, ...others] = await trialsOf(sweep.id);
  expect(others).toEqual([]);
  expect(only).toMatchObject({ state: 'running', seeds: [{ seed: 0 }, { seed: 1 }] });
  expect((await coordinator.api.getJob(await jobOf(0, 1))).spec).toMatchObject({
    name: 'train-0-s1',
    params: { ...only?.params, seed: 1 },
    labels: { 'muster.trial': '0', 'muster.seed': '1' },
  });
  await endTrial(await jobOf(0, 1), 0.5);
  const between = await trialsOf(sweep.id);
  expect(between).toMatchObject([
    { state: 'running', value: null, seeds: [{ state: 'running' }, { state: 'complete', value: 0.5 }] },
    { state: 'running', seeds: [{ seed: 0 }] },
  ]);
  await restart();
  expect(await trialsOf(sweep.id)).toEqual(between);
  await endTrial(await jobOf(0, 0), 0.25);
  await endTrial(await jobOf(1, 0), null);
  await restart();
  // Another seed was started before that one had ended.
  await endTrial(await jobOf(1, 1), 0.1);
  const trials = await trialsOf(sweep.id);
  expect(trials).toMatchObject([
    { state: 'complete', value: 0.375, step: 7, cause: null },
    { state: 'infeasible', value: null, deviation: null, cause: 'nan_loss' },
  ]);
  expect(trials[0]?.deviation).toBeCloseTo(0.125 * Math.SQRT2, 12);
  expect(trials[1]?.seeds).toMatchObject([{ cause: 'nan_loss' }, { state: 'complete', value: 0.1 }]);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({
    state: 'done',
    complete: 1,
    infeasible: 1,
    best: { number: 0, value: 0.375 },
  });
  const { jobs } = await coordinator.api.listJobs({ label: `muster.sweep=${sweep.id}` });
  expect(jobs).toHaveLength(4);
});

test('a stop ends every seed, and a trial without all of them has no value', async () => {
  const sweep = await create({ seeds: 3, trials: 2, parallel: 2 });
  const [trial] = await trialsOf(sweep.id);
  await endTrial(trial?.seeds[0]?.jobId ?? '', 0.5);
  await coordinator.api.stopSweep(sweep.id, 'enough');
  expect(await trialsOf(sweep.id)).toMatchObject([
    { state: 'stopped', value: null, seeds: [{ value: 0.5 }, { state: 'stopped' }, { state: 'stopped' }] },
  ]);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ state: 'stopped', running: 0 });
});

test('a trial has the parameters with which it ran, after its batch was made smaller', async () => {
  const sweep = await create({
    sampler: 'grid',
    trials: 2,
    parallel: 1,
    parameters: { batch_size: [64, 32] },
    job: { command: ['train', '--batch={batch_size}'] },
  });
  const [first] = await trialsOf(sweep.id);
  const jobId = first?.jobId as JobId;
  await startJob(coordinator, jobId);
  // As lifecycle/recovery.ts leaves it after an attempt that ran out of memory.
  await coordinator.loop.run(aCaller, (draft) => {
    const job = draft.job(jobId);
    if (job !== undefined) draft.putJob({ ...job, batchScale: 0.25 });
  });
  await endTrial(jobId, 0.5);
  expect(await trialsOf(sweep.id)).toMatchObject([
    { state: 'complete', params: { batch_size: 16 }, value: 0.5 },
    { state: 'running', params: { batch_size: 32 } },
  ]);
});

test('of more ended sweeps than are kept, the oldest is removed', async () => {
  const { id } = await create();
  await coordinator.api.stopSweep(id, 'over');
  await coordinator.sweeps.run();
  const { sweeps } = coordinator.state.sweeps;
  const ended = sweeps.get(id) ?? expect.fail('there is no such sweep');
  for (let count = 0; count < endedSweepsMax; count += 1)
    sweeps.set(`swp_${count}`, { ...ended, id: `swp_${count}`, endedAtMs: (ended.endedAtMs ?? 0) + 1 });
  coordinator.clock.nowMs += 60_000;
  await coordinator.sweeps.run();
  expect([sweeps.size, sweeps.has(id)]).toEqual([endedSweepsMax, false]);
});
