/** What the coordinator remembers, as the API shows it. */
import { drainedBy } from '@muster/common/conditions';
import type { NodeInventory } from '@muster/common/hardware';
import type { JobId, NodeName } from '@muster/common/ids';
import { jobSpecToFile, shownSettings } from '@muster/common/spec/serialize';
import { traceIdOf } from '@muster/common/traceContext';
import type { TrainingProgress } from '@muster/common/training';
import type { AttemptView, Cause, JobView, NodeView, PendingReason } from '@muster/common/views';
import type { TaskStatusCache } from './agents/taskStatusCache.ts';
import { gpuUsageOf, ledgerOf } from './lifecycle/ledger.ts';
import { phasesView } from './lifecycle/phasesView.ts';
import type { Attempt, Job, Node } from './model.ts';
import { currentAttempt } from './model.ts';
import { stopAtMs } from './reconcilers/drains.ts';
import { ownName, ownSpec } from './spec/ownSpec.ts';
import type { HeldTask } from './state/heldTasks.ts';

const notLookedAtYet: PendingReason = {
  kind: 'scheduling',
  message: 'the scheduler has not looked at it yet',
  remedy: null,
};

/** What nodes have, by name; null: nothing is known of it. */
export type InventoryOf = (node: NodeName) => NodeInventory | null;

/**
 * @param reason by the last scheduling pass; undefined when there was none since
 * @param taskStatus what agents report of its tasks now
 * @param nowMs wall clock: how long it has waited or run since its last change counts, too
 * @param inventoryOf for the numbers of its GPUs; default: they are not included
 */
export function jobView(
  job: Job,
  attempts: readonly Attempt[],
  reason: PendingReason | undefined,
  taskStatus: Pick<TaskStatusCache, 'of'>,
  nowMs: number,
  inventoryOf: InventoryOf = () => null,
): JobView {
  return {
    ...shownAnywhere(job, attempts, reason, taskStatus),
    spec: { ...jobSpecToFile(ownSpec(job)) },
    attempts: attempts.map((attempt) => attemptView(job.id, attempt, taskStatus, inventoryOf)),
    ledger: ledgerOf(job, nowMs),
    costUsd: null,
    outputAtMs: null,
  };
}

/** What a table of jobs does not show. Without it most of the work of a long list is saved on both sides. */
const notInTables = {
  traceId: '',
  requeuedFrom: null,
  resumedFrom: null,
  excludedNodes: [],
  checkpoints: [],
  ledger: [],
  costUsd: null,
  outputAtMs: null,
} satisfies Partial<JobView>;

/** A job of a table. The parameters are those of `jobView`. */
export function briefJobView(
  job: Job,
  attempts: readonly Attempt[],
  reason: PendingReason | undefined,
  taskStatus: Pick<TaskStatusCache, 'of'>,
): JobView {
  const shown = shownAnywhere(job, attempts, reason, taskStatus);
  return {
    ...shown,
    ...notInTables,
    spec: shownSettings(job.spec),
    cause: shown.cause && { ...shown.cause, evidence: null },
    attempts: attempts.slice(-1).map((attempt) => briefAttemptView(job.id, attempt, taskStatus)),
  };
}

/** What a table shows of a job as the job's own page does. What only the coordinator keeps, the mapping to the wire leaves out. */
function shownAnywhere(
  job: Job,
  attempts: readonly Attempt[],
  reason: PendingReason | undefined,
  taskStatus: Pick<TaskStatusCache, 'of'>,
) {
  const { state } = job;
  const training = trainingOf(job, attempts, taskStatus);
  return {
    ...job,
    traceId: traceIdOf(job.id, job.traceparent),
    name: ownName(job),
    project: job.spec.project,
    state: state.kind,
    endedAtMs: 'endedAtMs' in state ? state.endedAtMs : null,
    pending: state.kind === 'queued' ? (reason ?? notLookedAtYet) : null,
    cause: causeOf(job),
    training,
    phases: phasesView(job, training),
  };
}

/** By the first rank that reports it: as it is now, else as its newest task left it. */
function trainingOf(
  job: Job,
  attempts: readonly Attempt[],
  taskStatus: Pick<TaskStatusCache, 'of'>,
): TrainingProgress | null {
  const live = liveTraining(job, taskStatus);
  if (live !== null) return live;
  for (const { tasks } of attempts.toSorted((a, b) => b.number - a.number)) {
    const left = tasks.find(({ exit }) => exit !== null && exit.training !== null);
    if (left?.exit != null) return left.exit.training;
  }
  return null;
}

/** Where the training of its current attempt is, by the first rank that reports it. */
export function liveTraining(job: Job, taskStatus: Pick<TaskStatusCache, 'of'>): TrainingProgress | null {
  for (const { nodeRank } of currentAttempt(job)?.tasks ?? []) {
    const { training } = taskStatus.of({ jobId: job.id, attempt: job.lastAttempt, nodeRank });
    if (training !== null) return training;
  }
  return null;
}

