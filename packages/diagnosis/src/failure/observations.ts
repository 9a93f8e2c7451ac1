/**
 * The trouble in an output that still counts. Programs also report trouble that they have dealt with: a batch that did
 * not fit and was halved, a sample that could not be read, a worker that was started again. Trouble after which a program
 * continued is not why it ended, so observations are dropped as the training makes progress. Memory is bounded by the number
 * of rules.
 */
import type { FailureFinding } from './finding.ts';

export interface FailureObservation {
  readonly found: FailureFinding;
  /** Counts only when it is known from elsewhere that the program failed. */
  readonly weak: boolean;
  /** The program does not continue after this: it is from a launcher, a watchdog, or the end of PyTorch itself. */
  readonly final: boolean;
  readonly needsProof: boolean;
  /** Of lines, in order. */
  readonly sequence: number;
  /** How far the program was. */
  readonly steps: number;
  readonly ordinaryLines: number;
}

export type NewFailureObservation = Pick<FailureObservation, 'found'> &
  Partial<Pick<FailureObservation, 'weak' | 'final' | 'needsProof'>>;

/** After a rank has died, work that has begun may still print fewer steps than this. */
const stepsUntilForgotten = 3;
/** A new one of the same sort is kept beside the first after this number of lines about other things. */
export const linesBetween = 10;
const ranksMax = 64;

interface Kept {
  first: FailureObservation;
  /** The first one after the program last continued. null: there is none since `first`. */
  recent: FailureObservation | null;
  readonly ranks: Set<number>;
}

export class FailureObservations {
  private readonly kept = new Map<string, Kept>();
  private sequence = 0;
  private position: number | null = null;
  steps = 0;
  ordinaryLines = 0;

  /** A line was read. */
  tick(): void {
    this.sequence += 1;
  }

  get now(): number {
    return this.sequence;
  }

  add(sort: string, seen: NewFailureObservation): void {
    const { sequence, steps, ordinaryLines } = this;
    const about = { weak: false, final: false, needsProof: false };
    const observation: FailureObservation = { ...about, ...seen, sequence, steps, ordinaryLines };
    const kept = this.kept.get(sort) ?? { first: observation, recent: null, ranks: new Set<number>() };
    this.kept.set(sort, kept);
    const { rank } = seen.found.evidence;
    if (rank !== null && kept.ranks.size < ranksMax) kept.ranks.add(rank);
    const newest = kept.recent ?? kept.first;
    const wentOn = steps > newest.steps || ordinaryLines - newest.ordinaryLines >= linesBetween;
    if (wentOn) kept.recent = observation;
  }

  /** The program that reported the newest of this sort continues without the part that has failed. */
  excuse(sort: string): void {
    const kept = this.kept.get(sort);
    if (kept === undefined) return;
    if (kept.recent === null) this.kept.delete(sort);
    else kept.recent = null;
  }

  /** A line about something else. */
  passOrdinary(): void {
    if (this.kept.size > 0) this.ordinaryLines += 1;
  }

  /** The program is at this step now, or at this fraction of an epoch. @returns false: it was there before */
  moveTo(position: number): boolean {
    if (position === this.position) return false;
    this.position = position;
    this.steps += 1;
    for (const [sort, kept] of this.kept) {
      if (!this.isForgotten(kept.first)) continue;
      if (kept.recent === null || this.isForgotten(kept.recent)) this.kept.delete(sort);
      else {
        kept.first = kept.recent;
        kept.recent = null;
      }
    }
    return true;
  }

  get(sort: string): FailureObservation | null {
    return this.kept.get(sort)?.first ?? null;
  }

  *all(): Generator<{
    readonly sort: string;
    readonly observation: FailureObservation;
    readonly ranks: number;
  }> {
    for (const [sort, { first, recent, ranks }] of this.kept) {
      yield { sort, observation: first, ranks: ranks.size };
      if (recent !== null) yield { sort, observation: recent, ranks: ranks.size };
    }
  }

  private isForgotten({ steps }: FailureObservation): boolean {
    return this.steps - steps >= stepsUntilForgotten;
  }
}
