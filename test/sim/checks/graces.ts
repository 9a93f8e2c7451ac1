/**
 * Stops: no task is killed before the end of its grace unless what it was to save is safe, and then none is waited for.
 */
import { type TaskKey, taskKey } from '@muster/common/ids';
import { parseDurationMs } from '@muster/common/spec/duration';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Grants } from '../grants.ts';
import type { CheckpointSaved, Fact, ProcessEnded } from '../history.ts';
import type { ExecutionCheck } from './executions.ts';
import type { JobStories } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

/** The rates of clocks over the longest grace, and a tick. */
const toleranceMs = 120;
/** For the report, the order that follows from it, and the kill. */
const endsWithinMs = 8_000;
/** From its look at what is there to the signal. */
const noticeMs = 1_200;

export interface GraceCheckParts {
  readonly verdict: Verdict;
  readonly stories: JobStories;
  readonly executions: ExecutionCheck;
  readonly grants: Grants;
  readonly isWell: (machine: string) => boolean;
}

export class GraceCheck {
  /** When a task received the order to stop. */
  private readonly stopsMs = new Map<TaskKey, number>();
  /** `<job>.<attempt>` with a whole checkpoint that was begun after that. */
  private readonly saved = new Set<string>();
  /** When the coordinator received it. */
  private readonly heard = new Map<string, number>();
  /** Their end is recorded: for the coordinator they are over, whatever their attempt waits for. */
  private readonly recorded = new Set<TaskKey>();
  /** Without a lease; some are killed for that, as their spec asks. */
  private readonly frozen = new Set<TaskKey>();
  private readonly parts: GraceCheckParts;

  constructor(parts: GraceCheckParts) {
    this.parts = parts;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'stopReceived') this.stopsMs.set(taskKey(fact.task), nowMs);
    else if (fact.kind === 'frozen') this.frozen.add(taskKey(fact.task));
    else if (fact.kind === 'saved') this.onSaved(fact);
    else if (fact.kind === 'lastHeard') this.heard.set(attemptKey(fact.task), nowMs);
    else if (fact.kind === 'ended') this.onEnded(fact, nowMs);
    else if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  /** To be called now and then. */
  look(nowMs: number): void {
    const { verdict, executions, grants, isWell } = this.parts;
    for (const [key, { task, machine }] of executions.running) {
      const heardMs = this.heard.get(attemptKey(task));
      const stopMs = this.stopsMs.get(key);
      if (heardMs === undefined || stopMs === undefined) continue;
      const waitedMs = Math.min(nowMs - Math.max(heardMs, stopMs), grants.steadyForMs(machine));
      const what = () => `${key} still runs, and its last checkpoint has been safe for ${waitedMs} ms`;
      verdict.require(waitedMs <= endsWithinMs || !isWell(machine), 'grace', what);
    }
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    if (kind !== 'task.ended') return;
    this.recorded.add(`${subject}.${Number(data['attempt'])}.${Number(data['nodeRank'])}` as TaskKey);
  }

  /** Which is the last one the agent decides a moment before the signal. */
  private onSaved({ task, quality, beganMs }: CheckpointSaved): void {
    const stopMs = this.stopsMs.get(taskKey(task)) ?? Number.POSITIVE_INFINITY;
    if (quality !== 'corrupt' && beganMs >= stopMs - noticeMs) this.saved.add(attemptKey(task));
  }

  private onEnded({ task, by, signal }: ProcessEnded, nowMs: number): void {
    const { stories, verdict } = this.parts;
    const stopMs = this.stopsMs.get(taskKey(task));
    const story = stories.of(task.jobId);
    // One that is over for the coordinator is killed.
    if (by !== 'stop' || signal !== 'SIGKILL' || story?.attempt?.number !== task.attempt) return;
    if (this.recorded.has(taskKey(task))) return;
    if (story.file?.on_lease_expiry === 'kill' && this.frozen.has(taskKey(task))) return;
    const graceMs = parseDurationMs(story.file?.stop_grace ?? 0) ?? 0;
    const tookMs = nowMs - (stopMs ?? nowMs);
    const isEarly = tookMs < graceMs - toleranceMs;
    const what = () => `${taskKey(task)} was killed ${tookMs} ms into its grace of ${graceMs} ms`;
    verdict.require(!isEarly || this.saved.has(attemptKey(task)), 'grace', what);
  }
}

function attemptKey({ jobId, attempt }: { readonly jobId: string; readonly attempt: number }): string {
  return `${jobId}.${attempt}`;
}
