/** Which checkpoints in the directory of one task are the job's, and which attempt has saved them, as far as is known. */
import type { CheckpointCandidate, CheckpointScan } from '@muster/checkpoints/scan';
import type { CheckpointFacts, CheckpointSeen, CheckpointVersion } from '@muster/common/checkpoints';
import { isJobId } from '@muster/common/ids';
import { beforeByClock, type StoodBefore, versionsOf } from './belonging.ts';
import { type CompletionMarker, isMarkerOf } from './checkpointPlace.ts';
import type { CheckpointIndex, IndexedCheckpoint, MarkerBefore } from './indexFile.ts';
import type { CheckpointedTask } from './parts.ts';

/** Some file systems keep whole seconds, and FAT every other one. */
const granularityMs = 2_000;

/** A checkpoint, and where an index names it the attempt that saved it. */
export type SavedFacts = CheckpointFacts & Partial<Pick<IndexedCheckpoint, 'by' | 'attempt' | 'node'>>;

/** The same as the coordinator is told of it. */
export function checkpointReportOf(
  checkpoint: SavedFacts,
): Pick<CheckpointSeen, 'checkpoint' | 'by' | 'attempt' | 'found'> {
  const { by, attempt } = checkpoint;
  // The job can write what it likes into the index.
  if (attempt === undefined || !isAttemptNumber(attempt)) return { checkpoint };
  if (by === null) return { checkpoint, found: true };
  return by !== undefined && isJobId(by) ? { checkpoint, by, attempt } : { checkpoint };
}

function isAttemptNumber(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;
}

type Recorded = Pick<CheckpointIndex, 'sinceMs' | 'before' | 'found' | 'marker'>;

export class TaskBelongings {
  private readonly of: CheckpointedTask;
  /** Wall clock. It counts only where no list was kept, and for agents of earlier releases. */
  private sinceMs: number;
  /** null: no list was kept. It is made at the first look. */
  private before: readonly StoodBefore[] | null;
  private versionsBefore: ReadonlyMap<string, string> = new Map();
  private found: ReadonlyMap<string, string> = new Map();
  private marker: MarkerBefore | null = null;

  /** @param isOwn nothing but checkpoints of this job is in the directory */
  constructor(of: CheckpointedTask, isOwn: boolean) {
    this.of = of;
    this.sinceMs = isOwn ? 0 : of.startedAtMs - granularityMs;
    this.before = isOwn ? [] : null;
    // Nothing stood in a directory of the node's own that has no index.
    if (isOwn) this.marker = { ...this.attempt, identity: null };
    if (of.beginning !== null) this.take(of.beginning);
  }

  /** @param index of this chain */
  load(index: CheckpointIndex): void {
    const { before, found, marker, sinceMs } = index;
    this.sinceMs = Math.min(this.sinceMs, sinceMs);
    if (before !== null) this.take({ before, found, marker });
    else if (this.of.beginning === null) this.marker = null;
  }

  private take({ before, found, marker }: Omit<Recorded, 'sinceMs'>): void {
    this.before = before;
    this.versionsBefore = versionsOf(before ?? []);
    this.found = versionsOf(found);
    this.marker = marker;
  }

  /** Makes the list that no agent has kept. @param known checkpoints of the chain, by the index */
  settle({ candidates, problem }: CheckpointScan, known: readonly CheckpointVersion[]): void {
    if (this.before !== null || (problem !== null && candidates.length === 0)) return;
    this.before = beforeByClock(candidates, known, this.sinceMs);
    this.versionsBefore = versionsOf(this.before);
  }

  isOfChain({ name, version }: CheckpointCandidate): boolean {
    return this.versionsBefore.get(name) !== version;
  }

  /** The attempt that has saved a checkpoint that no index names. */
  saverOf({ name, version }: CheckpointVersion): Pick<IndexedCheckpoint, 'by' | 'attempt'> {
    const { jobId, attempt } = this.of.task;
    return this.found.get(name) === version ? { by: null, attempt: attempt - 1 } : { by: jobId, attempt };
  }

  /** Whether this attempt has left the marker that nothing is left to train. */
  isOwnMarker(found: CompletionMarker): boolean {
    const { job, attempt } = this.attempt;
    const isKnown = this.marker !== null && this.marker.job === job && this.marker.attempt === attempt;
    return isMarkerOf(found, isKnown ? (this.marker?.identity ?? null) : undefined, this.of.startedAtMs);
  }

  /** What the index keeps of it. @param known by name: a checkpoint that has a verdict is listed with that */
  record(known: ReadonlyMap<string, unknown>): Recorded {
    const found = [...this.found].filter(([name]) => !known.has(name));
    return {
      sinceMs: this.sinceMs,
      before: this.before,
      found: found.map(([name, version]) => ({ name, version })),
      marker: this.marker,
    };
  }

  private get attempt() {
    const { jobId, attempt } = this.of.task;
    return { job: jobId, attempt };
  }
}
