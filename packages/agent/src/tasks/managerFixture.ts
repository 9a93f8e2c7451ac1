/** A task manager as the agent wires it, on real records in a directory of its own, above fake drivers. */

import { appendFileSync, existsSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CheckpointSeen } from '@muster/common/checkpoints';
import { emptyInventory } from '@muster/common/hardware';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { type Logger, silentLogger } from '@muster/common/log';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { TaskReport } from '@muster/common/views';
import { expect, onTestFinished, vi } from 'vitest';
import type { Observers } from '../agent.ts';
import type { Checkpoints } from '../checkpoints/watcher.ts';
import { FakeDriver } from '../drivers/fakeDriver.ts';
import { readTaskFailure } from '../failure/taskFailure.ts';
import { checkpointDirs } from '../launch/checkpointDir.ts';
import { TaskLeases } from '../leases/taskLeases.ts';
import type { NodeRendezvous } from '../rendezvous/rendezvous.ts';
import { type SecretValue, TaskSecrets } from '../secrets/taskSecrets.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import { type ManagerParts, TaskManager } from './manager.ts';
import type { TaskMessage } from './messages.ts';
import { TaskRecords } from './records.ts';
import type { Order } from './state.ts';

export const aTask: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
export const aKey = taskKey(aTask);

export function anAssignment(
  spec: Readonly<Record<string, unknown>> = {},
  task: TaskRef = aTask,
  nodeCount = 1,
): Assignment {
  const whole = decodeJobSpec(JSON.stringify({ name: 'test', command: ['train'], ...spec }));
  return { task, spec: whole, nodeCount, gpuUuids: [], array: null, ...fromNothing(task) };
}

/** What an assignment says of checkpoints when the job has none. */
export function fromNothing({ jobId }: TaskRef) {
  const corrupt = { quarantine: [], doubted: [] };
  return {
    resume: null,
    checkpointJobId: jobId,
    user: 'admin',
    lineage: [],
    batchScale: 1,
    lrScale: 1,
    ...corrupt,
    proof: '',
  };
}

/** Nobody looks at checkpoints. */
const noCheckpoints: Checkpoints = {
  prepare: async () => null,
  lookOf: () => null,
  starting: async () => {},
  watch: () => {},
  stopping: async () => {},
  notStopped: () => {},
  isWatched: () => false,
  lastLook: async () => {},
  recall: async () => {},
  isTrainingComplete: () => false,
  noteDivergence: () => {},
  resend: () => {},
  messages: () => [],
  forget: () => {},
};

/** Orders, as the session makes them. */
export const prepare = (spec?: Readonly<Record<string, unknown>>, task?: TaskRef) =>
  ({ kind: 'prepare', assignment: anAssignment(spec, task) }) as const;
export const start = {
  kind: 'start',
  assignment: null,
  addr: '10.0.0.1',
  port: 4_000,
  addresses: ['10.0.0.1', '10.0.0.2'],
} as const;
/** Of a gang of two. */
export const prepareGang = (task: TaskRef = aTask) =>
  ({ kind: 'prepare', assignment: anAssignment({ resources: { nodes: 2 } }, task, 2) }) as const;
export const checkRound = (round: number) =>
  ({
    kind: 'check',
    assignment: null,
    check: {
      round,
      addresses: ['10.0.0.1', '10.0.0.2'],
      peers: [{ nodeRank: 1, node: 'b', address: '10.0.0.2', port: 4_000 }],
      preflight: null,
    },
  }) as const;
export const stop = { kind: 'stop', assignment: null, graceMs: 5_000, signal: 'SIGTERM' } as const;
export const forget = { kind: 'forget' } as const;

/** A node: what outlives its agents. */
export class TestNode {
  readonly root = mkdtempSync(join(tmpdir(), 'tasks-'));
  /** CLOCK_BOOTTIME. */
  boottimeMs = 500;
  /** Of what an order to run or to stop grants, counted from now; 0: never fenced. */
  leaseMs = 0;
  readonly process = new FakeDriver('process', () => this.boottimeMs);
  readonly secrets = new TaskSecrets('/dev/shm', this.root);
  readonly docker = new FakeDriver('docker', () => this.boottimeMs);
  /** Ports held now. */
  readonly heldPorts = new Set<number>();
  /** Nobody looks at checkpoints. */
  readonly noCheckpoints = noCheckpoints;
  /** Rounds of paths that were tried, with the ports that were held then. */
  readonly checks: string[] = [];
  /** What trying the paths waits for. */
  pathsKnown: Promise<void> = Promise.resolve();
  private agents: TestAgent[] = [];
  private nextPort = 4_000;

