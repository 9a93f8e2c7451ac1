/**
 * What scheduling goes by besides waits, from one pass to the next: how much work an attempt has not saved yet, how long one
 * has been stopping, how long a node has been away, and whose place an attempt makes that gives way. On the monotonic clock and in memory. Wall clocks
 * only tell what was before this coordinator began to look; and without its heirs a new one lets whoever comes first have
 * what is coming free, which at worst asks for more than it had to.
 */
import type { JobId, NodeName } from '@muster/common/ids';
import { type Attempt, currentAttempt, type Job } from './model.ts';

/** Of an attempt. */
interface Moment {
  readonly attempt: number;
  /** Wall clock: what `sinceMs` was read from. */
  readonly stampMs: number;
  /** Monotonic. */
  readonly sinceMs: number;
}

type Moments = Map<JobId, Moment>;

interface Heir {
  readonly attempt: number;
  readonly by: JobId;
}

export class PassMemory {
  private readonly heirs = new Map<JobId, Heir>();
  /** Its newest verified checkpoint, or where it began to run. */
  private unsaved: Moments = new Map();
  /** When it was told to stop. */
  private stopping: Moments = new Map();
  private away = new Map<NodeName, number>();
  private monotonicMs = 0;

  /** To be told of everything before each pass. */
  look(
    jobs: Iterable<Job>,
    nodes: Iterable<NodeName>,
    online: ReadonlySet<string>,
    { wallMs, monotonicMs }: { readonly wallMs: number; readonly monotonicMs: number },
  ): void {
    const unsaved: Moments = new Map();
    const stopping: Moments = new Map();
    const holding = new Set<JobId>();
    for (const job of jobs) {
      const attempt = currentAttempt(job);
      if (attempt === null) continue;
      holding.add(job.id);
      const note = (before: Moments, now: Moments, stampMs: number | null) => {
        if (stampMs === null) return;
        const readMs = monotonicMs - Math.max(0, wallMs - stampMs);
        now.set(job.id, momentOf(before.get(job.id), attempt, stampMs, readMs));
      };
      note(this.unsaved, unsaved, attempt.savedAtMs ?? attempt.runningAtMs);
      note(this.stopping, stopping, attempt.stoppingAtMs);
    }
    for (const id of this.heirs.keys()) if (!holding.has(id)) this.heirs.delete(id);
    const away = new Map<NodeName, number>();
    for (const node of nodes) if (!online.has(node)) away.set(node, this.away.get(node) ?? monotonicMs);
    this.unsaved = unsaved;
    this.stopping = stopping;
    this.away = away;
    this.monotonicMs = monotonicMs;
  }

  /** An attempt was told to give way. */
  gaveWay(victim: JobId, attempt: number, by: JobId): void {
    this.heirs.set(victim, { attempt, by });
  }

  heirOf(victim: JobId, attempt: number): JobId | null {
    const heir = this.heirs.get(victim);
    return heir?.attempt === attempt ? heir.by : null;
  }

  /** Of its current attempt; 0: it has nothing to lose. */
  unsavedMs(jobId: JobId): number {
    return this.sinceMs(this.unsaved, jobId);
  }

  /** Its current attempt; 0: it is not. */
  stoppingForMs(jobId: JobId): number {
    return this.sinceMs(this.stopping, jobId);
  }

  private sinceMs(moments: Moments, jobId: JobId): number {
    const known = moments.get(jobId);
    return known === undefined ? 0 : Math.max(0, this.monotonicMs - known.sinceMs);
  }

  /** Monotonic, as far as this coordinator saw. null: it is there. */
  awaySinceMs(node: NodeName): number | null {
    return this.away.get(node) ?? null;
  }
}

/** @param readMs monotonic, as the wall clock has it */
function momentOf(before: Moment | undefined, { number }: Attempt, stampMs: number, readMs: number): Moment {
  if (before?.attempt !== number) return { attempt: number, stampMs, sinceMs: readMs };
  if (before.stampMs === stampMs) return before;
  // Something is new since we looked last: not before that, whatever a wall clock says that was set meanwhile.
  return { attempt: number, stampMs, sinceMs: Math.max(before.sinceMs, readMs) };
}
