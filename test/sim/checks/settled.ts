/**
 * Checks the end of a run, when no fault is injected any longer. `liveness`: every job ends or has a true reason to wait,
 * nothing is left on any node, and a job that takes the whole cluster runs. By docs/guarantees.md, G1: jobs that were
 * answered to a client exist. G3: no GPU is held by an attempt that has ended. G5: a watch has received every event. G6: a
 * job has the state with which its events end.
 */

import type { Node__Output } from '@muster/common/gen/muster/v1/Node';
import type { JobId } from '@muster/common/ids';
import { parseDependency } from '@muster/common/spec/after';
import { isTerminal } from '@muster/common/states';
import type { JobView, NodeView } from '@muster/common/views';
import { nodeFromWire } from '@muster/common/wire/codec';
import { reserveAfterMs } from '@muster/coordinator/scheduler/plan';
import { CallError, type Client } from '../client.ts';
import { plainProgram } from '../machine.ts';
import type { Workload } from '../workload.ts';
import type { Site, World } from '../world.ts';
import type { AlertCheck } from './alerts.ts';
import { checkCauses } from './causes.ts';
import type { ClientCheck } from './clients.ts';
import type { ExecutionCheck } from './executions.ts';
import type { LedgerCheck } from './ledgers.ts';
import type { LogCheck } from './log.ts';
import type { PathsCheck } from './paths.ts';
import type { PipelineCheck } from './pipelines.ts';
import type { PreemptionCheck } from './preemptions.ts';
import type { SweepStepCheck } from './sweepSteps.ts';
import type { TriggerCheck } from './triggers.ts';
import type { Verdict } from './verdict.ts';

/** Far longer than all retries, backoffs and reconnects of a run together. */
const patienceMs = 600_000;
/** Two heartbeats and the clean-up after the last end. */
const cleanUpMs = 40_000;
/** Longer than a run waits for the last output of a step. */
const stepPatienceMs = 150_000;
/** Of a coordinator that may be paused still, and of data that has to stay as it is for a while. */
const firePatienceMs = 90_000;
const lookEveryMs = 2_000;
/** More than two looks of the coordinator at everything. */
const alertsSettleMs = 25_000;
/** Its user has seen enough of it then. */
const attemptsMax = 6;

export interface SettledParts {
  readonly world: World;
  readonly client: Client;
  readonly workload: Workload;
  readonly executions: ExecutionCheck;
  readonly log: LogCheck;
  readonly clients: ClientCheck;
  readonly paths: PathsCheck;
  readonly preemptions: PreemptionCheck;
  readonly ledgers: LedgerCheck;
  readonly alerts: AlertCheck;
  readonly pipelines: PipelineCheck;
  readonly triggers: TriggerCheck;
  readonly sweepSteps: SweepStepCheck;
  readonly verdict: Verdict;
}

