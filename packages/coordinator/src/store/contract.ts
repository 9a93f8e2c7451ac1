/** What every store must do. Each implementation runs this suite in its own test file. */
import { causeOf } from '@muster/common/cause';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Job } from '../model.ts';
import { aJob, aNode, anAttempt, aSpec, jobIdOf, someMs } from '../modelFixture.ts';
import { describeAlerts } from './alertsContract.ts';
import { describeCredentials } from './credentialContract.ts';
import { describeEvaluations } from './evaluationsContract.ts';
import { describeFinding } from './findingContract.ts';
import { describePipelines } from './pipelinesContract.ts';
import { describeRetention } from './retentionContract.ts';
import { describeSecrets } from './secretsContract.ts';
import { type Batch, emptyBatch, type Store } from './store.ts';
import {
  aCredential,
  anArray,
  anEvent,
  aRequest,
  attemptsOf,
  endedAttempt,
  everyState,
  nodeWithEverything,
  started,
  withEverything,
} from './storeFixture.ts';
import { describeSweeps } from './sweepsContract.ts';

export interface StoreUnderTest {
  readonly store: Store;
  /** Closes the store and opens what it kept. */
  reopen(): Promise<Store>;
}

/** @param open opens an empty store; closing and cleaning up is the caller's */
export function describeStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} as a store`, () => {
    let opened: StoreUnderTest;
    let store: Store;
    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });

    const commit = (batch: Partial<Batch>) => store.commit({ ...emptyBatch, ...batch });

    describeCredentials(commit, () => opened.reopen());
    describeSecrets(commit, () => opened.reopen());
    describeAlerts(commit, () => opened.reopen());
    describeSweeps(commit, () => opened.reopen());
    describePipelines(commit, () => opened.reopen());
    describeEvaluations(commit, () => opened.reopen());

    describe('keeps', () => {
      it('nothing at first, except the id of its cluster', async () => {
        const snapshot = await store.load();

        expect(snapshot).toMatchObject({
          activeJobs: [],
          nodes: [],
          credentials: [],
          lastSubmitSeq: 0,
          lastEventSeq: 0,
        });
        expect(snapshot.outcomes.size + snapshot.subjectSeqs.size).toBe(0);
        expect((await (await opened.reopen()).load()).clusterId).toBe(snapshot.clusterId);
      });

      it.each(everyState.map((state) => [state.kind, state] as const))(
        'a job that is %s',
        async (_kind, state) => {
          const job = aJob(1, { ...withEverything, state, lastAttempt: 2 });
          await commit({ newJobs: [job], attempts: [endedAttempt(job.id), ...attemptsOf(job)] });

          const record = await (await opened.reopen()).readJob(job.id);

          expect(record?.job).toEqual(job);
          expect(record?.attempts.map((attempt) => attempt.number)).toEqual(
            'attempt' in state ? [1, 2] : [1],
          );
        },
      );

      it('active jobs in order of submission with their attempts, and no ended ones', async () => {
        const jobs = everyState.map((state, index) => aJob(index + 1, { state, lastAttempt: 2 }));
        await commit({ newJobs: jobs, attempts: jobs.flatMap(attemptsOf) });

        const snapshot = await (await opened.reopen()).load();

        expect(snapshot.activeJobs).toEqual(jobs.slice(0, 4));
        expect(snapshot.outcomes.size).toBe(0);
        expect(snapshot.lastSubmitSeq).toBe(7);
      });

      it('how the jobs have ended that active ones come after, and no others', async () => {
        const ended: Job = aJob(1, { state: { kind: 'succeeded', endedAtMs: someMs } });
        const running = started(aJob(3), 1);
        const spec = aSpec({ after: [jobIdOf(1), jobIdOf(3)] });
        await commit({
          newJobs: [ended, aJob(2, { state: ended.state }), running, aJob(4, { spec }), aJob(5, { spec })],
          attempts: attemptsOf(running),
        });

        const { outcomes } = await (await opened.reopen()).load();

        expect(outcomes).toEqual(new Map([[jobIdOf(1), 'succeeded']]));
      });

      it('an array with the spec that its jobs share, until all of them are stored as incomplete', async () => {
        const array = { ...anArray(3), spec: aSpec({ name: 'shared', env: { TEXT: 'x'.repeat(1_000) } }) };
        const jobs = [0, 1, 2].map((index) =>
          aJob(index + 1, { spec: array.spec, array: { id: array.id, index, size: 3 } }),
        );
        await commit({ newArrays: [{ ...array, filled: 2 }], newJobs: jobs.slice(0, 2) });

        const reopened = await opened.reopen();
        const { unfilledArrays, activeJobs } = await reopened.load();
        expect(unfilledArrays).toEqual([{ ...array, filled: 2 }]);
        expect(activeJobs).toEqual(jobs.slice(0, 2));
        await reopened.commit({ ...emptyBatch, newJobs: jobs.slice(2), arrays: [{ ...array, filled: 3 }] });
        expect((await reopened.load()).unfilledArrays).toEqual([]);
        expect((await reopened.readJob(jobIdOf(3)))?.job).toEqual(jobs[2]);
      });

      it('of an incomplete array, which jobs were stored before their turn, and the places of all of them', async () => {
        const array = { ...anArray(5), filled: 1, firstSubmitSeq: 11 };
        const member = (index: number) =>
          aJob(11 + index, { spec: array.spec, array: { id: array.id, index, size: 5 } });
        await commit({ newArrays: [array], newJobs: [member(0)] });
        await commit({ arrays: [array], newJobs: [member(3)] });

        const reopened = await opened.reopen();
        const { unfilledArrays, lastSubmitSeq } = await reopened.load();
        expect(unfilledArrays).toEqual([{ ...array, early: new Set([3]) }]);
        expect(lastSubmitSeq).toBe(15);
        const back = reopened.commit({ ...emptyBatch, arrays: [{ ...array, filled: 0 }] });
        await expect(back).rejects.toMatchObject({ name: 'StoreError', kind: 'conflict' });
      });

      it('changes of jobs and attempts', async () => {
        const queued = aJob(1);
        await commit({ newJobs: [queued] });
        const starting = started(queued, 1);
        await commit({ jobs: [starting], attempts: attemptsOf(starting) });
        const cause = causeOf('exit_code', 'rank 0 exited with code 1', { nodeRank: 0, node: 'node-1' });
        const failed: Job = { ...starting, state: { kind: 'failed', endedAtMs: someMs, cause } };
        const ended = anAttempt(1, { state: 'ended', endedAtMs: someMs, cause });
        await commit({ jobs: [failed], attempts: [{ jobId: queued.id, attempt: ended }] });

        expect(await (await opened.reopen()).readJob(queued.id)).toEqual({ job: failed, attempts: [ended] });
      });

      it('what a job was submitted with, whatever a change says', async () => {
        const job = aJob(1);
        await commit({ newJobs: [job] });
        await commit({ jobs: [{ ...job, failures: 1, spec: aSpec({ name: 'other' }), submittedAtMs: 0 }] });

        expect((await store.readJob(job.id))?.job).toEqual({ ...job, failures: 1 });
      });

      it('nodes, the newest word of each', async () => {
        await commit({ nodes: [aNode('node-2'), aNode('node-1', nodeWithEverything)] });
        await commit({ nodes: [aNode('node-2', { bootId: 'another boot' })] });

        const { nodes } = await (await opened.reopen()).load();

        expect(nodes).toEqual([
          aNode('node-1', nodeWithEverything),
          aNode('node-2', { bootId: 'another boot' }),
        ]);
      });

      it('submit requests', async () => {
        const request = aRequest({ jobIds: [jobIdOf(1), jobIdOf(2)], arrayId: 'arr_000000000001' });
        await commit({ requests: [request] });

        const reopened = await opened.reopen();

        expect(await reopened.readRequest('request-1')).toEqual(request);
        expect(await reopened.readRequest('request-2')).toBeNull();
      });

      it('a request together with the change of a job that it stands for, or neither', async () => {
        const job = started(aJob(1), 1);
        const requeue = aRequest({ requestId: 'requeue-1', jobIds: [job.id] });
        await commit({ newJobs: [job], attempts: attemptsOf(job) });
        await commit({ jobs: [{ ...job, failures: 1 }], requests: [requeue] });
        const again = commit({ jobs: [{ ...job, failures: 2 }], requests: [requeue] });
        await expect(again).rejects.toMatchObject({ name: 'StoreError', kind: 'conflict' });

        const reopened = await opened.reopen();

        expect(await reopened.readRequest('requeue-1')).toEqual(requeue);
        expect((await reopened.readJob(job.id))?.job.failures).toBe(1);
      });

      it('credentials, which can be used up and replaced', async () => {
        const admin = aCredential('admin');
        const join = aCredential('join', { kind: 'join', subject: 'node-1', expiresAtMs: someMs });
        await commit({ credentials: [admin, join] });
        const used = { ...join, usedFor: 'hash of the agent' };
        const renewed = { ...admin, secretHash: 'hash of another secret' };
        await commit({ credentials: [used, renewed] });

        const { credentials } = await (await opened.reopen()).load();

        expect(new Map(credentials.map((each) => [each.id, each]))).toEqual(
          new Map([
            ['admin', renewed],
            ['join', used],
          ]),
        );
      });

      it('no credential that was removed, nor its secret', async () => {
        const [admin, join] = [aCredential('admin'), aCredential('join', { kind: 'join' })];
        await commit({ credentials: [admin, join] });
        await commit({ removedCredentials: [join.id, 'unknown'] });
        const preemptor = { ...aCredential('preemptor'), secretHash: join.secretHash };
        await commit({ credentials: [preemptor] });

        const { credentials } = await (await opened.reopen()).load();

        expect(credentials).toEqual([admin, preemptor]);
      });

      it('where the numbering of jobs and events goes on', async () => {
        const active = aJob(7);
        const over = aJob(8, { state: { kind: 'succeeded', endedAtMs: someMs } });
        await commit({
          newJobs: [active, over],
          nodes: [aNode('node-1')],
          events: [
            anEvent(1, active.id, 1),
            anEvent(2, 'node-1', 1),
            anEvent(3, over.id, 1),
            anEvent(4, active.id, 2),
          ],
        });

        const snapshot = await (await opened.reopen()).load();

        expect(snapshot).toMatchObject({ lastSubmitSeq: 8, lastEventSeq: 4 });
        expect(snapshot.subjectSeqs).toEqual(
          new Map<string, number>([
            [active.id, 2],
            ['node-1', 1],
          ]),
        );
      });

      it('small values by name', async () => {
        expect(await store.readMeta('cursor')).toBeNull();
        await store.writeMeta('cursor', '1');
        await store.writeMeta('cursor', '2');
        await store.writeMeta('other', 'x');

        expect(await (await opened.reopen()).readMeta('cursor')).toBe('2');
      });

      it('text of every script, traces, and numbers as large as a program may hold exactly', async () => {
        const job = aJob(1, { spec: aSpec({ env: { GREETING: 'Grüße, 世界 🚀 \u0000 "quoted"' } }) });
        const data = { text: "it's; drop table jobs --", bytes: Number.MAX_SAFE_INTEGER };
        const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
        const event = { ...anEvent(1, job.id, 1), seq: Number.MAX_SAFE_INTEGER, data, traceparent };
        await commit({ newJobs: [job], events: [event] });

        const reopened = await opened.reopen();

        expect((await reopened.readJob(job.id))?.job).toEqual(job);
        expect(await reopened.readEvents(0, 1, null)).toEqual([event]);
      });
    });

    describe('refuses', () => {
      const cause = causeOf('cancelled', 'stopped');
      const active = started(aJob(1), 2);
      const over = aJob(2, { state: { kind: 'cancelled', endedAtMs: someMs, cause }, lastAttempt: 1 });
      const request = aRequest({ jobIds: [active.id] });
      beforeEach(() =>
        commit({
          newJobs: [active, over],
          attempts: [...attemptsOf(active), endedAttempt(active.id)],
          requests: [request],
          credentials: [aCredential('admin'), aCredential('old')],
          events: [anEvent(1, active.id, 1)],
        }),
      );

      const refused: readonly (readonly [what: string, batch: Partial<Batch>])[] = [
        ['a change of a job that has ended', { jobs: [{ ...over, failures: 1 }] }],
        ['a job that has ended to come back', { jobs: [{ ...over, state: aJob(2).state }] }],
        ['an attempt number that goes back', { jobs: [started(active, 1)] }],
        ['a change of a job that was never submitted', { jobs: [aJob(3)] }],
        ['a job id a second time', { newJobs: [aJob(3, { id: over.id })] }],
        ['a job id twice at once', { newJobs: [aJob(3), aJob(4, { id: jobIdOf(3) })] }],
        ['a submission number a second time', { newJobs: [aJob(3, { submitSeq: 1 })] }],
        [
          'a change of an attempt that has ended',
          { attempts: [{ jobId: active.id, attempt: anAttempt(1) }] },
        ],
        [
          'an attempt of a job that does not exist',
          { attempts: [{ jobId: jobIdOf(3), attempt: anAttempt(1) }] },
        ],
        ['a request id a second time', { requests: [{ ...request, digest: 'def' }] }],
        [
          'a secret of two credentials',
          { credentials: [{ ...aCredential('other'), secretHash: 'hash of admin' }] },
        ],
        ['an event number a second time', { events: [{ ...anEvent(2, over.id, 1), seq: 1 }] }],
        ["a number of a subject's event a second time", { events: [anEvent(2, active.id, 1)] }],
      ];

      it.each(refused)('%s, and with it the whole batch', async (_what, batch) => {
        const before = await everythingIn(store);
        const innocent: Batch = {
          ...emptyBatch,
          newJobs: [aJob(90)],
          attempts: [{ jobId: jobIdOf(90), attempt: anAttempt(1) }],
          nodes: [aNode('node-9')],
          requests: [{ ...request, requestId: 'request-9' }],
          credentials: [aCredential('innocent')],
          events: [anEvent(90, 'node-9', 1)],
        };
        const together: Batch = {
          ...emptyBatch,
          arrays: batch.arrays ?? [],
          newJobs: [...innocent.newJobs, ...(batch.newJobs ?? [])],
          jobs: batch.jobs ?? [],
          attempts: [...innocent.attempts, ...(batch.attempts ?? [])],
          nodes: innocent.nodes,
          removedNodes: batch.removedNodes ?? [],
          requests: [...innocent.requests, ...(batch.requests ?? [])],
          credentials: [...innocent.credentials, ...(batch.credentials ?? [])],
          removedCredentials: ['old'],
          events: [...(batch.events ?? []), ...innocent.events],
        };

        await expect(store.commit(together)).rejects.toMatchObject({ name: 'StoreError', kind: 'conflict' });

        expect(await everythingIn(store)).toEqual(before);
        // Nothing of it is in the way either.
        await store.commit(innocent);
        expect((await store.readJob(jobIdOf(90)))?.attempts).toEqual([anAttempt(1)]);
      });
    });

    describeFinding(() => store);
    describeRetention(() => store);
  });
}

/** All that its readers show, to find out whether anything changed. */
async function everythingIn(store: Store): Promise<unknown> {
  const all = {
    states: [],
    arrayId: null,
    name: null,
    limit: 1_000,
    sizeMax: 10_000_000,
    beforeSubmitSeq: null,
  };
  const { records: listed } = await store.listJobs(all);
  return {
    snapshot: await store.load(),
    jobs: await Promise.all(listed.map(({ job }) => store.readJob(job.id))),
    events: await store.readEvents(0, 1_000, null),
    requests: await Promise.all(['request-1', 'request-9'].map((id) => store.readRequest(id))),
  };
}
