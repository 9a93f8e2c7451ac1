/** Pipelines by the API, with steps that are begun and ended by hand. */
import { randomBytes } from 'node:crypto';
import { isJobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { report } from '../commands/nodes.ts';
import { startJobStep } from '../commands/pipelines.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aNode, anExit, aReport, aSpec } from '../modelFixture.ts';
import { startJob } from './jobFixture.ts';
import { pipelineFile as file, pipelineActions, refusalOf as refusal } from './pipelineFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const { start, look, states, jobOf, endStepBy } = pipelineActions(() => coordinator);

const madeData = `working\n@muster-output data 12 ${'a'.repeat(64)}\n`;

async function runToEnd(id: string): Promise<void> {
  await endStepBy(id, 'prepare', { text: madeData });
  await endStepBy(id, 'train');
  await endStepBy(id, 'report');
}

test('steps are jobs that start once what they need is there, with their inputs', async () => {
  const id = await start();
  expect(await states(id)).toEqual(['prepare.0 running', 'train.0 waiting', 'report.0 waiting']);
  await endStepBy(id, 'prepare', { text: madeData });
  expect(await states(id)).toEqual(['prepare.0 succeeded', 'train.0 running', 'report.0 waiting']);
  const { steps } = await look(id);
  const path = `/shared/${id}/prepare-1/data`;
  expect(steps[0]?.outputs).toEqual([
    { name: 'data', type: 'directory', path, bytes: 12, digest: `sha256:${'a'.repeat(64)}` },
  ]);
  const job = await coordinator.api.getJob(steps[1]?.jobId ?? '');
  expect(job.spec).toMatchObject({
    name: 'vision-train',
    env: { MUSTER_INPUT_data: path, MUSTER_PARAM_lr: '0.1' },
    labels: { 'muster.pipeline': id, 'muster.step': 'train' },
  });
  await endStepBy(id, 'train');
  await endStepBy(id, 'report');
  expect(await look(id)).toMatchObject({
    state: 'succeeded',
    reason: null,
    params: { lr: 0.1, skip: false },
  });
  const { jobs } = await coordinator.api.listJobs({ label: `muster.pipeline=${id}` });
  expect(jobs).toHaveLength(3);
  const { runs } = await coordinator.api.listPipelines({ active: true });
  expect(runs).toEqual([]);
  const events = await coordinator.store.readEvents(0, 100, null);
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind.startsWith('pipeline.'));
  expect(kinds).toEqual([
    'pipeline.created',
    ...Array.from({ length: 3 }, () => 'pipeline.step_ended'),
    'pipeline.ended',
  ]);
});

test('a coordinator that was killed continues a run, and starts no step twice', async () => {
  const id = await start();
  await endStepBy(id, 'prepare', { text: madeData });
  const before = await look(id);
  const next = await startTestCoordinator({ memory: coordinator.memory });
  await coordinator.close();
  coordinator = next;
  expect((await look(id)).steps).toEqual(before.steps);
  const { jobs } = await coordinator.api.listJobs({ label: `muster.pipeline=${id}` });
  expect(jobs).toHaveLength(2);
});

test('a step waits for the end of its output, however late that is, and says from where', async () => {
  const id = await start();
  const text = `working\n${madeData}`;
  await endStepBy(id, 'prepare', { text: 'working\n', logBytes: text.length });
  coordinator.clock.nowMs += 30 * 24 * 3_600_000;
  const reason =
    'waits for its output, which names its artifacts: the last lines of attempt 1 from node-1, which does not respond; ' +
    'without it: muster node remove node-1';
  expect((await look(id)).steps[0]).toMatchObject({ state: 'running', reason });
  const task = { jobId: await jobOf(id, 'prepare'), attempt: 1, nodeRank: 0 };
  await coordinator.logs.append(task, 8, Buffer.from(madeData));
  expect((await look(id)).steps[0]).toMatchObject({ state: 'succeeded', reason: null });
});

