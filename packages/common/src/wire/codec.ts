/**
 * The messages of proto/ ↔ the values of the domain. A message is listed here where a caller maps it by itself, or where it
 * has a member that needs a rule; `mapping.ts` maps all others by their fields.
 */
import * as alerts from '../alerts.ts';
import * as checkpoints from '../checkpoints.ts';
import { type ClockView, clockBases } from '../clockView.ts';
import type { ClusterView } from '../clusterView.ts';
import { type Condition, conditionActions, conditionEnds, conditionSeverities } from '../conditions.ts';
import * as gangs from '../gangs.ts';
import type { TaskRef__Output, TaskRef as WireTaskRef } from '../gen/muster/v1/TaskRef.ts';
import type { TrainingRow__Output, TrainingRow as WireRow } from '../gen/muster/v1/TrainingRow.ts';
import * as hardware from '../hardware.ts';
import { isJobId, type TaskRef } from '../ids.ts';
import * as people from '../people.ts';
import * as phases from '../phases.ts';
import * as pipelines from '../pipelines.ts';
import { blames, causeKinds } from '../spec/causes.ts';
import { attemptStates, jobStates, nodeStates, taskStates } from '../states.ts';
import * as sweeps from '../sweeps.ts';
import * as telemetry from '../telemetry.ts';
import * as training from '../training.ts';
import * as triggers from '../triggers.ts';
import * as upkeep from '../upkeep.ts';
import * as views from '../views.ts';
import { enumMapping, json, knownWord, message, needed, sparse, without, word } from './mapping.ts';
import { metricBits, metricsOfBits } from './rowCounts.ts';

// ---- Tasks.

/** @returns null for a reference that is missing or malformed; a message without one is ignored */
export function taskRefFromWire(wire: TaskRef__Output | null): TaskRef | null {
  if (wire === null || !isJobId(wire.jobId) || wire.attempt < 1) return null;
  return { jobId: wire.jobId, attempt: wire.attempt, nodeRank: wire.nodeRank };
}

export function taskRefToWire(task: TaskRef): WireTaskRef {
  return { jobId: task.jobId, attempt: task.attempt, nodeRank: task.nodeRank };
}

const taskRef = { toWire: taskRefToWire, fromWire: taskRefFromWire };

// ---- Training and checkpoints.

type RowField = Exclude<keyof TrainingRow__Output, keyof training.TrainingRow | `_${string}`>;
/** The metrics of a row, with the fields that hold them: `train_loss` is in `trainLoss`. */
const rowFields = training.trainingMetricNames.map((name) => {
  const field = name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return [name, field as RowField] as const;
});

export function trainingRowToWire({ values, alsoNotFinite = [], ...row }: training.TrainingRow): WireRow {
  const fields = Object.fromEntries(rowFields.map(([name, field]) => [field, values[name]]));
  return { ...row, ...fields, alsoNotFinite: metricBits(alsoNotFinite) };
}

export function trainingRowFromWire(wire: TrainingRow__Output): training.TrainingRow {
  const { position, atMs, lossNotFinite } = wire;
  const values = rowFields.map(([name, field]) => [name, wire[field]] as const);
  const row = { position, atMs, values: finiteValues(values), lossNotFinite };
  const alsoNotFinite = metricsOfBits(wire.alsoNotFinite).filter(
    (name) => name !== 'train_loss' && row.values[name] === undefined,
  );
  return alsoNotFinite.length === 0 ? row : { ...row, alsoNotFinite };
}

/** Values of the metrics that this version knows. */
const trainingValues = {
  toWire: (values: training.TrainingValues) => values,
  fromWire: (wire: training.TrainingValues) =>
    finiteValues(training.trainingMetricNames.map((name) => [name, wire[name]])),
};

/** A number that is not finite was not read. */
function finiteValues(values: readonly (readonly [string, unknown])[]): training.TrainingValues {
  return Object.fromEntries(values.filter(([, value]) => Number.isFinite(value)));
}
export const progress = message<training.TrainingProgress>()('TrainingProgress', {
  latest: trainingValues,
  notFinite: sparse,
});

/** A sign of a kind that this version does not know cannot be read. */
const signKind = needed(knownWord(training.trainingSignKinds));
export const { toWire: trainingSignToWire, fromWire: trainingSignFromWire } =
  message<training.TrainingSign>()('TrainingSign', { kind: signKind });
