/** From the messages of a session to what its tasks may do: which question counts, and whose answer. */

import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { describe, expect, test, vi } from 'vitest';
import type { HubSession } from '../hubFixture.ts';
import { openHighestTerm } from '../leases/highestTerm.ts';
import { aKey } from '../tasks/managerFixture.ts';
import { assigned, connected, start, wireTask } from './sessionFixture.ts';

type Connected = Awaited<ReturnType<typeof connected>>;

/** Prepared and claimed. */
async function claimed(): Promise<Connected> {
  const all = await connected();
  await all.first.gets('hello');
  all.first.welcome({ desired: [assigned] });
  await all.first.gets('prepared');
  return all;
}

/** Released at 500 ms with a lease of 1 s, and heartbeats that are answered by hand. */
async function leased(proofs = { termProof: '', clusterId: '', proof: '' }): Promise<Connected> {
  const all = await connected();
  await all.first.gets('hello');
  const { proof, ...ofTerm } = proofs;
  all.first.welcome({ ...ofTerm, desired: [{ ...assigned, proof }] });
  await all.first.gets('prepared');
  all.first.send({ start: { ...start, leaseMs: 1_000 } });
  await vi.waitFor(() => expect(all.agent.knows()).toEqual(['running']));
  return all;
}

type Verdict = 'VERDICT_RUN' | 'VERDICT_STOP' | 'VERDICT_UNKNOWN' | 'VERDICT_FORGET';

function answer(session: HubSession, seq: number, verdict: Verdict, leaseMs = 1_000): void {
  session.send({ heartbeatAck: { seq, verdicts: [{ task: wireTask, verdict, leaseMs }] } });
}

/** The first heartbeat that was sent at this moment or later. */
async function heartbeatOf(session: HubSession, sentMs: number): Promise<number> {
  const find = () => session.received.find(({ heartbeat }) => (heartbeat?.sentBoottimeMs ?? 0) >= sentMs);
  await vi.waitFor(() => expect(find(), `a heartbeat of ${sentMs}`).toBeDefined());
  return find()?.heartbeat?.seq ?? 0;
}

const deadlineOf = ({ node }: Connected) => node.process.leaseOf(aKey)?.deadlineBoottimeMs;

describe('a Release', () => {
  test('counts from the last question that was answered, not from now', async () => {
    const all = await claimed();
    all.node.boottimeMs = 1_200;
    all.first.send({ start: { ...start, leaseMs: 1_000 } });
    await vi.waitFor(() => expect(all.agent.knows()).toEqual(['running']));
    expect(all.node.process.launches[0]?.lease).toEqual({
      deadlineBoottimeMs: 1_500,
      bootId: 'boot-1',
      onExpiry: 'freeze',
    });
  });

  test('that was long on its way starts nothing, until an answer brings a fresh lease', async () => {
    const all = await claimed();
    all.node.boottimeMs = 2_000;
    all.first.send({ start: { ...start, leaseMs: 1_000 } });
    // The next heartbeat comes with a Welcome, which answers the same old Hello.
    all.first.welcome({ desired: [{ ...assigned, start, leaseMs: 1_000 }] });
    const seq = await heartbeatOf(all.first, 2_000);
    expect(all.node.process.calls).not.toContain(`start ${aKey}`);
    expect(all.agent.knows()).toEqual(['prepared']);
    answer(all.first, seq, 'VERDICT_RUN');
    await vi.waitFor(() => expect(all.agent.knows()).toEqual(['running']));
    expect(all.node.process.launches[0]?.lease?.deadlineBoottimeMs).toBe(3_000);
  });

  test('of a job that is never fenced is started whenever it comes', async () => {
    const all = await claimed();
    all.node.boottimeMs = 1_000_000;
    all.first.send({ start: { ...start, leaseMs: 0 } });
    await vi.waitFor(() => expect(all.agent.knows()).toEqual(['running']));
    expect(all.node.process.launches[0]?.lease).toBeNull();
  });
});

