/** What every store must find of what it holds. */
import { causeOf } from '@muster/common/cause';
import type { ArrayId, JobId } from '@muster/common/ids';
import { beforeEach, describe, expect, it } from 'vitest';
import { aJob, aSpec, jobIdOf, someMs } from '../modelFixture.ts';
import { type Batch, emptyBatch, type JobQuery, type Store } from './store.ts';
import { anEvent, attemptsOf, started } from './storeFixture.ts';

/** @param opened the store under test, empty */
export function describeFinding(opened: () => Store): void {
  describe('finds', () => {
    let store: Store;
    const commit = (batch: Partial<Batch>) => store.commit({ ...emptyBatch, ...batch });
    const arrayId = 'arr_000000000001' as ArrayId;
    const query: JobQuery = {
      states: [],
      arrayId: null,
      name: null,
      limit: 100,
      sizeMax: 1_000_000,
      beforeSubmitSeq: null,
    };
    const list = async (fields: Partial<JobQuery>) =>
      (await store.listJobs({ ...query, ...fields })).records.map(({ job }) => job.submitSeq);
    const jobs = [
      aJob(1, { spec: aSpec({ name: 'first' }) }),
      aJob(2, { array: { id: arrayId, index: 0, size: 2 } }),
      aJob(3, {
        array: { id: arrayId, index: 1, size: 2 },
        state: { kind: 'succeeded', endedAtMs: someMs },
      }),
      started(aJob(4), 1),
      aJob(5, { id: 'job_zzzzzzzzzzzz' as JobId, state: { kind: 'succeeded', endedAtMs: someMs } }),
    ];
    const events = [
      anEvent(1, jobIdOf(1), 1),
      anEvent(2, jobIdOf(2), 1),
      anEvent(3, jobIdOf(1), 2),
      anEvent(4, 'node-1', 1),
      anEvent(5, jobIdOf(1), 3),
    ];
    beforeEach(() => {
      store = opened();
      return commit({ newJobs: jobs, attempts: jobs.flatMap(attemptsOf), events });
    });

    it('jobs, the newest first, each with its newest attempt', async () => {
      const { records } = await store.listJobs(query);

      expect(records.map(({ job }) => job)).toEqual(jobs.toReversed());
      expect(records.map(({ attempts }) => attempts.length)).toEqual([0, 1, 0, 0, 0]);
    });

    it('jobs by state, array and name', async () => {
      expect(await list({ states: ['succeeded'] })).toEqual([5, 3]);
      expect(await list({ states: ['queued', 'starting'] })).toEqual([4, 2, 1]);
      expect(await list({ states: ['failed'] })).toEqual([]);
      expect(await list({ arrayId })).toEqual([3, 2]);
      expect(await list({ arrayId, states: ['queued'] })).toEqual([2]);
      expect(await list({ name: 'first' })).toEqual([1]);
    });

    it('jobs a page at a time', async () => {
      expect(await list({ limit: 2 })).toEqual([5, 4]);
      expect(await list({ limit: 2, beforeSubmitSeq: 4 })).toEqual([3, 2]);
      expect(await list({ limit: 2, beforeSubmitSeq: 2 })).toEqual([1]);
      expect(await list({ limit: 2, beforeSubmitSeq: 1 })).toEqual([]);
    });

    it('jobs by name and array in any combination of states, and says whether there are more', async () => {
      const filters = [
        {},
        { name: aSpec().name },
        { arrayId },
        { name: aSpec().name, arrayId },
        { name: 'none' },
      ];
      const states = [[], ['queued'], ['starting', 'succeeded'], ['queued', 'failed', 'succeeded']] as const;
      const everything = (await store.listJobs(query)).records.map(({ job }) => job);
      for (const filter of filters) {
        for (const each of states) {
          const expected = everything
            .filter(({ state }) => each.length === 0 || each.some((kind) => kind === state.kind))
            .filter(({ spec }) => filter.name === undefined || spec.name === filter.name)
            .filter(({ array }) => filter.arrayId === undefined || array?.id === filter.arrayId)
            .map(({ submitSeq }) => submitSeq);
          for (const limit of [1, 2, 3, 100]) {
            const page = await store.listJobs({ ...query, ...filter, states: each, limit });
            expect(page.records.map(({ job }) => job.submitSeq)).toEqual(expected.slice(0, limit));
            expect(page.more).toBe(expected.length > limit);
          }
        }
      }
    });

    it('jobs in pages of a size, each of at least one job, none of them left out', async () => {
      const large = aSpec({ name: 'large', env: { TEXT: 'x'.repeat(10_000) } });
      await commit({ newJobs: Array.from({ length: 7 }, (_, index) => aJob(11 + index, { spec: large })) });
      for (const [sizeMax, longest] of [
        [0, 1],
        [10_000, 1],
        [35_000, 3],
      ] as const) {
        const seen: number[] = [];
        let before: number | null = null;
        for (let more = true; more; ) {
          const page = await store.listJobs({ ...query, name: 'large', sizeMax, beforeSubmitSeq: before });
          expect(page.records.length).toBeLessThanOrEqual(longest);
          seen.push(...page.records.map(({ job }) => job.submitSeq));
          before = seen.at(-1) ?? null;
          more = page.more;
        }
        expect(seen).toEqual([17, 16, 15, 14, 13, 12, 11]);
      }
    });

    it('ids alone, in the same order and pages', async () => {
      const numbers = async (fields: Partial<JobQuery>) =>
        (await store.listJobIds({ ...query, ...fields })).map(({ submitSeq }) => submitSeq);

      expect(await store.listJobIds({ ...query, arrayId })).toEqual([
        { id: jobIdOf(3), submitSeq: 3 },
        { id: jobIdOf(2), submitSeq: 2 },
      ]);
      expect(await numbers({ limit: 2 })).toEqual([5, 4]);
      expect(await numbers({ limit: 2, beforeSubmitSeq: 4 })).toEqual([3, 2]);
      expect(await numbers({ states: ['succeeded'] })).toEqual([5, 3]);
    });

    it('how jobs have ended, of those that have', async () => {
      const ids = [jobIdOf(1), jobIdOf(3), jobIdOf(99)];

      expect(await store.readOutcomes(ids)).toEqual(new Map([[jobIdOf(3), 'succeeded']]));
      expect(await store.readOutcomes([])).toEqual(new Map());
    });

    it('job ids by how they begin', async () => {
      expect(await store.names.jobIds('job_zz', 10)).toEqual(['job_zzzzzzzzzzzz']);
      expect(await store.names.jobIds('job_0', 3)).toEqual([jobIdOf(1), jobIdOf(2), jobIdOf(3)]);
      expect(await store.names.jobIds(jobIdOf(4), 10)).toEqual([jobIdOf(4)]);
      expect(await store.names.jobIds('job_x', 10)).toEqual([]);
      // A search for text, not for a pattern.
      expect(await store.names.jobIds('job%', 10)).toEqual([]);
    });

    it('arrays by how their ids begin, and by the newest job of a name', async () => {
      expect(await store.names.arrayIds('arr_00', 10)).toEqual([arrayId]);
      expect(await store.names.arrayIds('arr_1', 10)).toEqual([]);
      expect(await store.names.newestArray(aSpec().name)).toBe(arrayId);
      expect(await store.names.newestArray('first'), 'of which none belongs to an array').toBeNull();
    });

    it('a job of an array by its index: the newest that has it', async () => {
      expect(await store.names.member(arrayId, 0)).toBe(jobIdOf(2));
      expect(await store.names.member(arrayId, 2)).toBeNull();
      await commit({ newJobs: [aJob(6, { array: { id: arrayId, index: 0, size: 2 } })] });
      expect(await store.names.member(arrayId, 0)).toBe(jobIdOf(6));
    });

    it('names by how they begin, each once and in order', async () => {
      const names = ['train-2', 'train', 'train-10', 'tr\u00e4', 'eval'].map((name) => aSpec({ name }));
      await commit({ newJobs: names.map((spec, index) => aJob(6 + index, { spec })) });
      expect(await store.names.names('train', 10)).toEqual(['train', 'train-10', 'train-2']);
      expect(await store.names.names('t', 2)).toEqual(['train', 'train-10']);
      expect(await store.names.names('x', 2)).toEqual([]);
    });

    it('who runs a job again, the newest, and what of an array failed and was not run again', async () => {
      const place = (index: number) => ({ id: arrayId, index, size: 2 });
      const failed = { kind: 'failed', endedAtMs: someMs, cause: causeOf('exit_code', 'why') } as const;
      const again = [
        aJob(6, { array: place(0), state: failed }),
        aJob(7, { array: place(1), state: failed }),
        aJob(8, { array: place(1), requeuedFrom: jobIdOf(7) }),
        aJob(9, { requeuedFrom: jobIdOf(3) }),
        aJob(10, { requeuedFrom: jobIdOf(3) }),
      ];
      await commit({ newJobs: again });
      expect(await store.readSuccessors([jobIdOf(3), jobIdOf(5), jobIdOf(7)])).toEqual(
        new Map([
          [jobIdOf(3), jobIdOf(10)],
          [jobIdOf(7), jobIdOf(8)],
        ]),
      );
      expect(await store.readArrayFailures(arrayId)).toEqual([jobIdOf(6)]);
    });

    it('of jobs in hidden projects only those of the user', async () => {
      const spec = (project: string) => aSpec({ project });
      await commit({
        newJobs: [
          aJob(6, { spec: spec('open'), user: 'ann' }),
          aJob(7, { spec: spec('hidden'), user: 'ann' }),
          aJob(8, { spec: spec('hidden'), user: 'ben' }),
          aJob(9, { spec: spec('open'), user: 'ben' }),
        ],
      });
      const visible = { user: 'ann', hiddenProjects: ['hidden'], onlyProjects: null };
      expect(await list({ also: { visible } })).toEqual([9, 7, 6, 5, 4, 3, 2, 1]);
      expect(await list({ also: { visible: { ...visible, onlyProjects: ['hidden'] } } })).toEqual([7]);
      expect(await list({ also: { visible: { ...visible, hiddenProjects: [] }, user: 'ben' } })).toEqual([
        9, 8,
      ]);
      expect(await list({ also: { visible: { ...visible, user: 'eve' }, project: 'hidden' } })).toEqual([]);
    });

    it('jobs by project, label and time, together with everything else, in pages', async () => {
      const spec = (project: string, labels: Record<string, string>) => aSpec({ project, labels });
      const more = [
        aJob(6, { spec: spec('vision', { type: 'train' }), submittedAtMs: someMs + 1_000 }),
        aJob(7, { spec: spec('vision', { type: 'eval' }), submittedAtMs: someMs + 2_000, user: 'ann' }),
        aJob(8, { spec: spec('text', { type: 'train', owner: 'a=b' }), submittedAtMs: someMs + 3_000 }),
      ];
      await commit({ newJobs: more });
      const label = (name: string, value: string | null = null) => ({ also: { label: { name, value } } });

      expect(await list({ also: { project: 'vision' } })).toEqual([7, 6]);
      expect(await list({ also: { user: 'ann' } })).toEqual([7]);
      expect(await list({ also: { user: 'admin' }, limit: 2 })).toEqual([8, 6]);
      expect(await list({ also: { user: 'ann', project: 'text' } })).toEqual([]);
      expect(await list({ also: { user: 'ann', sinceMs: someMs + 2_000 } })).toEqual([7]);
      expect(await list(label('type'))).toEqual([8, 7, 6]);
      expect(await list(label('type', 'train'))).toEqual([8, 6]);
      expect(await list(label('owner', 'a=b'))).toEqual([8]);
      expect(await list({ ...label('type', 'train'), limit: 1, beforeSubmitSeq: 8 })).toEqual([6]);
      expect(await list({ also: { sinceMs: someMs + 2_000 } })).toEqual([8, 7]);
      expect(await list({ also: { sinceMs: someMs + 9_000 } })).toEqual([]);
      expect(await list({ also: { project: 'vision', label: { name: 'type', value: 'train' } } })).toEqual([
        6,
      ]);
      expect(await list({ also: { sinceMs: 0 }, states: ['succeeded'], arrayId })).toEqual([3]);
      expect(await list({ also: { sinceMs: 0 }, name: 'first' })).toEqual([1]);
      expect(await list(label('none'))).toEqual([]);
    });

    it('no job that is not there', async () => {
      expect(await store.readJob(jobIdOf(99))).toBeNull();
    });

    it('events after a position, of all subjects or of one', async () => {
      const seqs = async (since: number, limit: number, subject: string | null) =>
        (await store.readEvents(since, limit, subject)).map((event) => event.seq);

      expect(await store.readEvents(0, 100, null)).toEqual(events);
      expect(await seqs(2, 2, null)).toEqual([3, 4]);
      expect(await seqs(5, 100, null)).toEqual([]);
      expect(await seqs(0, 100, jobIdOf(1))).toEqual([1, 3, 5]);
      expect(await seqs(1, 1, jobIdOf(1))).toEqual([3]);
      expect(await seqs(0, 100, 'node-1')).toEqual([4]);
      expect(await seqs(0, 100, 'node-2')).toEqual([]);
    });
  });
}
