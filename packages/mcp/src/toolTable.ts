/** Every tool, in the order in which clients list them: from a plan over a submit to its end. */
import type { Tool } from './tool.ts';
import {
  automlSetup,
  computeManage,
  distributedConfigure,
  hyperparametersTune,
  pipelineDesign,
} from './tools/advice.ts';
import { alertCreate, alertDelete, alertList } from './tools/alerts.ts';
import { workloadExtend, workloadRequeue, workloadStop } from './tools/changes.ts';
import { checkpointList } from './tools/checkpoints.ts';
import { eventsSince } from './tools/events.ts';
import { workloadDiagnose, workloadExplain } from './tools/explain.ts';
import { workloadGet, workloadList } from './tools/jobs.ts';
import { workloadLogs } from './tools/logs.ts';
import { metricsQuery } from './tools/metrics.ts';
import { nodeList } from './tools/nodes.ts';
import { lineageGet, pipelineGet, pipelineList, pipelineRun, pipelineStop } from './tools/pipelines.ts';
import { requirementsValidate } from './tools/requirements.ts';
import { workloadSubmit } from './tools/submit.ts';
import { sweepExtend, sweepGet, sweepList, sweepStart, sweepStop, sweepTrials } from './tools/sweeps.ts';
import { triggerCreate, triggerDelete, triggerList, triggerRun } from './tools/triggers.ts';

export const toolTable: readonly Tool[] = [
  requirementsValidate,
  pipelineDesign,
  distributedConfigure,
  hyperparametersTune,
  automlSetup,
  computeManage,
  workloadSubmit,
  workloadGet,
  workloadList,
  workloadLogs,
  workloadExplain,
  workloadDiagnose,
  workloadStop,
  workloadRequeue,
  workloadExtend,
  checkpointList,
  metricsQuery,
  alertCreate,
  alertList,
  alertDelete,
  sweepStart,
  sweepGet,
  sweepTrials,
  sweepList,
  sweepStop,
  sweepExtend,
  pipelineRun,
  pipelineGet,
  pipelineList,
  pipelineStop,
  lineageGet,
  triggerCreate,
  triggerList,
  triggerRun,
  triggerDelete,
  nodeList,
  eventsSince,
];
