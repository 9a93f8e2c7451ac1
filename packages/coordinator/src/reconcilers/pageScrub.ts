/**
 * Compares the pages of the store with their checksums while it is in use: after a start the pages that the start did not
 * check, then all pages once a day. Disks alter data that is not read for months, and backups of damaged data replace good ones.
 */
export interface ScrubbedStore {
  /** The first page that has not been looked at since the start. null: all were. */
  readonly nextPage: number | null;
  /** @returns what is damaged, and the page to continue with; null: the end was reached */
  comparePages(first: number): Promise<{ readonly damage: string | null; readonly next: number | null }>;
}

export interface ScrubParts {
  readonly store: ScrubbedStore;
  /** Called once; nothing is compared after that. */
  readonly onDamage: (damage: string) => void;
  readonly onFailed: (error: unknown) => void;
  /** Resolves after `ms` milliseconds, or when it is aborted. */
  readonly pause: (ms: number, abort: AbortSignal) => Promise<void>;
}

const dayMs = 24 * 60 * 60_000;
/** After each megabyte: some 300 MB a second after a start, when answers depend on it, and 10 later on. */
const firstPauseMs = 2;
const laterPauseMs = 100;

export class PageScrub {
  private readonly parts: ScrubParts;
  private readonly abort = new AbortController();
  private readonly done: Promise<void>;

  constructor(parts: ScrubParts) {
    this.parts = parts;
    this.done = this.run().catch(parts.onFailed);
  }

  /** Resolves when nothing is read any longer. */
  async close(): Promise<void> {
    this.abort.abort();
    await this.done;
  }

  private async run(): Promise<void> {
    const { store, pause } = this.parts;
    const { signal } = this.abort;
    if (store.nextPage !== null && !(await this.pass(store.nextPage, firstPauseMs))) return;
    while (!signal.aborted) {
      await pause(dayMs, signal);
      if (!(await this.pass(1, laterPauseMs))) return;
    }
  }

  /** @returns false when it is over */
  private async pass(first: number, pauseMs: number): Promise<boolean> {
    const { store, onDamage, pause } = this.parts;
    const { signal } = this.abort;
    for (let page: number | null = first; page !== null; ) {
      if (signal.aborted) return false;
      const { damage, next } = await store.comparePages(page);
      if (damage !== null) {
        onDamage(damage);
        return false;
      }
      page = next;
      await pause(pauseMs, signal);
    }
    return true;
  }
}
