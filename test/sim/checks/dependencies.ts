/** A job starts only once what it comes after has ended as it asked for; who runs that again takes its place. */
import { parseDependency } from '@muster/common/spec/after';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { JobStories } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

export class DependencyCheck {
  private readonly ends = new Map<string, string>();
  private readonly successors = new Map<string, string>();
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
    const end = /^job\.(succeeded|failed|cancelled)$/.exec(kind)?.[1];
    if (end !== undefined) this.ends.set(subject, end);
    else if (kind === 'job.submitted' && typeof data['requeuedFrom'] === 'string')
      this.successors.set(data['requeuedFrom'], subject);
    else if (kind === 'attempt.allocated' && data['attempt'] === 1) this.onStart(subject);
  }

  private onStart(jobId: string): void {
    for (const text of this.stories.of(jobId)?.file?.after ?? []) {
      const { on, when } = parseDependency(text);
      let id = on;
      for (let next = this.successors.get(id); next !== undefined; next = this.successors.get(next))
        id = next;
      const end = this.ends.get(id);
      const isMet = end !== undefined && (when === 'any' || (end === 'succeeded') === (when === 'ok'));
      const what = () => `${jobId} comes after ${text}, started, and ${id} has ${end ?? 'not ended'}`;
      this.verdict.require(isMet, 'dependency', what);
    }
  }
}
