/** Triggers by the API, on a clock that the test moves. */
import { MusterError } from '@muster/common/errors';
import type { TriggerView } from '@muster/common/triggers';
import { connectMuster } from '@muster/common/wire/client';
import type { TriggerRequest } from '@muster/common/wire/triggerClient';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fireTrigger } from '../commands/triggers.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller } from '../modelFixture.ts';
import type { StoredTrigger } from '../store/triggers.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const file = { name: 'vision', params: { day: 'never', lr: 0.1 }, steps: { train: { run: 'train' } } };
const minuteMs = 60_000;

function wish(fields: Partial<TriggerRequest> = {}): TriggerRequest {
  return { name: 'often', specJson: JSON.stringify(file), cron: '*/10 * * * *', ...fields };
}

/** @param lateMs after the time at which it is due */
async function passAtNext(lateMs = 0): Promise<TriggerView> {
  const { nextAtMs } = await coordinator.api.getTrigger('often');
  coordinator.clock.nowMs += (nextAtMs ?? 0) - coordinator.clock.wallMs() + lateMs;
  return look();
}

async function look(): Promise<TriggerView> {
  await coordinator.triggers.run();
  await coordinator.pipelines.run();
  return coordinator.api.getTrigger('often');
}

const outcomes = ({ fires }: TriggerView) => fires.map(({ outcome }) => outcome);
const runs = async () => (await coordinator.api.listPipelines()).runs;

async function restart(): Promise<void> {
  const { nowMs } = coordinator.clock;
  const next = await startTestCoordinator({ memory: coordinator.memory });
  await coordinator.close();
  coordinator = next;
  coordinator.clock.nowMs = nowMs;
}

/** Stops the runs that have not ended, and waits until they have. */
async function endRuns(): Promise<void> {
  for (const { id, state } of await runs())
    if (state === 'running') await coordinator.api.stopPipeline(id, '');
  await coordinator.pipelines.run();
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => expect.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  return error instanceof MusterError ? `${error.code}: ${error.message}` : String(error);
}

test('a cron trigger starts a run at each of its times, once, with its parameters', async () => {
  const paramsJson = JSON.stringify({ day: 'at ${trigger.time}', lr: 0.5 });
  const made = await coordinator.api.createTrigger(wish({ overlap: 'allow', paramsJson }));
  expect(made).toMatchObject({ kind: 'cron', timeZone: 'UTC', missed: 'run_once', fires: [] });
  expect((await look()).fires).toEqual([]);
  const due = new Date(made.nextAtMs ?? 0).toISOString().replace('.000Z', 'Z');
  const { fires, nextAtMs } = await passAtNext();
  const [run] = await runs();
  expect(fires).toMatchObject([{ cause: due, outcome: 'started', run: run?.id, reason: null }]);
  expect(nextAtMs).toBe((made.nextAtMs ?? 0) + 10 * minuteMs);
  expect(run).toMatchObject({ trigger: 'often', params: { day: `at ${due}`, lr: 0.5 }, state: 'running' });
  expect((await look()).fires).toHaveLength(1);
  await passAtNext();
  expect(await runs()).toHaveLength(2);
  const events = await coordinator.store.readEvents(0, 100, null);
  expect(events.filter(({ kind }) => kind === 'trigger.fired').map(({ data }) => data)).toMatchObject([
    { trigger: 'often', outcome: 'started', run: run?.id, user: 'admin', project: 'default' },
    { outcome: 'started' },
  ]);
});

test('a coordinator that was killed fires no time twice, and none that it has not carried out is lost', async () => {
  await coordinator.api.createTrigger(wish({ overlap: 'allow' }));
  await passAtNext();
  await restart();
  expect(outcomes(await look())).toEqual(['started']);
  // It was killed before the next time, and is back within a minute of it.
  const { nextAtMs } = await coordinator.api.getTrigger('often');
  coordinator.clock.nowMs += (nextAtMs ?? 0) - coordinator.clock.wallMs() + 30_000;
  await restart();
  expect(outcomes(await look())).toEqual(['started', 'started']);
});

describe('times at which the coordinator did not run', () => {
  const longMs = 35 * minuteMs;

  test('are one run together', async () => {
    await coordinator.api.createTrigger(wish());
    const { fires } = await passAtNext(longMs);
    expect(fires).toMatchObject([
      { outcome: 'started', reason: '4 times missed while the coordinator did not run' },
    ]);
    expect(await runs()).toHaveLength(1);
    expect((await look()).fires).toHaveLength(1);
  });

  test('are none, if it is set so, and the next one is carried out', async () => {
    await coordinator.api.createTrigger(wish({ missed: 'skip' }));
    const { fires } = await passAtNext(longMs);
    expect(fires).toMatchObject([{ outcome: 'missed', run: null, reason: /^4 times missed/ }]);
    expect(await runs()).toEqual([]);
    expect(outcomes(await passAtNext())).toEqual(['started', 'missed']);
  });
});

