/** Triggers of pipelines as a store keeps them. */
import type { MissedPolicy, OverlapPolicy, TriggerBlock, TriggerFireView } from '@muster/common/triggers';
import type { PipelineValues } from '@muster/pipelines/model';
import type { Caller } from '../caller.ts';

export interface CronSource {
  readonly kind: 'cron';
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: MissedPolicy;
}

/** Its secret is one of the project. */
export interface WebhookSource {
  readonly kind: 'webhook';
}

export interface EventSource {
  readonly kind: 'event';
  readonly condition: string;
}

export interface DataSource {
  readonly kind: 'data';
  /** Of the coordinator's machine, absolute. */
  readonly directory: string;
}

export type TriggerSource = CronSource | EventSource | WebhookSource | DataSource;

/** A fire that waits until other runs have ended. */
export interface WaitingFire {
  readonly cause: string;
  readonly params: PipelineValues;
  /** Names of the triggers that have led to it. */
  readonly after: readonly string[];
  /** Id of the request that somebody has asked for it with. Absent: nobody has. */
  readonly requestId?: string;
}

export interface StoredTrigger {
  readonly name: string;
  readonly user: string;
  readonly project: string;
  /** Who has created it, on whose behalf its runs are started. */
  readonly by: Caller;
  /** Name of the pipeline. */
  readonly pipeline: string;
  /** The pipeline file, checked, as JSON. */
  readonly spec: string;
  /** As they were given, with references to what fires. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly usesCache: boolean;
  readonly source: TriggerSource;
  readonly overlap: OverlapPolicy;
  readonly isPaused: boolean;
  /** Wall clock: when it is due, of a cron trigger. Moved in the commit that carries the fire out. null: never again. */
  readonly nextAtMs: number | null;
  /** Of a trigger by events: all events up to this one were looked at. Moved in the commit that carries a fire out. */
  readonly eventSeq: number | null;
  /** Of a trigger by data: digest of what lay there when it was created, or has fired it last. Moved in the commit that carries a fire out. */
  readonly dataDigest: string | null;
  /** Of a trigger by data whose directory cannot be listed. Absent in what was stored before there was such a key: nothing is known. */
  readonly blocked?: TriggerBlock | null;
  /** In the order in which they are started. */
  readonly waiting: readonly WaitingFire[];
  /** Newest first, some. */
  readonly fires: readonly TriggerFireView[];
  readonly createdAtMs: number;
}