test('an output that is complete without its artifacts, or that can no longer come, fails its step', async () => {
  const complete = await start();
  await endStepBy(complete, 'prepare', { text: 'working\n' });
  const without = 'prepare has failed: its output does not name its artifacts';
  expect(await look(complete)).toMatchObject({ state: 'failed', reason: without });
  const lost = await start({}, { noCache: true });
  await endStepBy(lost, 'prepare', { text: 'working\n', logBytes: 1_000 });
  expect((await states(lost))[0]).toBe('prepare.0 running');
  await coordinator.loop.run(aCaller, (draft) => draft.removeNode(aNode('node-1').name));
  const reason =
    'prepare has failed: the last lines of attempt 1 are lost: node-1 was removed before it had sent them';
  expect(await look(lost)).toMatchObject({ state: 'failed', reason });
});

test('what is wrong with an input is the reason of the step', async () => {
  const id = await start();
  await endStepBy(id, 'prepare', { text: madeData });
  const problem = 'input data: /shared/x has changed since its step has made it; its digest is not sha256:00';
  await endStepBy(id, 'train', { exitCode: 65, text: `\n@muster-artifact-problem ${problem}\n` });
  expect(await look(id)).toMatchObject({ state: 'failed', reason: `train has failed: ${problem}` });
});

test('a run takes the outputs of an earlier one where nothing differs, and runs the rest', async () => {
  await runToEnd(await start());
  const again = await start();
  expect(await states(again)).toEqual(['prepare.0 cached', 'train.0 cached', 'report.0 running']);
  const other = await start({}, { paramsJson: '{"lr": 0.2}' });
  expect((await states(other))[0]).toBe('prepare.0 running');
  const fresh = await start({}, { noCache: true });
  expect((await states(fresh))[0]).toBe('prepare.0 running');
  const later = { prepare: { ...file.steps.prepare, cache: { ttl: '1h' } }, train: file.steps.train };
  expect((await states(await start({ steps: later })))[0]).toBe('prepare.0 cached');
  coordinator.clock.nowMs += 3_600_001;
  expect((await states(await start({ steps: later })))[0]).toBe('prepare.0 running');
});

test('a run is repeated from a step, and keeps what is before it', async () => {
  const id = await start();
  await endStepBy(id, 'prepare', { text: madeData });
  await endStepBy(id, 'train', { exitCode: 1 });
  expect(await states(id)).toEqual(['prepare.0 succeeded', 'train.0 failed', 'report.0 blocked']);
  const again = await coordinator.api.rerunPipeline({ run: id, requestId: 'again' });
  expect(again).toMatchObject({ rerunOf: id, state: 'running' });
  expect(await states(again.id)).toEqual(['prepare.0 cached', 'train.0 running', 'report.0 waiting']);
  await endStepBy(again.id, 'train');
  await endStepBy(again.id, 'report');
  // The step that is named runs, although the cache has what it has made.
  const third = await coordinator.api.rerunPipeline({ run: again.id, fromStep: 'train', requestId: 'third' });
  expect(await states(third.id)).toEqual(['prepare.0 cached', 'train.0 running', 'report.0 waiting']);
  expect(await refusal(coordinator.api.rerunPipeline({ run: id, fromStep: 'trian', requestId: 'x' }))).toBe(
    'invalid: from_step: there is no step "trian"; did you mean "train"?',
  );
});

test('failures are retried with a job each, and then steps for failures and for the end run', async () => {
  const id = await start({
    steps: { train: { run: 'x', retries: { max: 1 } } },
    on_failure: { alarm: { run: 'x', when: "steps.train == 'failed'" } },
    finally: { tidy: { run: 'x' } },
  });
  const [first] = (await look(id)).steps;
  await endStepBy(id, 'train', { exitCode: 1 });
  const [second] = (await look(id)).steps;
  expect([second?.state, second?.tries, second?.jobId === first?.jobId]).toEqual(['running', 2, false]);
  await endStepBy(id, 'train', { exitCode: 1 });
  expect(await states(id)).toEqual(['train.0 failed', 'alarm.0 running', 'tidy.0 waiting']);
  await endStepBy(id, 'alarm');
  await endStepBy(id, 'tidy');
  expect(await look(id)).toMatchObject({
    state: 'failed',
    reason: expect.stringMatching(/^train has failed: /),
  });
});