describe('the answer to a heartbeat', () => {
  test.each(['VERDICT_RUN', 'VERDICT_STOP'] as const)(
    'with %s renews from the moment it was sent',
    async (verdict) => {
      const all = await leased();
      all.node.boottimeMs = 900;
      all.first.welcome({ desired: [{ ...assigned, start, leaseMs: 1_000 }] });
      const seq = await heartbeatOf(all.first, 900);
      all.node.boottimeMs = 1_100;
      answer(all.first, seq, verdict);
      await vi.waitFor(() => expect(deadlineOf(all)).toBe(1_900));
    },
  );

  test('with the verdict that it is unknown renews nothing: the task is frozen, reported to be, and never killed', async () => {
    const all = await leased();
    const seq = await heartbeatOf(all.first, 500);
    answer(all.first, seq, 'VERDICT_UNKNOWN', 60_000);
    all.node.boottimeMs = 1_500;
    await vi.waitFor(() => expect(all.node.process.isFrozen(aKey)).toBe(true));
    await vi.waitFor(() =>
      expect(all.first.received.at(-1)?.report).toMatchObject({ state: 'TASK_STATE_RUNNING', frozen: true }),
    );
    expect(all.node.process.isRunning(aKey)).toBe(true);
  });

  test('with the word to forget a frozen task ends it', async () => {
    const all = await leased();
    const seq = await heartbeatOf(all.first, 500);
    all.node.boottimeMs = 1_500;
    await vi.waitFor(() => expect(all.node.process.isFrozen(aKey)).toBe(true));
    answer(all.first, seq, 'VERDICT_FORGET', 60_000);
    await vi.waitFor(() => expect(all.agent.knows()).toEqual([]));
    expect(all.node.process.calls).toContain(`stop ${aKey} SIGKILL 0`);
    expect(all.node.process.calls).not.toContain(`thaw ${aKey}`);
  });

  test('that comes twice, or to a heartbeat that was never sent, grants nothing', async () => {
    const all = await leased();
    const seq = await heartbeatOf(all.first, 500);
    answer(all.first, seq, 'VERDICT_RUN');
    answer(all.first, seq, 'VERDICT_RUN', 60_000);
    answer(all.first, seq + 7, 'VERDICT_RUN', 60_000);
    // Handled by the time that this is.
    all.first.send({ clearCondition: { kind: 'disk_full' } });
    await vi.waitFor(() => expect(all.cleared).toHaveLength(1));
    expect(deadlineOf(all)).toBe(1_500);
  });
});

describe('without a coordinator', () => {
  test('a task runs to its deadline and is frozen; the next Welcome thaws it, from its Hello on', async () => {
    const all = await leased();
    all.hub.crash();
    all.node.boottimeMs = 1_490;
    expect(all.node.process.isFrozen(aKey)).toBe(false);
    all.node.boottimeMs = 1_500;
    await vi.waitFor(() => expect(all.agent.knows()).toEqual(['running frozen']));

    all.node.boottimeMs = 9_000;
    await all.hub.serve();
    const second = await all.hub.session(2);
    expect(await second.gets('hello')).toMatchObject({ observed: [{ frozen: true }] });
    all.node.boottimeMs = 9_400;
    second.welcome({ desired: [{ ...assigned, start, leaseMs: 1_000 }] });
    await vi.waitFor(() => expect(all.agent.knows()).toEqual(['running']));
    expect(all.node.process.isFrozen(aKey)).toBe(false);
    expect(deadlineOf(all)).toBeLessThanOrEqual(10_000);
    expect(all.node.process.launches).toHaveLength(1);
  });

  test('a Welcome that took longer than the lease thaws nothing', async () => {
    const all = await leased();
    all.first.end();
    const second = await all.hub.session(2);
    await second.gets('hello');
    all.node.boottimeMs = 5_000;
    await vi.waitFor(() => expect(all.node.process.isFrozen(aKey)).toBe(true));
    second.welcome({ desired: [{ ...assigned, start, leaseMs: 1_000 }] });
    const seq = await heartbeatOf(second, 5_000);
    expect(all.node.process.calls).not.toContain(`thaw ${aKey}`);
    answer(second, seq, 'VERDICT_RUN');
    await vi.waitFor(() => expect(all.node.process.isFrozen(aKey)).toBe(false));
  });

  test('one that does not want a frozen task any more is obeyed: lease, signal, grace', async () => {
    const all = await leased();
    all.first.end();
    all.node.boottimeMs = 5_000;
    await vi.waitFor(() => expect(all.node.process.isFrozen(aKey)).toBe(true));
    const second = await all.hub.session(2);
    await second.gets('hello');
    const stop = { task: wireTask, graceMs: 1_500, signal: 'SIGTERM' };
    second.welcome({ desired: [{ ...assigned, start, stop, leaseMs: 1_000 }] });
    await vi.waitFor(() => expect(all.agent.knows()).toEqual(['ended SIGTERM']));
  });
});

