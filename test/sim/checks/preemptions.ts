/**
 * Which job preempts which: only jobs that were declared preemptible are preempted, only by higher priority, at most
 * `max_preemptions` times, and never by a job that they have preempted themselves.
 */
import type { JobView } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { JobStories, JobStory } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

export class PreemptionCheck {
  private readonly counts = new Map<string, number>();
  /** `<victim> <job>` */
  private readonly pairs = new Set<string>();
  private readonly places = new Map<string, number>();
  private readonly verdict: Verdict;
  private readonly stories: JobStories;

  constructor(verdict: Verdict, stories: JobStories) {
    this.verdict = verdict;
    this.stories = stories;
  }

  see(fact: Fact): void {
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
    else if (fact.kind === 'listed') {
      for (const { id, submitSeq } of fact.jobs) {
        const before = this.places.get(id) ?? submitSeq;
        this.places.set(id, before);
        const what = () => `${id} had place ${before} in the queue and has ${submitSeq}`;
        this.verdict.require(before === submitSeq, 'preemption', what);
      }
    }
  }

  /** @param jobs when all is over */
  requireCounts(jobs: readonly JobView[]): void {
    for (const { id, preemptions } of jobs) {
      const count = this.counts.get(id) ?? 0;
      const what = () => `${id} was preempted ${count} times, and its count is ${preemptions}`;
      this.verdict.require(preemptions === count, 'preemption', what);
    }
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    const story = this.stories.of(subject);
    if (story === undefined) return;
    if (kind === 'job.preempted') this.onPreempted(story, data['by'] as string | null);
    else if (kind === 'job.failed') {
      const cause = data['cause'] as { kind: string };
      this.verdict.require(
        cause.kind !== 'preempted',
        'preemption',
        () => `${subject} failed by a preemption`,
      );
    } else if (kind === 'job.queued' && story.last?.stopCause?.kind === 'preempted' && !story.last.isRequeued)
      this.counts.set(subject, (this.counts.get(subject) ?? 0) + 1);
  }

  private onPreempted({ id, file }: JobStory, by: string | null): void {
    if (by === null) return;
    const must = (holds: boolean, why: string) =>
      this.verdict.require(holds, 'preemption', () => `${id} preempted by ${by}, ${why}`);
    must(file?.preemptible === true, 'and is not preemptible');
    const priority = this.stories.of(by)?.file?.priority ?? 50;
    must(priority > (file?.priority ?? 50), `which has priority ${priority}`);
    const most = file?.retry?.max_preemptions ?? Number.POSITIVE_INFINITY;
    must((this.counts.get(id) ?? 0) < most, `and had done so ${most} times`);
    must(!this.pairs.has(`${by} ${id}`), 'which had given way to it');
    this.pairs.add(`${id} ${by}`);
  }
}
