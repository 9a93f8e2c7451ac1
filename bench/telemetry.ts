/**
 * What the telemetry of many nodes costs the coordinator: CPU and memory of one real coordinator process while a process
 * of its own plays the agents, each with a session and a telemetry stream on connections of their own and a job on all of
 * its GPUs; and the memory of the store over a simulated day.
 *
 *     node bench/telemetry.ts [agents] [seconds]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, type ClientDuplexStream, credentials } from '@grpc/grpc-js';
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage__Output } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { TelemetryRequest__Output } from '@muster/common/gen/muster/v1/TelemetryRequest';
import type { TelemetryUpload } from '@muster/common/gen/muster/v1/TelemetryUpload';
import { bareGpu, emptyInventory } from '@muster/common/hardware';
import type { JobId, NodeName, TaskRef } from '@muster/common/ids';
import { type GpuReading, readingIntervalMs } from '@muster/common/telemetry';
import { bearer } from '@muster/common/wire/channel';
import { connectMuster } from '@muster/common/wire/client';
import { gpuReadingToWire, hostReadingToWire, inventoryToWire } from '@muster/common/wire/codec';
import { agentHubService } from '@muster/common/wire/service';
import { coordinatorDefaults } from '@muster/coordinator/options';
import { quietMachine, report, reportMachine, rounded } from './support.ts';

const self = fileURLToPath(import.meta.url);
const gpusPerNode = 8;
const heartbeatMs = coordinatorDefaults.heartbeatIntervalMs;
const mebibyte = 1024 * 1024;

const nodeName = (index: number) => `node-${index}` as NodeName;
const gpuUuid = (node: number, gpu: number) =>
  `GPU-${String(node).padStart(8, '0')}-0000-0000-0000-00000000000${gpu}`;

/** Every field is read, and none is the same twice: the most that a reading can weigh. */
function readingOf(node: number, gpu: number, atMs: number, task: TaskRef | null): GpuReading {
  const wave = (atMs / readingIntervalMs + node + gpu) % 97;
  return {
    gpuUuid: gpuUuid(node, gpu),
    atMs,
    intervalMs: readingIntervalMs,
    task,
    utilization: wave + 0.5,
    memoryUsedMb: 40_000 + wave,
    powerWatts: 400 + wave,
    energyJoules: 4_000 + wave * 10,
    smActive: wave / 100,
    tensorActive: wave / 200,
    dramActive: wave / 300,
    temperature: 40 + wave / 4,
    nvlinkReceiveBytes: null,
    nvlinkTransmitBytes: null,
  };
}

// ---- A coordinator

interface Usage {
  readonly cpuMs: number;
  readonly rssMib: number;
  readonly heapMib: number;
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return {
    cpuMs: (user + system) / 1_000,
    rssMib: rounded(rss / mebibyte),
    heapMib: rounded(heapUsed / mebibyte),
  };
}

async function beCoordinator(dataDir: string): Promise<void> {
  const { runCoordinator } = await import('@muster/coordinator/main');
  const { address, httpAddress, close } = await runCoordinator({
    ...coordinatorDefaults,
    dataDir,
    listen: '127.0.0.1:0',
    httpListen: '127.0.0.1:0',
    apiListen: null,
    logLevel: 'warn',
  });
  process.on('message', (question) => {
    if (question === 'usage') process.send?.(usage());
    else void close().then(() => process.exit(0));
  });
  process.send?.({ address, httpAddress });
}

// ---- The agents

interface LoadOrder {
  readonly address: string;
  readonly adminToken: string;
  readonly agents: number;
}

interface Agent {
  readonly index: number;
  readonly credential: string;
  task: TaskRef | null;
  isRunning: boolean;
}