test('what the coordinator proved of its term and of a task is reported again in every Hello', async () => {
  const all = await leased({ termProof: 'of the term', clusterId: 'c1', proof: 'of the task' });
  all.first.end();
  const second = await all.hub.session(2);
  expect(await second.gets('hello')).toMatchObject({
    highestTerm: 3,
    termProof: 'of the term',
    clusterId: 'c1',
    proofs: [{ task: wireTask, proof: 'of the task' }],
  });
});

describe('a coordinator of a lower term', () => {
  test('is not followed: it restores no lease and stops no task', async () => {
    const all = await leased();
    all.first.end();
    const second = await all.hub.session(2);
    expect(await second.gets('hello')).toMatchObject({ highestTerm: 3 });
    const stop = { task: wireTask, graceMs: 1_500, signal: 'SIGTERM' };
    second.welcome({ term: 2, desired: [{ ...assigned, start, stop, leaseMs: 60_000 }] });
    second.send({ forget: { task: wireTask } });
    const third = await all.hub.session(3);
    await third.gets('hello');
    expect(all.agent.knows()).toEqual(['running']);
    expect(deadlineOf(all)).toBe(1_500);
    third.welcome({ term: 4, desired: [{ ...assigned, start, leaseMs: 60_000 }] });
    await vi.waitFor(() => expect(deadlineOf(all)).toBe(60_500));
    expect(openHighestTerm(join(all.node.root, 'term'), silentLogger).highest.term).toBe(4);
  });

  test('has no say before it has shown its term, either', async () => {
    const { first, agent, node } = await connected();
    await first.gets('hello');
    first.send({ prepare: assigned });
    first.send({ prepare: { ...assigned, start } });
    first.welcome();
    await first.gets('heartbeat');
    expect(agent.knows()).toEqual([]);
    expect(node.process.calls).not.toContain(`start ${aKey}`);
  });
});

test('paths are tried and reported through the protocol, again when the coordinator asks again', async () => {
  const all = await connected();
  await all.first.gets('hello');
  const peers = [{ nodeRank: 1, node: 'b', address: '10.0.0.2', port: 4_001 }];
  const check = { round: 1, addresses: ['10.0.0.1', '10.0.0.2'], peers };
  all.first.welcome({ desired: [{ ...assigned, nodeCount: 2 }] });
  await all.first.gets('prepared');
  all.first.send({ check: { task: wireTask, check } });
  const findings = { round: 1, paths: [{ nodeRank: 1, roundTripUs: 80 }] };
  const checked = { task: wireTask, findings };
  expect(await all.first.gets('checked')).toMatchObject(checked);
  all.first.send({ check: { task: wireTask, check } });
  const checkReports = () => all.first.received.filter((message) => message.checked != null);
  await vi.waitFor(() => expect(checkReports()).toHaveLength(2));

  all.first.end();
  const second = await all.hub.session(2);
  await second.gets('hello');
  second.welcome({ desired: [{ ...assigned, nodeCount: 2, check }] });
  expect(await second.gets('checked')).toMatchObject(checked);
  expect(all.node.checks).toEqual(['round 1, holding 4000']);
});
