/**
 * Prepares a restored or accepted store before the coordinator serves it. Terms, attempt numbers and event numbers that were
 * issued after the backup are not in the store, and must never be issued a second time.
 */
import { clusterSubject } from '@muster/common/eventKinds';
import type { AttemptFloor } from '../model.ts';
import type { ClusterState } from '../state/state.ts';
import { type Restored, restoredMeta } from '../store/restored.ts';
import { emptyBatch, type Store } from '../store/store.ts';
import { termsMeta } from './terms.ts';

const floorMeta = 'attempt_floor';
/** More attempts of one job, and more starts of a coordinator, than there are between two backups. */
const skipped = 1_000;

export interface AfterRestoreParts {
  readonly state: ClusterState;
  readonly store: Store;
  readonly wallMs: () => number;
  /** Nothing is started for this many milliseconds: attempts that the store does not know may hold a lease. */
  readonly quietMs: number;
}

/** May be repeated after a crash at any moment: numbers are then skipped a second time. @returns what was noted */
export async function goOnAfterRestore(parts: AfterRestoreParts): Promise<Restored | null> {
  const { state, store } = parts;
  const floor = await store.readMeta(floorMeta);
  if (floor !== null) state.attemptFloor = JSON.parse(floor) as AttemptFloor;
  const text = await store.readMeta(restoredMeta);
  if (text === null || text === '') return null;
  const restored = JSON.parse(text) as Restored;
  await raiseAttempts(parts);
  await raiseTerm(parts);
  await publishRestore(parts, restored);
  await store.writeMeta(restoredMeta, '');
  return restored;
}

async function raiseAttempts({ state, store }: AfterRestoreParts): Promise<void> {
  const numbers = [...state.jobs.values()].map((job) => job.lastAttempt);
  const highest = numbers.reduce((a, b) => Math.max(a, b), state.attemptFloor.number);
  const floor: AttemptFloor = { number: highest + skipped, submitSeqMax: state.lastSubmitSeq };
  await store.writeMeta(floorMeta, JSON.stringify(floor));
  state.attemptFloor = floor;
}

async function raiseTerm({ store, quietMs }: AfterRestoreParts): Promise<void> {
  const text = await store.readMeta(termsMeta);
  if (text === null) return;
  const terms = JSON.parse(text) as { readonly term: number; readonly quietMs?: number };
  const raised = { ...terms, term: terms.term + skipped, quietMs: Math.max(terms.quietMs ?? 0, quietMs) };
  await store.writeMeta(termsMeta, JSON.stringify(raised));
}

async function publishRestore(
  { state, store, wallMs }: AfterRestoreParts,
  restored: Restored,
): Promise<void> {
  const seq = Math.max(state.lastEventSeq, restored.eventSeqMin) + 1;
  const subjectSeq = (state.subjectSeqs.get(clusterSubject) ?? 0) + 1;
  const { how, takenAtMs, atMs, lostEvents, lostJobs } = restored;
  await store.commit({
    ...emptyBatch,
    events: [
      {
        seq,
        id: `${state.clusterId}-${seq}`,
        kind: `store.${how}`,
        subject: clusterSubject,
        subjectSeq,
        timeMs: wallMs(),
        by: 'muster',
        peer: '',
        data: { takenAtMs, atMs, lostEvents, lostJobs, attemptsFrom: state.attemptFloor.number },
      },
    ],
  });
  state.lastEventSeq = seq;
  state.subjectSeqs.set(clusterSubject, subjectSeq);
}
