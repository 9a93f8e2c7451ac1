/**
 * What alerts cost: 1,000 rules over 1,000 running jobs whose values change every ten seconds, as heartbeats and readings make them.
 * One pass looks at every job as if all of them had something new; a core has ten seconds for it.
 *
 * - `ofOneJob`: each rule looks at one job, as a tool sets them.
 * - `fewConditions`: each rule looks at every job, and the rules have ten conditions among them.
 * - `ownConditions`: each rule looks at every job, and no two conditions are the same: a million evaluations in a pass.
 *
 * `cpuMsPerHeartbeats` is what a heartbeat about every job costs that has nothing new.
 */
import { bareGpu } from '@muster/common/hardware';
import { silentLogger } from '@muster/common/log';
import { AlertWatch } from '@muster/coordinator/alertWatch/alertWatch';
import { TestClock } from '@muster/coordinator/coordinatorFixture';
import { aJob, aNode, anAttempt, anInventory, aTask, jobIdOf } from '@muster/coordinator/modelFixture';
import { ClusterState } from '@muster/coordinator/state/state';
import { noStoredAlerts, type StoredAlert } from '@muster/coordinator/store/alerts';
import { Memory, MemoryStore } from '@muster/coordinator/store/memory/memoryStore';
import { noStoredPipelines } from '@muster/coordinator/store/pipelines';
import { noStoredSweeps } from '@muster/coordinator/store/sweeps';

const count = 1_000;
const passes = 5;
const passEverySeconds = 10;

const conditionOf = (number: number) =>
  `gpu_utilization < ${number}.0 && running_for > duration('10m') && workload_state == 'running'`;

function ruleOf(number: number, condition: string, jobId: string | null): StoredAlert {
  return {
    name: `rule-${number}`,
    severity: 'warning',
    condition,
    message: '{workload_name} is idle',
    labels: {},
    forMs: 0,
    repeatMs: null,
    scope: { kind: 'job', jobId, labels: {}, project: null, nodes: [] },
    owner: 'admin',
    createdAtMs: 0,
  };
}

const uuidOf = (number: number) => `GPU-${number}`;
const nodes = Array.from({ length: count }, (_, number) =>
  aNode(`node-${number}`, { inventory: anInventory({ gpus: [bareGpu(uuidOf(number))] }) }),
);
const jobs = nodes.map((node, number) => {
  const task = aTask(0, { node: node.name, gpuUuids: [uuidOf(number)], state: 'running' });
  const attempt = anAttempt(1, { state: 'running', runningAtMs: 1, tasks: [task] });
  return aJob(number, { state: { kind: 'running', attempt }, lastAttempt: 1 });
});

const reading = {
  intervalMs: 10_000,
  memoryUsedMb: 40_000,
  powerWatts: 300,
  energyJoules: 3_000,
  smActive: null,
  tensorActive: null,
  dramActive: null,
  temperature: 60,
  nvlinkReceiveBytes: null,
  nvlinkTransmitBytes: null,
};

/** CPU seconds of one pass over everything, the mean of some. */
async function measure(
  rules: readonly StoredAlert[],
): Promise<{ evaluations: number; cpuSeconds: number; heartbeatsSeconds: number }> {
  const clock = new TestClock();
  const memory = new Memory('bench');
  const store = new MemoryStore(memory);
  const state = new ClusterState({
    ...(await store.load()),
    activeJobs: jobs,
    alerts: { ...noStoredAlerts, rules },
    sweeps: noStoredSweeps,
    pipelines: noStoredPipelines,
    nodes,
  });
  let utilization = 5_000;
  const watch = new AlertWatch({
    state,
    store,
    builtIn: [],
    log: silentLogger,
    loop: { run: () => Promise.reject(new Error('nothing is to fire here')) },
    agents: { isSilent: () => false, silentForMs: () => 0 },
    taskStatus: { of: () => ({ frozen: false, doing: null, training: null, hang: null, signs: [] }) },
    telemetry: {
      newest: (node) => ({
        node,
        host: null,
        gpus: (state.nodes.get(node)?.inventory.gpus ?? []).map(({ uuid }) => ({
          ...reading,
          gpuUuid: uuid,
          atMs: clock.wallMs(),
          task: { jobId: jobIdOf(Number(uuid.slice('GPU-'.length))), attempt: 1, nodeRank: 0 },
          utilization,
        })),
      }),
    },
    machine: { diskFreePercent: () => null, certificateExpiresAtMs: () => null },
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
  });
  await watch.run();
  const startedAt = process.cpuUsage();
  for (let pass = 0; pass < passes; pass += 1) {
    clock.nowMs += passEverySeconds * 1_000;
    utilization = 5_001 + pass;
    await watch.run();
  }
  const { user, system } = process.cpuUsage(startedAt);
  const heardAt = process.cpuUsage();
  for (let round = 0; round < passes; round += 1) {
    clock.nowMs += 1_000;
    for (const { id } of jobs) watch.noteSample(id);
    await watch.run();
  }
  const heard = process.cpuUsage(heardAt);
  const heartbeatsSeconds = (heard.user + heard.system) / 1e6 / passes;
  const conditions = new Set(rules.map(({ condition }) => condition)).size;
  const evaluations = rules[0]?.scope.jobId === null ? conditions * count : rules.length;
  return { evaluations, cpuSeconds: (user + system) / 1e6 / passes, heartbeatsSeconds };
}

const cases = {
  ofOneJob: jobs.map(({ id }, number) => ruleOf(number, conditionOf(number % 20), id)),
  fewConditions: jobs.map((_, number) => ruleOf(number, conditionOf(number % 10), null)),
  ownConditions: jobs.map((_, number) => ruleOf(number, conditionOf(number), null)),
};

const results: Record<string, object> = {};
for (const [name, rules] of Object.entries(cases)) {
  const { evaluations, cpuSeconds, heartbeatsSeconds } = await measure(rules);
  const core = (100 * cpuSeconds) / passEverySeconds;
  results[name] = {
    rules: rules.length,
    jobs: count,
    evaluationsPerPass: evaluations,
    cpuMsPerPass: Math.round(cpuSeconds * 1_000),
    cpuMsPerHeartbeats: Math.round(heartbeatsSeconds * 1_000),
    percentOfACore: Math.round(core * 10) / 10,
  };
}
process.stdout.write(`${JSON.stringify(results, null, 2)}\n`);
