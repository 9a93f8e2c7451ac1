/** Nodes that a person wants to have left: nothing new comes there, and by the deadline, or its own grace, all is gone. */
import { parseDurationMs } from '@muster/common/spec/duration';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Grants } from '../grants.ts';
import type { Fact } from '../history.ts';
import type { ExecutionCheck } from './executions.ts';
import type { JobStories } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

/** For the coordinator to see it, on its clock, and for the last kill. */
const slackMs = 4_000;
/** By then a coordinator that has just started has looked at the drains, and stored what it stops. */
const lookMs = 2_000;

interface Leaving {
  readonly sinceMs: number;
  /** null: it may take its time. */
  readonly forMs: number | null;
}

export interface LeavingCheckParts {
  readonly verdict: Verdict;
  readonly stories: JobStories;
  readonly executions: ExecutionCheck;
  readonly grants: Grants;
  readonly isWell: (machine: string) => boolean;
  /** Wall clocks were never set: deadlines are stored by them. */
  readonly isTimeSteady: () => boolean;
}

export class LeavingCheck {
  private readonly leaving = new Map<string, Leaving>();
  /** Since when this coordinator runs: one that is killed again and again has no time to stop anything. */
  private coordinatorSinceMs = 0;
  private readonly parts: LeavingCheckParts;

  constructor(parts: LeavingCheckParts) {
    this.parts = parts;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'process' && fact.what === 'started' && fact.name.startsWith('coordinator '))
      this.coordinatorSinceMs = nowMs;
    else if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event, nowMs);
  }

  /** To be called now and then. */
  look(nowMs: number): void {
    const { executions, stories, grants, verdict, isWell, isTimeSteady } = this.parts;
    if (!isTimeSteady()) return;
    for (const [key, { task, machine }] of executions.running) {
      const { sinceMs, forMs = null } = this.leaving.get(machine) ?? {};
      if (sinceMs === undefined || forMs === null) continue;
      const graceMs = parseDurationMs(stories.of(task.jobId)?.file?.stop_grace ?? 0) ?? 0;
      // One whose grace is longer than there was time gets the order at once, and gets all of it.
      const isDue = nowMs >= sinceMs + Math.max(forMs, graceMs) + slackMs;
      const hadTime = nowMs - this.coordinatorSinceMs >= lookMs;
      const wasHeard = hadTime && grants.steadyForMs(machine) >= graceMs + slackMs;
      const what = () => `${key} runs on ${machine}, which was to be left by now`;
      verdict.require(!isDue || !wasHeard || !isWell(machine), 'drains', what);
    }
  }

  private onEvent({ kind, subject, data, timeMs }: StoredEvent, nowMs: number): void {
    if (kind === 'node.undrained') this.leaving.delete(subject);
    else if (kind === 'node.drained') {
      const deadlineMs = data['deadlineMs'] as number | null;
      this.leaving.set(subject, {
        sinceMs: nowMs,
        forMs: deadlineMs === null ? null : deadlineMs - timeMs,
      });
    } else if (kind === 'attempt.allocated') {
      for (const { node } of data['tasks'] as { node: string }[]) {
        const what = () => `${subject} was given ${node}, which is to be left`;
        this.parts.verdict.require(!this.leaving.has(node), 'drains', what);
      }
    }
  }
}
