import { connectMuster } from '@muster/common/wire/client';
import { expect, onTestFinished, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aReport, someMs } from '../modelFixture.ts';
import { finishJob, startJob, submitJob } from '../rpc/jobFixture.ts';
import type { Memory } from '../store/memory/memoryStore.ts';

async function start(memory?: Memory, builtInAlerts: ['job_failed'] | [] = []): Promise<TestCoordinator> {
  const coordinator = await startTestCoordinator({
    builtInAlerts,
    ...(memory === undefined ? {} : { memory }),
  });
  onTestFinished(() => coordinator.close());
  return coordinator;
}

async function alertEvents({ store }: TestCoordinator): Promise<readonly string[]> {
  const events = await store.readEvents(0, 1_000, null);
  return events
    .filter(({ kind }) => kind.startsWith('alert.') && kind !== 'alert.created')
    .map(({ kind, data }) => `${kind} ${String(data['alert'])} ${String(data['of'])}`);
}

const cancelled = { name: 'gone', condition: "workload_state == 'cancelled'" };
const waits = { name: 'waits', condition: "workload_state == 'queued'" };

test('what fires goes on firing over a restart, once, and resolves when it ends', async () => {
  const first = await start();
  await first.api.createAlert(waits);
  const jobId = await submitJob(first, 'r1');
  await first.alerts.run();

  const second = await start(first.memory);
  await second.alerts.run();
  second.clock.nowMs += 60_000;
  await second.alerts.run();
  expect(await alertEvents(second)).toEqual([`alert.firing waits ${jobId}`]);

  await second.api.stopJobs([jobId]);
  await second.alerts.run();
  expect(await alertEvents(second)).toEqual([`alert.firing waits ${jobId}`, `alert.resolved waits ${jobId}`]);
});

test('a job that ended just before a kill is looked at after the restart, and not again after another one', async () => {
  const first = await start();
  await first.api.createAlert(cancelled);
  await first.alerts.run();
  const jobId = await submitJob(first, 'r1');
  first.clock.nowMs += 60_000;
  await first.alerts.run();
  // Killed between the commit of the end and the look at it.
  await first.api.stopJobs([jobId]);

  const second = await start(first.memory);
  second.clock.nowMs = first.clock.nowMs;
  await second.alerts.run();
  expect(await alertEvents(second)).toEqual([`alert.firing gone ${jobId}`]);
  await second.api.acknowledgeAlert('gone', jobId);

  const third = await start(first.memory);
  third.clock.nowMs = second.clock.nowMs;
  await third.alerts.run();
  expect((await alertEvents(third)).filter((each) => each.startsWith('alert.firing'))).toHaveLength(1);
});

test('a job that ended in the first moments of a new store, before anybody looked, is looked at after a kill', async () => {
  const first = await start();
  await first.api.createAlert(cancelled);
  const jobId = await submitJob(first, 'r1');
  await first.api.stopJobs([jobId]);

  const second = await start(first.memory);
  await second.alerts.run();
  expect(await alertEvents(second)).toEqual([`alert.firing gone ${jobId}`]);
});

test('what ended while no alert was there does not fire later', async () => {
  const off = await start();
  await off.api.stopJobs([await submitJob(off, 'r1')]);
  await off.alerts.run();
  await off.api.createAlert(cancelled);
  const jobId = await submitJob(off, 'r2');
  await off.api.stopJobs([jobId]);

  const set = await start(off.memory);
  await set.alerts.run();
  expect(await alertEvents(set)).toEqual([`alert.firing gone ${jobId}`]);
  await set.api.deleteAlert('gone');
  await set.alerts.run();
  await set.api.stopJobs([await submitJob(set, 'r3')]);

  const on = await start(off.memory, ['job_failed']);
  await on.api.createAlert(cancelled);
  await on.alerts.run();
  expect((await alertEvents(on)).slice(1)).toEqual([
    `alert.resolved gone ${jobId}`,
    'alert.deleted gone undefined',
  ]);
});

