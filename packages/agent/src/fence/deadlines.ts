/**
 * One timer for all deadlines. Deadlines are times of CLOCK_BOOTTIME, which continues while the machine sleeps. Timers stop
 * then, and may fire early or late. A timer is therefore only a reason to read the clock, and after a sleep it comes soon.
 */

/** The longest time between two readings of the clock while there is a deadline, and so the longest delay after a sleep. */
const lookMsMax = 250;

export class Deadlines {
  private readonly boottimeMs: () => number;
  private readonly onDue: (key: string) => void;
  private readonly deadlines = new Map<string, number>();
  private timer: NodeJS.Timeout | null = null;

  /** @param onDue called once for each deadline, from a timer and never from `set` */
  constructor(boottimeMs: () => number, onDue: (key: string) => void) {
    this.boottimeMs = boottimeMs;
    this.onDue = onDue;
  }

  /** Sets the deadline of this key, in place of an earlier one. */
  set(key: string, deadlineBoottimeMs: number): void {
    this.deadlines.set(key, deadlineBoottimeMs);
    this.schedule();
  }

  delete(key: string): void {
    this.deadlines.delete(key);
    this.schedule();
  }

  close(): void {
    this.deadlines.clear();
    this.schedule();
  }

  private schedule(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.deadlines.size === 0) return;
    const leftMs = Math.min(...this.deadlines.values()) - this.boottimeMs();
    this.timer = setTimeout(() => this.look(), Math.max(1, Math.min(leftMs, lookMsMax)));
  }

  private look(): void {
    const nowMs = this.boottimeMs();
    const due = [...this.deadlines].filter(([, deadlineMs]) => deadlineMs <= nowMs).map(([key]) => key);
    for (const key of due) this.deadlines.delete(key);
    this.schedule();
    for (const key of due) this.onDue(key);
  }
}
