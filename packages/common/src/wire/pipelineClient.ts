/** The part of the typed client that is about pipelines and their triggers. */
import type { LineageView, PipelineRunView } from '../pipelines.ts';
import { lineageFromWire, pipelineFromWire } from './codec.ts';
import { type TriggerApi, triggerClient } from './triggerClient.ts';
import type { UnaryCall } from './unaryCalls.ts';

export interface PipelineApi extends TriggerApi {
  /**
   * @param request `specJson`: the pipeline file as JSON; `paramsJson`: values as a JSON object; `dryRun`: everything is checked, and
   * nothing started
   */
  runPipeline(request: {
    readonly specJson: string;
    readonly paramsJson?: string;
    readonly requestId: string;
    readonly dryRun?: boolean;
    readonly noCache?: boolean;
  }): Promise<PipelineRunView>;
  /** Newest first, without their steps. */
  listPipelines(query?: {
    readonly active?: boolean;
    readonly limit?: number;
  }): Promise<{ readonly runs: readonly PipelineRunView[]; readonly more: boolean }>;
  /** @param run its id, the beginning of its id, or its name: of several the newest */
  getPipeline(run: string): Promise<PipelineRunView>;
  stopPipeline(run: string, reason: string): Promise<PipelineRunView>;
  /** @param request `fromStep`: empty: what has not succeeded */
  rerunPipeline(request: {
    readonly run: string;
    readonly fromStep?: string;
    readonly requestId: string;
    readonly noCache?: boolean;
  }): Promise<PipelineRunView>;
  /** @param subject digest or path of an artifact, path of a checkpoint, id of a run or of a job */
  getLineage(subject: string): Promise<LineageView>;
}

export function pipelineClient(call: UnaryCall): PipelineApi {
  return {
    ...triggerClient(call),
    runPipeline: async (request) => pipelineFromWire(await call('RunPipeline', request)),
    listPipelines: async (query = {}) => {
      const { runs, more } = await call('ListPipelines', query);
      return { runs: runs.map(pipelineFromWire), more };
    },
    getPipeline: async (run) => pipelineFromWire(await call('GetPipeline', { run })),
    stopPipeline: async (run, reason) => pipelineFromWire(await call('StopPipeline', { run, reason })),
    getLineage: async (subject) => lineageFromWire(await call('GetLineage', { subject })),
    rerunPipeline: async (request) => pipelineFromWire(await call('RerunPipeline', request)),
  };
}
