/** Sweeps as a store keeps them, each trial in a row of its own. */
import type { JobId } from '@muster/common/ids';
import type { SweepState, TrialState } from '@muster/common/sweeps';
import type { SeedResult } from '@muster/experiments/seeds';
import type { Caller } from '../caller.ts';

export interface StoredSweep {
  readonly id: string;
  readonly name: string;
  readonly user: string;
  readonly project: string;
  /** Who has created it, on whose behalf its trials are submitted. */
  readonly by: Caller;
  /** The sweep file, checked and complete, as JSON. */
  readonly spec: string;
  readonly state: SweepState;
  /** Why it has ended, or is about to. */
  readonly reason: string | null;
  /** How many trials it will have in all. */
  readonly trials: number;
  /** Its budget is used up, as `reason` tells: what runs ends, and then it is done. */
  readonly isSpent?: boolean;
  /** The first trial whose failure counts: an extension gives those before it another chance. Absent: the first of all. */
  readonly failuresFrom?: number;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
}

export interface TrialUse {
  readonly gpuSeconds: number;
  /** What has no price counts 0. */
  readonly usd: number;
}

export interface StoppedEarly {
  readonly value: number;
  /** null: the rule counts epochs. */
  readonly step: number | null;
  readonly epoch?: number;
}

/** One run of a trial with one of several seeds. */
export interface SeedRun extends SeedResult {
  readonly seed: number;
  readonly jobId: JobId;
}

export interface StoredTrial {
  readonly sweep: string;
  /** From 0. */
  readonly number: number;
  readonly point: Readonly<Record<string, number | string | boolean>>;
  /** Of these, what its job ran with last where failures have scaled it. Absent: nothing was. */
  readonly ran?: Readonly<Record<string, number>>;
  /** With seeds, that of the first. */
  readonly jobId: JobId;
  /** By seed, those that were started. Absent: each trial of its sweep runs once. */
  readonly seedRuns?: readonly SeedRun[];
  /** Its jobs before that one, each of which was stopped at a rung. Absent: it was never resumed. */
  readonly earlierJobs?: readonly JobId[];
  /** The rung for which it was resumed last. */
  readonly promotedAt?: number;
  readonly state: TrialState;
  readonly value: number | null;
  /** Of the second objective and so on. Absent: there is one, or it has no value. */
  readonly furtherValues?: readonly number[];
  readonly step: number | null;
  readonly cause: string | null;
  /** Which of its metrics were lost, in words. Absent: none. */
  readonly lost?: string;
  /** Where it was when it was to be stopped early. Its job may still be about to end. Absent again once it is resumed. */
  readonly stoppedEarly?: StoppedEarly;
  /** By those of its jobs that have ended. Absent: none has. */
  readonly used?: TrialUse;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
}

export interface StoredSweeps {
  readonly sweeps: readonly StoredSweep[];
  /** By sweep, then by number. */
  readonly trials: readonly StoredTrial[];
}

export const noStoredSweeps: StoredSweeps = { sweeps: [], trials: [] };

/** What a batch changes of them. */
export interface SweepChanges {
  readonly sweeps: readonly StoredSweep[];
  readonly sweepTrials: readonly StoredTrial[];
  /** Ids of those to delete, with their trials; one that is not there is no error. */
  readonly removedSweeps: readonly string[];
}

export const noSweepChanges: SweepChanges = { sweeps: [], sweepTrials: [], removedSweeps: [] };