export const hang = message<training.HangSign>()('HangSign', { gpus: word(training.gpuStillnesses, 'idle') });
/** Of a metric that this version does not know it is null. */
export const { toWire: summaryToWire, fromWire: summaryFromWire } = message<training.TrainingSummary>()(
  'TrainingSummary',
  { name: needed(knownWord(training.trainingMetricNames)) },
);

const ofCheckpoint = {
  verdict: word(checkpoints.checkpointVerdicts, 'unverified'),
  depth: knownWord(checkpoints.verificationDepths),
};
const evaluation = message<checkpoints.CheckpointEvaluation>()('CheckpointEvaluation', {
  state: word(checkpoints.evaluationStates, 'failed'),
});
const checkpointFacts = message<checkpoints.CheckpointFacts>()('Checkpoint', {
  ...ofCheckpoint,
  fingerprint: sparse,
  ...without('attempt', 'node', 'shared', 'suspect', 'diverged', 'evaluation', 'found', 'saverUnknown'),
});

export const { toWire: checkpointSeenToWire, fromWire: checkpointSeenFromWire } =
  message<checkpoints.CheckpointSeen>()('CheckpointSeen', {
    task: needed(taskRef),
    checkpoint: needed(checkpointFacts),
    by: sparse,
    attempt: sparse,
    found: sparse,
  });
const resume = message<views.Resume>()('Resume', { why: sparse });
export const { toWire: resumeToWire, fromWire: resumeFromWire } = resume;
const checkpointIdentity = message<checkpoints.CheckpointIdentity>()('CheckpointIdentity');
export const { toWire: lookOrderToWire, fromWire: lookOrderFromWire } = message<checkpoints.LookOrder>()(
  'LookOrder',
  { candidates: checkpointIdentity },
);
const foundCheckpoint = message<checkpoints.FoundCheckpoint>()('FoundCheckpoint', {
  checkpoint: needed(checkpointFacts),
});
export const { toWire: lookToWire, fromWire: lookFromWire } = message<checkpoints.CheckpointLook>()(
  'CheckpointLook',
  { found: foundCheckpoint },
);
export const ledgerEntry = message<views.LedgerEntry>()('LedgerEntry', {
  kind: needed(knownWord(views.ledgerKinds)),
  cause: word(causeKinds, 'unknown'),
});

// ---- Telemetry.

export const gpuUsage = message<telemetry.GpuUsage>()('GpuUsage');
const gpuReading = message<telemetry.GpuReading>()('GpuReading', { task: taskRef });
export const { toWire: gpuReadingToWire, fromWire: gpuReadingFromWire } = gpuReading;
export const { toWire: hostReadingToWire, fromWire: hostReadingFromWire } =
  message<telemetry.HostReading>()('HostReading');
export const { toWire: nodeTelemetryToWire, fromWire: nodeTelemetryFromWire } =
  message<telemetry.NodeTelemetry>()('NodeTelemetry', { gpus: gpuReading });
const point = message<telemetry.MetricPoint>()('MetricPoint', {
  step: sparse,
  notFinite: sparse,
  bucket: sparse,
});
const metricSource = message<telemetry.MetricSource>()('MetricSource', {
  source: needed(knownWord(telemetry.metricSourceNames)),
});
const metricOrigin = message<telemetry.MetricOrigin>()('MetricOrigin', { sources: metricSource });
const metricSeries = message<telemetry.MetricSeries>()('MetricSeries', {
  points: point,
  jobId: sparse,
  omitted: sparse,
  mergedPoints: sparse,
});
export const { toWire: metricUpdateToWire, fromWire: metricUpdateFromWire } =
  message<telemetry.MetricUpdate>()('MetricUpdate', { series: metricSeries });
export const { toWire: metricsToWire, fromWire: metricsFromWire } = message<telemetry.MetricsView>()(
  'QueryMetricsResponse',
  {
    series: metricSeries,
    nextSkip: sparse,
    thinned: sparse,
    origin: { ...metricOrigin, ...sparse },
  },
);

// ---- Gangs.

export const { toWire: endpointToWire, fromWire: endpointFromWire } = message<gangs.Endpoint>()('Endpoint');

export const { toWire: pathCheckToWire, fromWire: pathCheckFromWire } = message<gangs.PathCheck>()(
  'PathCheck',
  { preflight: message<NonNullable<gangs.PathCheck['preflight']>>()('Preflight', { master: needed() }) },
);

const backend = word(gangs.preflightBackends, 'tcp');
export const { toWire: findingsToWire, fromWire: findingsFromWire } = message<gangs.PathFindings>()(
  'PathFindings',
  { preflight: message<gangs.PreflightResult>()('PreflightResult', { backend }) },
);

