/** The view of a draft that the planner gets: nodes, the capacity that allocations leave free, and the queue. */
import type { Checkpoint } from '@muster/common/checkpoints';
import type { ArrayId, NodeName } from '@muster/common/ids';
import { awaitedPhase } from '../lifecycle/phases.ts';
import { mayBePreempted } from '../lifecycle/recovery.ts';
import { isKeptByNode, resumeCandidates } from '../lifecycle/resume.ts';
import { type Attempt, currentAttempt, type Job, type JobState, type Node } from '../model.ts';
import {
  type DependencyState,
  type ExcludedNodes,
  type Holder,
  noExcludedNodes,
  type Pin,
  type QueuedJob,
  type ResumeOption,
  type SchedulerView,
} from '../scheduler/view.ts';
import { dependencyState, type KnownJobs } from '../state/dependencies.ts';
import type { Draft } from '../state/state.ts';
import { SchedulerState, type Survey, surveyOf } from './schedulerState.ts';
import type { WaitTimes } from './waitTimes.ts';

/** An agent whose connection broke dials in again within seconds. */
const awaitedMs = 10_000;

/** What a view contains besides the draft. */
export interface PlanningInputs {
  readonly onlineNodes: ReadonlySet<string>;
  readonly waitTimes: WaitTimes;
  readonly memory: SchedulerState;
  /** The length of a lease, for jobs that name none. */
  readonly leaseMs: number;
  /** GPUs of a node that tasks hold which the store does not know. */
  readonly orphanGpus: (node: NodeName) => ReadonlySet<string>;
  /** The node has been away, and its paths to others have not been measured since. */
  readonly needsPreflight: (node: NodeName) => boolean;
}

/** Nodes alone, for who only wants to see what is free. */
export function buildView(
  draft: Draft,
  onlineNodes: ReadonlySet<string>,
  waitTimes: WaitTimes,
  orphanGpus: PlanningInputs['orphanGpus'],
  monotonicMs: number,
): SchedulerView {
  const memory = new SchedulerState();
  const around = {
    onlineNodes,
    waitTimes,
    memory,
    leaseMs: 0,
    orphanGpus,
    needsPreflight: () => false,
  };
  return planningView(draft, surveyOf(draft), around, monotonicMs);
}

/** By boot id, which tells machines apart. */
type Machines = ReadonlyMap<string, readonly Node[]>;

export function planningView(
  draft: Draft,
  { nodes, jobs, behind }: Survey,
  around: PlanningInputs,
  monotonicMs: number,
): SchedulerView {
  const { onlineNodes, memory, orphanGpus, needsPreflight } = around;
  const queue: QueuedJob[] = [];
  const holders: Holder[] = [];
  const held: Job[] = [];
  const arraysAtWork = new Map<ArrayId, number>();
  const machines: Machines = Map.groupBy(nodes, ({ bootId }) => bootId);
  for (const job of jobs) {
    const { state } = job;
    if (state.kind === 'queued') {
      const countBehind = behind.get(job.id);
      queue.push({
        ...queuedJob(draft, job, state, around, machines, monotonicMs),
        equals: countBehind === undefined ? null : { count: countBehind },
      });
      continue;
    }
    if (job.array !== null && job.spec.array?.atOnce != null)
      arraysAtWork.set(job.array.id, (arraysAtWork.get(job.array.id) ?? 0) + 1);
    const attempt = currentAttempt(job);
    if (attempt === null) continue;
    held.push(job);
    const holder = newHolder(job, attempt, memory);
    if (holder !== null) holders.push(holder);
  }
  const views = memory.nodeViews.of(nodes, held, (name) => {
    const online = onlineNodes.has(name);
    const awaySinceMs = online ? null : memory.awaySinceMs(name);
    const isAwaited = awaySinceMs !== null && monotonicMs < awaySinceMs + awaitedMs;
    return {
      online,
      awaitedUntilMs: isAwaited ? awaySinceMs + awaitedMs : null,
      orphaned: orphanGpus(name),
      needsPreflight: needsPreflight(name),
    };
  });
  return { nodes: views, queue, holders, arraysAtWork };
}

function queuedJob(
  draft: Draft,
  job: Job,
  state: Extract<JobState, { kind: 'queued' }>,
  around: PlanningInputs,
  machines: Machines,
  monotonicMs: number,
): Omit<QueuedJob, 'equals'> {
  const { sinceMs, notBeforeMs } = around.waitTimes.of(job, monotonicMs);
  const resumes = resumesOf(draft, job, machines);
  return {
    id: job.id,
    submitSeq: job.submitSeq,
    array: job.array?.id ?? null,
    spec: job.spec,
    notBeforeMs,
    waitingSinceMs: sinceMs,
    dependencies: dependenciesNow(draft, job),
    excludedNodes: excludedNodesOf(job),
    resumes,
    pin: pinOf(draft, job, state, resumes, around, monotonicMs),
    breakerFailures: state.breakerOpen ? job.failuresInRow : null,
    phase: awaitedPhase(job)?.name ?? null,
  };
}

const noResumes: readonly ResumeOption[] = [];

