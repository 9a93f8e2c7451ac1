import { request } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { finishJob, startJob } from '../rpc/jobFixture.ts';
import { ask, problemIn } from './apiFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator({ api: {} });
});
afterEach(() => coordinator.close());

const spec = { name: 'train', command: ['true'], labels: { team: 'a' } };

async function submitted(): Promise<string> {
  const { json } = await ask(coordinator, 'POST /jobs', { body: spec });
  return (json as { readonly jobIds: readonly string[] }).jobIds[0] ?? '';
}

/** A request as no client of HTTP would send it. @returns the status */
function statusOfRequest(path: string, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(`${coordinator.apiUrl}${path}`, { headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });
}

test('a job is submitted as its file says, found, listed and stopped', async () => {
  const jobId = await submitted();
  const { api } = coordinator;
  expect((await ask(coordinator, `GET /jobs/${jobId}`)).json).toEqual(await api.getJob(jobId));
  expect((await ask(coordinator, 'GET /jobs?states=queued&label=team%3Da')).json).toEqual(
    await api.listJobs(),
  );
  expect((await ask(coordinator, 'GET /jobs?states=failed&states=running')).json).toMatchObject({ jobs: [] });
  const stopped = await ask(coordinator, `POST /jobs/${jobId}/stop`, { body: { reason: 'enough' } });
  expect(stopped.json).toMatchObject({ jobs: [{ id: jobId, state: 'cancelled' }], total: 1 });
  const again = await ask(coordinator, 'POST /jobs/stop', { body: { ids: [jobId] } });
  // A list of jobs has no costs.
  const inList = { ...(await api.getJob(jobId)), costUsd: null };
  expect(again.json).toEqual({ jobs: [inList], total: 1 });
});

test('answers have the shapes that the typed client gives, with what is absent as null', async () => {
  const jobId = await submitted();
  const { api } = coordinator;
  await startJob(coordinator, jobId as Parameters<typeof startJob>[1]);
  const { certificates, ...disks } = await api.getUpkeep();
  // Nothing is limited here, and others use the disk too.
  const parts = disks.parts.map((each) => ({ ...each, limitBytes: null }));
  const fileSystems = disks.fileSystems.map((each) => ({ ...each, availableBytes: expect.any(Number) }));
  const pairs: readonly (readonly [string, unknown])[] = [
    [`/jobs/${jobId}`, await api.getJob(jobId)],
    [`/jobs/${jobId}/explain`, await api.explainJob(jobId)],
    [`/jobs/${jobId}/metrics/train_loss`, await api.queryMetrics({ jobId, name: 'train_loss' })],
    [`/jobs/${jobId}/metrics`, await api.summarizeTraining({ jobId })],
    ['/nodes', { nodes: await api.listNodes() }],
    ['/nodes/node-1', await api.getNode('node-1')],
    ['/telemetry', { nodes: await api.listTelemetry() }],
    ['/cluster', await api.getCluster()],
    ['/upkeep', { certificates, parts, fileSystems }],
    ['/projects', { projects: await api.listProjects() }],
    ['/users', { users: await api.listUsers() }],
  ];
  for (const [path, value] of pairs)
    expect([path, (await ask(coordinator, `GET ${path}`)).json]).toEqual([path, value]);
  await finishJob(coordinator, jobId as Parameters<typeof startJob>[1]);
  expect((await ask(coordinator, `GET /jobs/${jobId}`)).json).toEqual(await api.getJob(jobId));
});

test('a submit that is repeated with its key gives the same job, and another spec is refused', async () => {
  const headers = { 'idempotency-key': 'r1' };
  const first = await ask(coordinator, 'POST /jobs', { body: spec, headers });
  const again = await ask(coordinator, 'POST /jobs', { body: spec, headers });
  expect(first.json).toMatchObject({ repeatedRequest: false });
  expect(again.json).toEqual({ ...(first.json as object), repeatedRequest: true });
  const other = await ask(coordinator, 'POST /jobs', { body: { ...spec, name: 'other' }, headers });
  expect([other.status, problemIn(other).code]).toEqual([409, 'already_exists']);
  await submitted();
  await submitted();
  expect(coordinator.state.jobs.size).toBe(3);
});

test('a dry run, and an array, are asked for in the query', async () => {
  const dry = await ask(coordinator, 'POST /jobs?dryRun=true', { body: spec });
  expect(dry.json).toMatchObject({ jobIds: [], wouldWait: { kind: expect.any(String) } });
  expect(coordinator.state.jobs.size).toBe(0);
  const array = await ask(coordinator, 'POST /jobs?arraySize=3', { body: spec });
  expect(array.json).toMatchObject({ arraySize: 3, arrayId: expect.stringMatching(/^arr_/) });
});

test('a wrong spec is refused with its problems, each with its path and a suggestion', async () => {
  const refused = await ask(coordinator, 'POST /jobs', {
    body: { ...spec, priorty: 3, resources: { gpus: -1 } },
  });
  expect([refused.status, refused.type]).toEqual([400, 'application/problem+json; charset=utf-8']);
  expect(refused.json).toMatchObject({
    type: 'urn:muster:problem:invalid_argument',
    code: 'invalid_argument',
  });
  expect(problemIn(refused).problems).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ path: 'priorty', suggestion: 'priority' }),
      expect.objectContaining({ path: 'resources.gpus' }),
    ]),
  );
  expect(coordinator.state.jobs.size).toBe(0);
});

