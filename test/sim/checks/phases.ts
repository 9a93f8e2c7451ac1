/**
 * Phases only go forward, unless their user sends a job back; each end of one is judged once, before the next attempt; and what an attempt
 * runs with is the phase that the log says.
 */
import type { TaskRef } from '@muster/common/ids';
import type { Cause } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { JobStories } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

interface Position {
  /** Of the current phase. null: it was sent back, or runs another job again, and the next attempt shows where it is. */
  index: number | null;
  /** It has ended well, and what comes of its phase was not said yet. */
  awaits: number | null;
  /** Attempts whose end was judged. */
  readonly judged: Set<number>;
  /** Of each attempt, the phase that it runs. */
  readonly phaseOf: Map<number, number>;
  isOver: boolean;
}

export class PhaseCheck {
  private readonly positions = new Map<string, Position>();
  private readonly verdict: Verdict;
  private readonly stories: JobStories;

  constructor(verdict: Verdict, stories: JobStories) {
    this.verdict = verdict;
    this.stories = stories;
  }

  see(fact: Fact): void {
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
    else if (fact.kind === 'started') this.onStarted(fact.task, fact.phase);
  }

  private onStarted({ jobId, attempt }: TaskRef, phase: string | null): void {
    const position = this.positions.get(jobId);
    const phases = this.stories.of(jobId)?.file?.phases ?? [];
    const index = position?.phaseOf.get(attempt);
    if (position === undefined || index === undefined) return;
    const name = phases[index]?.name;
    this.verdict.require(
      phase === name,
      'phase',
      () => `${jobId}.${attempt} runs phase ${phase}, and is of ${name}`,
    );
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    const phases = this.stories.of(subject)?.file?.phases ?? [];
    if (phases.length === 0) return;
    const position = this.positionOf(subject);
    const must = (holds: boolean, what: string) =>
      this.verdict.require(holds, 'phase', () => `${kind} of ${subject}: ${what} (${JSON.stringify(data)})`);
    const attempt = Number(data['attempt']);
    switch (kind) {
      case 'job.submitted':
        if (data['requeuedFrom'] !== undefined) position.index = null;
        break;
      case 'job.requeued':
        if ((data['from'] as { kind: string }).kind !== 'newest') this.sendBack(position);
        break;
      case 'job.stopping':
        if (isSentBack(data['cause'] as Cause | null)) this.sendBack(position);
        break;
      case 'phase.started':
        must(
          position.index === null || position.index === data['index'],
          `phase ${position.index} is current`,
        );
        must(position.awaits === null, `attempt ${position.awaits} was not judged`);
        position.index = Number(data['index']);
        break;
      case 'attempt.allocated':
        must(position.awaits === null, `attempt ${position.awaits} was not judged`);
        must(!position.isOver, 'its last phase has ended');
        if (position.index !== null) position.phaseOf.set(attempt, position.index);
        break;
      case 'attempt.ended':
        if (data['cause'] === null && position.index !== null) position.awaits = attempt;
        break;
      case 'phase.extended':
      case 'phase.ended':
        must(position.awaits === attempt && !position.judged.has(attempt), `${position.awaits} is awaited`);
        must(position.index === data['index'], `phase ${position.index} is current`);
        must(position.phaseOf.get(attempt) === data['index'], 'its attempt was of another phase');
        position.judged.add(attempt);
        position.awaits = null;
        if (kind === 'phase.extended') break;
        position.isOver = data['next'] !== 'next';
        if (!position.isOver) position.index = Number(data['index']) + 1;
        else if (data['next'] === 'succeeded')
          must(data['index'] === phases.length - 1, 'it has more phases');
        break;
      case 'job.succeeded':
        must(position.isOver, 'its last phase has not ended');
        break;
      default:
    }
  }

  /** Where to, the next attempt says. */
  private sendBack(position: Position): void {
    position.index = null;
    position.awaits = null;
  }

  private positionOf(jobId: string): Position {
    const known = this.positions.get(jobId);
    if (known !== undefined) return known;
    const fresh = {
      index: 0,
      awaits: null,
      judged: new Set<number>(),
      phaseOf: new Map<number, number>(),
      isOver: false,
    };
    this.positions.set(jobId, fresh);
    return fresh;
  }
}

function isSentBack(cause: Cause | null): boolean {
  return cause !== null && cause.message.startsWith('requeued by a user, to ');
}
