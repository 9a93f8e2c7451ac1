/** The part of the typed client that is about triggers of pipelines. */
import type { TriggerFireView, TriggerView } from '../triggers.ts';
import { triggerFireFromWire, triggerFromWire } from './codec.ts';
import type { UnaryCall } from './unaryCalls.ts';

/** The coordinator chooses what is absent: see `CreateTriggerRequest`. */
export interface TriggerRequest {
  readonly name: string;
  /** The pipeline file as JSON. */
  readonly specJson: string;
  /** Values for each run, as a JSON object. */
  readonly paramsJson?: string;
  readonly noCache?: boolean;
  readonly overlap?: string;
  readonly cron?: string;
  readonly timeZone?: string;
  readonly missed?: string;
  readonly webhook?: boolean;
  readonly condition?: string;
  readonly directory?: string;
  /** Everything is checked, and nothing set. */
  readonly dryRun?: boolean;
}

export interface TriggerApi {
  createTrigger(request: TriggerRequest): Promise<TriggerView>;
  /** By name. */
  listTriggers(): Promise<readonly TriggerView[]>;
  getTrigger(name: string): Promise<TriggerView>;
  /** @returns what was deleted */
  deleteTrigger(name: string): Promise<TriggerView>;
  pauseTrigger(name: string): Promise<TriggerView>;
  resumeTrigger(name: string): Promise<TriggerView>;
  /** @param request `paramsJson`: values in the place of those that the trigger has, as a JSON object */
  runTrigger(request: {
    readonly name: string;
    readonly paramsJson?: string;
    readonly requestId: string;
  }): Promise<TriggerFireView>;
}

export function triggerClient(call: UnaryCall): TriggerApi {
  return {
    createTrigger: async (request) => triggerFromWire(await call('CreateTrigger', request)),
    listTriggers: async () => (await call('ListTriggers', {})).triggers.map(triggerFromWire),
    getTrigger: async (name) => triggerFromWire(await call('GetTrigger', { name })),
    deleteTrigger: async (name) => triggerFromWire(await call('DeleteTrigger', { name })),
    pauseTrigger: async (name) => triggerFromWire(await call('PauseTrigger', { name })),
    runTrigger: async (request) => triggerFireFromWire(await call('RunTrigger', request)),
    resumeTrigger: async (name) => triggerFromWire(await call('ResumeTrigger', { name })),
  };
}
