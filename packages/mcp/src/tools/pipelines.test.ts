import type { LineageStepView, PipelineRunView, PipelineStepView } from '@muster/common/pipelines';
import type { TriggerView } from '@muster/common/triggers';
import { expect, test } from 'vitest';
import { answerBytesMax, jsonBytes } from '../size.ts';
import { fakeApi, openSession, someMs } from '../testing/session.ts';

const pipeline = { name: 'vision', steps: { train: { run: 'train' } } };
const someTime = '2026-01-02T03:04:05Z';

function aStep(given: Partial<PipelineStepView> = {}): PipelineStepView {
  return {
    step: 'train',
    group: 'steps',
    index: 0,
    item: null,
    state: 'running',
    tries: 1,
    jobId: 'job_000000000001',
    sweepId: null,
    cachedFrom: null,
    reason: null,
    outputs: [],
    startedAtMs: someMs,
    endedAtMs: null,
    ...given,
  };
}

function aRun(given: Partial<PipelineRunView> = {}): PipelineRunView {
  return {
    id: 'pln_00000000000a',
    name: 'vision',
    user: 'ann',
    project: 'default',
    state: 'running',
    reason: null,
    spec: pipeline,
    params: { lr: 0.1 },
    rerunOf: null,
    trigger: null,
    createdAtMs: someMs,
    endedAtMs: null,
    steps: [aStep()],
    ...given,
  };
}

function aTrigger(given: Partial<TriggerView> = {}): TriggerView {
  return {
    name: 'nightly',
    kind: 'cron',
    user: 'ann',
    project: 'default',
    pipeline: 'vision',
    cron: '0 3 * * *',
    timeZone: 'UTC',
    missed: 'run_once',
    condition: null,
    directory: null,
    blocked: null,
    overlap: 'skip',
    paused: false,
    nextAtMs: someMs,
    running: [],
    queued: 0,
    fires: [{ atMs: someMs, cause: 'a time', outcome: 'started', run: 'pln_00000000000a', reason: null }],
    spec: pipeline,
    params: {},
    createdAtMs: someMs,
    secret: null,
    ...given,
  };
}

test('a pipeline is run as its file has it, once for a request id', async () => {
  const calls: unknown[] = [];
  const runPipeline = (request: unknown) => {
    calls.push(request);
    return Promise.resolve(aRun());
  };
  const session = await openSession(fakeApi({ runPipeline }));
  const given = { pipeline, parameters: { lr: 0.2 }, requestId: 'r-1' };
  const { data, text } = await session.call('pipeline_run', given);
  const specJson = JSON.stringify(pipeline);
  const sent = { specJson, paramsJson: '{"lr":0.2}', requestId: 'r-1', dryRun: false, noCache: false };
  expect(calls).toEqual([sent]);
  expect(data).toMatchObject({ dryRun: false, run: { runId: 'pln_00000000000a', parameters: { lr: 0.1 } } });
  expect(text).toBe('Started pln_00000000000a with 1 steps. Follow it with pipeline_get.');
  const dry = await session.call('pipeline_run', { pipeline, dry_run: true });
  expect(dry.text).toMatch(/^Dry run, nothing was started/);
});

test('the steps of a run come in pages, each within the size of an answer', async () => {
  const long = `/${'deep/'.repeat(200)}`;
  const outputs = Array.from({ length: 30 }, (_, index) => ({
    name: `out-${index}`,
    type: 'file',
    path: long,
    bytes: 1,
    digest: `sha256:${'a'.repeat(64)}`,
  }));
  const steps = Array.from({ length: 40 }, (_, index) =>
    aStep({ index, state: index === 7 ? 'failed' : 'succeeded', outputs }),
  );
  const session = await openSession(fakeApi({ getPipeline: () => Promise.resolve(aRun({ steps })) }));
  const indexes: number[] = [];
  let cursor: string | null = null;
  do {
    const page = cursor === null ? {} : { cursor };
    const { data, text } = await session.call('pipeline_get', { runId: 'vision', limit: 100, ...page });
    expect(jsonBytes(data) + Buffer.byteLength(text)).toBeLessThan(answerBytesMax);
    const answer: { steps: { index: number; outputsNotShown: number }[]; nextCursor: string | null } = data;
    expect(answer.steps[0]?.outputsNotShown).toBeGreaterThan(20);
    indexes.push(...answer.steps.map(({ index }) => index));
    cursor = answer.nextCursor;
  } while (cursor !== null);
  expect(indexes).toEqual(steps.map(({ index }) => index));
  const failed = await session.call('pipeline_get', { runId: 'vision', states: ['failed'] });
  expect(failed.data).toMatchObject({ total: 1, steps: [{ index: 7 }] });
  expect(failed.text).toBe(
    'vision (pln_00000000000a) is running; of 40 steps 39 are done, 0 run, 1 have failed.',
  );
});