/** Sends `running` once every agent's job runs, begins to send telemetry on request, and then counts uploads. */
async function beAgents(): Promise<void> {
  const [order] = (await once(process, 'message')) as [LoadOrder];
  const api = connectMuster({ address: order.address, token: order.adminToken });
  const agents: Agent[] = [];
  for (let from = 0; from < order.agents; from += 50) {
    const indices = Array.from({ length: Math.min(50, order.agents - from) }, (_, offset) => from + offset);
    agents.push(...(await Promise.all(indices.map((index) => joined(order, index)))));
  }
  const spec = { name: 'train', command: ['true'], resources: { gpus: gpusPerNode, cpus: 1, memory_mb: 1 } };
  for (const agent of agents) openSession(order.address, agent);
  while ((await api.getCluster()).nodesOnline < order.agents) await delay(200);
  await api.submit({ specJson: JSON.stringify(spec), requestId: 'bench', arraySize: order.agents });
  while (agents.some(({ isRunning }) => !isRunning)) await delay(200);
  process.send?.('running');
  await once(process, 'message');
  let uploads = 0;
  for (const agent of agents) {
    const stream = openStream<TelemetryUpload, TelemetryRequest__Output>(
      order.address,
      agent,
      'UploadTelemetry',
    );
    const upload = () => {
      stream.write(uploadOf(agent));
      uploads += 1;
    };
    // Spread evenly over the interval, as agents that were started at different times are.
    setTimeout(
      () => {
        upload();
        setInterval(upload, readingIntervalMs);
      },
      (agent.index * readingIntervalMs) / order.agents,
    );
  }
  process.on('message', () => process.send?.(uploads));
}

async function joined({ address, adminToken }: LoadOrder, index: number): Promise<Agent> {
  const api = connectMuster({ address, token: adminToken });
  const { token: joinToken } = await api.createJoinToken(nodeName(index));
  api.close();
  const credential = `muster_agent_${String(index).padStart(64, '0')}`;
  const client = new Client(address, credentials.createInsecure());
  const { path, requestSerialize, responseDeserialize } = agentHubService.Join;
  await new Promise<void>((resolve, reject) => {
    const request = { joinToken, nodeName: nodeName(index), credential };
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      bearer(joinToken),
      (error) => (error === null ? resolve() : reject(error)),
    );
  });
  client.close();
  return { index, credential, task: null, isRunning: false };
}

/** On a connection of its own, as agents have it. */
function openStream<Sent, Received>(
  address: string,
  agent: Agent,
  name: 'Session' | 'UploadTelemetry',
): ClientDuplexStream<Sent, Received> {
  const client = new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const { path, requestSerialize, responseDeserialize } = agentHubService[name];
  const stream = client.makeBidiStreamRequest(
    path,
    requestSerialize as (value: Sent) => Buffer,
    responseDeserialize as unknown as (bytes: Buffer) => Received,
    bearer(agent.credential),
  );
  stream.on('error', (error) => {
    process.stderr.write(`${nodeName(agent.index)}: ${error.message}\n`);
    process.exit(1);
  });
  return stream;
}

function openSession(address: string, agent: Agent): void {
  const { index } = agent;
  const session = openStream<AgentMessage, CoordinatorMessage__Output>(address, agent, 'Session');
  const gpus = Array.from({ length: gpusPerNode }, (_, gpu) => bareGpu(gpuUuid(index, gpu)));
  const inventory = inventoryToWire({
    ...emptyInventory,
    gpus,
    cpus: 64,
    memoryMb: 500_000,
    drivers: ['process'],
  });
  session.write({
    hello: {
      protocolVersion: 2,
      agentVersion: '0',
      instanceId: `${index}`,
      bootId: 'b',
      inventory,
      observed: [],
    },
  });
  session.on('data', ({ prepare, start: started }: CoordinatorMessage__Output) => {
    if (prepare?.task != null) {
      agent.task = prepare.task as TaskRef;
      session.write({ prepared: { task: prepare.task, master: { addr: '127.0.0.1', port: 20_000 } } });
    }
    if (started?.task != null) {
      session.write({ report: { task: started.task, state: 'TASK_STATE_RUNNING', runningForMs: 1 } });
      agent.isRunning = true;
    }
  });
  const beat = () => {
    const observed = agent.task === null ? [] : [{ task: agent.task, state: 'TASK_STATE_RUNNING' as const }];
    session.write({ heartbeat: { seq: 1, sentBoottimeMs: 1, observed: agent.isRunning ? observed : [] } });
  };
  setTimeout(() => setInterval(beat, heartbeatMs), (index % 100) * (heartbeatMs / 100));
}

