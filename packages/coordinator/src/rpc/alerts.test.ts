import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { submitJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator({ builtInAlerts: ['job_failed'] });
});
afterEach(() => coordinator.close());

const failed = { name: 'failed', condition: "workload_state == 'failed'" };
const cancelled = { name: 'gone', condition: "workload_state == 'cancelled'" };

async function alertEvents(): Promise<readonly string[]> {
  const events = await coordinator.store.readEvents(0, 1_000, null);
  return events.filter(({ kind }) => kind.startsWith('alert.')).map(({ kind }) => kind);
}

test('an alert is set as the contract of tools calls it, and what is left out is chosen', async () => {
  const alert = await coordinator.api.createAlert({
    name: 'training-failed-job_1',
    severity: 'critical',
    condition: "workload_state == 'failed'",
    message: 'Training job ID failed',
  });
  expect(alert).toMatchObject({
    owner: 'admin',
    builtIn: false,
    forMs: 0,
    repeatMs: null,
    scope: { kind: 'job', jobId: null, project: null, labels: {}, nodes: [] },
    firing: [],
  });
  const names = (await coordinator.api.listAlerts()).map(({ name }) => name);
  expect(names).toEqual(['training-failed-job_1', 'job_failed']);
});

test.each([
  [{ ...failed, condition: 'gpu_utilisation < 20' }, /condition: column 1: .*"gpu_utilization"/],
  [{ ...failed, message: '{workload_nam} failed' }, /message: .*\{workload_name\}/],
  [{ ...failed, name: 'a b' }, /name: /],
  [{ ...failed, name: 'job_failed' }, /built in/],
  [{ ...failed, severity: 'fatal' as 'info' }, /severity: .*critical/],
  [{ ...failed, forMs: -1 }, /for: /],
  [{ ...failed, repeatMs: 1 }, /repeat: /],
])('%j is refused with what is wrong', async (request, message) => {
  await expect(coordinator.api.createAlert(request)).rejects.toThrow(message);
  expect(await alertEvents()).toEqual([]);
});

test('a dry run tells for what the alert would fire now, within what its owner may change', async () => {
  const jobId = await submitJob(coordinator, 'r1');
  await submitJob(coordinator, 'r2');
  const waits = {
    name: 'waits',
    condition: "workload_state == 'queued'",
    message: '{workload_name} waits',
    dryRun: true,
  };
  const every = await coordinator.api.createAlert({ ...waits, forMs: 60_000 });
  expect([every.firing.length, every.pending, every.forMs]).toEqual([2, 2, 60_000]);
  const scope = { kind: 'job', jobId, labels: {}, project: null, nodes: [] } as const;
  const one = await coordinator.api.createAlert({ ...waits, scope });
  expect(one).toMatchObject({ pending: 1, firing: [{ id: '', subject: jobId, message: 'train waits' }] });
  await coordinator.api.stopJobs([jobId]);
  expect(await coordinator.api.createAlert({ ...waits, scope })).toMatchObject({ pending: 0, firing: [] });
  const ended = await coordinator.api.createAlert({
    ...waits,
    condition: "workload_state == 'cancelled'",
    scope,
  });
  expect(ended.firing.map(({ subject }) => subject)).toEqual([jobId]);
  await coordinator.api.addUser({ name: 'ann', role: 'user', projects: ['hers'] });
  const { token } = await coordinator.api.createUserToken({
    user: 'ann',
    label: 'x',
    projects: [],
    verbs: [],
  });
  const ann = connectMuster({ address: coordinator.address, token });
  expect(await ann.createAlert(waits)).toMatchObject({ pending: 0, firing: [] });
  ann.close();
  const cluster = await coordinator.api.createAlert({
    name: 'c',
    condition: 'silent_nodes == 0',
    dryRun: true,
  });
  expect(cluster.firing).toMatchObject([{ subject: 'cluster' }]);
  expect(await alertEvents()).toEqual([]);
});

test('the condition tells what an alert looks at', async () => {
  const { scope } = await coordinator.api.createAlert({ name: 'n', condition: "node_state == 'silent'" });
  expect(scope.kind).toBe('node');
  const cluster = await coordinator.api.createAlert({ name: 'c', condition: 'silent_nodes > 2' });
  expect(cluster.scope.kind).toBe('cluster');
});

