/** The matrix of whose jobs a call may concern: every call that names a job, as everybody, in an open and in a private project. */
import type { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { Role } from '@muster/common/people';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { hashToken } from '../auth/tokens.ts';
import { endEvaluation, withoutMetrics } from '../commands/evaluations.ts';
import { addCredential, startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint, someMs } from '../modelFixture.ts';
import { withEvaluationOf } from '../state/dueEvaluations.ts';
import { Memory } from '../store/memory/memoryStore.ts';

const people: Readonly<Record<string, { readonly role: Role; readonly projects: readonly string[] }>> = {
  owner: { role: 'user', projects: ['open', 'private'] },
  member: { role: 'user', projects: ['open', 'private'] },
  outsider: { role: 'user', projects: ['default'] },
  viewer: { role: 'viewer', projects: ['open', 'private'] },
  operator: { role: 'operator', projects: ['default'] },
  boss: { role: 'admin', projects: ['default'] },
};
const limited = { owner: 'muster_user_owner-elsewhere', operator: 'muster_user_operator-elsewhere' } as const;

let coordinator: TestCoordinator;

beforeAll(async () => {
  const memory = new Memory('test');
  const add = (id: string, subject: string, token: string, scope = {}) =>
    addCredential(memory, { id, kind: 'user', subject, secretHash: hashToken(token), ...scope });
  for (const [name, { role, projects }] of Object.entries(people)) {
    memory.users.set(name, { name, role, projects, createdAtMs: someMs });
    add(`user:${name}:1`, name, `muster_user_${name}`);
  }
  const elsewhere = { scope: { projects: ['elsewhere'], verbs: null, budget: null } };
  add('user:owner:2', 'owner', limited.owner, elsewhere);
  add('user:operator:2', 'operator', limited.operator, elsewhere);
  memory.projects.set('private', { name: 'private', isPrivate: true });
  coordinator = await startTestCoordinator({ memory });
});
afterAll(async () => {
  await coordinator.close();
});

function as(token: string): MusterApi {
  const api = connectMuster({ address: coordinator.address, token });
  onTestFinished(() => api.close());
  return api;
}

let submits = 0;

/** A job of the user `owner`. @returns its id */
async function aJobIn(project: string, name = 'train'): Promise<string> {
  submits += 1;
  const spec = { name, command: ['true'], project, max_runtime: '1h', resources: { gpus: 8 } };
  const request = { specJson: JSON.stringify(spec), requestId: `r${submits}` };
  const { jobIds } = await as('muster_user_owner').submit(request);
  return jobIds[0] ?? expect.fail('nothing was submitted');
}

async function first(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const each of stream) if (each !== undefined) return;
}

const reading: Readonly<Record<string, (api: MusterApi, id: string) => Promise<unknown>>> = {
  GetJob: (api, id) => api.getJob(id),
  ResolveJob: (api, id) => api.resolveJob(id),
  ExplainJob: (api, id) => api.explainJob(id),
  GetTrainingStatus: (api, id) => api.getTrainingStatus(id),
  QueryMetrics: (api, jobId) => api.queryMetrics({ jobId, name: 'train_loss' }),
  WatchMetrics: (api, jobId) => first(api.watchMetrics({ jobId, name: 'train_loss' })),
  SummarizeTraining: (api, jobId) => api.summarizeTraining({ jobId }),
  ReadLogs: (api, jobId) => first(api.readLogs({ jobId })),
  WatchEvents: (api, subject) => first(api.watchEvents({ sinceSeq: 0, subject })),
};
const changing: typeof reading = {
  ExtendJob: (api, id) => api.extendJob(id, 1_000),
  RemoveLogs: (api, id) => api.removeLogs(id),
  StopJobs: (api, id) => api.stopJobs([id]),
};

async function outcomeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'ok',
    (error: MusterError) => error.code,
  );
}

const tokens: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.keys(people).map((name) => [name, `muster_user_${name}`])),
  'owner, limited to another project': limited.owner,
  'operator, limited to another project': limited.operator,
};

