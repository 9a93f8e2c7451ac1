import type { MusterError } from '@muster/common/errors';
import type { User } from '@muster/common/people';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';

const hourMs = 60 * 60_000;
const secret = (letter: string) => `muster_user_${letter.repeat(43)}`;

let coordinator: TestCoordinator;
let admin: MusterApi;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  admin = coordinator.api;
});
afterEach(() => coordinator.close());

function as(token: string): MusterApi {
  const api = connectMuster({ address: coordinator.address, token });
  onTestFinished(() => api.close());
  return api;
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error: MusterError = await work.then(
    () => expect.fail('it was not refused'),
    (reason) => reason,
  );
  return `${error.code}: ${error.message}`;
}

async function loggedIn(
  user: Pick<User, 'name' | 'role'>,
  letter = user.name.slice(0, 1),
): Promise<MusterApi> {
  await admin.addUser({ ...user, projects: [] });
  const { code } = await admin.createLoginCode(user.name);
  await as(code).login(secret(letter));
  return as(secret(letter));
}

describe('a user', () => {
  test('is added, listed, changed and removed', async () => {
    const ann = await admin.addUser({ name: 'ann', role: 'user', projects: [] });
    expect(ann).toMatchObject({ name: 'ann', role: 'user', projects: ['default'] });
    await admin.addUser({ name: 'adam', role: 'viewer', projects: ['vision'] });
    expect(await admin.changeUser('ann', { projects: ['text', 'vision'] })).toEqual({
      ...ann,
      projects: ['text', 'vision'],
    });
    expect((await admin.listUsers()).map(({ name }) => name)).toEqual(['adam', 'ann']);
    await admin.removeUser('ann');
    expect((await admin.listUsers()).map(({ name }) => name)).toEqual(['adam']);
  });

  test.each([
    [{ name: 'Ann', role: 'user' }, /^invalid: "Ann": a user name has 1 to 32 lower-case letters/],
    [{ name: 'admin', role: 'user' }, /^invalid: "admin" is the user of the built-in admin token/],
    [
      { name: 'ann', role: 'root' },
      /^invalid: invalid role "root"; roles are disabled, viewer, user, operator, admin$/,
    ],
    [{ name: 'ann', role: 'user', projects: ['a b'] }, /^invalid: "a b": a project name has 1 to 63/],
  ])('%o is refused', async (user, message) => {
    expect(await refusal(admin.addUser({ projects: [], ...user } as never))).toMatch(message);
  });

  test('who exists is not added again, and who does not exist gets no code', async () => {
    await admin.addUser({ name: 'ann', role: 'user', projects: [] });
    const again = admin.addUser({ name: 'ann', role: 'admin', projects: [] });
    expect(await refusal(again)).toMatch(/^already_exists: there is a user ann already/);
    expect(await refusal(admin.createLoginCode('ben'))).toMatch(/^not_found: there is no user ben/);
  });

  test('has the new role with the token that they have', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'viewer' });
    expect(await refusal(ann.drainNode('node-1', '', null))).toMatch(/^permission_denied: .*role viewer/);
    await admin.changeUser('ann', { role: 'operator' });
    expect(await refusal(ann.drainNode('node-1', '', null))).toMatch(/^not_found/);
  });

  test('who is removed may do nothing from then on, and their streams end', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'viewer' });
    const ended = refusal(
      (async () => {
        for await (const each of ann.watchEvents({ sinceSeq: 0, follow: true })) expect(each).toBeTruthy();
      })(),
    );
    const isOpen = async () => (await admin.listCredentials()).some(({ openCalls }) => openCalls === 1);
    await vi.waitFor(async () => expect(await isOpen()).toBe(true));
    await admin.removeUser('ann');
    expect(await ended).toMatch(/^unauthenticated: the credential user:ann:\w+ has been revoked/);
    expect(await refusal(ann.listJobs({}))).toMatch(/^unauthenticated/);
    expect((await admin.listCredentials()).filter(({ user }) => user === 'ann')).toEqual([]);
  });
});

