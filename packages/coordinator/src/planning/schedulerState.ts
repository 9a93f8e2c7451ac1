/**
 * What scheduling remembers from one pass to the next, besides waits: since when an attempt has not saved, since when it
 * has been stopping, since when a node has been away, and which job preempts an attempt.
 *
 * Times are on the monotonic clock and in memory; wall clocks are only used for what happened before this coordinator began
 * to observe. A new coordinator does not know the preemptors: the first job in the queue gets what is released, which at
 * worst preempts one attempt more than necessary.
 */
import type { JobId, NodeName } from '@muster/common/ids';
import { type Attempt, currentAttempt, type Node } from '../model.ts';
import type { JobsToPlan } from '../state/jobGroups.ts';
import type { Draft } from '../state/state.ts';
import { NodeViews } from './nodeViews.ts';

/** When something last happened to an attempt. */
interface Moment {
  readonly attempt: number;
  /** Wall clock: what `sinceMs` was read from. */
  readonly stampMs: number;
  /** Monotonic. */
  readonly sinceMs: number;
}

type Moments = Map<JobId, Moment>;

interface Preemptor {
  readonly attempt: number;
  readonly by: JobId;
}

/** What of a draft one pass looks at. */
export interface Survey extends JobsToPlan {
  readonly nodes: readonly Node[];
}

export function surveyOf(draft: Draft): Survey {
  return { nodes: draft.everyNode(), ...draft.jobsToPlan() };
}

export class SchedulerState {
  readonly nodeViews = new NodeViews();
  private readonly preemptors = new Map<JobId, Preemptor>();
  /** The newest verified checkpoint of each preemptible job, or the start of its attempt. */
  private unsaved: Moments = new Map();
  /** When each job was asked to stop. */
  private stopping: Moments = new Map();
  private away = new Map<NodeName, number>();
  private monotonicMs = 0;

  /** Must be called before each pass. */
  look(
    { nodes, jobs }: Survey,
    online: ReadonlySet<string>,
    { wallMs, monotonicMs }: { readonly wallMs: number; readonly monotonicMs: number },
  ): void {
    const unsaved: Moments = new Map();
    const stopping: Moments = new Map();
    const holding = new Set<JobId>();
    for (const job of jobs) {
      const attempt = currentAttempt(job);
      if (attempt === null) continue;
      if (this.preemptors.size > 0) holding.add(job.id);
      if (!job.spec.preemptible && attempt.stoppingAtMs === null) continue;
      const note = (before: Moments, now: Moments, stampMs: number | null) => {
        if (stampMs === null) return;
        const readMs = monotonicMs - Math.max(0, wallMs - stampMs);
        now.set(job.id, momentOf(before.get(job.id), attempt, stampMs, readMs));
      };
      note(this.unsaved, unsaved, attempt.savedAtMs ?? attempt.runningAtMs);
      note(this.stopping, stopping, attempt.stoppingAtMs);
    }
    for (const id of this.preemptors.keys()) if (!holding.has(id)) this.preemptors.delete(id);
    const away = new Map<NodeName, number>();
    for (const { name } of nodes) if (!online.has(name)) away.set(name, this.away.get(name) ?? monotonicMs);
    this.unsaved = unsaved;
    this.stopping = stopping;
    this.away = away;
    this.monotonicMs = monotonicMs;
  }

  /** An attempt was asked to stop, to make room for the job `by`. */
  preempted(victim: JobId, attempt: number, by: JobId): void {
    this.preemptors.set(victim, { attempt, by });
  }

  /** The attempt was not asked after all: what was decided could not be stored. */
  takeBackPreempted(victim: JobId): void {
    this.preemptors.delete(victim);
  }

  preemptorOf(victim: JobId, attempt: number): JobId | null {
    const preemptor = this.preemptors.get(victim);
    return preemptor?.attempt === attempt ? preemptor.by : null;
  }

  /** How long the current attempt has run without saving. 0: it has nothing to lose. */
  unsavedMs(jobId: JobId): number {
    return this.sinceMs(this.unsaved, jobId);
  }

  /** How long the current attempt has been stopping. 0: it is not. */
  stoppingForMs(jobId: JobId): number {
    return this.sinceMs(this.stopping, jobId);
  }

  private sinceMs(moments: Moments, jobId: JobId): number {
    const known = moments.get(jobId);
    return known === undefined ? 0 : Math.max(0, this.monotonicMs - known.sinceMs);
  }

  /** On the monotonic clock, as far as this coordinator observed. null: it is online. */
  awaySinceMs(node: NodeName): number | null {
    return this.away.get(node) ?? null;
  }
}

/** @param readMs monotonic, computed from the wall clock */
function momentOf(before: Moment | undefined, { number }: Attempt, stampMs: number, readMs: number): Moment {
  if (before?.attempt !== number) return { attempt: number, stampMs, sinceMs: readMs };
  if (before.stampMs === stampMs) return before;
  // It happened after the last look, whatever a wall clock that was set meanwhile says.
  return { attempt: number, stampMs, sinceMs: Math.max(before.sinceMs, readMs) };
}
