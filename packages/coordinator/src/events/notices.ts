/**
 * Notices are events for current watchers that are not stored, because newer ones of the same kind soon replace them. A
 * notice takes no sequence number, so that the numbers of stored events have no gaps.
 */
import type { StoredEvent } from '../model.ts';

/**
 * Wakes waiters after commits and notices, without data: they read the changes themselves. A waiter for one subject is not
 * woken for others, so that a thousand followers cost nothing while other jobs change.
 */
export class CommitNotifier {
  private readonly waiters = new Map<string | null, Set<() => void>>();

  /** Wakes the waiters. @param subjects the subjects that changed; without them, every waiter is woken */
  notify(subjects?: Iterable<string>): void {
    const concerned = subjects === undefined ? [...this.waiters.keys()] : [null, ...new Set(subjects)];
    for (const subject of concerned) {
      const waiting = this.waiters.get(subject) ?? [];
      this.waiters.delete(subject);
      for (const wake of waiting) wake();
    }
  }

  /**
   * Resolves at the next notification, or when aborted.
   * @param subject the only subject to wait for; null for any subject
   */
  next(abort: AbortSignal, subject: string | null = null): Promise<void> {
    return new Promise((resolve) => {
      if (abort.aborted) {
        resolve();
        return;
      }
      const waiters = this.waiters.get(subject) ?? new Set();
      this.waiters.set(subject, waiters);
      const wake = () => {
        waiters.delete(wake);
        if (waiters.size === 0 && this.waiters.get(subject) === waiters) this.waiters.delete(subject);
        abort.removeEventListener('abort', wake);
        resolve();
      };
      waiters.add(wake);
      abort.addEventListener('abort', wake, { once: true });
    });
  }
}

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