export async function checkSettled(parts: SettledParts): Promise<void> {
  const { world, client, workload, log, verdict } = parts;
  const startMs = world.timeline.nowMs;
  let jobs: readonly JobView[] = [];
  let restSinceMs = startMs;
  for (;;) {
    await client.pause(lookEveryMs);
    const usersAreDone = workload.callsUnderway === 0;
    jobs = await persistently(client, () => client.listJobs());
    const stuck = jobs.filter((job) => needsStop(parts, job));
    await Promise.all(stuck.map((job) => workload.stop(job.id as JobId)));
    const areJobsAtRest = jobs.every((job) => isAtRest(parts, jobs, job)) && stuck.length === 0;
    if (!areJobsAtRest || !usersAreDone) restSinceMs = world.timeline.nowMs;
    const runsAreAtRest = parts.pipelines.isAtRest();
    if (runsAreAtRest && parts.triggers.isAtRest() && restSinceMs !== world.timeline.nowMs) break;
    if (world.timeline.nowMs - restSinceMs > (runsAreAtRest ? firePatienceMs : stepPatienceMs)) break;
    if (world.timeline.nowMs - startMs > patienceMs) break;
  }
  for (const job of jobs) {
    const isDone = isAtRest(parts, jobs, job);
    verdict.require(
      isDone,
      'liveness',
      () => `${job.id} (${job.name}) is ${job.state} for ever: ${why(job)}`,
    );
  }
  parts.pipelines.requireSettled();
  parts.triggers.requireSettled();
  parts.sweepSteps.requireSettled();
  checkCauses(parts);
  parts.ledgers.requireSums(jobs);
  parts.preemptions.requireCounts(jobs);
  for (const id of workload.acknowledged) {
    const job = jobs.find((each) => each.id === id);
    verdict.require(job !== undefined, 'G1', () => `${id} was answered to a client and is gone`);
    const end = job === undefined || !isTerminal(job.state) ? null : `job.${job.state}`;
    verdict.require(
      log.endOf(id) === end,
      'G6',
      () => `${id} is ${job?.state}, and its log ends with ${log.endOf(id)}`,
    );
  }
  if (verdict.violations.length > 0) return;
  await checkLeftovers(parts);
  await client.pause(alertsSettleMs);
  parts.alerts.requireSettled(world.sites.flatMap(({ machine, lost }) => (lost ? [] : machine.name)));
  // Nodes may be reserved for a job that waits long, but not for one that cannot run on what is left.
  if (jobs.some((job) => job.state === 'queued')) await client.pause(reserveAfterMs + lookEveryMs);
  if (verdict.violations.length === 0) await checkWholeClusterFree(parts);
}

/** Runs until somebody stops it, or waits for a machine that does not come back rather than use one it failed on. */
function needsStop({ workload, world }: SettledParts, job: JobView): boolean {
  if (isTerminal(job.state) || job.state === 'stopping') return false;
  const { kind, message } = job.pending ?? {};
  if (kind === 'no_nodes' && message?.includes('is excluded') && world.sites.some(({ lost }) => lost))
    return true;
  const { program, file } = workload.submissions.get(job.name) ?? {};
  // As long as it gets further each time, it is tried again for ever.
  if (program?.saveEveryMs !== null && (job.attempts.at(-1)?.number ?? 0) > attemptsMax) return true;
  return program?.runMs === null && file?.max_runtime === undefined;
}

/** It has ended, or waits for what nothing but a user, or a machine that is lost, can change. */
function isAtRest(parts: SettledParts, jobs: readonly JobView[], job: JobView): boolean {
  const { workload, world } = parts;
  if (isTerminal(job.state)) return true;
  const submission = workload.submissions.get(job.name);
  if (job.state !== 'queued' || submission === undefined) return false;
  const large = world.sites.filter(({ machine }) => machine.gpus.length >= submission.gpus);
  switch (job.pending?.kind) {
    case 'never_fits':
      return large.filter((site) => isKnownWhole(parts, site)).length < submission.nodes;
    case 'no_nodes':
      return large.filter((site) => !site.lost).length < submission.nodes;
    case 'dependency':
    case 'dependency_failed': {
      const [text = ''] = submission.file.after ?? [];
      const { on, when } = parseDependency(text);
      const dependency = newestRun(jobs, on);
      const isOver = dependency !== undefined && isTerminal(dependency.state);
      const isMet = isOver && (when === 'any' || (dependency.state === 'succeeded') === (when === 'ok'));
      return dependency !== undefined && !isMet && isAtRest(parts, jobs, dependency);
    }
    default:
      return false;
  }
}

/** The job, or the newest that runs it again. */
function newestRun(jobs: readonly JobView[], id: string): JobView | undefined {
  const again = jobs
    .filter(({ requeuedFrom }) => requeuedFrom === id)
    .toSorted((a, b) => a.submitSeq - b.submitSeq)
    .at(-1);
  return again === undefined ? jobs.find((each) => each.id === id) : newestRun(jobs, again.id);
}

