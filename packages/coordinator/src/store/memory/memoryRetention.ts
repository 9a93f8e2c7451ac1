/** Retention in memory. */
import type { Job } from '../../model.ts';
import { type EndedJob, eventBytes, type RetentionStore } from '../retention.ts';
import { StoreError } from '../store.ts';
import type { Memory } from './memoryStore.ts';

export function memoryRetention(memory: Memory): RetentionStore {
  const ended = () =>
    [...memory.jobs.values()]
      .flatMap(endedJob)
      .sort((a, b) => a.endedAtMs - b.endedAtMs || (a.id < b.id ? -1 : 1));

  return {
    async readEventPlaces(sinceSeq, limit) {
      const later = [...memory.events.values()].filter(({ seq }) => seq > sinceSeq).slice(0, limit);
      return later.map(({ seq, subject, subjectSeq, timeMs, data }) => {
        const bytes = eventBytes(Buffer.byteLength(JSON.stringify(data)));
        return { seq, subject, subjectSeq, timeMs, bytes };
      });
    },
    async removeEvents(seqs) {
      for (const seq of seqs) memory.events.delete(seq);
      memory.removedEventSeq = Math.max(memory.removedEventSeq, ...seqs);
    },
    readRemovedEventSeq: async () => memory.removedEventSeq,
    async readEndedJobs(beforeMs, after, limit) {
      const isLater = (job: EndedJob) =>
        after === null ||
        job.endedAtMs > after.endedAtMs ||
        (job.endedAtMs === after.endedAtMs && job.id > after.id);
      return ended()
        .filter((job) => job.endedAtMs < beforeMs && isLater(job))
        .slice(0, limit);
    },
    countEndedJobs: async (beforeMs) =>
      ended().filter(({ endedAtMs }) => beforeMs === null || endedAtMs < beforeMs).length,
    countKept: async () => ({ requests: memory.requests.size, removedJobs: memory.removedJobs.size }),
    readEndBeyond: async (count) => ended().reverse()[count]?.endedAtMs ?? null,
    async removeJobs(ids, nowMs) {
      const jobs = ids.map((id) => memory.jobs.get(id));
      if (jobs.some((job) => job === undefined || endedJob(job).length === 0))
        throw new StoreError('conflict', 'the store refused to remove a job that is active');
      for (const job of jobs) if (job !== undefined) removeJob(memory, job, nowMs);
    },
    async removeRequests(beforeMs, limit) {
      const old = [...memory.requests.values()].filter(({ createdAtMs }) => createdAtMs < beforeMs);
      for (const { requestId } of old.slice(0, limit)) memory.requests.delete(requestId);
      return Math.min(old.length, limit);
    },
    async forgetRemovedJobs(beforeMs, limit) {
      const old = [...memory.removedJobs].filter(([, removedAtMs]) => removedAtMs < beforeMs);
      for (const [id] of old.slice(0, limit)) memory.removedJobs.delete(id);
      return Math.min(old.length, limit);
    },
  };
}

function endedJob({ id, submitSeq, array, state }: Job): readonly EndedJob[] {
  return 'endedAtMs' in state
    ? [{ id, submitSeq, arrayId: array?.id ?? null, endedAtMs: state.endedAtMs }]
    : [];
}

function removeJob(memory: Memory, { id, submitSeq, array }: Job, nowMs: number): void {
  memory.jobs.delete(id);
  memory.jobsBySubmitSeq.delete(submitSeq);
  memory.attempts.delete(id);
  memory.removedJobs.set(id, nowMs);
  if (array === null || [...memory.jobs.values()].some((job) => job.array?.id === array.id)) return;
  const known = memory.arrays.get(array.id);
  if (known?.filled === known?.size) memory.arrays.delete(array.id);
}
