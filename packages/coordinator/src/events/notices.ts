/**
 * What is told to those who watch at that moment, and is not stored: it is soon replaced by newer words of the same kind. A notice
 * takes no sequence number, so that the numbers of stored events stay without a gap.
 */
import type { NewEvent } from '../model.ts';
import type { Bell } from './bell.ts';

export interface Notice extends NewEvent {
  /** Counts the notices of this run of the coordinator. */
  readonly number: number;
  readonly timeMs: number;
}

export class Notices {
  private readonly bell: Pick<Bell, 'ring'>;
  /** By subject: a watcher that falls behind gets the newest alone. */
  private newest: ReadonlyMap<string, Notice> = new Map();
  private count = 0;

  constructor(bell: Pick<Bell, 'ring'>) {
    this.bell = bell;
  }

  /**
   * Replaces all that was told before.
   * @param told one of a subject at most
   * @param timeMs wall clock, for display
   */
  tell(told: readonly NewEvent[], timeMs: number): void {
    this.newest = new Map(
      told.map((event) => {
        this.count += 1;
        return [event.subject, { ...event, number: this.count, timeMs }];
      }),
    );
    this.bell.ring(this.newest.keys());
  }

  /** Of the newest notice. */
  get lastNumber(): number {
    return this.count;
  }

  /** @param subject null: every one */
  after(number: number, subject: string | null): readonly Notice[] {
    const known = subject === null ? [...this.newest.values()] : [this.newest.get(subject)];
    return known.filter((notice) => notice !== undefined).filter((notice) => notice.number > number);
  }
}