test('runs are listed, and a stop is tried dry, repeated without harm, and refused of what is done', async () => {
  let run = aRun();
  const stops: string[] = [];
  const api = fakeApi({
    listPipelines: () => Promise.resolve({ runs: [run], more: false }),
    getPipeline: () => Promise.resolve(run),
    stopPipeline: (id, reason) => {
      stops.push(`${id} ${reason}`);
      run = aRun({ state: 'stopping', reason });
      return Promise.resolve(run);
    },
  });
  const session = await openSession(api);
  const { data } = await session.call('pipeline_list', { active: true });
  expect(data).toMatchObject({ runs: [{ name: 'vision', createdAt: someTime }], nextCursor: null });
  const dry = await session.call('pipeline_stop', { runId: 'vision', dryRun: true });
  expect(dry.text).toBe('Dry run, nothing was stopped. 1 steps run.');
  await session.call('pipeline_stop', { runId: 'vision', reason: 'enough' });
  expect((await session.call('pipeline_stop', { runId: 'vision' })).text).toMatch(/had been stopped before/);
  expect(stops).toEqual(['pln_00000000000a enough']);
  run = aRun({ state: 'succeeded' });
  const { isError, text } = await session.call('pipeline_stop', { runId: 'vision' });
  expect([isError, text]).toEqual([true, expect.stringContaining('there is nothing to stop')]);
});

test('lineage tells what an artifact comes from, or what has used it', async () => {
  const step = (name: string): LineageStepView => ({
    run: 'pln_00000000000a',
    pipeline: 'vision',
    step: name,
    index: 0,
    item: null,
    state: 'succeeded',
    jobId: null,
    nodes: ['node-1'],
    params: { lr: 0.1 },
    code: null,
    inputs: [],
    outputs: [],
    startedAtMs: someMs,
  });
  const lineage = { subject: '/a/model', kind: 'artifact', madeBy: [step('train')], usedBy: [step('test')] };
  const session = await openSession(fakeApi({ getLineage: () => Promise.resolve(lineage) }));
  const made = await session.call('lineage_get', { subject: '/a/model' });
  expect(made.data).toMatchObject({
    kind: 'artifact',
    total: 1,
    steps: [{ step: 'train', nodes: ['node-1'] }],
  });
  const used = await session.call('lineage_get', { subject: '/a/model', direction: 'used_by' });
  expect(used.data).toMatchObject({ steps: [{ step: 'test', startedAt: someTime }] });
});

test('a trigger is fired once for a request, and says what has become of that', async () => {
  const calls: unknown[] = [];
  let outcome: 'started' | 'skipped' = 'started';
  const api = fakeApi({
    runTrigger: (request) => {
      calls.push(request);
      const run = outcome === 'started' ? 'pln_00000000000a' : null;
      const reason = run === null ? 'pln_00000000000a of it has not ended' : null;
      return Promise.resolve({ atMs: someMs, cause: 'by hand, ann', outcome, run, reason });
    },
    getTrigger: (name) =>
      Promise.resolve(aTrigger({ paused: name === 'still', running: ['pln_00000000000a'] })),
  });
  const session = await openSession(api);
  const given = { name: 'nightly', parameters: { lr: 0.5 }, requestId: 'one' };
  const fired = await session.call('trigger_run', given);
  expect(calls).toEqual([{ name: 'nightly', paramsJson: '{"lr":0.5}', requestId: 'one' }]);
  expect(fired).toMatchObject({
    text: 'Started pln_00000000000a.',
    data: { fire: { at: someTime, outcome: 'started', runId: 'pln_00000000000a' } },
  });
  outcome = 'skipped';
  const skipped = await session.call('trigger_run', { name: 'nightly' });
  expect(skipped.text).toBe('No run has started, skipped: pln_00000000000a of it has not ended.');
  const tried = await session.call('trigger_run', { name: 'nightly', dryRun: true });
  expect(tried.data).toEqual({ dryRun: true, fire: null, running: ['pln_00000000000a'] });
  expect((await session.call('trigger_run', { name: 'still', dryRun: true })).text).toContain(
    'still is paused',
  );
  expect(calls).toHaveLength(2);
});

test('triggers are created, listed and deleted', async () => {
  const calls: unknown[] = [];
  const api = fakeApi({
    createTrigger: (request) => {
      calls.push(request);
      return Promise.resolve(aTrigger(request.webhook ? { kind: 'webhook', secret: 'whsec_x' } : {}));
    },
    listTriggers: () => Promise.resolve([aTrigger()]),
    getTrigger: () => Promise.resolve(aTrigger()),
    deleteTrigger: (name) => {
      calls.push(`delete ${name}`);
      return Promise.resolve(aTrigger());
    },
  });
  const session = await openSession(api);
  const given = { name: 'nightly', pipeline, cron: '0 3 * * *', timeZone: 'Europe/Berlin', overlap: 'queue' };
  const made = await session.call('trigger_create', given);
  const { pipeline: _file, ...asked } = given;
  const sent = {
    ...asked,
    specJson: JSON.stringify(pipeline),
    paramsJson: '{}',
    noCache: false,
    dryRun: false,
  };
  expect(calls).toEqual([sent]);
  expect(made.text).toBe(`Trigger nightly is set. It fires next at ${someTime}.`);
  expect(made.data).toMatchObject({ secret: null, trigger: { when: '0 3 * * * (UTC)' } });
  const hook = await session.call('trigger_create', { name: 'pushed', pipeline, webhook: true });
  expect(hook.data).toMatchObject({ secret: 'whsec_x', trigger: { kind: 'webhook' } });
  const { data } = await session.call('trigger_list');
  expect(data).toMatchObject({ triggers: [{ name: 'nightly', fires: [{ outcome: 'started' }] }] });
  await session.call('trigger_delete', { name: 'nightly', dryRun: true });
  expect(calls).not.toContain('delete nightly');
  await session.call('trigger_delete', { name: 'nightly' });
  expect(calls).toContain('delete nightly');
});