test('a job that ended and was submitted again before anybody looked fires, and is resolved', async () => {
  const coordinator = await start();
  await coordinator.api.createAlert(cancelled);
  const jobId = await submitJob(coordinator, 'r1');
  await coordinator.api.stopJobs([jobId]);
  await coordinator.api.requeueJob(jobId, 'q1', { kind: 'newest' }, null, true);
  await coordinator.alerts.run();
  expect(await alertEvents(coordinator)).toEqual([
    `alert.firing gone ${jobId}`,
    `alert.resolved gone ${jobId}`,
  ]);
});

test('what the end of a job makes true fires at once, whatever the time of its alert', async () => {
  const coordinator = await start();
  await coordinator.api.createAlert({ ...cancelled, forMs: 60_000 });
  const jobId = await submitJob(coordinator, 'r1');
  await coordinator.api.stopJobs([jobId]);
  await coordinator.alerts.run();
  expect(await alertEvents(coordinator)).toEqual([`alert.firing gone ${jobId}`]);
});

test('with a time it fires once the condition has held for so long, and not when it stops before', async () => {
  const coordinator = await start();
  await coordinator.api.createAlert({ ...waits, forMs: 30_000 });
  const [kept, stopped] = [await submitJob(coordinator, 'r1'), await submitJob(coordinator, 'r2')];
  await coordinator.alerts.run();
  coordinator.clock.nowMs += 20_000;
  await coordinator.api.stopJobs([stopped]);
  await coordinator.alerts.run();
  expect((await coordinator.api.listAlerts({ name: 'waits' }))[0]?.pending).toBe(1);
  expect(await alertEvents(coordinator)).toEqual([]);
  coordinator.clock.nowMs += 20_000;
  await coordinator.alerts.run();
  expect(await alertEvents(coordinator)).toEqual([`alert.firing waits ${kept}`]);
});

test('what depends on time alone is looked at though nothing happens', async () => {
  const coordinator = await start();
  await coordinator.api.createAlert({ name: 'long', condition: "queued_for > duration('1h')" });
  const jobId = await submitJob(coordinator, 'r1');
  await coordinator.alerts.run();
  coordinator.clock.nowMs += 3_600_001;
  await coordinator.alerts.run();
  expect(await alertEvents(coordinator)).toEqual([`alert.firing long ${jobId}`]);
});

test('a firing for a failed job is resolved when the job is submitted again, or after a day', async () => {
  const coordinator = await start();
  await coordinator.api.createAlert(cancelled);
  const [again, left] = [await submitJob(coordinator, 'r1'), await submitJob(coordinator, 'r2')];
  await coordinator.api.stopJobs([again, left]);
  await coordinator.alerts.run();
  await coordinator.api.requeueJob(again, 'q1', { kind: 'newest' }, null, true);
  await coordinator.alerts.run();
  expect((await alertEvents(coordinator)).slice(2)).toEqual([`alert.resolved gone ${again}`]);
  coordinator.clock.nowMs += 25 * 3_600_000;
  await coordinator.alerts.run();
  expect((await alertEvents(coordinator)).slice(3)).toEqual([`alert.resolved gone ${left}`]);
});

test('unknown values resolve nothing while a job runs, and everything once it has ended', async () => {
  const coordinator = await start();
  await coordinator.api.createAlert({ name: 'runs', condition: "running_for >= duration('0s')" });
  const jobId = await submitJob(coordinator, 'r1');
  await startJob(coordinator, jobId);
  await coordinator.alerts.run();
  expect(await alertEvents(coordinator)).toEqual([`alert.firing runs ${jobId}`]);
  await finishJob(coordinator, jobId);
  await coordinator.alerts.run();
  expect((await alertEvents(coordinator)).slice(1)).toEqual([`alert.resolved runs ${jobId}`]);
});

test('a built-in alert that was switched off resolves what it fired', async () => {
  const first = await start(undefined, ['job_failed']);
  const jobId = await submitJob(first, 'r1');
  const episode = {
    id: 'job_failed-1',
    alert: 'job_failed',
    subject: jobId,
    subjectName: 'train',
    project: 'default',
    message: '',
    firedAtMs: first.clock.wallMs(),
    notifiedAtMs: first.clock.wallMs(),
    acknowledgedAtMs: null,
    acknowledgedBy: null,
  };
  await first.loop.run(aCaller, (draft) => draft.alerts.putEpisode(episode));
  const second = await start(first.memory);
  await second.alerts.run();
  expect(await alertEvents(second)).toEqual([`alert.resolved job_failed ${jobId}`]);
});