function uploadOf({ index, task }: Agent): TelemetryUpload {
  const atMs = Date.now();
  const gpus = Array.from({ length: gpusPerNode }, (_, gpu) =>
    gpuReadingToWire(readingOf(index, gpu, atMs, task)),
  );
  const host = hostReadingToWire({
    atMs,
    intervalMs: readingIntervalMs,
    cpuUtilization: 12.5,
    memoryUsedMb: 100_000,
    load1: 3.5,
    networkReceiveBytes: 1e8,
    networkTransmitBytes: 1e8,
  });
  return { gpus, host };
}

// ---- A day in the store

/** Every hour the jobs change. After six hours the first readings are too old, so from the seventh on nothing may grow. */
async function beStore(nodeCount: number): Promise<void> {
  const { TelemetryStore } = await import('@muster/coordinator/telemetry/telemetryStore');
  const { aJob, aNode, anAttempt, anInventory, aTask } = await import('@muster/coordinator/modelFixture');
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs, wallMs: () => 1.7e12 + clock.nowMs };
  const state = {
    jobs: new Map<JobId, ReturnType<typeof aJob>>(),
    nodes: new Map(
      Array.from({ length: nodeCount }, (_, index) => {
        const gpus = Array.from({ length: gpusPerNode }, (__, gpu) => bareGpu(gpuUuid(index, gpu)));
        return [nodeName(index), aNode(nodeName(index), { inventory: anInventory({ gpus }) })] as const;
      }),
    ),
  };
  const startJobs = (hour: number): readonly TaskRef[] => {
    state.jobs.clear();
    return Array.from({ length: nodeCount }, (_, index) => {
      const gpuUuids = Array.from({ length: gpusPerNode }, (__, gpu) => gpuUuid(index, gpu));
      const tasks = [aTask(0, { node: nodeName(index), gpuUuids, state: 'running' })];
      const attempt = anAttempt(1, { state: 'running', tasks });
      const job = aJob(hour * nodeCount + index, { state: { kind: 'running', attempt } });
      state.jobs.set(job.id, job);
      return { jobId: job.id, attempt: 1, nodeRank: 0 };
    });
  };
  const telemetry = new TelemetryStore({ state, clock, bytesMax: coordinatorDefaults.telemetryBytes });
  const memory = () => {
    globalThis.gc?.();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return rounded((heapUsed + arrayBuffers) / mebibyte);
  };
  const emptyMib = memory();
  const hourlyMib: number[] = [];
  let readings = 0;
  const startedMs = process.cpuUsage().user;
  for (let hour = 0; hour < 24; hour += 1) {
    const tasks = startJobs(hour);
    for (let interval = 0; interval < 3_600_000 / readingIntervalMs; interval += 1) {
      clock.nowMs += readingIntervalMs;
      for (const [index, task] of tasks.entries()) {
        for (let gpu = 0; gpu < gpusPerNode; gpu += 1)
          telemetry.addGpu(nodeName(index), readingOf(index, gpu, clock.wallMs(), task));
        readings += gpusPerNode;
      }
      telemetry.sweep();
    }
    hourlyMib.push(memory());
  }
  const { bytes, bytesMax, series, evicted } = telemetry.usage;
  const afterAgeLimitMib = hourlyMib[6] ?? 0;
  process.send?.({
    nodes: nodeCount,
    readings,
    taken: telemetry.taken,
    evicted,
    series,
    microsecondsPerReading: rounded((process.cpuUsage().user - startedMs) / readings),
    budgetMib: bytesMax / mebibyte,
    countedMib: rounded(bytes / mebibyte),
    measuredMib: rounded((hourlyMib.at(-1) ?? 0) - emptyMib),
    hourlyMib,
    growthAfterSevenHoursMib: rounded((hourlyMib.at(-1) ?? 0) - afterAgeLimitMib),
    rssMib: usage().rssMib,
    target: 'growth after seven hours < 5 MiB',
  });
}

