/** Streams that are open when what they rest on ends, expires or is reduced: they end at once, with the refusal of the next call. */
import type { MusterError } from '@muster/common/errors';
import type { User } from '@muster/common/people';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { startJob, submitJob } from './jobFixture.ts';

const hourMs = 60 * 60_000;

let coordinator: TestCoordinator;
let admin: MusterApi;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  admin = coordinator.api;
});
afterEach(() => coordinator.close());

async function aTokenOf(user: Omit<User, 'createdAtMs'>): Promise<{ id: string; api: MusterApi }> {
  await admin.addUser(user);
  const { id, token } = await admin.createUserToken({ user: user.name, label: 'x', projects: [], verbs: [] });
  const api = connectMuster({ address: coordinator.address, token });
  onTestFinished(() => api.close());
  return { id, api };
}

type Streams = Readonly<Record<'events' | 'events of a job' | 'logs', AsyncIterable<unknown>>>;

/** One of each kind, with an item of output in the job of which they are. */
async function streamsOf(api: MusterApi): Promise<Streams> {
  const jobId = await submitJob(coordinator, 'r1');
  await startJob(coordinator, jobId);
  return {
    events: api.watchEvents({ sinceSeq: 0, follow: true }),
    'events of a job': api.watchEvents({ sinceSeq: 0, follow: true, subject: jobId }),
    logs: api.readLogs({ jobId, follow: true }),
  };
}

/** Follows streams. @returns how each ends, once all are open */
async function followed(
  id: string,
  streams: Partial<Streams>,
): Promise<Readonly<Record<string, Promise<string>>>> {
  const endOf = async (stream: AsyncIterable<unknown>) => {
    try {
      for await (const each of stream) expect(each).toBeTruthy();
      return 'it ended without a refusal';
    } catch (error) {
      return `${(error as MusterError).code}: ${(error as MusterError).message}`;
    }
  };
  const ends = Object.fromEntries(Object.entries(streams).map(([kind, stream]) => [kind, endOf(stream)]));
  await vi.waitFor(() => expect(coordinator.gate.calls.count(id)).toBe(Object.keys(streams).length));
  return ends;
}

async function expectEnds(ends: Readonly<Record<string, Promise<string>>>, refusal: RegExp): Promise<void> {
  for (const [kind, end] of Object.entries(ends))
    expect([kind, await end]).toEqual([kind, expect.stringMatching(refusal)]);
}

const ann = { name: 'ann', role: 'operator', projects: ['default', 'vision'] } as const;

describe('the streams that are open end', () => {
  test('when their token is revoked', async () => {
    const { id, api } = await aTokenOf(ann);
    const ends = await followed(id, await streamsOf(api));
    await admin.revokeCredential(id);
    await expectEnds(ends, /^unauthenticated: the credential user:ann:\w+ has been revoked or replaced/);
  });

  test('when their token is replaced by another', async () => {
    const { id, api } = await aTokenOf(ann);
    const ends = await followed(id, await streamsOf(api));
    await api.rotateUserToken();
    await expectEnds(ends, /^unauthenticated: the credential user:ann:\w+ has been revoked or replaced/);
  });

  test('when their token expires, and not before', async () => {
    const { api: owner } = await aTokenOf(ann);
    const issued = await owner.createUserToken({
      label: 'page',
      projects: [],
      verbs: [],
      lifetimeMs: hourMs,
    });
    const api = connectMuster({ address: coordinator.address, token: issued.token });
    onTestFinished(() => api.close());
    const ends = await followed(issued.id, await streamsOf(api));
    coordinator.clock.nowMs += hourMs - 1;
    await coordinator.reconcile();
    expect(coordinator.gate.calls.count(issued.id)).toBe(3);
    coordinator.clock.nowMs += 1;
    await coordinator.reconcile();
    const refusal =
      /^unauthenticated: the credential user:ann:\w+ has expired: it was valid until 2\S+Z, and the clock of the coordinator shows 2\S+Z$/;
    await expectEnds(ends, refusal);
    await expect(api.listJobs({})).rejects.toThrow(/has expired: it was valid until/);
  });

  test.each([
    ['their user has a lesser role', { role: 'user' }],
    ['their user is a member of fewer projects', { projects: ['default'] }],
  ] as const)('when %s', async (_, change) => {
    const { id, api } = await aTokenOf(ann);
    const other = await aTokenOf({ ...ann, name: 'ben' });
    const ends = await followed(id, await streamsOf(api));
    await followed(other.id, { events: other.api.watchEvents({ sinceSeq: 0, follow: true }) });
    await admin.changeUser('ann', change);
    await expectEnds(ends, /^permission_denied: the role or the projects of ann were reduced \(now /);
    expect(coordinator.gate.calls.count(other.id)).toBe(1);
  });

  test('when the project of their job becomes private, as far as they are about that job', async () => {
    const { id, api } = await aTokenOf({ ...ann, role: 'viewer' });
    const { events, ...ends } = await followed(id, await streamsOf(api));
    await admin.setProject({ name: 'default', isPrivate: true });
    await expectEnds(ends, /^not_found: there is no job job_/);
    expect(coordinator.gate.calls.count(id)).toBe(1);
    await admin.removeUser('ann');
    expect(await events).toMatch(/^unauthenticated/);
  });
});

test('a user with another role that allows more, and more projects, keeps their streams', async () => {
  const { id, api } = await aTokenOf({ ...ann, role: 'viewer' });
  await followed(id, await streamsOf(api));
  await admin.changeUser('ann', { role: 'admin', projects: ['default', 'text', 'vision'] });
  await admin.setProject({ name: 'default', isPrivate: false });
  await coordinator.reconcile();
  expect(coordinator.gate.calls.count(id)).toBe(3);
});
