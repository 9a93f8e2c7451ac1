/**
 * Work whose failure must not reach beyond itself: a periodic reconciler, or a part that follows commits. Each has a name.
 * What it throws is logged under that name and counted. Other work continues, and it runs again the next time.
 */
import { MusterError, messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';

/** What fails at every tick is logged this often. */
const logAgainAfterMs = 60_000;

/** Refuses a command because the coordinator stops. Level-triggered work is done after the next start, so nothing has failed. */
export class StoppingError extends MusterError {
  constructor() {
    super('unavailable', 'the coordinator is shutting down; try again');
  }
}

/** For work on several things of a kind: the log tells the message alone, which then names the thing. @param of its id */
export function namedFailure(of: string, error: unknown): unknown {
  if (error instanceof StoppingError) return error;
  return new Error(`a pass over ${of} has failed: ${messageOf(error)}`, { cause: error });
}

/** Synchronous, a promise, or promises. */
export type ContainedWork = () => unknown;

export class Contained {
  private readonly log: Logger;
  private readonly monotonicMs: () => number;
  private readonly counts = new Map<string, number>();
  /** Monotonic, by name. */
  private readonly loggedAtMs = new Map<string, number>();

  constructor(log: Logger, monotonicMs: () => number) {
    this.log = log;
    this.monotonicMs = monotonicMs;
  }

  /** Failures since the start, by name. */
  get failures(): ReadonlyMap<string, number> {
    return this.counts;
  }

  /** Runs it; resolves when all of it is done or has failed. Never throws and never rejects. */
  async run(name: string, work: ContainedWork): Promise<void> {
    try {
      const begun = work();
      const results = await Promise.allSettled(Array.isArray(begun) ? begun : [begun]);
      for (const result of results) if (result.status === 'rejected') this.failed(name, result.reason);
    } catch (error) {
      this.failed(name, error);
    }
  }

  private failed(name: string, error: unknown): void {
    if (error instanceof StoppingError) return;
    const count = (this.counts.get(name) ?? 0) + 1;
    this.counts.set(name, count);
    const nowMs = this.monotonicMs();
    const loggedAtMs = this.loggedAtMs.get(name);
    if (loggedAtMs !== undefined && nowMs - loggedAtMs < logAgainAfterMs) return;
    this.loggedAtMs.set(name, nowMs);
    const first = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const stack = first instanceof Error ? first.stack : undefined;
    this.log.error(
      { part: name, error: messageOf(error), failures: count, stack },
      'a part of the coordinator failed; the others keep running',
    );
  }
}