test('repeating a request is safe, and another alert of that name is refused', async () => {
  const first = await coordinator.api.createAlert(failed);
  expect(await coordinator.api.createAlert(failed)).toEqual(first);
  await expect(coordinator.api.createAlert({ ...failed, severity: 'info' })).rejects.toMatchObject({
    code: 'already_exists',
  });
  expect(await alertEvents()).toEqual(['alert.created']);
});

test('a dry run checks everything, answers with what would be set, and sets nothing', async () => {
  const trial = { ...failed, dryRun: true };
  expect(await coordinator.api.createAlert(trial)).toMatchObject({ ...failed, scope: { kind: 'job' } });
  expect((await coordinator.api.listAlerts()).map(({ name }) => name)).toEqual(['job_failed']);
  await expect(coordinator.api.createAlert({ ...trial, condition: 'gpus >' })).rejects.toMatchObject({
    code: 'invalid',
  });
  await coordinator.api.createAlert(failed);
  await expect(coordinator.api.createAlert({ ...trial, severity: 'info' })).rejects.toMatchObject({
    code: 'already_exists',
  });
  expect(await alertEvents()).toEqual(['alert.created']);
});

test('it fires once, is shown with its message, and resolves when it is acknowledged after the end of the job', async () => {
  const jobId = await submitJob(coordinator, 'r1');
  await coordinator.api.createAlert({ ...cancelled, message: '{workload_name} {workload_state} {step}' });
  await coordinator.api.stopJobs([jobId]);
  await coordinator.alerts.run();
  await coordinator.alerts.run();
  const [alert] = await coordinator.api.listAlerts({ firing: true });
  expect(alert?.firing).toMatchObject([{ subject: jobId, message: 'train cancelled unknown' }]);
  const acknowledged = await coordinator.api.acknowledgeAlert('gone', null);
  expect(acknowledged.firing).toEqual([]);
  coordinator.clock.nowMs += 60_000;
  await coordinator.alerts.run();
  expect(await alertEvents()).toEqual([
    'alert.created',
    'alert.firing',
    'alert.acknowledged',
    'alert.resolved',
  ]);
});

test('a job that ended before its alert was set is looked at all the same, others are not', async () => {
  const [jobId, other] = [await submitJob(coordinator, 'r1'), await submitJob(coordinator, 'r2')];
  await coordinator.api.stopJobs([jobId, other]);
  coordinator.clock.nowMs += 1_000;
  const scope = { kind: 'job', jobId, labels: {}, project: null, nodes: [] } as const;
  await coordinator.api.createAlert({ ...cancelled, scope });
  await coordinator.api.createAlert({ ...cancelled, name: 'every' });
  await coordinator.alerts.run();
  const firing = await coordinator.api.listAlerts({ firing: true });
  expect(firing.map(({ name }) => name)).toEqual(['gone']);
});

test('a silenced alert notifies nobody, and what still fires afterwards is notified', async () => {
  const jobId = await submitJob(coordinator, 'r1');
  await coordinator.api.createAlert(cancelled);
  await coordinator.api.silenceAlert('gone', 60_000, 'maintenance');
  await coordinator.api.stopJobs([jobId]);
  await coordinator.alerts.run();
  const [silenced] = await coordinator.api.listAlerts({ name: 'gone' });
  expect(silenced?.silence).toMatchObject({ by: 'admin', reason: 'maintenance' });
  expect(silenced?.firing).toMatchObject([{ notifiedAtMs: null }]);
  coordinator.clock.nowMs += 61_000;
  await coordinator.alerts.run();
  const [after] = await coordinator.api.listAlerts({ name: 'gone' });
  expect(after?.firing[0]?.notifiedAtMs).not.toBeNull();
  expect(await alertEvents()).toContain('alert.repeated');
});

test('a deleted alert resolves what fires by it', async () => {
  const jobId = await submitJob(coordinator, 'r1');
  await coordinator.api.createAlert(cancelled);
  await coordinator.api.stopJobs([jobId]);
  await coordinator.alerts.run();
  await coordinator.api.deleteAlert('gone');
  expect((await alertEvents()).slice(-2)).toEqual(['alert.resolved', 'alert.deleted']);
  await expect(coordinator.api.deleteAlert('gone')).rejects.toMatchObject({ code: 'not_found' });
  await expect(coordinator.api.deleteAlert('job_failed')).rejects.toThrow(/--builtin-alerts all,-job_failed/);
});