/** The checkpoints that the next attempt may resume from, but for those that no placement would choose. */
function resumesOf(draft: Draft, job: Job, machines: Machines): readonly ResumeOption[] {
  if (job.checkpoints.length === 0) return noResumes;
  const options: ResumeOption[] = [];
  for (const checkpoint of resumeCandidates(job)) {
    const { name, step, shared } = checkpoint;
    const home = checkpoint.node as NodeName;
    if (shared) return [...options, { name, step, home, readers: null }];
    const readers = readersOf(draft, job, checkpoint, machines);
    const isRead = options.some((better) => [...readers].every((reader) => better.readers?.has(reader)));
    if (!isRead) options.push({ name, step, home, readers });
  }
  return options;
}

/** Several agents may share a machine, and so a directory that a job names itself. */
function readersOf(
  draft: Draft,
  job: Job,
  checkpoint: Checkpoint,
  machines: Machines,
): ReadonlySet<NodeName> {
  const home = checkpoint.node as NodeName;
  const bootId = isKeptByNode(job.spec, checkpoint) ? undefined : draft.node(home)?.bootId;
  const neighbours = bootId === undefined ? [] : (machines.get(bootId) ?? []);
  return new Set([home, ...neighbours.map(({ name }) => name)]);
}

/**
 * The place of the checkpoint that it would best resume from, if one machine alone has it. Nobody knows whether a silent
 * machine will ever be back, so it binds for as long as a lease lasts, which is also how long its tasks are waited for; and
 * not at all once the attempt before has ended because it was lost.
 */
export function pinOf(
  draft: Draft,
  { spec }: Job,
  { lastCause }: Extract<JobState, { kind: 'queued' }>,
  [best]: readonly ResumeOption[],
  { onlineNodes, memory, leaseMs }: PlanningInputs,
  monotonicMs: number,
): Pin | null {
  const home = best === undefined ? undefined : draft.node(best.home);
  if (best === undefined || best.readers === null || home === undefined) return null;
  let untilMs: number | null = null;
  if (![...best.readers].some((name) => onlineNodes.has(name))) {
    if (lastCause?.kind === 'node_lost' && lastCause.node === best.home) return null;
    untilMs = (memory.awaySinceMs(best.home) ?? monotonicMs) + (spec.leaseMs ?? leaseMs);
    if (untilMs <= monotonicMs) return null;
  }
  return {
    node: best.home,
    nodes: best.readers,
    checkpoint: best.step === null ? best.name : `step ${best.step}`,
    untilMs,
  };
}

/** After its grace: for SIGKILL, a last look at what it has saved, and word of both. */
const overdueMs = 60_000;

/** @returns null: the attempt runs on, whatever happens to others */
export function newHolder(job: Job, attempt: Attempt, memory: SchedulerState): Holder | null {
  const { state, spec } = job;
  const isPreemptible = spec.preemptible && mayBePreempted(job) && state.kind !== 'stopping';
  if (!isPreemptible && state.kind !== 'stopping') return null;
  // One that even SIGKILL does not end may never end: what it holds is coming free no more than that of one that runs.
  const isOverdue = memory.stoppingForMs(job.id) > spec.stopGraceMs + overdueMs;
  const isStopping = state.kind === 'stopping' && !isOverdue;
  const isPreempted = isStopping && state.outcome.next === 'queued' && state.outcome.charge === 'preemption';
  const gpus = attempt.tasks.reduce((sum, { gpuUuids }) => sum + gpuUuids.length, 0);
  return {
    id: job.id,
    submitSeq: job.submitSeq,
    priority: spec.priority,
    tasks: attempt.tasks.filter((task) => task.state !== 'ended'),
    preemptor: isPreempted ? memory.preemptorOf(job.id, attempt.number) : null,
    state: isPreempted ? 'preempted' : isStopping ? 'ending' : 'active',
    isPreemptible,
    lostGpuSeconds: Math.round((memory.unsavedMs(job.id) / 1_000) * gpus),
    lostSince: lostSince(job, attempt),
  };
}

function lostSince({ checkpoints }: Job, { number, runningAtMs, savedAtMs }: Attempt): Holder['lostSince'] {
  if (runningAtMs === null) return null;
  if (savedAtMs === null) return 'start';
  const saved = checkpoints.findLast(({ attempt, verdict }) => attempt === number && verdict === 'verified');
  return { step: saved?.step ?? null };
}

function excludedNodesOf({ excludedNodes }: Job): ExcludedNodes {
  if (excludedNodes.length === 0) return noExcludedNodes;
  return new Map(excludedNodes.map(({ node, cause }) => [node as NodeName, cause.kind]));
}

/** One that has begun once waits for nobody any longer, no matter who is requeued. */
function dependenciesNow(draft: Draft, job: Job): DependencyState {
  const isMet = job.spec.after.length === 0 || job.lastAttempt > 0;
  return isMet ? { kind: 'met' } : dependencyState(knownTo(draft), job);
}

function knownTo(draft: Draft): KnownJobs {
  return {
    outcome: (id) => draft.outcome(id),
    successor: (id) => draft.successor(id),
    array: (id) => draft.arrayProgress(id),
  };
}
