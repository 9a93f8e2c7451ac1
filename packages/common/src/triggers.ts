/** What starts runs of a pipeline by itself. What the API shows; `-o json` prints these. */

import { type Members, oneOf, textShape } from './jsonShapes.ts';

/**
 * - `cron`: at times
 * - `event`: when something happens in the cluster
 * - `webhook`: when somebody who has its secret sends a delivery
 * - `data`: when files in a directory of the coordinator's machine have changed
 */
export const triggerKinds = ['cron', 'event', 'webhook', 'data'] as const;
export type TriggerKind = (typeof triggerKinds)[number];

/**
 * What happens when a trigger fires while a run of it has not ended.
 * - `skip`: nothing is started
 * - `queue`: it is started once the others have ended, in order
 * - `stop_previous`: the others are stopped, with the time to save that their jobs have, and it is started once they have ended
 * - `allow`: it is started at once
 */
export const overlapPolicies = ['skip', 'queue', 'stop_previous', 'allow'] as const;
export type OverlapPolicy = (typeof overlapPolicies)[number];

/**
 * What becomes of times at which the coordinator did not run.
 * - `run_once`: one run in the place of all of them
 * - `skip`: nothing
 */
export const missedPolicies = ['run_once', 'skip'] as const;
export type MissedPolicy = (typeof missedPolicies)[number];

/**
 * - `started`: as `run`
 * - `queued`: until other runs have ended
 * - `skipped`: by the overlap policy
 * - `missed`: the coordinator did not run at that time
 * - `failed`: a run could not be started, as `reason` says
 */
export const fireOutcomes = ['started', 'queued', 'skipped', 'missed', 'failed'] as const;
export type FireOutcome = (typeof fireOutcomes)[number];

/** What has become of a fire. */
export interface TriggerFireView {
  /** When it was carried out, wall clock. */
  readonly atMs: number;
  /** What has fired it, such as the time at which it was due. */
  readonly cause: string;
  readonly outcome: FireOutcome;
  /** null: none was started. */
  readonly run: string | null;
  readonly reason: string | null;
}

/** What keeps a trigger from seeing what it waits for. */
export interface TriggerBlock {
  readonly cause: string;
  readonly remedy: string;
  /** When it was found first, wall clock. */
  readonly sinceMs: number;
}

export interface TriggerView {
  readonly name: string;
  readonly kind: TriggerKind;
  readonly user: string;
  readonly project: string;
  /** Name of the pipeline. */
  readonly pipeline: string;
  /** Of a cron trigger: when, in its time zone. */
  readonly cron: string | null;
  /** Of the IANA database. */
  readonly timeZone: string | null;
  readonly missed: MissedPolicy | null;
  /** Of a trigger by events, in CEL. */
  readonly condition: string | null;
  /** Of a trigger by data: what it watches, on the coordinator's machine. */
  readonly directory: string | null;
  /** Of a trigger by data whose directory cannot be listed, until it can be. */
  readonly blocked: TriggerBlock | null;
  readonly overlap: OverlapPolicy;
  readonly paused: boolean;
  /** Of a cron trigger, wall clock. null: never again. */
  readonly nextAtMs: number | null;
  /** Ids of its runs that have not ended, newest first. */
  readonly running: readonly string[];
  /** How many fires wait for them. */
  readonly queued: number;
  /** The newest, newest first. */
  readonly fires: readonly TriggerFireView[];
  /** The pipeline file. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Values that each run is given. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly createdAtMs: number;
  /** Of a webhook trigger, once: in the answer to its creation. */
  readonly secret: string | null;
}

/** What its events have. */
export const triggerData = {
  trigger: textShape('nightly'),
  kind: oneOf(triggerKinds),
  pipeline: textShape('vision'),
  user: textShape('ann'),
  project: textShape('vision'),
} as const satisfies Members;

/** A DNS label that leaves room for what is made of it. */
export const triggerNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?$/;
export const triggerNameForm =
  '1 to 48 lower-case letters, digits and "-", with a letter or digit at both ends';
