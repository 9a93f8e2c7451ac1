/**
 * Checks G1, G2, G5 and G6 of docs/guarantees.md on the event log as it was committed. G1: no job id is given twice. G2: an
 * attempt is allocated when the one before has ended. G5: events have no gap and no repetition. G6: only the current
 * attempt changes a job, a job that has ended never changes, and attempt numbers grow.
 */
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { Guarantee, Verdict } from './verdict.ts';

interface Story {
  lastSeq: number;
  lastAttempt: number;
  /** The attempt that may act now. */
  current: number | null;
  end: string | null;
}

const ends = new Set(['job.succeeded', 'job.failed', 'job.cancelled']);

export class LogCheck {
  private lastSeq = 0;
  readonly events: StoredEvent[] = [];
  /** Nodes that the coordinator has ever seen. */
  readonly joined = new Set<string>();
  private readonly ids = new Set<string>();
  private readonly stories = new Map<string, Story>();
  /** Jobs with an answered stop. */
  private readonly stopped = new Set<string>();
  private readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    this.verdict = verdict;
  }

  see(fact: Fact): void {
    if (fact.kind === 'stopAnswered') this.stopped.add(fact.jobId);
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  /** How a job ended, by the log. */
  endOf(subject: string): string | null {
    return this.stories.get(subject)?.end ?? null;
  }

  private onEvent(event: StoredEvent): void {
    const { seq, id, subject, subjectSeq, kind, data } = event;
    const must = (holds: boolean, guarantee: Guarantee, what: string) =>
      this.verdict.require(holds, guarantee, () => `${kind} (${seq}, ${subject} ${subjectSeq}) ${what}`);
    const story = this.stories.get(subject) ?? { lastSeq: 0, lastAttempt: 0, current: null, end: null };
    this.stories.set(subject, story);

    must(seq === this.lastSeq + 1, 'G5', `follows ${this.lastSeq}`);
    must(!this.ids.has(id), 'G5', `repeats the id ${id}`);
    must(subjectSeq === story.lastSeq + 1, 'G5', `follows ${subject} ${story.lastSeq}`);
    this.lastSeq = seq;
    this.ids.add(id);
    story.lastSeq = subjectSeq;
    this.events.push(event);

    if (kind === 'node.joined') this.joined.add(subject);
    if (subject.startsWith('job_')) this.onJobEvent(kind, data, story, must, subject);
  }

  private onJobEvent(
    kind: string,
    data: StoredEvent['data'],
    story: Story,
    must: (holds: boolean, guarantee: Guarantee, what: string) => void,
    subject: string,
  ): void {
    must(story.end === null, 'G6', `comes after ${story.end}`);
    const attempt = Number(data['attempt']);
    if (kind === 'job.submitted') {
      must(story.lastSeq === 1, 'G1', 'gives an id a second time');
    } else if (kind === 'attempt.allocated') {
      must(attempt === story.lastAttempt + 1, 'G6', `has number ${attempt} after ${story.lastAttempt}`);
      must(story.current === null, 'G2', `while attempt ${story.current} has not ended`);
      must(!this.stopped.has(subject), 'G6', 'after its stop was answered');
      story.lastAttempt = attempt;
      story.current = attempt;
    } else if (kind.startsWith('attempt.') || kind === 'task.ended') {
      must(attempt === story.current, 'G6', `names attempt ${attempt}, and ${story.current} is current`);
      if (kind === 'attempt.ended') story.current = null;
    } else if (ends.has(kind) || kind === 'job.queued') {
      must(story.current === null, 'G2', `while attempt ${story.current} has not ended`);
      if (ends.has(kind)) story.end = kind;
    }
  }
}