describe('a login code', () => {
  test('is exchanged for one token, and repeating that is safe', async () => {
    await admin.addUser({ name: 'ann', role: 'user', projects: [] });
    const { code } = await admin.createLoginCode('ann');
    const first = await as(code).login(secret('a'));
    expect(first.user).toMatchObject({ name: 'ann', role: 'user' });
    expect(await as(code).login(secret('a'))).toEqual(first);
    expect(await refusal(as(code).login(secret('b')))).toMatch(/^already_exists: .*muster user code ann/);
    expect(await refusal(as(code).listJobs({}))).toMatch(/^permission_denied: this token \(login\)/);
  });

  test('is of no use after a day, and is forgotten', async () => {
    await admin.addUser({ name: 'ann', role: 'user', projects: [] });
    const { code } = await admin.createLoginCode('ann');
    coordinator.clock.nowMs += 24 * hourMs;
    expect(await refusal(as(code).login(secret('a')))).toMatch(/^unauthenticated/);
    await coordinator.reconcile();
    expect((await admin.listCredentials()).filter(({ kind }) => kind === 'login')).toEqual([]);
  });

  test('gives no token that could be guessed, and none of somebody else', async () => {
    await loggedIn({ name: 'ann', role: 'user' });
    await admin.addUser({ name: 'ben', role: 'user', projects: [] });
    const { code } = await admin.createLoginCode('ben');
    expect(await refusal(as(code).login('muster_user_short'))).toMatch(/^invalid: the token is too short/);
    expect(await refusal(as(code).login(secret('a')))).toMatch(/^already_exists: this token is in use/);
  });
});

