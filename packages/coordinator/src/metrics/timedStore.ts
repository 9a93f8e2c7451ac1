/** A store whose commits are timed. Everything waits for them, so they are the first thing to look at. */
import type { Store } from '../store/store.ts';

/** @param onCommit called with the duration of each successful commit, milliseconds */
export function timedStore(store: Store, monotonicMs: () => number, onCommit: (ms: number) => void): Store {
  return {
    load: () => store.load(),
    commit: async (batch) => {
      const startedMs = monotonicMs();
      await store.commit(batch);
      onCommit(monotonicMs() - startedMs);
    },
    readJob: (id) => store.readJob(id),
    listJobs: (query) => store.listJobs(query),
    listJobIds: (query) => store.listJobIds(query),
    readOutcomes: (ids) => store.readOutcomes(ids),
    readSuccessors: (ids) => store.readSuccessors(ids),
    readArrayFailures: (id) => store.readArrayFailures(id),
    readRequest: (requestId) => store.readRequest(requestId),
    readEvents: (sinceSeq, limit, subject) => store.readEvents(sinceSeq, limit, subject),
    names: store.names,
    retention: store.retention,
    secrets: store.secrets,
    readMeta: (name) => store.readMeta(name),
    writeMeta: (name, value) => store.writeMeta(name, value),
    close: () => store.close(),
  };
}
