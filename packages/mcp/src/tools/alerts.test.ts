import type { AlertView } from '@muster/common/alerts';
import { MusterError } from '@muster/common/errors';
import type { MusterApi } from '@muster/common/wire/client';
import { expect, test } from 'vitest';
import { answerBytesMax, jsonBytes } from '../size.ts';
import { fakeApi, openSession, someMs } from '../testing/session.ts';

/** As agents call it today. */
const usual = {
  name: 'training-failed-job_1',
  severity: 'critical',
  condition: "workload_state == 'failed'",
  message: 'Training job job_1 failed',
};

function anAlert(given: Partial<AlertView> = {}): AlertView {
  return {
    name: 'failed',
    severity: 'warning',
    condition: "workload_state == 'failed'",
    message: 'failed',
    labels: {},
    forMs: 0,
    repeatMs: null,
    scope: { kind: 'job', jobId: null, labels: {}, project: null, nodes: [] },
    owner: 'ann',
    builtIn: false,
    createdAtMs: someMs,
    silence: null,
    firing: [],
    pending: 0,
    ...given,
  };
}

/** Remembers what was created. */
function creates() {
  const requests: Parameters<MusterApi['createAlert']>[0][] = [];
  const api = fakeApi({
    createAlert: ({ dryRun: _, ...request }) => {
      requests.push({ ...request, dryRun: _ ?? false });
      return Promise.resolve(anAlert(request));
    },
  });
  return { api, requests };
}

test('the usual call is taken as it stands, and the coordinator chooses what it looks at', async () => {
  const { api, requests } = creates();
  const { data, text } = await (await openSession(api)).call('alert_create', usual);
  expect(requests).toEqual([{ ...usual, dryRun: false }]);
  expect(data).toMatchObject({ dryRun: false, alert: { ...usual, scope: 'every workload', firing: [] } });
  expect(text).toBe('Alert training-failed-job_1 looks at every workload.');
});

test('a dry run is one for the coordinator too, which checks the condition', async () => {
  const { api, requests } = creates();
  const { data, text } = await (await openSession(api)).call('alert_create', { ...usual, dryRun: true });
  expect(requests).toEqual([{ ...usual, dryRun: true }]);
  expect(data).toMatchObject({ dryRun: true });
  expect(text).toMatch(/^Dry run, nothing was set/);
});

test.each([
  [
    { workload_id: 'job_1', for_seconds: 60 },
    { kind: 'job', jobId: 'job_1', labels: {}, project: null, nodes: [] },
  ],
  [{ nodes: ['gpu-1'] }, { kind: 'node', jobId: null, labels: {}, project: null, nodes: ['gpu-1'] }],
  [
    { workloadLabels: { team: 'a' }, project: 'vision' },
    { kind: 'job', jobId: null, labels: { team: 'a' }, project: 'vision', nodes: [] },
  ],
  [{ kind: 'cluster' }, { kind: 'cluster', jobId: null, labels: {}, project: null, nodes: [] }],
])('%j is the scope of the API', async (given, scope) => {
  const { api, requests } = creates();
  await (await openSession(api)).call('alert_create', { ...usual, ...given });
  expect(requests).toMatchObject([{ scope, ...('for_seconds' in given ? { forMs: 60_000 } : {}) }]);
});

test('a deletion names what it ends, first as a dry run; what is built in stays', async () => {
  const deleted: string[] = [];
  const api = fakeApi({
    listAlerts: ({ name = '' } = {}) => Promise.resolve([anAlert({ name, builtIn: name === 'job_failed' })]),
    deleteAlert: (name) => {
      deleted.push(name);
      return Promise.resolve(anAlert({ name }));
    },
  });
  const session = await openSession(api);
  const trial = await session.call('alert_delete', { name: 'mine', dryRun: true });
  expect(trial.data).toMatchObject({ dryRun: true, alert: { name: 'mine' } });
  const refused = await session.call('alert_delete', { name: 'job_failed', dryRun: true });
  expect(refused).toMatchObject({
    isError: true,
    text: expect.stringMatching(/failed_precondition.*built in/),
  });
  expect(deleted).toEqual([]);
  await session.call('alert_delete', { name: 'mine' });
  expect(deleted).toEqual(['mine']);
});

test('a list is read to its end, within the size of an answer, with what fires', async () => {
  const long = '💥"'.repeat(400);
  const firing = Array.from({ length: 50 }, (_, index) => ({
    id: `a-${index}`,
    alert: 'a',
    subject: `job_${index}`,
    subjectName: long,
    project: null,
    message: long,
    firedAtMs: someMs,
    notifiedAtMs: someMs,
    acknowledgedAtMs: null,
    acknowledgedBy: null,
  }));
  const labels = Object.fromEntries(
    Array.from({ length: 32 }, (_, index) => [`label-${index}`, long.slice(0, 200)]),
  );
  const alerts = Array.from({ length: 30 }, (_, index) =>
    anAlert({ name: `alert-${index}`, condition: long, message: long, labels, firing }),
  );
  const session = await openSession(fakeApi({ listAlerts: () => Promise.resolve(alerts) }));
  const names: string[] = [];
  let cursor: string | null = null;
  do {
    const answer = await session.call('alert_list', cursor === null ? {} : { cursor });
    expect(jsonBytes(answer.data) + Buffer.byteLength(answer.text)).toBeLessThan(answerBytesMax);
    const data: {
      alerts: { name: string; firing: unknown[]; firingNotShown: number }[];
      nextCursor: string | null;
    } = answer.data;
    names.push(...data.alerts.map(({ name }) => name));
    expect(data.alerts[0]).toMatchObject({ firingNotShown: 45 });
    cursor = data.nextCursor;
  } while (cursor !== null);
  expect(names).toEqual(alerts.map(({ name }) => name));
});

test('what is wrong is told before any call, or by the coordinator', async () => {
  const session = await openSession(
    fakeApi({
      createAlert: () => Promise.reject(new MusterError('invalid', 'condition: column 1: unknown name gpu')),
    }),
  );
  const severity = await session.call('alert_create', { ...usual, severity: 'fatal' });
  expect(severity).toMatchObject({ isError: true, text: expect.stringContaining('severity') });
  const condition = await session.call('alert_create', { ...usual, condition: 'gpu > 1' });
  expect(condition).toMatchObject({ isError: true, text: expect.stringContaining('column 1') });
});
