/** What all samplers share: what they are asked, and what they know of earlier trials. */
import type { Point, SearchSpace } from '../space.ts';

/** What became of an earlier trial. */
export interface Observation {
  readonly point: Point;
  /**
   * - `complete`: `loss` is its result
   * - `pruned`: it was stopped early, at `step`, with `loss`
   * - `infeasible`: it failed because of its parameters, such as too large a batch
   * - `running`: it is counted as bad as can be until it ends, so that trials at the same time do not try the same
   */
  readonly state: 'complete' | 'pruned' | 'infeasible' | 'running';
  /** Less is better, whatever the objective is. null: it has none. */
  readonly loss: number | null;
  /** Of the second objective and so on. Absent: there is one. */
  readonly furtherLosses?: readonly number[];
  /** Of a pruned trial: how far it came. */
  readonly step: number;
}

export interface SuggestionRequest {
  readonly space: SearchSpace;
  /** In the order of their numbers. */
  readonly history: readonly Observation[];
  /** A whole number from 0 to 2 ** 32 - 1. */
  readonly seed: number;
  /** Of the trial that is asked for, from 0. */
  readonly number: number;
}

/**
 * The parameters of one trial; a function of the question alone.
 * @returns null: every point has been tried
 * @throws {EmptySpaceError}
 */
export type Sampler = (question: SuggestionRequest) => Point | null;