const refusedTo = (project: string, use: 'read' | 'change', who: string): string => {
  if (who.includes('limited')) return 'not_found';
  if (use === 'change' && who === 'viewer') return 'permission_denied';
  if (['owner', 'operator', 'boss'].includes(who)) return 'ok';
  if (project === 'private') return 'not_found';
  return use === 'read' || who === 'member' ? 'ok' : 'permission_denied';
};

const cases = ['open', 'private'].flatMap((project) =>
  Object.keys(tokens).map((who) => [project, who] as const),
);

test.each(cases)(
  'in a project that is %s, for %s: what every call that names a job does',
  async (project, who) => {
    const id = await aJobIn(project);
    const api = as(tokens[who] ?? '');
    const outcomes = async (calls: typeof reading) =>
      Object.fromEntries(
        await Promise.all(
          Object.entries(calls).map(async ([name, call]) => [name, await outcomeOf(call(api, id))] as const),
        ),
      );
    const expected = (calls: typeof reading, use: 'read' | 'change') =>
      Object.fromEntries(Object.keys(calls).map((name) => [name, refusedTo(project, use, who)]));
    expect(await outcomes(reading)).toEqual(expected(reading, 'read'));
    const changes = await outcomes(changing);
    expect(changes).toEqual(expected(changing, 'change'));
  },
);

test('lists, names and `latest` leave out what is hidden', async () => {
  const shown = await aJobIn('open', 'shown');
  const hidden = await aJobIn('private', 'hidden');
  const ids = async (token: string) => (await as(token).listJobs({ limit: 1_000 })).jobs.map(({ id }) => id);
  for (const who of ['owner', 'operator', 'boss']) expect(await ids(`muster_user_${who}`)).toContain(hidden);
  for (const who of ['member', 'outsider', 'viewer']) {
    const listed = await ids(`muster_user_${who}`);
    expect(listed).toContain(shown);
    expect(listed).not.toContain(hidden);
    expect((await as(`muster_user_${who}`).getJob('latest')).id).toBe(shown);
    expect(await outcomeOf(as(`muster_user_${who}`).getJob('hidden'))).toBe('not_found');
    expect(await outcomeOf(as(`muster_user_${who}`).getJob(hidden.slice(0, -1)))).toBe('not_found');
  }
  expect(await ids(limited.owner)).toEqual([]);
  const requestId = `r${submits}`;
  expect((await as('muster_user_member').listJobs({ requestId })).jobs).toEqual([]);
  expect((await as('muster_user_owner').listJobs({ requestId })).jobs).toHaveLength(1);
});

test('arrays: neither the array nor a job of it is seen, and nothing of it is stopped', async () => {
  const spec = JSON.stringify({
    name: 'sweep',
    command: ['true'],
    project: 'private',
    resources: { gpus: 8 },
  });
  const { arrayId, jobIds } = await as('muster_user_owner').submit({
    specJson: spec,
    requestId: 'sweep',
    arraySize: 3,
  });
  const id = arrayId ?? expect.fail('no array');
  const member = as('muster_user_member');
  for (const reference of [id, 'sweep', 'sweep[1]', `${id}[1]`, id.slice(0, -1)]) {
    expect([reference, await outcomeOf(member.resolveJob(reference))]).toEqual([reference, 'not_found']);
    expect([reference, await outcomeOf(member.stopJobs([reference]))]).toEqual([reference, 'not_found']);
  }
  expect((await member.listJobs({ arrayId: id })).jobs).toEqual([]);
  expect((await as('muster_user_owner').listJobs({ arrayId: id })).jobs).toHaveLength(jobIds.length);
  expect((await as('muster_user_operator').stopJobs([id])).total).toBe(3);
});

test('a watch shows events of visible jobs, and those about users and tokens to admins', async () => {
  const hidden = await aJobIn('private', 'hidden');
  const shown = await aJobIn('open', 'shown');
  await coordinator.api.addUser({ name: 'late', role: 'user', projects: [] });
  const subjects = async (token: string) => {
    const seen = new Set<string>();
    for await (const { subject, kind } of as(token).watchEvents({ sinceSeq: 0 }))
      seen.add(kind.startsWith('user.') ? kind : subject);
    return seen;
  };
  const member = await subjects('muster_user_member');
  expect([member.has(shown), member.has(hidden), member.has('user.added')]).toEqual([true, false, false]);
  const operator = await subjects('muster_user_operator');
  expect([operator.has(shown), operator.has(hidden), operator.has('user.added')]).toEqual([
    true,
    true,
    false,
  ]);
  const boss = await subjects('muster_user_boss');
  expect([boss.has(shown), boss.has(hidden), boss.has('user.added')]).toEqual([true, true, true]);
});