describe('a token of a user', () => {
  test('may be limited to verbs, and ends when it expires', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const request = { label: 'page', projects: [], verbs: ['read' as const], lifetimeMs: hourMs };
    const { token } = await ann.createUserToken(request);
    const page = as(token);
    expect(await page.listJobs({})).toMatchObject({ jobs: [] });
    expect(await refusal(page.stopJobs(['latest']))).toMatch(/^permission_denied: .* allows: read\)/);
    coordinator.clock.nowMs += hourMs;
    expect(await refusal(page.listJobs({}))).toMatch(/^unauthenticated/);
  });

  test('never allows more than the token that it was made with, nor is it of somebody else', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    await admin.addUser({ name: 'ben', role: 'admin', projects: [] });
    const plain = { label: 'x', projects: [], verbs: [] };
    expect(await refusal(ann.createUserToken({ ...plain, user: 'ben' }))).toMatch(
      /^permission_denied: only an admin/,
    );
    expect(await refusal(ann.createUserToken({ ...plain, verbs: ['operate'] }))).toMatch(
      /^permission_denied/,
    );
    const limits = { projects: ['vision'], verbs: ['read' as const, 'tokens' as const] };
    const limited = as((await ann.createUserToken({ ...plain, ...limits })).token);
    expect(await refusal(limited.createUserToken({ ...plain, verbs: ['submit'] }))).toMatch(
      /^permission_denied/,
    );
    expect(await refusal(limited.createUserToken({ ...plain, projects: ['text'] }))).toMatch(
      /^permission_denied/,
    );
    const { id } = await limited.createUserToken(plain);
    expect((await admin.listCredentials()).find((each) => each.id === id)).toMatchObject(limits);
  });

  test('outlives no token that it was issued with, but for one of a login', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const plain = { label: 'ci', projects: [], verbs: [] };
    const day = await ann.createUserToken({ ...plain, verbs: ['read', 'tokens'], lifetimeMs: 24 * hourMs });
    const issuer = as(day.token);
    expect(await refusal(issuer.createUserToken({ ...plain, lifetimeMs: 24 * hourMs + 1 }))).toMatch(
      /^permission_denied: the token of this call ends in 1d, and issues none that is valid for longer: ask for less, or .*muster login/,
    );
    const hour = await issuer.createUserToken({ ...plain, lifetimeMs: hourMs });
    expect(hour.expiresAtMs).toBeLessThan(day.expiresAtMs);
    const usual = await issuer.createUserToken(plain);
    expect(usual.expiresAtMs).toBe(day.expiresAtMs);
    expect(await refusal(as(usual.token).createUserToken({ ...plain, lifetimeMs: 24 * hourMs + 1 }))).toMatch(
      /^permission_denied/,
    );
    const long = await ann.createUserToken({ ...plain, verbs: ['read'], lifetimeMs: 300 * 24 * hourMs });
    expect(await refusal(issuer.rotateUserToken(long.id))).toMatch(/^permission_denied: .* valid for longer/);
    await issuer.rotateUserToken(hour.id);
    const itself = await issuer.rotateUserToken();
    expect(itself.expiresAtMs).toBe(day.expiresAtMs);
  });

  test('never makes itself or what it issued last longer than it was issued for', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const [login] = await ann.listCredentials();
    const verbs = ['read' as const, 'tokens' as const];
    const root = await ann.createUserToken({ label: 'ci', projects: [], verbs, lifetimeMs: 24 * hourMs });
    let held = root.token;
    for (let hours = 0; hours < 24; hours += 6) {
      const rotated = await as(held).rotateUserToken();
      expect(rotated.expiresAtMs).toBe(root.expiresAtMs);
      const issued = await as(rotated.token).createUserToken({ label: 'further', projects: [], verbs });
      expect(issued.expiresAtMs).toBe(root.expiresAtMs);
      held = (await as(issued.token).rotateUserToken()).token;
      coordinator.clock.nowMs += 6 * hourMs;
    }
    expect(await refusal(as(held).rotateUserToken())).toMatch(/^unauthenticated: .*has expired/);
    const renewed = await ann.rotateUserToken(login?.id);
    expect(renewed.expiresAtMs, 'a person can log in again').toBeGreaterThan(root.expiresAtMs);
  });

  test('that is rotated by its user lasts as long again, also after it rotated itself', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const verbs = ['read' as const, 'tokens' as const];
    const day = await ann.createUserToken({ label: 'ci', projects: [], verbs, lifetimeMs: 24 * hourMs });
    coordinator.clock.nowMs += 20 * hourMs;
    const itself = await as(day.token).rotateUserToken();
    const renewed = await ann.rotateUserToken(itself.id);
    expect(renewed.expiresAtMs).toBe(day.expiresAtMs + 20 * hourMs);
  });

  test('of a budget issues no other, and none that is issued passes for a login', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const plain = { label: 'ci', projects: [], verbs: [] };
    const none = { gpuHours: null, gpus: null, jobsTotal: null, priority: null };
    const budgeted = await ann.createUserToken({ ...plain, budget: { ...none, jobs: 1 } });
    expect(await refusal(as(budgeted.token).createUserToken(plain))).toMatch(/^permission_denied/);
    expect(await refusal(ann.createUserToken({ ...plain, label: 'login' }))).toMatch(/^invalid: .*"login"/);
  });

  test('is not rotated by one that allows less, which would get the secret of the next', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const [login] = await ann.listCredentials();
    const verbs = ['read' as const, 'tokens' as const];
    const limits = { label: 'ci', projects: ['vision'], verbs };
    const limited = await ann.createUserToken(limits);
    const wider = [
      login,
      await ann.createUserToken({ ...limits, verbs: [...verbs, 'submit'] }),
      await ann.createUserToken({ ...limits, projects: ['vision', 'text'] }),
    ];
    for (const each of wider)
      expect(await refusal(as(limited.token).rotateUserToken(each?.id))).toMatch(
        /^permission_denied: user:ann:\w+ allows more than the token of this call/,
      );
    expect(await ann.listJobs({}), 'nothing has ended').toMatchObject({ jobs: [] });
    const equal = await ann.createUserToken(limits);
    const rotated = await as(limited.token).rotateUserToken(equal.id);
    expect((await admin.listCredentials()).find(({ id }) => id === rotated.id)).toMatchObject(limits);
    await ann.rotateUserToken(wider[1]?.id);
  });

  test('is listed for its user and for admins, and revoked by them only', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const ben = await loggedIn({ name: 'ben', role: 'operator' });
    const [own] = await ann.listCredentials();
    expect(own).toMatchObject({ kind: 'user', user: 'ann', node: null, label: 'login' });
    expect(await ann.listCredentials()).toHaveLength(1);
    expect(await refusal(ben.revokeCredential(own?.id ?? ''))).toMatch(/^not_found/);
    expect(await refusal(ben.revokeCredential('user:ann'))).toMatch(/^not_found/);
    expect(await refusal(ben.rotateUserToken(own?.id))).toMatch(/^not_found/);
    expect(await admin.revokeCredential('user:ann')).toHaveLength(2);
    expect(await refusal(ann.listJobs({}))).toMatch(/^unauthenticated/);
    expect(await ben.listJobs({})).toMatchObject({ jobs: [] });
  });

  test('is rotated: the other has the same limits, and it ends at once', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const limits = { projects: ['default'], verbs: ['read' as const, 'tokens' as const] };
    const issued = await ann.createUserToken({ label: 'ci', ...limits, lifetimeMs: hourMs });
    const rotated = await as(issued.token).rotateUserToken();
    expect(await refusal(as(issued.token).listJobs({}))).toMatch(/^unauthenticated/);
    expect(await as(rotated.token).listJobs({})).toMatchObject({ jobs: [] });
    const listed = (await admin.listCredentials()).find(({ id }) => id === rotated.id);
    expect(listed).toMatchObject({ label: 'ci', ...limits });
    expect(rotated.expiresAtMs - (listed?.createdAtMs ?? 0)).toBe(hourMs);
  });
});