test('the lineage of an artifact leads back to its parameters and nodes, and forward to what has used it', async () => {
  const { api } = coordinator;
  const first = await start({ code: { digest: 'git:1234' } });
  await runToEnd(first);
  const second = await start({ code: { digest: 'git:1234' } }, { paramsJson: '{"lr": 0.1}' });
  await endStepBy(second, 'report');
  const [prepare, train] = (await look(first)).steps;
  const path = prepare?.outputs[0]?.path ?? '';
  const lineage = await api.getLineage(path);
  expect(lineage.kind).toBe('artifact');
  expect(lineage.madeBy).toMatchObject([
    {
      run: first,
      pipeline: 'vision',
      step: 'prepare',
      jobId: prepare?.jobId,
      nodes: ['node-1'],
      params: { lr: 0.1, skip: false },
      code: 'git:1234',
      outputs: [{ path, bytes: 12 }],
    },
  ]);
  expect(lineage.usedBy.map(({ run, step, state }) => [run, step, state])).toEqual([
    [first, 'train', 'succeeded'],
    [second, 'train', 'cached'],
  ]);
  const subjects = [`sha256:${'a'.repeat(64)}`, 'a'.repeat(12)];
  for (const subject of subjects) expect((await api.getLineage(subject)).madeBy).toEqual(lineage.madeBy);
  const ofJob = await api.getLineage(train?.jobId ?? '');
  expect(ofJob).toMatchObject({ kind: 'job', madeBy: [{ step: 'prepare' }, { step: 'train' }], usedBy: [] });
  expect((await api.getLineage(first)).madeBy.map(({ step }) => step)).toEqual([
    'prepare',
    'train',
    'report',
  ]);
  expect((await api.getLineage('latest')).madeBy).toEqual((await api.getLineage(second)).madeBy);
  expect(await refusal(api.getLineage('/nowhere'))).toMatch(/^not_found: no pipeline knows \/nowhere/);
});

test('the lineage of a checkpoint is that of the job that saves there', async () => {
  const job = { command: 'train', checkpoint: { dir: '/checkpoints/v' } };
  const id = await start({ steps: { train: { job } } });
  await endStepBy(id, 'train');
  expect(await coordinator.api.getLineage('/checkpoints/v/step-100')).toMatchObject({
    kind: 'job',
    madeBy: [{ run: id, step: 'train' }],
  });
});

test('a step runs for each item, and conditions decide what is skipped', async () => {
  const id = await start({
    params: { seeds: [7, 8], mode: 'quick' },
    steps: {
      train: { for_each: `\${params.seeds}`, run: ['train', `\${item}`] },
      full: { run: 'x', after: 'train', when: "mode == 'full'" },
      last: { run: 'x', after: 'full' },
    },
  });
  expect(await states(id)).toEqual([
    'train.0 running',
    'train.1 running',
    'full.0 waiting',
    'last.0 waiting',
  ]);
  const { steps } = await look(id);
  expect(steps.slice(0, 2).map(({ item }) => item)).toEqual(['7', '8']);
  await endStepBy(id, 'train', { index: 1 });
  await endStepBy(id, 'train');
  expect(await states(id)).toEqual([
    'train.0 succeeded',
    'train.1 succeeded',
    'full.0 skipped',
    'last.0 running',
  ]);
});

test('a step whose time is up is stopped and has failed', async () => {
  const id = await start({ steps: { train: { run: 'x', timeout: '1h' } } });
  const jobId = (await look(id)).steps[0]?.jobId ?? '';
  coordinator.clock.nowMs += 3_600_000;
  await look(id);
  expect((await coordinator.api.getJob(jobId)).state).toBe('cancelled');
  expect(await look(id)).toMatchObject({ state: 'failed', reason: 'train has failed: its timeout is up' });
});

test('a stop ends what runs, and the last steps still run', async () => {
  const id = await start({ finally: { tidy: { run: 'x' } } });
  await look(id);
  expect(await coordinator.api.stopPipeline(id, 'enough')).toMatchObject({ reason: 'enough' });
  expect(await states(id)).toEqual([
    'prepare.0 stopped',
    'train.0 blocked',
    'report.0 blocked',
    'tidy.0 running',
  ]);
  expect(await refusal(coordinator.api.stopPipeline(id, ''))).toMatch(
    /^failed_precondition: .* is stopping already/,
  );
  await endStepBy(id, 'tidy');
  expect(await look(id)).toMatchObject({ state: 'stopped', reason: 'enough' });
  expect(await refusal(coordinator.api.stopPipeline(id, ''))).toMatch(/^failed_precondition: .* has ended/);
});