// ---- The measurement

function start(
  role: string,
  args: readonly (string | number)[] = [],
  execArgv: readonly string[] = [],
): ChildProcess {
  return fork(self, [role, ...args.map(String)], { execArgv: [...execArgv] });
}

async function heard<T>(child: ChildProcess): Promise<T> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a process of the bench ended with ${code}`);
  });
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [T];
  return message;
}

function asked<T>(child: ChildProcess, question: string): Promise<T> {
  const answer = heard<T>(child);
  child.send(question);
  return answer;
}

async function measure(agents: number, seconds: number): Promise<void> {
  reportMachine();
  const dataDir = mkdtempSync(join(tmpdir(), 'muster-bench-'));
  const coordinator = start('coordinator', [dataDir]);
  const load = start('agents');
  try {
    const { address, httpAddress } = await heard<{ address: string; httpAddress: string }>(coordinator);
    const adminToken = readFileSync(join(dataDir, 'admin.token'), 'utf8').trim();
    const running = heard(load);
    load.send({ address, adminToken, agents } satisfies LoadOrder);
    await running;
    const busyPercent = await quietMachine();
    const cpuPercent = async () => {
      const before = await asked<Usage>(coordinator, 'usage');
      const startedMs = performance.now();
      await delay(seconds * 1_000);
      const after = await asked<Usage>(coordinator, 'usage');
      return { ...after, percent: ((after.cpuMs - before.cpuMs) / (performance.now() - startedMs)) * 100 };
    };
    const before = await cpuPercent();
    load.send('telemetry');
    // A whole interval until every agent sends, and one for what is compiled on the way.
    await delay(2 * readingIntervalMs);
    const uploadsBefore = await asked<number>(load, 'uploads');
    const during = await cpuPercent();
    const uploads = (await asked<number>(load, 'uploads')) - uploadsBefore;
    report(`telemetry of ${agents} agents, ${gpusPerNode} GPUs each, every 10 s, for ${seconds} s`, {
      uploadsPerSecond: rounded(uploads / seconds),
      cpuPercentOfOneCore: rounded(during.percent),
      cpuPercentWithHeartbeatsOnly: rounded(before.percent),
      rssMib: during.rssMib,
      rssMibBefore: before.rssMib,
      heapMib: during.heapMib,
      busyPercentBefore: busyPercent,
      target: 'cpu < 25 %',
    });
    const startedMs = performance.now();
    const page = await (await fetch(`http://${httpAddress}/metrics`)).text();
    report(`coordinator page with ${agents} nodes`, {
      ms: rounded(performance.now() - startedMs),
      bytes: page.length,
      taken: Number(/^muster_telemetry_readings_total (\d+)$/m.exec(page)?.[1]),
      dropped: [...page.matchAll(/^muster_telemetry_dropped_readings_total.* (\d+)$/gm)].map(([, n]) =>
        Number(n),
      ),
    });
  } finally {
    load.kill();
    if (coordinator.exitCode === null) {
      const gone = once(coordinator, 'exit');
      coordinator.send('close');
      await gone;
    }
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
  const store = start('store', [agents], ['--expose-gc']);
  report('24 simulated hours through the store', await heard<Readonly<Record<string, unknown>>>(store));
}

const [role, argument = ''] = process.argv.slice(2);
if (role === 'coordinator') await beCoordinator(argument);
else if (role === 'agents') await beAgents();
else if (role === 'store') await beStore(Number(argument));
else await measure(Number(role ?? 1_000), Number(argument || 60));
