/**
 * The turn of the coordinator in which one job ends: the planning pass on a full cluster with a long queue, and the start of
 * the job that takes the place. Nothing is stored on a disk. CPU time of the thread that plans, so that other programs on the
 * machine count little, and the memory of the process beside it. Where the kernel counts CPU time in ticks of some milliseconds,
 * the time on the wall tells more, as long as nothing else runs.
 *
 *     node --expose-gc bench/planning.ts [nodes] [queued] [turns]
 */
import type { JobId } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { TestClock } from '@muster/coordinator/coordinatorFixture';
import { Loop } from '@muster/coordinator/loop';
import type { Job, Node } from '@muster/coordinator/model';
import {
  aCaller,
  aJob,
  aNode,
  anAttempt,
  anExit,
  anInventory,
  aSpec,
  aTask,
  nodeNameOf,
  someGpus,
} from '@muster/coordinator/modelFixture';
import { WaitTimes } from '@muster/coordinator/planning/waitTimes';
import { applyJobEvent } from '@muster/coordinator/state/applyJobEvent';
import { ClusterState } from '@muster/coordinator/state/state';
import { noStoredAlerts } from '@muster/coordinator/store/alerts';
import { Memory, MemoryStore } from '@muster/coordinator/store/memory/memoryStore';
import { noStoredPipelines } from '@muster/coordinator/store/pipelines';
import { noStoredSweeps } from '@muster/coordinator/store/sweeps';
import { Contained } from '@muster/coordinator/work/contained';
import { report, reportMachine, rounded, summary } from './support.ts';

const [nodes = 1_000, queued = 10_000, turns = 200] = process.argv.slice(2).map(Number);
/** GPUs of the jobs that fill each node of eight. */
const sizes = [4, 2, 1, 1] as const;

class InstantStore extends MemoryStore {
  override commit(): Promise<void> {
    return Promise.resolve();
  }
}

function runningJob(number: number, node: string, gpuUuids: readonly string[]): Job {
  const task = aTask(0, { node: nodeNameOf(node), gpuUuids, state: 'running', cpus: 0, memoryMb: 0 });
  const attempt = anAttempt(1, { state: 'running', tasks: [task], runningAtMs: 1 });
  const spec = aSpec({ resources: { gpus: gpuUuids.length }, priority: 90 });
  return aJob(number, { spec, lastAttempt: 1, state: { kind: 'running', attempt } });
}

/** Thirty-odd kinds of jobs, each with a spec of its own, as clients send them. */
function queuedJob(number: number): Job {
  const kind = number % 36;
  const gpus = [1, 2, 4, 8][kind % 4] ?? 1;
  const resources = {
    gpus,
    ...(gpus === 8 ? { nodes: 1 + (kind % 3) } : {}),
    ...(kind % 2 === 0 ? { cpus: 4 } : {}),
  };
  return aJob(number, { spec: aSpec({ resources, priority: [10, 50, 80][kind % 3] ?? 50 }) });
}

const clusterNodes: Node[] = [];
const jobs: Job[] = [];
const running: JobId[] = [];
let number = 0;
for (let index = 0; index < nodes; index += 1) {
  const name = `node-${index}`;
  const gpus = someGpus(name, 8);
  clusterNodes.push(aNode(name, { inventory: anInventory({ gpus, cpus: 64 }) }));
  let taken = 0;
  for (const size of sizes) {
    const uuids = gpus.slice(taken, (taken += size)).map(({ uuid }) => uuid);
    const job = runningJob((number += 1), name, uuids);
    jobs.push(job);
    running.push(job.id);
  }
}
for (let index = 0; index < queued; index += 1) {
  jobs.push(queuedJob((number += 1)));
}

const state = new ClusterState({
  clusterId: 'bench',
  activeJobs: jobs,
  unfilledArrays: [],
  outcomes: new Map(),
  successors: new Map(),
  arrayFailures: new Map(),
  nodes: clusterNodes,
  credentials: [],
  users: [],
  projects: [],
  alerts: noStoredAlerts,
  sweeps: noStoredSweeps,
  pipelines: noStoredPipelines,
  evaluations: [],
  budgets: [],
  lastSubmitSeq: number,
  lastEventSeq: 0,
  subjectSeqs: new Map(),
});
const clock = new TestClock();
const waitTimes = new WaitTimes();
for (const job of state.jobs.values()) waitTimes.follow(job, clock.monotonicMs());
const online = new Set(state.nodes.keys());
const nothing = new Set<string>();
const loop = new Loop({
  state,
  store: new InstantStore(new Memory('bench')),
  clock,
  log: silentLogger,
  waitTimes,
  onlineNodes: () => online,
  paused: () => null,
  leaseMs: 60_000,
  leaseFreeBootId: null,
  orphanGpus: () => nothing,
  needsPreflight: () => false,
  onViolation: () => {},
  contained: new Contained(silentLogger, () => 0),
  followers: {},
  onFatal: (error) => {
    throw error;
  },
});
const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
}

/** Of the turn in which the job ends. */
async function end(id: JobId): Promise<Cost> {
  clock.nowMs += 1_000;
  const before = { cpuMs: cpuMs(), wallMs: performance.now() };
  await loop.run(aCaller, (draft, nowMs) => {
    const exit = anExit();
    applyJobEvent(draft, id, { kind: 'taskEnded', attempt: 1, nodeRank: 0, exit, failedAtMs: null }, nowMs);
  });
  return { cpuMs: cpuMs() - before.cpuMs, wallMs: performance.now() - before.wallMs };
}

reportMachine();
for (const id of running.splice(0, 20)) await end(id);
const startedBefore = state.jobs.size;
const costs: Cost[] = [];
// Ends are spread over the cluster, and over the sizes of jobs.
for (let turn = 0; turn < turns; turn += 1) {
  const [id] = running.splice((turn * 7_919) % running.length, 1);
  if (id !== undefined) costs.push(await end(id));
}
globalThis.gc?.();
const { heapUsed, rss } = process.memoryUsage();
report(`one job ends: ${nodes} nodes, ${queued} queued`, {
  cpuMs: summary(costs.map((cost) => cost.cpuMs)),
  wallMs: summary(costs.map((cost) => cost.wallMs)),
  jobsLess: startedBefore - state.jobs.size,
  heapMiB: rounded(heapUsed / 2 ** 20),
  rssMiB: rounded(rss / 2 ** 20),
});
await loop.stop();