  constructor() {
    onTestFinished(async () => {
      for (const agent of this.agents) await agent.manager.close();
      // A write that was under way may still put a file into a directory that is just being removed.
      await rm(this.root, { recursive: true, maxRetries: 10, retryDelay: 20 });
    });
  }

  /** An agent that has found its earlier tasks and is connected. */
  async agent(parts: Partial<ManagerParts> = {}): Promise<TestAgent> {
    const agent = new TestAgent(this, parts);
    this.agents.push(agent);
    await agent.manager.recover();
    agent.manager.connected();
    return agent;
  }

  /** The agent goes, as far as a test can make it: what it had under way does not come to anything. */
  async restart(agent: TestAgent, parts: Partial<ManagerParts> = {}): Promise<TestAgent> {
    await agent.manager.close();
    return this.agent(parts);
  }

  /** The paths of this node are good. */
  readonly rendezvous: NodeRendezvous = {
    endpointProblem: () => null,
    endpoints: (wanted) => [
      { address: '10.0.0.7', network: wanted, interface: 'eth0', speedMbps: 10_000, rdma: false },
    ],
    hold: () => this.holdPort(),
    check: async (_task, _launch, { round, peers }, abort) => {
      this.checks.push(`round ${round}, holding ${[...this.heldPorts].join(', ')}`);
      const given = Promise.withResolvers<void>();
      abort.addEventListener('abort', () => given.resolve(), { once: true });
      await Promise.race([this.pathsKnown, given.promise]);
      const paths = peers.map(({ nodeRank }) => ({ nodeRank, error: null, roundTripUs: 80 }));
      return { round, paths, preflight: null };
    },
  };

  /** What the coordinator has for each task. */
  secretValues: readonly SecretValue[] = [];
  /** The ports of an agent on this node, but for its connection to the coordinator. */
  agentPorts() {
    return {
      nodeName: 'a',
      address: '10.0.0.7',
      bootId: 'boot-1',
      boottimeMs: () => this.boottimeMs,
      wallMs: () => 1_000_000,
      records: new TaskRecords(join(this.root, 'tasks')),
      drivers: { process: this.process, docker: this.docker },
      node: {
        gpusAreSimulated: false,
        containers: { network: 'bridge' as const, haveAccounts: true },
        network: () => ({ nics: [], rdmaDevices: [], addresses: {} }),
        baseEnvironment: { PATH: '/bin' },
        accounts: { rules: [], others: 'agent' as const },
        secrets: this.secrets,
      },
      secrets: this.secrets,
      readSecrets: async () => this.secretValues,
      checkpointDirs: checkpointDirs(join(this.root, 'checkpoints')),
      checkpointPlaceProblem: async () => null,
      rendezvous: this.rendezvous,
      readNetwork: async () => {},
    };
  }

  /** Observers that see nothing but the exits of tasks. */
  observers(): Observers {
    return {
      checkpoints: noCheckpoints,
      training: { progress: () => null, hang: () => null, finishForReport: () => null, reportGoes: () => 0 },
      failureOf: async (end) =>
        readTaskFailure(end, { boottimeMs: this.boottimeMs, wallMs: 1_000_000 }, () => false),
      gpuUsage: () => null,
      onOutput: () => {},
      onRemoved: () => {},
      status: async () => ({ inventory: emptyInventory, conditions: [] }),
      occupiedGpu: async () => null,
      onClockSkew: () => {},
      onClearCondition: () => {},
      onKeepCheckpoints: () => {},
      periodic: [],
      start: async () => {},
      close: async () => {},
    };
  }

  async holdPort() {
    const port = this.nextPort;
    this.nextPort += 1;
    this.heldPorts.add(port);
    return { port, release: async () => void this.heldPorts.delete(port) };
  }

  hasRecord(task: TaskRef = aTask): boolean {
    return existsSync(join(this.root, 'tasks', taskKey(task)));
  }

  /** The task writes. */
  write(text: string, task: TaskRef = aTask): void {
    appendFileSync(join(this.root, 'tasks', taskKey(task), 'output.log'), text);
  }
}