test('the errors of unknown alerts name what was probably meant', async () => {
  await coordinator.api.createAlert(failed);
  await expect(coordinator.api.silenceAlert('faild', 1_000, '')).rejects.toThrow(/did you mean "failed"/);
  await expect(coordinator.api.acknowledgeAlert('failed', null)).rejects.toBeInstanceOf(MusterError);
});

test('a token for one project sees and changes what is set for it, whoever its user is', async () => {
  const { api } = coordinator;
  const tokens = new Map<string, MusterApi>();
  for (const [user, role] of [
    ['ann', 'user'],
    ['olga', 'operator'],
  ] as const) {
    await api.addUser({ name: user, role, projects: ['hers', 'other'] });
    for (const projects of [[], ['hers']]) {
      const { token } = await api.createUserToken({ user, label: 'x', projects, verbs: [] });
      const client = connectMuster({ address: coordinator.address, token });
      onTestFinished(() => client.close());
      tokens.set(`${user} ${projects.join()}`, client);
    }
  }
  const ann = tokens.get('ann ') ?? expect.fail();
  const jobs = new Map<string, JobId>();
  for (const project of ['hers', 'other']) {
    const specJson = JSON.stringify({ name: project, command: ['true'], project });
    const { jobIds } = await ann.submit({ specJson, requestId: project });
    jobs.set(project, jobIds[0] as JobId);
  }
  const every = { kind: 'job', jobId: null, labels: {}, project: null, nodes: [] } as const;
  const scopes = {
    'of-hers': { ...every, project: 'hers' },
    'of-other': { ...every, project: 'other' },
    'job-of-hers': { ...every, jobId: jobs.get('hers') ?? null },
    'job-of-other': { ...every, jobId: jobs.get('other') ?? null },
    every,
  };
  for (const [name, scope] of Object.entries(scopes)) await ann.createAlert({ ...cancelled, name, scope });
  await api.stopJobs([...jobs.values()]);
  await coordinator.alerts.run();
  for (const user of ['ann', 'olga']) {
    const limited = tokens.get(`${user} hers`) ?? expect.fail();
    const names = (await limited.listAlerts()).map(({ name }) => name);
    expect(names, user).toEqual(['job-of-hers', 'of-hers', 'job_failed']);
    for (const name of ['of-other', 'job-of-other', 'every']) {
      await expect(limited.deleteAlert(name)).rejects.toMatchObject({ code: 'not_found' });
      await expect(limited.silenceAlert(name, 60_000, '')).rejects.toMatchObject({ code: 'not_found' });
      await expect(limited.acknowledgeAlert(name, null)).rejects.toMatchObject({ code: 'not_found' });
    }
    await expect(limited.silenceAlert('job_failed', 60_000, '')).rejects.toMatchObject({
      code: 'permission_denied',
    });
    const seen = new Set<unknown>();
    for await (const { kind, cloudEvent } of limited.watchEvents({ sinceSeq: 0 })) {
      const data = cloudEvent['data'] as Readonly<Record<string, unknown>>;
      if (kind === 'alert.created') seen.add(data['alert']);
      if (kind === 'alert.firing') seen.add(data['of']);
    }
    expect(seen, user).toEqual(new Set(['of-hers', 'job-of-hers', jobs.get('hers')]));
    await limited.silenceAlert('of-hers', 60_000, '');
  }
  expect(await tokens.get('ann hers')?.deleteAlert('of-hers')).toMatchObject({ name: 'of-hers' });
  expect(await tokens.get('olga hers')?.acknowledgeAlert('job-of-hers', null)).toMatchObject({ firing: [] });
});

test('what fires is acknowledged, also where an answer shows others only', async () => {
  const ids: JobId[] = [];
  for (let count = 0; count < 101; count += 1) ids.push(await submitJob(coordinator, `r${count}`));
  await coordinator.api.createAlert(cancelled);
  await coordinator.api.stopJobs(ids);
  await coordinator.alerts.run();
  const [alert] = await coordinator.api.listAlerts({ firing: true });
  const shown = new Set(alert?.firing.map(({ subject }) => subject));
  expect(shown.size).toBe(100);
  const [hidden = ''] = ids.filter((id) => !shown.has(id));
  await coordinator.api.acknowledgeAlert('gone', hidden);
  const left = [...coordinator.state.alerts.episodes.values()].map(({ subject }) => subject);
  expect(new Set(left)).toEqual(shown);
});
