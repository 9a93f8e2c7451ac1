/** What every store must do for retention. */
import { beforeEach, describe, expect, it } from 'vitest';
import { aJob, jobIdOf, someMs } from '../modelFixture.ts';
import { eventBytes } from './retention.ts';
import { emptyBatch, type Store } from './store.ts';
import { anArray, anEvent, aRequest, endedAttempt } from './storeFixture.ts';

/** @param opened the store under test, empty */
export function describeRetention(opened: () => Store): void {
  describe('removes', () => {
    let store: Store;
    const array = anArray(1);
    const over = (number: number, endedAtMs: number) =>
      aJob(number, { state: { kind: 'succeeded', endedAtMs }, lastAttempt: 1 });
    const inArray = { ...over(4, someMs + 4), array: { id: array.id, index: 0, size: 1 } };
    beforeEach(() => {
      store = opened();
      return store.commit({
        ...emptyBatch,
        newArrays: [{ ...array, filled: 1 }],
        newJobs: [over(1, someMs + 9), over(2, someMs + 1), over(3, someMs + 1), inArray, aJob(5)],
        attempts: [endedAttempt(jobIdOf(1))],
        requests: [aRequest()],
        events: [anEvent(1, jobIdOf(1), 1), anEvent(2, 'node-1', 1), anEvent(3, jobIdOf(1), 2)],
      });
    });

    it('ended jobs by when they ended, and remembers their ids', async () => {
      const { retention } = store;
      const ended = await retention.readEndedJobs(someMs + 9, null, 2);
      expect(ended.map(({ id }) => id)).toEqual([jobIdOf(2), jobIdOf(3)]);
      expect(await retention.readEndedJobs(someMs + 9, ended[1] ?? null, 2)).toEqual([
        { id: jobIdOf(4), submitSeq: 4, arrayId: array.id, endedAtMs: someMs + 4 },
      ]);
      expect(await retention.countEndedJobs(someMs + 9)).toBe(3);
      expect(await retention.countEndedJobs(null)).toBe(4);
      expect(await retention.countKept()).toEqual({ requests: 1, removedJobs: 0 });
      expect(await retention.readEndBeyond(1)).toBe(someMs + 4);
      expect(await retention.readEndBeyond(4)).toBeNull();

      await retention.removeJobs([jobIdOf(1), jobIdOf(4)], someMs);

      expect(await store.readJob(jobIdOf(1))).toBeNull();
      expect(await store.readOutcomes([jobIdOf(1), jobIdOf(2), jobIdOf(99)])).toEqual(
        new Map([
          [jobIdOf(1), 'removed'],
          [jobIdOf(2), 'succeeded'],
        ]),
      );
      expect(await retention.forgetRemovedJobs(someMs + 1, 10)).toBe(2);
      expect((await store.readOutcomes([jobIdOf(1)])).size).toBe(0);
    });

    it('no active job, and with it none of the others', async () => {
      const removing = store.retention.removeJobs([jobIdOf(2), jobIdOf(5)], someMs);
      await expect(removing).rejects.toMatchObject({ name: 'StoreError', kind: 'conflict' });
      expect(await store.readJob(jobIdOf(2))).not.toBeNull();
    });

    it('events, and tells how far', async () => {
      const { retention } = store;
      expect(await retention.readRemovedEventSeq()).toBe(0);
      const bytes = eventBytes(Buffer.byteLength(JSON.stringify(anEvent(2, 'node-1', 1).data)));
      const [place, ...others] = await retention.readEventPlaces(1, 10);
      expect(place).toEqual({ seq: 2, subject: 'node-1', subjectSeq: 1, timeMs: someMs + 2, bytes });
      expect(others.map(({ seq }) => seq)).toEqual([3]);
      await retention.removeEvents([1, 2]);
      expect((await store.readEvents(0, 10, null)).map(({ seq }) => seq)).toEqual([3]);
      expect(await retention.readRemovedEventSeq()).toBe(2);
    });

    it('requests', async () => {
      const { requestId, createdAtMs } = aRequest();
      expect(await store.retention.removeRequests(createdAtMs, 10)).toBe(0);
      expect(await store.retention.removeRequests(createdAtMs + 1, 10)).toBe(1);
      expect(await store.readRequest(requestId)).toBeNull();
    });
  });
}