export class TestAgent {
  readonly manager: TaskManager;
  readonly leases: TaskLeases;
  private readonly node: TestNode;
  /** Everything that it sent: `prepared 10.0.0.7:4000`, `checked 1`, `running`, `running frozen`, `ended 3`. */
  readonly sent: string[] = [];
  readonly reports: TaskReport[] = [];
  /** Output that may be followed, with its end where that is known. */
  readonly outputs = new Map<string, number | null>();
  readonly warnings: string[] = [];

  constructor(node: TestNode, parts: Partial<ManagerParts>) {
    this.node = node;
    const warn = (fields: object, message: string) => {
      this.warnings.push(`${message} ${JSON.stringify(fields)}`);
    };
    const log: Logger = { ...silentLogger, warn, error: warn };
    const bootId = parts.bootId ?? 'boot-1';
    const boottimeMs = parts.boottimeMs ?? (() => node.boottimeMs);
    const wallMs = () => 1_000_000;
    this.leases = new TaskLeases({
      bootId,
      boottimeMs,
      log,
      onChange: (task) => this.manager.leaseChanged(task),
    });
    this.manager = new TaskManager({
      ...node.agentPorts(),
      ...node.observers(),
      bootId,
      boottimeMs,
      wallMs,
      log,
      leases: this.leases,
      gpuProblem: async () => null,
      failureOf: async (end) =>
        readTaskFailure(end, { boottimeMs: boottimeMs(), wallMs: wallMs() }, () => false),
      send: (message) => this.receive(message),
      onOutput: (task, _path, size) => void this.outputs.set(taskKey(task), size),
      onRemoved: (task) => void this.outputs.delete(taskKey(task)),
      ...parts,
    });
  }

  /** Orders and what goes with them, from an answer of this moment. */
  order(order: Order, task: TaskRef = aTask): void {
    const isLeased = order.kind === 'start' || order.kind === 'stop';
    const { boottimeMs: askedMs, leaseMs } = this.node;
    this.manager.setOrder({ task, order, lease: isLeased ? { askedMs, leaseMs } : null });
  }

  /** An answer to a question that was asked at `askedMs` lets the task run. */
  grant(leaseMs: number, task: TaskRef = aTask, askedMs = this.node.boottimeMs): void {
    this.manager.grant(task, { askedMs, leaseMs });
  }

  /** Prepares the task, releases it, and waits until it runs. */
  async bringToRunning(spec?: Readonly<Record<string, unknown>>): Promise<void> {
    this.order(prepare(spec));
    await vi.waitFor(() => expect(this.sent.at(-1)).toMatch('prepared'));
    this.order(start);
    await this.sends('running');
  }

  /** What the agent says to the coordinator. */
  receive(message: TaskMessage): void {
    if (message.kind === 'report') {
      this.reports.push(message.report);
      this.sent.push(inWords(message.report));
    } else if (message.kind === 'checked') {
      this.sent.push(`checked ${message.findings.round}`);
    } else if (message.kind === 'checkpoint') {
      this.sent.push(checkpointInWords(message));
    } else if (message.kind === 'trainingSign') {
      this.sent.push(message.sign.kind);
    } else {
      const { master, testPort } = message;
      const where = master === null ? `test port ${testPort ?? 'none'}` : `${master.addr}:${master.port}`;
      this.sent.push(`prepared ${where}`);
    }
  }

  /** Waits until this is the last that it sent. */
  async sends(messages: string): Promise<void> {
    await vi.waitFor(() => expect(this.sent.at(-1)).toBe(messages));
  }

  /** What Hello and heartbeats would say of all tasks. */
  knows(): readonly string[] {
    return this.manager.reports().map(inWords);
  }
}

/** `step_10 verified`, `step_10 verified after the stop` */
function checkpointInWords({ checkpoint: { name, verdict }, afterStop }: CheckpointSeen): string {
  return `${name} ${verdict}${afterStop ? ' after the stop' : ''}`;
}

export function inWords({ state, exit, frozen }: TaskReport): string {
  if (exit === null) return frozen ? `${state} frozen` : state;
  const how =
    exit.startError?.kind ?? exit.signal ?? exit.exitCode ?? (exit.statusLost ? 'lost' : 'nothing ran');
  return `ended ${how}`;
}