test('the newest events are the newest of those that a caller may see', async () => {
  const shown = await aJobIn('open', 'shown');
  for (let index = 0; index < 5; index += 1) await aJobIn('private', `hidden-${index}`);
  const newest = async (request: Parameters<typeof coordinator.api.watchEvents>[0]) => {
    const seen: string[] = [];
    for await (const { subject, kind } of as('muster_user_member').watchEvents(request))
      seen.push(`${kind} ${subject}`);
    return seen;
  };
  expect(await newest({ newest: 1 })).toEqual([`job.submitted ${shown}`]);
  expect(await newest({ newest: 1, startTime: 'now', endTime: '-1h' })).toEqual([]);
  expect(await newest({ newest: 1, startTime: '-1h', endTime: 'now' })).toEqual([`job.submitted ${shown}`]);
  for (const request of [
    { newest: 0 },
    { newest: 100_001 },
    { startTime: 'yesterday' },
    { follow: true, endTime: 'now' },
  ])
    await expect(newest(request)).rejects.toMatchObject({ code: 'invalid' });
});

test('a watch shows what concerns jobs that have ended, and secrets, to those who may read them', async () => {
  const hidden = (await aJobIn('private', 'over')) as JobId;
  const sinceSeq = coordinator.state.lastEventSeq;
  await coordinator.logs.append({ jobId: hidden, attempt: 1, nodeRank: 0 }, 0, Buffer.from('line'));
  const owner = as('muster_user_owner');
  await owner.stopJobs([hidden]);
  await owner.removeLogs(hidden);
  await owner.setSecret('private', 'wandb', Buffer.from('a long value'));
  await owner.removeSecret('private', 'wandb');
  const due = withEvaluationOf(hidden, undefined, aCheckpoint(10), someMs);
  const end = { ...withoutMetrics, cause: 'refused', message: 'no room' };
  await coordinator.loop.run(aCaller, (draft, nowMs) => {
    draft.evaluations.put(due);
    endEvaluation(draft, { of: hidden, number: 0 }, end, nowMs);
  });
  const ofSecrets = ['secret.set', 'secret.removed'];
  const all = ['log.removed', ...ofSecrets, 'checkpoint.evaluated'];
  for (const [token, expected] of [
    ['muster_user_owner', all],
    ['muster_user_member', ofSecrets],
    ['muster_user_outsider', []],
    ['muster_user_operator', all],
    ['muster_user_boss', all],
    [limited.owner, []],
    [limited.operator, []],
  ] as const) {
    const seen: string[] = [];
    for await (const { kind } of as(token).watchEvents({ sinceSeq })) if (all.includes(kind)) seen.push(kind);
    expect(seen, token).toEqual(expected);
  }
});

test('a job comes after visible jobs only', async () => {
  const id = await aJobIn('private');
  const spec = { name: 'next', command: ['true'], after: [id], project: 'open' };
  const submit = (token: string) =>
    outcomeOf(as(token).submit({ specJson: JSON.stringify(spec), requestId: 'after', dryRun: true }));
  expect(await submit('muster_user_member')).toBe('not_found');
  expect(await submit('muster_user_owner')).toBe('ok');
});

test('whoever requeues an ended job of their project is the user of the new one', async () => {
  const id = await aJobIn('open');
  const member = as('muster_user_member');
  await member.stopJobs([id]);
  const { jobId } = await member.requeueJob(id, 'q1', { kind: 'newest' }, null, true);
  expect(await member.getJob(jobId)).toMatchObject({ user: 'member', project: 'open', requeuedFrom: id });
  const refused = as('muster_user_outsider').requeueJob(id, 'q2', { kind: 'newest' }, null, true);
  expect(await outcomeOf(refused)).toBe('permission_denied');
});