/** Why it ended or is ending; for a queued job, why its attempt before did. */
function causeOf(job: Job): Cause | null {
  const { state } = job;
  switch (state.kind) {
    case 'queued':
      return state.lastCause;
    case 'stopping':
      return state.outcome.cause;
    case 'failed':
    case 'cancelled':
      return state.cause;
    case 'starting':
    case 'running':
    case 'succeeded':
      return null;
    default: {
      const never: never = state;
      return never;
    }
  }
}

function attemptView(
  jobId: JobId,
  attempt: Attempt,
  taskStatus: Pick<TaskStatusCache, 'of'>,
  inventoryOf: InventoryOf,
): AttemptView {
  const noted = attempt.tasks.map(({ nodeRank }) =>
    taskStatus.of({ jobId, attempt: attempt.number, nodeRank }),
  );
  return {
    ...attempt,
    tasks: attempt.tasks.map((task, index) => {
      const { frozen = false, doing = null } = noted[index] ?? {};
      const address = attempt.network?.addresses[task.nodeRank] ?? null;
      const gpuIndexes = gpuIndexesOf(task.gpuUuids, inventoryOf(task.node));
      return { ...task, frozen, doing, address, gpuIndexes };
    }),
    masterAddr: attempt.master?.addr ?? null,
    masterPort: attempt.master?.port ?? null,
    gpuUsage: gpuUsageOf(attempt),
    // What one agent suspects is a hang only once the coordinator has found it to be one.
    hangs: attempt.hungAtMs !== null && noted.some(({ hang }) => hang !== null),
  };
}

function briefAttemptView(
  jobId: JobId,
  attempt: Attempt,
  taskStatus: Pick<TaskStatusCache, 'of'>,
): AttemptView {
  const shown = attemptView(jobId, attempt, taskStatus, () => null);
  const tasks = shown.tasks.filter(({ frozen, doing }) => frozen || doing !== null);
  return {
    ...shown,
    cause: shown.cause && { ...shown.cause, message: '', evidence: null },
    tasks: tasks.map((task) => ({ ...task, exit: null, gpuUuids: [], address: null })),
    masterAddr: null,
    masterPort: null,
    gpuUsage: null,
    resume: null,
  };
}

/** Empty unless all of them are known: a GPU that was replaced has no number any longer. */
function gpuIndexesOf(uuids: readonly string[], inventory: NodeInventory | null): readonly number[] {
  const indexes = uuids.flatMap((uuid) => {
    const index = inventory?.gpus.find((gpu) => gpu.uuid === uuid)?.index ?? null;
    return index === null ? [] : [index];
  });
  return indexes.length === uuids.length ? indexes : [];
}

/** What leases and preflights know of a node. */
type NodeExtras = Pick<NodeView, 'fencedInMs' | 'bandwidths' | 'orphans'>;

const noExtras: NodeExtras = { fencedInMs: null, bandwidths: [], orphans: [] };

export function nodeView(
  node: Node,
  tasks: readonly HeldTask[],
  online: boolean,
  silentForMs: number | null,
  { fencedInMs, bandwidths, orphans } = noExtras,
): NodeView {
  const { conditions, inventory } = node;
  const drained = drainedBy(conditions, inventory);
  return {
    name: node.name,
    state: online ? 'online' : 'silent',
    inventory,
    agentVersion: node.agentVersion,
    joinedAtMs: node.joinedAtMs,
    silentForMs,
    gpuUses: [
      ...tasks.flatMap(({ job, task }) =>
        task.gpuUuids.map((uuid) => ({ uuid, jobId: job.id, attempt: job.lastAttempt })),
      ),
      ...orphans.flatMap(({ task: { jobId, attempt }, gpuUuids }) =>
        gpuUuids.map((uuid) => ({ uuid, jobId, attempt })),
      ),
    ],
    cpusUsed: exactSum(tasks.map(({ task }) => task.cpus)),
    memoryUsedMb: tasks.reduce((sum, { task }) => sum + task.memoryMb, 0),
    conditions,
    drained: drained.node || node.drain !== null,
    drainedGpuUuids: [...drained.gpuUuids],
    fencedInMs,
    bandwidths,
    drain: node.drain,
    tasks: tasks.map(({ job, attempt, task }) => ({
      task: { jobId: job.id, attempt: attempt.number, nodeRank: task.nodeRank },
      name: job.spec.name,
      gpus: task.gpuUuids.length,
      cpus: task.cpus,
      stopAtMs: stopAtMs(job, node.drain),
      stopping: job.state.kind === 'stopping',
    })),
    orphans,
  };
}

/** Of CPUs, which jobs may ask for in parts: three tenths are 0.3, and not what adding tenths in binary makes of them. */
function exactSum(cpus: readonly number[]): number {
  return Math.round(cpus.reduce((sum, each) => sum + each, 0) * 1e6) / 1e6;
}