describe('while the last run hangs, a fire', () => {
  test('is skipped, and says for which run', async () => {
    await coordinator.api.createTrigger(wish());
    await passAtNext();
    const [first] = await runs();
    const { fires, running } = await passAtNext();
    expect(fires[0]).toMatchObject({
      outcome: 'skipped',
      run: null,
      reason: `${first?.id} of it has not ended`,
    });
    expect(running).toEqual([first?.id]);
    await endRuns();
    expect(outcomes(await passAtNext())).toEqual(['started', 'skipped', 'started']);
  });

  test('waits for it, through a kill, in order', async () => {
    await coordinator.api.createTrigger(wish({ overlap: 'queue' }));
    await passAtNext();
    await passAtNext();
    expect(await passAtNext()).toMatchObject({ queued: 2 });
    expect(await runs()).toHaveLength(1);
    await restart();
    for (const [queued, count] of [
      [1, 2],
      [0, 3],
    ]) {
      await endRuns();
      expect(await look()).toMatchObject({ queued, running: [expect.any(String)] });
      expect(await runs()).toHaveLength(count ?? 0);
    }
  });

  test('stops it, and is started once it has ended; only the newest waits', async () => {
    await coordinator.api.createTrigger(wish({ overlap: 'stop_previous' }));
    await passAtNext();
    const [first] = await runs();
    // Its job holds no node, so that it ends at once.
    expect(outcomes(await passAtNext())).toContain('queued');
    await look();
    expect(await coordinator.api.getPipeline(first?.id ?? '')).toMatchObject({
      state: 'stopped',
      reason: 'trigger often has fired again',
    });
    expect(outcomes(await look())).toEqual(['started', 'queued', 'started']);
  });
});

test('of two that carry out the same fire, one does', async () => {
  const { nextAtMs } = await coordinator.api.createTrigger(wish({ overlap: 'allow' }));
  const { createdAtMs } = await coordinator.api.getTrigger('often');
  const fire = {
    trigger: { name: 'often', createdAtMs },
    isDue: (now: StoredTrigger) => now.nextAtMs === nextAtMs,
    moved: { nextAtMs: (nextAtMs ?? 0) + 10 * minuteMs },
    cause: 'a time',
    after: [],
    wanted: { kind: 'run', params: { day: '', lr: 0.1 }, stepCount: 1, note: null },
  } as const;
  const carryOut = () =>
    coordinator.loop.run(aCaller, (draft, nowMs) =>
      fireTrigger(draft, fire, (size) => new Uint8Array(size), nowMs),
    );
  expect(await Promise.all([carryOut(), carryOut()])).toEqual(['started', null]);
  expect(await runs()).toHaveLength(1);
});

test('a fire by hand follows the overlap policy, once for a request, with values of its own', async () => {
  await coordinator.api.createTrigger(wish());
  const byHand = (requestId: string, values: object = {}) =>
    coordinator.api.runTrigger({ name: 'often', requestId, paramsJson: JSON.stringify(values) });
  const first = await byHand('r1', { lr: 0.5 });
  expect(first).toMatchObject({ outcome: 'started', cause: 'by hand, admin' });
  expect(await coordinator.api.getPipeline(first.run ?? '')).toMatchObject({
    params: { lr: 0.5 },
    trigger: 'often',
  });
  expect(await byHand('r1', { lr: 0.5 })).toMatchObject({ outcome: 'started', run: first.run });
  expect(await byHand('r2')).toMatchObject({ outcome: 'skipped', run: null });
  expect(await refusal(byHand('r2'))).toMatch(/^failed_precondition: .* has started no run/);
  expect(await byHand('r3', { lr: 'much' })).toMatchObject({ outcome: 'failed' });
  await coordinator.api.pauseTrigger('often');
  expect(await refusal(byHand('r4'))).toMatch(/^failed_precondition: .* is paused/);
  expect(await runs()).toHaveLength(1);
  // Its next time is what it was.
  await endRuns();
  await coordinator.api.resumeTrigger('often');
  expect(outcomes(await passAtNext())[0]).toBe('started');
});

test('of the runs of one trigger that have ended, the newest 500 are kept', async () => {
  await coordinator.api.createTrigger(wish());
  const first = (await passAtNext()).running[0] ?? '';
  await endRuns();
  await coordinator.loop.run(aCaller, (draft, nowMs) => {
    const run = draft.pipelines.run(first);
    if (run === undefined) throw new Error('there is no run');
    for (let count = 1; count <= 500; count += 1)
      draft.pipelines.put({ ...run, id: `pln_${count}`, endedAtMs: nowMs + count });
  });
  expect(coordinator.state.pipelines.runs.size).toBe(501);
  const [next = ''] = (await passAtNext()).running;
  const ids = [...coordinator.state.pipelines.runs.keys()];
  expect(ids).toHaveLength(501);
  expect(ids).not.toContain(first);
  expect(ids).toContain(next);
});