export const taskFailure = message<gangs.TaskFailure>()('TaskFailure', {
  source: word(gangs.failureSources, 'exit'),
  kind: word(causeKinds, 'unknown'),
  blame: knownWord(blames),
});

// ---- Nodes.

const inventory = message<hardware.NodeInventory>()('NodeInventory', {
  gpuDriver: {
    ...message<hardware.GpuDriver>()('GpuDriver', {
      source: word(hardware.gpuSourceNames, 'none'),
      profilingSource: knownWord(hardware.profilingSourceNames),
    }),
    absent: hardware.emptyInventory.gpuDriver,
  },
  nics: message<hardware.Nic>()('Nic', { state: word(['up', 'down', 'unknown'], 'unknown') }),
});
export const { toWire: inventoryToWire, fromWire: inventoryFromWire } = inventory;

const condition = message<Condition>()('Condition', {
  severity: word(conditionSeverities, 'warning'),
  action: word(conditionActions, 'note'),
  clears: word(conditionEnds, 'by_hand'),
  task: taskRef,
});
export const { toWire: conditionToWire, fromWire: conditionFromWire } = condition;

export const { toWire: nodeToWire, fromWire: nodeFromWire } = message<views.NodeView>()('Node', {
  state: enumMapping('NODE_STATE_', nodeStates, 'silent'),
  inventory: { ...inventory, absent: hardware.emptyInventory },
  conditions: condition,
  bandwidths: message<gangs.PathBandwidth>()('PathBandwidth', { backend }),
  tasks: message<views.NodeTask>()('NodeTask', { task: needed(taskRef) }),
  orphans: message<views.OrphanTask>()('OrphanTask', { task: needed(taskRef) }),
});
const tokenBudget = message<people.TokenBudget>()('TokenBudget');
export const { toWire: tokenBudgetToWire, fromWire: tokenBudgetFromWire } = tokenBudget;
const budgetUse = message<people.BudgetUse>()('BudgetUse');
export const { toWire: budgetUseToWire } = budgetUse;
export const { toWire: callerToWire, fromWire: callerFromWire } = message<people.CallerView>()('Caller', {
  role: word(people.roles, 'viewer'),
  verbs: knownWord(people.verbs),
  budget: tokenBudget,
  used: budgetUse,
});
export const { fromWire: credentialFromWire } = message<views.CredentialView>()('Credential', {
  budget: tokenBudget,
  usedBudget: budgetUse,
});
export const { toWire: upkeepToWire, fromWire: upkeepFromWire } = message<upkeep.UpkeepView>()('Upkeep', {
  certificates: message<upkeep.CertificateEnd>()('CertificateEnd', {
    kind: needed(knownWord(upkeep.certificateKinds)),
  }),
  parts: message<upkeep.DiskPart>()('DiskPart', { part: needed(knownWord(upkeep.diskParts)) }),
});
export const { toWire: clockToWire, fromWire: clockFromWire } = message<ClockView>()('CoordinatorClock', {
  basis: word(clockBases, 'confirmed'),
});
export const { fromWire: clusterFromWire } = message<ClusterView>()('Cluster');

// ---- People.

export const { toWire: userToWire, fromWire: userFromWire } = message<people.User>()('User', {
  role: word(people.roles, 'viewer'),
});
export const { fromWire: projectFromWire } = message<people.Project>()('Project');

// ---- Jobs.