/** A client with a token of a user of `default`. */
async function userOf(coordinator: TestCoordinator, name: string) {
  await coordinator.api.addUser({ name, role: 'user', projects: [] });
  const { token } = await coordinator.api.createUserToken({
    user: name,
    label: 't',
    projects: [],
    verbs: [],
  });
  const api = connectMuster({ address: coordinator.address, token });
  onTestFinished(() => api.close());
  return api;
}

test('users set alerts on jobs that they may change, and neither on the cluster nor on nodes, and see their own', async () => {
  const coordinator = await start(undefined, ['job_failed']);
  const ann = await userOf(coordinator, 'ann');
  const bob = await userOf(coordinator, 'bob');
  const refused = { code: 'permission_denied' };
  await expect(ann.createAlert({ name: 'c', condition: 'silent_nodes > 0' })).rejects.toMatchObject(refused);
  await expect(ann.createAlert({ name: 'n', condition: "node_state == 'silent'" })).rejects.toMatchObject(
    refused,
  );
  const scope = { kind: 'job', jobId: null, labels: {}, project: 'vision', nodes: [] } as const;
  await expect(ann.createAlert({ ...waits, scope })).rejects.toMatchObject(refused);
  await ann.createAlert(waits);
  expect((await bob.listAlerts()).map(({ name }) => name)).toEqual(['job_failed']);
  await expect(bob.deleteAlert('waits')).rejects.toMatchObject({ code: 'not_found' });
  await expect(bob.silenceAlert('job_failed', 60_000, '')).rejects.toMatchObject(refused);
  expect((await coordinator.api.listAlerts()).map(({ name }) => name)).toEqual(['waits', 'job_failed']);
});

test('an alert no longer looks at what its owner may not change any longer', async () => {
  const coordinator = await start();
  const ann = await userOf(coordinator, 'ann');
  await ann.createAlert(waits);
  const jobId = await submitJob(coordinator, 'r1');
  await coordinator.alerts.run();
  expect(await alertEvents(coordinator)).toEqual([`alert.firing waits ${jobId}`]);
  await coordinator.api.changeUser('ann', { role: 'viewer' });
  coordinator.clock.nowMs += 20_000;
  await coordinator.alerts.run();
  expect((await alertEvents(coordinator)).slice(1)).toEqual([`alert.resolved waits ${jobId}`]);
});

test('a heartbeat without news evaluates nothing, and one with news what reads it', async () => {
  const coordinator = await start();
  const jobId = await submitJob(coordinator, 'r1');
  await startJob(coordinator, jobId);
  await coordinator.api.createAlert({ name: 'slow', condition: 'tokens_per_second < 100.0' });
  await coordinator.api.createAlert({ name: 'old', condition: "running_for > duration('5s')" });
  await coordinator.alerts.run();
  const progress = (tokens: number) => {
    const latest = { tokens_per_second: tokens };
    const training = { framework: null, latest, totalSteps: null, etaMs: null, rows: 1, atMs: someMs };
    const task = { jobId, attempt: 1, nodeRank: 0 };
    coordinator.taskStatus.record(aReport(task, { training }));
    coordinator.alerts.noteSample(jobId);
  };
  progress(500);
  coordinator.clock.nowMs += 6_000;
  await coordinator.alerts.run();
  expect(await alertEvents(coordinator), 'time alone is no news').toEqual([]);
  progress(50);
  await coordinator.alerts.run();
  expect(await alertEvents(coordinator)).toEqual([`alert.firing slow ${jobId}`]);
  progress(500);
  coordinator.clock.nowMs += 6_000;
  await coordinator.alerts.run();
  expect((await alertEvents(coordinator)).slice(1).sort()).toEqual([
    `alert.firing old ${jobId}`,
    `alert.resolved slow ${jobId}`,
  ]);
});