test('a trigger that is paused starts nothing, and does not make up for it when it is resumed', async () => {
  await coordinator.api.createTrigger(wish());
  expect(await coordinator.api.pauseTrigger('often')).toMatchObject({ paused: true, nextAtMs: null });
  coordinator.clock.nowMs += 60 * minuteMs;
  expect((await look()).fires).toEqual([]);
  const { nextAtMs } = await coordinator.api.resumeTrigger('often');
  expect(nextAtMs).toBeGreaterThan(coordinator.clock.wallMs());
  expect((await look()).fires).toEqual([]);
  expect(outcomes(await passAtNext())).toEqual(['started']);
  await coordinator.api.deleteTrigger('often');
  expect(await coordinator.api.listTriggers()).toEqual([]);
  expect(await runs()).toHaveLength(1);
});

test('a trigger may do what its user may do now', async () => {
  await coordinator.api.addUser({ name: 'ann', role: 'user', projects: ['default'] });
  const { id, token } = await coordinator.api.createUserToken({
    user: 'ann',
    label: 'nightly',
    projects: [],
    verbs: [],
  });
  const ann = connectMuster({ address: coordinator.address, token });
  onTestFinished(() => ann.close());
  await ann.createTrigger(wish({ overlap: 'allow' }));
  await coordinator.api.revokeCredential(id);
  await passAtNext();
  expect(await runs()).toMatchObject([{ user: 'ann', trigger: 'often' }]);
  await coordinator.api.changeUser('ann', { role: 'viewer' });
  const { fires } = await passAtNext();
  expect(fires[0]).toMatchObject({ outcome: 'failed', run: null });
  expect(fires[0]?.reason).toMatch(
    /^ann may no longer submit jobs to default: .*muster trigger delete often/,
  );
});

describe('a trigger is refused', () => {
  const refused: readonly (readonly [what: string, fields: Partial<TriggerRequest>, message: RegExp])[] = [
    [
      'a name that is none',
      { name: 'Not A Name' },
      /^invalid: name: "Not A Name" is not a name; expected 1 to 48/,
    ],
    ['an unknown policy', { overlap: 'wait' }, /^invalid: overlap: "wait" is unknown; expected skip, queue/],
    ['an unknown policy of missed times', { missed: 'all' }, /^invalid: missed: "all" is unknown/],
    ['a time that is none', { cron: '99 * * * *' }, /^invalid: cron: "99/],
    [
      'an unknown parameter',
      { paramsJson: '{"lrr": 1}' },
      /^invalid: param "lrr": unknown; did you mean "lr"/,
    ],
    [
      'a parameter of another type',
      { paramsJson: '{"lr": "x"}' },
      /^invalid: param "lr": .*expected a number/,
    ],
    [
      'a value that this kind does not have',
      { paramsJson: '{"day": "${trigger.tim}"}' },
      /^invalid: param "day": this kind of trigger has no trigger.tim; did you mean "time"/,
    ],
    ['a pipeline that is none', { specJson: '{"name": "x"}' }, /^invalid: invalid pipeline: steps/],
    ['a pipeline that is no JSON', { specJson: '{' }, /^invalid: spec_json is not JSON/],
  ];

  test('with the place of what is wrong', async () => {
    for (const [what, fields, message] of refused) {
      expect(await refusal(coordinator.api.createTrigger(wish(fields))), what).toMatch(message);
    }
    const { cron: _cron, ...untimed } = wish();
    expect(await refusal(coordinator.api.createTrigger(untimed))).toMatch(/^invalid: cron: missing/);
    expect(await coordinator.api.listTriggers()).toEqual([]);
  });

  test('with the name of another, unless it is the same', async () => {
    await coordinator.api.createTrigger(wish());
    expect(await coordinator.api.createTrigger(wish())).toMatchObject({ name: 'often' });
    expect(await refusal(coordinator.api.createTrigger(wish({ cron: '0 * * * *' })))).toMatch(
      /^already_exists: there is a trigger often already/,
    );
    expect(await refusal(coordinator.api.getTrigger('ofte'))).toMatch(
      /^not_found: there is no trigger ofte; did you mean "often"/,
    );
  });
});

test('a fire whose values do not fit has failed, and the next one may succeed', async () => {
  const specJson = JSON.stringify({ ...file, params: { lr: 0.1 } });
  const paramsJson = JSON.stringify({ lr: '${trigger.time}' });
  await coordinator.api.createTrigger(wish({ specJson, paramsJson }));
  const { fires } = await passAtNext();
  expect(fires).toMatchObject([{ outcome: 'failed', run: null }]);
  expect(fires[0]?.reason).toMatch(/^param "lr": .*expected a number/);
});