test('a sweep is a step, and hands on its best parameters', async () => {
  const sweep = {
    sampler: 'grid',
    objective: { metric: 'train_loss' },
    parameters: { lr: [0.1] },
    job: { command: 'train --lr={lr}' },
  };
  const id = await start({
    steps: { tune: { sweep }, final: { run: ['final', `\${inputs.best}`], inputs: { best: 'tune.best' } } },
  });
  const sweepId = (await look(id)).steps[0]?.sweepId ?? '';
  await coordinator.sweeps.run();
  const [trial] = await coordinator.api.listTrials(sweepId);
  const jobId = trial?.jobId ?? '';
  if (!isJobId(jobId)) throw new Error('no trial');
  await startJob(coordinator, jobId);
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const row = {
    position: 10,
    atMs: coordinator.wallMs(),
    values: { train_loss: 1, step: 7 },
    lossNotFinite: false,
  };
  await coordinator.rowKeeping.rows.append(task, [row], 2 ** 20, coordinator.wallMs());
  await coordinator.rowKeeping.ended(task, 'complete');
  const ended = aReport(task, { state: 'ended', exit: anExit({ exitCode: 0 }) });
  await coordinator.loop.run(aCaller, (draft, nowMs) =>
    report(draft, aNode('node-1').name, [ended], () => null, nowMs),
  );
  await coordinator.sweeps.run();
  const { steps } = await look(id);
  expect(steps.map(({ state }) => state)).toEqual(['succeeded', 'running']);
  expect((await coordinator.api.getJob(steps[1]?.jobId ?? '')).spec.command).toEqual(['final', '{"lr":0.1}']);
});

test('the same request starts one run, and a dry run none', async () => {
  const specJson = JSON.stringify(file);
  const [a, b] = [
    await coordinator.api.runPipeline({ specJson, requestId: 'same' }),
    await coordinator.api.runPipeline({ specJson, requestId: 'same' }),
  ];
  expect(a.id).toBe(b.id);
  const dry = await coordinator.api.runPipeline({ specJson, requestId: 'dry', dryRun: true });
  expect(dry.id).toBe('');
  expect(dry.steps.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'waiting']);
  expect((await coordinator.api.listPipelines()).runs.map(({ id }) => id)).toEqual([a.id]);
});

test.each<readonly [object, object, RegExp]>([
  [{ steps: {} }, {}, /^invalid: invalid pipeline: steps: /],
  [{}, { paramsJson: '{"lr": "high"}' }, /^invalid: param "lr": got "high"; expected a number/],
  [{}, { paramsJson: '[]' }, /^invalid: params_json: expected an object/],
  [{ code: './src' }, {}, /^invalid: invalid pipeline: code: a directory is known where/],
  [{ steps: { a: { run: 'x', when: 'lr > ' } } }, {}, /^invalid: steps\.a\.when: column /],
  [
    { steps: { a: { run: 'x', when: 'epochs > 1' } } },
    {},
    /^invalid: steps\.a\.when: column 1: unknown name "epochs"/,
  ],
  [
    {
      params: { gpus: { type: 'int' } },
      steps: { a: { job: { command: 'x', resources: { gpus: `\${params.gpus}` } } } },
    },
    { paramsJson: '{"gpus": 100}' },
    /^invalid: invalid pipeline: steps\.a\.job\.resources\.gpus: got 100/,
  ],
])('%j with %j is refused, and nothing is started', async (change, request, problem) => {
  expect(await refusal(start(change, request))).toMatch(problem);
  expect((await coordinator.api.listPipelines()).runs).toEqual([]);
});

test('a step that was about to start when its run was stopped does not, but for the last ones', async () => {
  const id = await start();
  await coordinator.api.stopPipeline(id, '');
  const startLate = (step: string, runsWhenStopped: boolean) =>
    coordinator.loop.run(aCaller, (draft, nowMs) => {
      const place = { run: id, step, index: 0, try: 1, cacheKey: null, inputs: {}, runsWhenStopped };
      const work = { spec: aSpec(), runningMs: () => 0, before: null };
      startJobStep(draft, { ...place, ...work }, randomBytes, nowMs);
      return draft.pipelines.step(id, step, 0)?.state ?? null;
    });
  expect(await startLate('late', false)).toBeNull();
  expect(await startLate('last', true)).toBe('running');
});