/** The coordinator knows of all its GPUs; of a machine that is gone for good, it may have heard of fewer last. */
function isKnownWhole({ log }: SettledParts, { machine, lost }: Site): boolean {
  return log.joined.has(machine.name) && !(lost && machine.health.everIncomplete);
}

async function checkLeftovers({
  world,
  client,
  clients,
  executions,
  log,
  verdict,
}: SettledParts): Promise<void> {
  const standing = world.sites.filter((site) => !site.lost);
  const leftovers = () => [
    ...[...executions.running.keys()].map((key) => `${key} still runs`),
    ...standing.flatMap(({ machine }) => [
      ...[...machine.disk.records.keys()].map((key) => `${machine.name} keeps a record of ${key}`),
      ...[...machine.processes.keys()].map((key) => `the guard of ${machine.name} keeps ${key}`),
    ]),
  ];
  const deadlineMs = world.timeline.nowMs + cleanUpMs;
  while (leftovers().length > 0 && world.timeline.nowMs < deadlineMs) await client.pause(500);
  for (const leftover of leftovers()) verdict.require(false, 'liveness', () => leftover);

  const listStanding = async () => {
    const nodes = await listNodes(client);
    return nodes.filter((node) => standing.some(({ machine }) => machine.name === node.name));
  };
  while (clients.watchedSeq < log.events.length && world.timeline.nowMs < deadlineMs) await client.pause(500);
  const { watchedSeq } = clients;
  const missing = () => `a watch got ${watchedSeq} of ${log.events.length} events`;
  verdict.require(watchedSeq === log.events.length, 'G5', missing);

  let nodes = await listStanding();
  const isWell = (node: NodeView) => node.state === 'online' && node.conditions.length === 0;
  // A job that waits for a lost machine may have been given an attempt by the last report of that machine.
  const isFree = (node: NodeView) => isWell(node) && node.gpuUses.length === 0;
  while (!nodes.every(isFree) && world.timeline.nowMs < deadlineMs) {
    await client.pause(500);
    nodes = await listStanding();
  }
  for (const node of nodes) {
    const { name, state, conditions } = node;
    verdict.require(isWell(node), 'liveness', () => `${name} is ${state}: ${JSON.stringify(conditions)}`);
    verdict.require(
      node.gpuUses.length === 0,
      'G3',
      () => `${node.name} has GPUs in use: ${JSON.stringify(node.gpuUses)}`,
    );
  }
}

/** One gang over all machines that are left with as many GPUs as each has can only run when nothing is held back anywhere. */
async function checkWholeClusterFree({ world, client, workload, verdict }: SettledParts): Promise<void> {
  const standing = world.sites.filter((site) => !site.lost);
  const gpus = Math.min(...standing.map(({ machine }) => machine.gpus.length));
  const program = plainProgram(100);
  const resources = { nodes: standing.length, gpus };
  const file = { name: 'whole-cluster', command: ['simulate', JSON.stringify(program)], resources };
  workload.submissions.set(file.name, {
    name: file.name,
    requestId: 'whole',
    file,
    program,
    ...resources,
  });
  const [id] = await client.submit('whole', file, 0);
  const deadlineMs = world.timeline.nowMs + cleanUpMs;
  let job: JobView | undefined;
  do {
    await client.pause(250);
    job = (await persistently(client, () => client.listJobs())).find((each) => each.id === id);
  } while (job?.state !== 'succeeded' && world.timeline.nowMs < deadlineMs);
  verdict.require(
    job?.state === 'succeeded',
    'liveness',
    () => `a job over the whole cluster is ${job?.state}`,
  );
}

async function listNodes(client: Client): Promise<readonly NodeView[]> {
  const { nodes } = await persistently(client, () => client.call<{ nodes: Node__Output[] }>('ListNodes', {}));
  return nodes.map(nodeFromWire);
}

async function persistently<T>(client: Client, call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CallError) || !error.isUnanswered) throw error;
    }
    await client.pause(200);
  }
}

function why(job: JobView): string {
  return JSON.stringify(job.pending ?? job.cause);
}
