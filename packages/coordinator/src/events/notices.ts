/**
 * Notices are events for current watchers that are not stored, because newer ones of the same kind soon replace them. A
 * notice takes no sequence number, so that the numbers of stored events have no gaps.
 */
import type { StoredEvent } from '../model.ts';
import type { CommitNotifier } from './commitNotifier.ts';

type Fact = Pick<StoredEvent, 'kind' | 'subject' | 'data'>;

export interface Notice extends Fact {
  /** The number of this notice, counted from the start of the coordinator. */
  readonly number: number;
  readonly timeMs: number;
}

export class Notices {
  private readonly notifier: Pick<CommitNotifier, 'notify'>;
  /** The newest notice of each subject. A watcher that falls behind gets only that one. */
  private newest: ReadonlyMap<string, Notice> = new Map();
  private count = 0;

  constructor(notifier: Pick<CommitNotifier, 'notify'>) {
    this.notifier = notifier;
  }

  /**
   * Replaces all earlier notices.
   * @param notices at most one for each subject
   * @param timeMs wall clock, for display
   */
  publish(notices: readonly Fact[], timeMs: number): void {
    this.newest = new Map(
      notices.map((event) => {
        this.count += 1;
        return [event.subject, { ...event, number: this.count, timeMs }];
      }),
    );
    this.notifier.notify(this.newest.keys());
  }

  /** The number of the newest notice. */
  get lastNumber(): number {
    return this.count;
  }

  /** @param subject the only subject to return notices of; null for every subject */
  after(number: number, subject: string | null): readonly Notice[] {
    const known = subject === null ? [...this.newest.values()] : [this.newest.get(subject)];
    return known.filter((notice) => notice !== undefined).filter((notice) => notice.number > number);
  }
}
