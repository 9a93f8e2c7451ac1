/**
 * Watches directories for triggers: lists each every few seconds, and says when what lies there has stopped changing. What it knows is
 * lost with a restart, which costs one more wait: what has fired a trigger is stored with that.
 */
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import type { StoredTrigger } from '../store/triggers.ts';
import { type DataListing, listData } from './dataListing.ts';

/** Between two listings of a directory. */
const listEveryMs = 10_000;
/** Data that has not changed for so long is complete. */
export const settledAfterMs = 30_000;

export interface DataWatchParts {
  /** Directories below which triggers may watch. */
  readonly watchDirs: readonly string[];
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

interface Watched {
  readonly listing: DataListing | null;
  /** When the listing was seen first, and when the directory was looked at last; monotonic. */
  readonly sinceMs: number;
  readonly lookedAtMs: number;
  readonly isListing: boolean;
}

const unseen: Watched = { listing: null, sinceMs: 0, lookedAtMs: Number.NEGATIVE_INFINITY, isListing: false };

export class DataWatch {
  private readonly parts: DataWatchParts;
  private readonly onListed: () => void;
  private readonly watched = new Map<string, Watched>();
  private readonly listings = new Set<Promise<void>>();

  /** @param onListed something may have settled: ask again */
  constructor(parts: DataWatchParts, onListed: () => void) {
    this.parts = parts;
    this.onListed = onListed;
  }

  /**
   * A listing is made beside other work: a file system that does not answer keeps nothing else waiting.
   * @returns what lies in the directory of the trigger. null: it is still changing, empty, not read yet, or what has fired it last
   */
  newData(trigger: StoredTrigger): DataListing | null {
    if (trigger.source.kind !== 'data') return null;
    const { directory } = trigger.source;
    const nowMs = this.parts.monotonicMs();
    const known = this.watched.get(directory) ?? unseen;
    if (!known.isListing && nowMs - known.lookedAtMs >= listEveryMs) {
      this.watched.set(directory, { ...known, isListing: true });
      const listing = this.list(directory).finally(() => this.listings.delete(listing));
      this.listings.add(listing);
    }
    const { listing, sinceMs, lookedAtMs } = known;
    // Seen unchanged for so long, and not merely not looked at.
    if (listing === null || lookedAtMs - sinceMs < settledAfterMs) return null;
    return listing.files === 0 || listing.digest === trigger.dataDigest ? null : listing;
  }

  /** Resolves when the listings that have begun have ended. */
  async listed(): Promise<void> {
    await Promise.all(this.listings);
  }

  private async list(directory: string): Promise<void> {
    const known = this.watched.get(directory) ?? unseen;
    const { watchDirs, monotonicMs, log } = this.parts;
    const listing = await listData(directory, watchDirs).catch((error: unknown) => {
      if (known.listing !== null || known === unseen)
        log.warn({ directory, error: messageOf(error) }, 'a directory that triggers watch cannot be listed');
      return null;
    });
    const nowMs = monotonicMs();
    const isSame = listing !== null && listing.digest === known.listing?.digest;
    this.watched.set(directory, {
      listing,
      sinceMs: isSame ? known.sinceMs : nowMs,
      lookedAtMs: nowMs,
      isListing: false,
    });
    this.onListed();
  }
}