export const jobStateWire = enumMapping('JOB_STATE_', jobStates, 'queued');
const taskState = enumMapping('TASK_STATE_', taskStates, 'assigned');
const cause = message<views.Cause>()('Cause', {
  kind: word(causeKinds, 'unknown'),
  blame: word(blames, 'unknown'),
});
const taskEnd = message<views.TaskEnd>()('TaskExit', {
  startError: cause,
  failure: taskFailure,
  training: progress,
  rowsEnd: sparse,
});
export const { toWire: taskReportToWire, fromWire: taskReportFromWire } = message<views.TaskReport>()(
  'TaskReport',
  {
    task: needed(taskRef),
    state: taskState,
    exit: taskEnd,
    training: progress,
    hang,
    ...without('gpuUuids', 'jobName'),
  },
);
const attempt = message<views.AttemptView>()('Attempt', {
  state: enumMapping('ATTEMPT_STATE_', attemptStates, 'allocated'),
  tasks: message<views.TaskView>()('Task', { state: taskState, exit: taskEnd }),
  cause,
  resume,
  signs: message<views.AttemptSign>()('AttemptSign', { kind: signKind }),
});
const jobPhases = message<phases.PhasesView>()('JobPhases', {
  unit: word(phases.phaseUnits, 'steps'),
  phases: message<phases.PhaseView>()('JobPhase', {
    state: word(phases.phaseStates, 'current'),
    verdict: word(phases.phaseVerdicts, 'unknown'),
    checkpoint: message<NonNullable<phases.PhaseView['checkpoint']>>()('Resume', without('why')),
  }),
});
const pending = message<views.PendingReason>()('PendingReason', {
  kind: word(views.pendingKinds, 'scheduling'),
  waitMs: sparse,
});
export const { toWire: pendingToWire, fromWire: pendingFromWire } = pending;
export const { toWire: jobToWire, fromWire: jobFromWire } = message<views.JobView>()('Job', {
  state: jobStateWire,
  spec: json,
  pending,
  cause,
  attempts: attempt,
  excludedNodes: message<views.ExcludedNode>()('ExcludedNode', { cause: needed(cause) }),
  checkpoints: message<checkpoints.Checkpoint>()('Checkpoint', {
    ...ofCheckpoint,
    diverged: sparse,
    fingerprint: sparse,
    found: sparse,
    saverUnknown: sparse,
    evaluation: { ...evaluation, ...sparse },
  }),
  training: progress,
  phases: jobPhases,
  ledger: ledgerEntry,
});
export const { toWire: eventToWire, fromWire: eventFromWire } = message<views.EventView>()('Event', {
  cloudEvent: json,
});
export const { toWire: logPieceToWire, fromWire: logPieceFromWire } = message<views.LogPiece>()('LogPiece');

// ---- Alerts.

const alertScope = message<alerts.AlertScope>()('AlertScope', {
  kind: word(alerts.alertKinds, 'job'),
});
const severity = word(alerts.alertSeverities, 'warning');
export const { toWire: alertToWire, fromWire: alertFromWire } = message<alerts.AlertView>()('Alert', {
  severity,
  scope: needed(alertScope),
});

// ---- Sweeps.

const sweepUse = message<sweeps.SweepUseView>()('SweepUse');
const seedRun = message<sweeps.SeedRunView>()('SeedRun', { state: word(sweeps.seedRunStates, 'running') });
const trial = message<sweeps.TrialView>()('Trial', {
  state: word(sweeps.trialStates, 'running'),
  params: json,
  seeds: seedRun,
});
export const { toWire: trialToWire, fromWire: trialFromWire } = trial;
export const { toWire: sweepToWire, fromWire: sweepFromWire } = message<sweeps.SweepView>()('Sweep', {
  state: word(sweeps.sweepStates, 'running'),
  spec: json,
  best: trial,
  use: sweepUse,
});

/** An answer is what it carries as text: there is nothing beside it. */
export function adviceFromWire({ answer }: { readonly answer: string }): Readonly<Record<string, unknown>> {
  return json.fromWire(answer);
}

// ---- Pipelines.

const artifact = message<pipelines.ArtifactView>()('Artifact');
const pipelineStep = message<pipelines.PipelineStepView>()('PipelineStep', {
  state: word(pipelines.pipelineStepStates, 'waiting'),
  outputs: artifact,
});
export const { toWire: pipelineToWire, fromWire: pipelineFromWire } = message<pipelines.PipelineRunView>()(
  'PipelineRun',
  {
    state: word(pipelines.pipelineStates, 'running'),
    spec: json,
    params: json,
    steps: pipelineStep,
  },
);

const lineageStep = message<pipelines.LineageStepView>()('LineageStep', {
  state: word(pipelines.pipelineStepStates, 'waiting'),
  params: json,
  inputs: artifact,
  outputs: artifact,
});
export const { toWire: lineageToWire, fromWire: lineageFromWire } = message<pipelines.LineageView>()(
  'Lineage',
  { madeBy: lineageStep, usedBy: lineageStep },
);

const triggerFire = message<triggers.TriggerFireView>()('TriggerFire', {
  outcome: word(triggers.fireOutcomes, 'failed'),
});
export const { toWire: triggerFireToWire, fromWire: triggerFireFromWire } = triggerFire;
export const { toWire: triggerToWire, fromWire: triggerFromWire } = message<triggers.TriggerView>()(
  'Trigger',
  {
    kind: word(triggers.triggerKinds, 'cron'),
    overlap: word(triggers.overlapPolicies, 'skip'),
    missed: word(triggers.missedPolicies, 'run_once'),
    fires: triggerFire,
    blocked: message<triggers.TriggerBlock>()('TriggerBlock'),
    spec: json,
    params: json,
  },
);
