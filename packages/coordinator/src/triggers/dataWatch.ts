/**
 * Watches directories for triggers: lists each every few seconds, and reports when its content has stopped changing. What it
 * knows is lost with a restart, which costs one more wait: what has fired a trigger is stored with that.
 */
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import type { StoredTrigger } from '../store/triggers.ts';
import { type DataListing, type ListData, type ListingProblem, listingProblemOf } from './dataListing.ts';

/** Between two listings of a directory. */
const listEveryMs = 10_000;
/** Data that has not changed for this duration is complete. */
export const settledAfterMs = 30_000;

/** A listing that takes longer is one that does not end: the file system does not respond. */
export const listedWithinMs = 5 * 60_000;

export interface DataWatchParts {
  readonly monotonicMs: () => number;
  readonly log: Logger;
  readonly listData: ListData;
}

interface Watched {
  readonly listing: DataListing | null;
  /** Of the last listing that has ended. */
  readonly problem: ListingProblem | null;
  /** When the listing was seen first, and when the directory was looked at last; monotonic. */
  readonly sinceMs: number;
  readonly lookedAtMs: number;
  /** When the listing has begun that has not ended, monotonic. null: there is none. */
  readonly listingSinceMs: number | null;
}

const unseen: Watched = {
  listing: null,
  problem: null,
  sinceMs: 0,
  lookedAtMs: Number.NEGATIVE_INFINITY,
  listingSinceMs: null,
};

/** Listings have shown no change for `settledAfterMs`. Time without a listing does not count. */
export function hasSettled(sinceMs: number, lookedAtMs: number): boolean {
  return lookedAtMs - sinceMs >= settledAfterMs;
}

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
    if (known.listingSinceMs === null && nowMs - known.lookedAtMs >= listEveryMs) {
      this.watched.set(directory, { ...known, listingSinceMs: nowMs });
      const listing = this.list(directory).finally(() => this.listings.delete(listing));
      this.listings.add(listing);
    }
    const { listing, sinceMs, lookedAtMs } = known;
    if (listing === null || !hasSettled(sinceMs, lookedAtMs)) return null;
    return listing.files === 0 || listing.digest === trigger.dataDigest ? null : listing;
  }

  /** @returns why the directory of the trigger cannot be listed. null: it can be. undefined: that is not known yet */
  problem({ source }: StoredTrigger): ListingProblem | null | undefined {
    if (source.kind !== 'data') return null;
    const { directory } = source;
    const { problem, lookedAtMs, listingSinceMs } = this.watched.get(directory) ?? unseen;
    if (listingSinceMs !== null && this.parts.monotonicMs() - listingSinceMs >= listedWithinMs)
      return {
        cause: `"${directory}" is not listed within ${listedWithinMs / 60_000} minutes: its file system does not respond, or is slow`,
        remedy: `check the file system on the coordinator's machine, such as by ls -lR ${directory}`,
      };
    return lookedAtMs === unseen.lookedAtMs ? undefined : problem;
  }

  /** Resolves when the listings that have begun have ended. */
  async listed(): Promise<void> {
    await Promise.all(this.listings);
  }

  private async list(directory: string): Promise<void> {
    const known = this.watched.get(directory) ?? unseen;
    const { listData, monotonicMs, log } = this.parts;
    let problem: ListingProblem | null = null;
    const listing = await listData(directory).catch((error: unknown) => {
      problem = listingProblemOf(directory, error);
      if (known.problem === null)
        log.warn({ directory, error: messageOf(error) }, 'a directory that triggers watch cannot be listed');
      return null;
    });
    const nowMs = monotonicMs();
    const isSame = listing !== null && listing.digest === known.listing?.digest;
    this.watched.set(directory, {
      listing,
      problem,
      sinceMs: isSame ? known.sinceMs : nowMs,
      lookedAtMs: nowMs,
      listingSinceMs: null,
    });
    this.onListed();
  }
}
