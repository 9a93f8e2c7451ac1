/** Of an array no more jobs have an attempt at the same time than its spec allows. */
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { JobStories } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

export class ArrayLimitCheck {
  private readonly arrayOf = new Map<string, string>();
  private readonly atWork = new Map<string, Set<string>>();
  private readonly verdict: Verdict;
  private readonly stories: JobStories;

  constructor(verdict: Verdict, stories: JobStories) {
    this.verdict = verdict;
    this.stories = stories;
  }

  see(fact: Fact): void {
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    if (kind === 'job.submitted' && typeof data['arrayId'] === 'string')
      this.arrayOf.set(subject, data['arrayId']);
    const array = this.arrayOf.get(subject);
    if (array === undefined) return;
    const atWork = this.atWork.get(array) ?? new Set<string>();
    this.atWork.set(array, atWork);
    if (kind === 'attempt.ended') atWork.delete(subject);
    if (kind !== 'attempt.allocated') return;
    atWork.add(subject);
    const limit = /%(\d+)$/.exec(String(this.stories.of(subject)?.file?.array))?.[1];
    const what = () => `${atWork.size} jobs of ${array} at the same time: ${[...atWork].join(', ')}`;
    this.verdict.require(limit === undefined || atWork.size <= Number(limit), 'array limit', what);
  }
}