test.each([
  ['POST /nodes/node-1/drain', { reasn: 'x', deadlineMs: 'soon' }, ['reasn', 'deadlineMs']],
  ['GET /jobs?limt=3&states=runing&brief=1', undefined, ['limt', 'states[0]', 'brief']],
  ['GET /jobs?limit=-1', undefined, ['limit']],
  ['GET /jobs?limit=1&limit=2', undefined, ['limit']],
  ['PUT /projects/default/secrets/a', { value: 'no base 64!' }, ['value']],
  ['POST /jobs/stop', { ids: 'latest' }, ['ids']],
  ['POST /jobs/stop', { ids: [3] }, ['ids[0]']],
])('%s with %j names %j', async (call, body, paths) => {
  const refused = await ask(coordinator, call, body === undefined ? {} : { body });
  expect(refused.status).toBe(400);
  expect(problemIn(refused).problems.map(({ path }) => path)).toEqual(paths);
});

test('what is no JSON, of another type, or not to be there, is refused', async () => {
  const drain = 'POST /nodes/node-1/drain';
  expect((await ask(coordinator, drain, { body: '{' })).status).toBe(400);
  expect((await ask(coordinator, drain, { body: '[]' })).status).toBe(400);
  const form = await ask(coordinator, drain, { body: 'a=b', headers: { 'content-type': 'text/plain' } });
  expect(form.status).toBe(415);
  expect((await ask(coordinator, 'DELETE /nodes/node-1', { body: {} })).status).toBe(400);
  expect((await ask(coordinator, 'GET /nothing')).status).toBe(404);
  expect((await ask(coordinator, 'GET /jobs/%ff')).status).toBe(400);
});

test('a call without a valid token is refused before its body is looked at', async () => {
  const missing = await ask(coordinator, 'POST /jobs', { body: '{', token: null });
  expect([missing.status, missing.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="muster"']);
  expect((await ask(coordinator, 'POST /jobs', { body: '{', token: 'muster_admin_guess' })).status).toBe(401);
  expect((await ask(coordinator, 'GET /login', { token: null })).json).toMatchObject({ issuer: null });
});

test('a body that is too large is refused, however its length is told', async () => {
  const large = `{"name":"${'x'.repeat(400_000)}"}`;
  const refused = await ask(coordinator, 'POST /jobs', { body: large });
  expect([refused.status, problemIn(refused).detail]).toEqual([
    413,
    expect.stringMatching(/more than \d+ bytes/),
  ]);
});

test('only names of this server, and pages of its own, may call it', async () => {
  const authorization = `Bearer ${coordinator.adminToken}`;
  const path = '/api/v1/cluster';
  const [, host = ''] = coordinator.apiUrl.split('//');
  const port = host.split(':')[1] ?? '';
  expect(await statusOfRequest(path, { authorization, host })).toBe(200);
  expect(await statusOfRequest(path, { authorization, host: `localhost:${port}` })).toBe(200);
  expect(await statusOfRequest(path, { authorization, host: 'evil.example' })).toBe(403);
  expect(await statusOfRequest('/healthz', { host: `127.0.0.1.evil.example:${port}` })).toBe(403);
  expect(await statusOfRequest(path, { authorization, host, origin: `http://${host}` })).toBe(200);
  expect(await statusOfRequest(path, { authorization, host, origin: 'https://evil.example' })).toBe(403);
  expect(await statusOfRequest(path, { authorization, host, origin: 'null' })).toBe(403);
});

test('health is told to anyone', async () => {
  const answers = await Promise.all(
    ['/healthz', '/readyz'].map((path) => fetch(`${coordinator.apiUrl}${path}`)),
  );
  expect(await Promise.all(answers.map((each) => each.text()))).toEqual(['ok\n', 'ready\n']);
  expect(answers.map(({ headers }) => headers.get('connection'))).toEqual(['close', 'close']);
});

test('events name who called by HTTP as by gRPC, and from where', async () => {
  await submitted();
  await coordinator.api.submit({ specJson: JSON.stringify(spec), requestId: 'r1' });
  const callers = [...coordinator.memory.events.values()].map(({ kind, by, peer }) => ({ kind, by, peer }));
  const submits = callers.filter(({ kind }) => kind.endsWith('submitted'));
  expect(submits).toEqual([submits[0], submits[0]]);
  expect(submits[0]).toMatchObject({ by: 'admin', peer: '127.0.0.1' });
});

test('members with names of their own are an object of texts, and anything else is refused by its path', async () => {
  const alert = { name: 'dead', condition: "workload_state == 'failed'", labels: { team: 'vision' } };
  expect((await ask(coordinator, 'POST /alerts', { body: alert })).status).toBe(200);
  expect(await coordinator.api.listAlerts()).toMatchObject([{ name: 'dead', labels: { team: 'vision' } }]);
  for (const [labels, path] of [['vision', 'labels'] as const, [{ team: 1 }, 'labels.team'] as const]) {
    const refused = await ask(coordinator, 'POST /alerts', { body: { ...alert, labels } });
    expect([refused.status, problemIn(refused).problems?.map((each) => each.path)]).toEqual([400, [path]]);
  }
});
