/**
 * One timer for all deadlines. They count in CLOCK_BOOTTIME, which goes on while the machine sleeps; timers do not, and
 * may fire early or late. So a timer is only a reason to look at the clock, and after a sleep that reason comes soon.
 */

/** The longest the clock is not looked at while there is a deadline: how late one is after a sleep. */
const LOOK_MS_MAX = 250;

export class Deadlines {
  readonly #boottimeMs: () => number;
  readonly #onDue: (key: string) => void;
  readonly #deadlines = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;

  /** @param onDue called once per deadline that was set, from a timer, never from `set` */
  constructor(boottimeMs: () => number, onDue: (key: string) => void) {
    this.#boottimeMs = boottimeMs;
    this.#onDue = onDue;
  }

  /** In the place of an earlier one with this key. */
  set(key: string, deadlineBoottimeMs: number): void {
    this.#deadlines.set(key, deadlineBoottimeMs);
    this.#schedule();
  }

  delete(key: string): void {
    this.#deadlines.delete(key);
    this.#schedule();
  }

  close(): void {
    this.#deadlines.clear();
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#deadlines.size === 0) return;
    const leftMs = Math.min(...this.#deadlines.values()) - this.#boottimeMs();
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.min(leftMs, LOOK_MS_MAX)));
  }

  #look(): void {
    const nowMs = this.#boottimeMs();
    const due = [...this.#deadlines].filter(([, deadlineMs]) => deadlineMs <= nowMs).map(([key]) => key);
    for (const key of due) this.#deadlines.delete(key);
    this.#schedule();
    for (const key of due) this.#onDue(key);
  }
}
