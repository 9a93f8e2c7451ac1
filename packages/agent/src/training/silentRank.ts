/**
 * Which rank of a task was the first to fall silent, where its lines carry ranks (`[rank3]:`). Pure.
 *
 * The rank whose next line was due first: each at the time of its last line plus its own longest interval between two.
 * Ranks that had written nothing for three times what is usual before the task as a whole fell silent are left out; they
 * say little by nature, as all but rank 0 do in many programs.
 */

const recentTimes = 3;
/** More than any node has: what else a program writes between such brackets must not fill our memory. */
const ranksMax = 256;

interface RankPast {
  lastMs: number;
  longestMs: number;
  lines: number;
  /** Order of its last line among those of all ranks: lines that were read together have one time. */
  order: number;
}

export class SilentRank {
  private readonly ranks = new Map<number, RankPast>();
  private order = 0;

  /** @param nowMs monotonic */
  line(rank: number, nowMs: number): void {
    this.order += 1;
    const past = this.ranks.get(rank);
    if (past === undefined) {
      if (this.ranks.size >= ranksMax) return;
      this.ranks.set(rank, { lastMs: nowMs, longestMs: 0, lines: 1, order: this.order });
      return;
    }
    past.longestMs = Math.max(past.longestMs, nowMs - past.lastMs);
    past.lastMs = nowMs;
    past.lines += 1;
    past.order = this.order;
  }

  /** What was said until now was starting up. */
  restart(): void {
    this.ranks.clear();
  }

  /**
   * @param lastSignMs of the task as a whole
   * @param usualMs between two signs of progress of the task
   * @returns null: fewer than two ranks can be told apart
   */
  first(lastSignMs: number, usualMs: number): number | null {
    const sinceMs = lastSignMs - recentTimes * usualMs;
    const recent = [...this.ranks].filter(([, past]) => past.lines > 1 && past.lastMs >= sinceMs);
    if (recent.length < 2) return null;
    const dueMs = ({ lastMs, longestMs }: RankPast) => lastMs + longestMs;
    recent.sort(([, a], [, b]) => dueMs(a) - dueMs(b) || a.order - b.order);
    return recent[0]?.[0] ?? null;
  }
}