test('a token that is rotated with time to spare is valid beside the new one, and no longer than that', async () => {
  const ann = await loggedIn({ name: 'ann', role: 'user' });
  const issued = await ann.createUserToken({ label: 'ci', projects: [], verbs: [], lifetimeMs: 3 * hourMs });
  const rotated = await as(issued.token).rotateUserToken(undefined, hourMs);
  for (const token of [issued.token, rotated.token])
    expect(await as(token).listJobs({})).toMatchObject({ jobs: [] });
  coordinator.clock.nowMs += hourMs;
  expect(await refusal(as(issued.token).listJobs({}))).toMatch(/^unauthenticated: .*has expired/);
  expect(await as(rotated.token).listJobs({})).toMatchObject({ jobs: [] });
  // It never gets more time than it had.
  const last = await as(rotated.token).rotateUserToken(rotated.id, 30 * 24 * hourMs);
  expect((await admin.listCredentials()).find(({ id }) => id === rotated.id)?.expiresAtMs).toBe(
    rotated.expiresAtMs,
  );
  expect(await refusal(as(last.token).rotateUserToken(undefined, 31 * 24 * hourMs))).toMatch(
    /^invalid: keep_ms/,
  );
});

describe('a job', () => {
  const spec = (project: string) => JSON.stringify({ name: 'train', command: ['true'], project });

  test('is submitted to projects of its user only, and is theirs', async () => {
    const ann = await loggedIn({ name: 'ann', role: 'user' });
    const { jobIds } = await ann.submit({ specJson: spec('default'), requestId: 'r1' });
    expect(await admin.getJob(jobIds[0] ?? '')).toMatchObject({ user: 'ann', project: 'default' });
    expect(await refusal(ann.submit({ specJson: spec('vision'), requestId: 'r2' }))).toMatch(
      /^permission_denied: ann is a member of default, not of vision; .*muster user set ann --project default --project vision$/,
    );
    const { token } = await ann.createUserToken({ label: 'x', projects: ['text'], verbs: [] });
    expect(await refusal(as(token).submit({ specJson: spec('default'), requestId: 'r3' }))).toMatch(
      /^permission_denied: this token is for text, not of default/,
    );
  });
});

test('a project is private, and open again', async () => {
  await admin.addUser({ name: 'ann', role: 'user', projects: ['text'] });
  await admin.setProject({ name: 'vision', isPrivate: true });
  expect(await admin.listProjects()).toEqual([
    { name: 'text', isPrivate: false },
    { name: 'vision', isPrivate: true },
  ]);
  await admin.setProject({ name: 'vision', isPrivate: false });
  expect((await admin.listProjects())[1]).toEqual({ name: 'vision', isPrivate: false });
  expect(await refusal(admin.setProject({ name: 'a b', isPrivate: true }))).toMatch(/^invalid/);
});
