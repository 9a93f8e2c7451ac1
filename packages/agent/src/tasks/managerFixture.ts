/** A task manager as the agent wires it, on real records in a directory of its own, above fake drivers. */
import { appendFileSync, existsSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { type Logger, silentLogger } from '@muster/common/log';
import type { TaskReport } from '@muster/common/views';
import { expect, onTestFinished, vi } from 'vitest';
import { FakeDriver } from '../drivers/fakeDriver.ts';
import { checkpointDirs } from '../hooks/checkpointDir.ts';
import type { ManagerParts } from './actions.ts';
import { TaskManager } from './manager.ts';
import { type Assignment, TaskRecords } from './records.ts';

export const aTask: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
export const aKey = taskKey(aTask);

export function anAssignment(
  spec: Readonly<Record<string, unknown>> = {},
  task: TaskRef = aTask,
): Assignment {
  const specJson = JSON.stringify({ name: 'test', command: ['train'], ...spec });
  return { task, specJson, nodeCount: 1, gpuUuids: [], array: null };
}

/** Orders, as the session makes them. */
export const prepare = (spec?: Readonly<Record<string, unknown>>, task?: TaskRef) =>
  ({ kind: 'prepare', assignment: anAssignment(spec, task) }) as const;
export const run = { kind: 'run', assignment: null, addr: '10.0.0.1', port: 4_000 } as const;
export const stop = { kind: 'stop', assignment: null, graceMs: 5_000, signal: 'SIGTERM' } as const;
export const forget = { kind: 'forget' } as const;

/** A node: what outlives its agents. */
export class TestNode {
  readonly root = mkdtempSync(join(tmpdir(), 'tasks-'));
  readonly process = new FakeDriver('process');
  readonly docker = new FakeDriver('docker');
  /** Ports held now. */
  readonly heldPorts = new Set<number>();
  private agents: TestAgent[] = [];
  private nextPort = 4_000;

  constructor() {
    onTestFinished(async () => {
      for (const agent of this.agents) await agent.manager.close();
      await rm(this.root, { recursive: true });
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
  /** Everything it said: `claim 10.0.0.7:4000`, `running`, `ended 3`. */
  readonly said: string[] = [];
  readonly reports: TaskReport[] = [];
  /** Output that may be followed, with its end where that is known. */
  readonly outputs = new Map<string, number | null>();
  readonly warnings: string[] = [];

  constructor(node: TestNode, parts: Partial<ManagerParts>) {
    const warn = (fields: object, message: string) => {
      this.warnings.push(`${message} ${JSON.stringify(fields)}`);
    };
    const log: Logger = { ...silentLogger, warn, error: warn };
    this.manager = new TaskManager({
      records: new TaskRecords(join(node.root, 'tasks')),
      drivers: { process: node.process, docker: node.docker },
      node: {
        gpusAreSimulated: false,
        networkInterface: null,
        hasInfiniband: false,
        baseEnvironment: { PATH: '/bin' },
      },
      checkpoints: checkpointDirs(join(node.root, 'checkpoints')),
      nodeName: 'a',
      bootId: 'boot-1',
      address: '10.0.0.7',
      wallMs: () => 1_000_000,
      boottimeMs: () => 500,
      holdPort: () => node.holdPort(),
      log,
      send: (message) => {
        if (message.kind === 'claim') this.said.push(`claim ${message.addr}:${message.port}`);
        else this.reports.push(message.report);
        if (message.kind === 'report') this.said.push(inWords(message.report));
      },
      gpuUsage: () => null,
      onOutput: (task, _path, size) => void this.outputs.set(taskKey(task), size),
      onRemoved: (task) => void this.outputs.delete(taskKey(task)),
      ...parts,
    });
  }

  order(order: Parameters<TaskManager['setOrder']>[1], task: TaskRef = aTask): void {
    this.manager.setOrder(task, order);
  }

  /** Prepares the task, releases it, and waits until it runs. */
  async bringToRunning(spec?: Readonly<Record<string, unknown>>): Promise<void> {
    this.order(prepare(spec));
    await eventually(() => expect(this.said.at(-1)).toMatch('claim'));
    this.order(run);
    await this.says('running');
  }

  /** Waits until this is the last that it said. */
  async says(words: string): Promise<void> {
    await eventually(() => expect(this.said.at(-1)).toBe(words));
  }

  /** What Hello and heartbeats would say of all tasks. */
  knows(): readonly string[] {
    return this.manager.reports().map(inWords);
  }
}

export function inWords({ state, exit }: TaskReport): string {
  if (exit === null) return state;
  const how =
    exit.startError?.kind ?? exit.signal ?? exit.exitCode ?? (exit.statusLost ? 'lost' : 'nothing ran');
  return `ended ${how}`;
}

export function eventually(check: () => void): Promise<void> {
  return vi.waitFor(check, { timeout: 10_000, interval: 5 });
}
