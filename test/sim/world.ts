/** Everything there is: machines with their agents, a coordinator and its disk, the network between them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { memoryKeys } from '@muster/coordinator/coordinatorFixture';
import { Memory } from '@muster/coordinator/store/memory/memoryStore';
import { startAgent } from './agentProcess.ts';
import { Artifacts } from './artifacts.ts';
import { MachineClock, rateOf } from './clock.ts';
import { startCoordinator } from './coordinatorProcess.ts';
import { DataPlace } from './dataPlace.ts';
import { Fabric } from './fabric.ts';
import { Guard } from './guard.ts';
import { History } from './history.ts';
import { Machine } from './machine.ts';
import { Network, type NetworkConditions } from './network.ts';
import { Random } from './random.ts';
import { Service } from './service.ts';
import { Shelves } from './shelf.ts';
import type { SimulatedProcess } from './simulatedProcess.ts';
import { SimulatedStore, type StoreFaults } from './store.ts';
import { Life, Timeline } from './timeline.ts';

const heartbeatIntervalMs = 1_000;

/** From power cut to the next start of the agent, at least. */
const bootMs = 5_000;

/** By then an agent has found its earlier tasks. */
const recoveredAfterMs = 8_000;

export interface Site {
  readonly machine: Machine;
  readonly guard: Guard;
  readonly engine: Service;
  agent: Life | null;
  agentSinceMs: number;
  /** When the power was cut last. */
  offAtMs: number;
  /** It never comes back. */
  lost: boolean;
}

export interface WorldParts {
  readonly seed: number;
  /** GPUs of each machine. */
  readonly gpus: readonly number[];
  readonly conditions: NetworkConditions;
  /** Gets every line of the story, when somebody reads it. */
  readonly print: ((line: string) => void) | null;
  /** A program reported that one of its own invariants was broken. */
  readonly onAssertion: (what: string) => void;
}

export class World {
  /** Owns what belongs to no process: disks, users, the laws of nature. */
  readonly life = new Life('world');
  readonly timeline = new Timeline(this.life);
  readonly history = new History(() => this.timeline.nowMs);
  readonly network: Network;
  readonly sites: readonly Site[];
  readonly memory = new Memory('simulated');
  readonly storeFaults: StoreFaults = { fullCommits: 0, ioError: false, slowUntilMs: 0 };
  coordinator: Life | null = null;
  /** How far the system clock of the coordinator is off; no decision may depend on it (G10 of docs/guarantees.md). */
  coordinatorWallOffsetMs = 0;
  /** The same of each machine, by its name. */
  readonly wallOffsetsMs = new Map<string, number>();
  /** A system clock was set at some time. */
  hasJumped = false;
  /** Ways between machines. */
  readonly fabric = new Fabric(() => this.sites.map(({ machine }) => machine));
  /** Storage that every machine sees. */
  private readonly shelves = new Shelves();
  private readonly artifacts: Artifacts;
  /** What triggers watch. */
  readonly data: DataPlace;
  private readonly secretKeys = memoryKeys();
  private coordinatorRuns = 0;
  /** Rate of the clocks of the machine on which every run of the coordinator is. */
  private readonly coordinatorRate: number;
  private readonly gangLuck: Random;
  /** A real one, for what the product writes itself. */
  private readonly directory = mkdtempSync(join(tmpdir(), 'muster-sim-'));
  private readonly parts: WorldParts;

  constructor(parts: WorldParts) {
    this.parts = parts;
    this.gangLuck = this.random('gangs');
    this.coordinatorRate = rateOf(this.random('machine of the coordinator'));
    this.network = new Network({
      timeline: this.timeline,
      random: this.random('network'),
      history: this.history,
      conditions: parts.conditions,
      trace: (line) => this.print(line),
    });
    this.artifacts = new Artifacts(this.timeline, this.random('artifacts'));
    this.data = new DataPlace(this.history);
    this.sites = parts.gpus.map((gpuCount, index) => {
      const name = `node-${index + 1}`;
      const random = this.random(name);
      const machine = new Machine({
        name,
        gpuCount,
        timeline: this.timeline,
        random,
        history: this.history,
        directory: join(this.directory, name),
        wallOffsetMs: () => this.wallOffsetsMs.get(name) ?? 0,
        shared: this.shelves,
        artifacts: this.artifacts,
        onBadEnd: (process) => this.informGang(process),
      });
      return {
        machine,
        guard: new Guard(machine, this.logger(`guard of ${name}`)),
        engine: new Service(machine, 'container engine'),
        agent: null,
        agentSinceMs: 0,
        offAtMs: Number.NEGATIVE_INFINITY,
        lost: false,
      };
    });
    this.history.listen((fact) => this.print(() => JSON.stringify(fact)));
  }

  random(name: string): Random {
    return new Random(this.parts.seed, name);
  }

  print(line: () => string): void {
    this.parts.print?.(`${(this.timeline.nowMs / 1000).toFixed(3).padStart(9)} ${line()}`);
  }

  startCoordinator(): void {
    if (this.coordinator !== null) return;
    this.coordinatorRuns += 1;
    const name = `coordinator ${this.coordinatorRuns}`;
    const random = this.random(name);
    // The monotonic clock of an earlier run means nothing to this one. Their machines have clocks of one rate.
    const wallOffsetMs = () => this.coordinatorWallOffsetMs;
    const clock = new MachineClock(this.timeline, random, wallOffsetMs, this.coordinatorRate);
    // Started again in the same boot, or elsewhere.
    const bootId = this.random(`boot of ${name}`).chance(0.5) ? 'the first' : name;
    const life = new Life(name, clock.rate);
    this.coordinator = life;
    this.history.add({ kind: 'process', name, what: 'started' });
    const { timeline, history, memory, storeFaults: faults } = this;
    const store = new SimulatedStore({
      onAssertion: this.parts.onAssertion,
      memory,
      coordinator: life,
      world: this.life,
      timeline,
      random,
      history,
      faults,
    });
    const fatal = (error: Error) => {
      this.history.add({ kind: 'process', name, what: `gives up: ${error.message}` });
      if ('kind' in error && error.kind === 'conflict') this.parts.onAssertion(error.message);
      this.timeline.at(200, this.life, () => this.endCoordinator(life));
      // As systemd would.
      this.timeline.at(random.between(500, 3_000), this.life, () => this.startCoordinator());
    };
    timeline.at(random.between(20, 300), life, () => {
      startCoordinator({
        life,
        store,
        clock,
        machineClock: {
          bootId: () => bootId,
          boottimeMs: clock.boottimeMs,
          isSynchronised: async () => this.coordinatorWallOffsetMs === 0,
        },
        random,
        log: this.logger(name),
        heartbeatIntervalMs,
        logs: this.artifacts.logs,
        listData: this.data.list,
        secretKeys: this.secretKeys,
        onFatal: fatal,
      }).then((running) => {
        this.network.coordinator = running;
      }, fatal);
    });
  }

  /** As by SIGKILL: nothing but what was committed is left. */
  endCoordinator(life: Life): void {
    if (this.coordinator !== life) return;
    this.history.add({ kind: 'process', name: life.name, what: 'killed' });
    this.coordinator = null;
    this.network.coordinator = null;
    life.end();
    for (const connection of Array.from(this.network.connections)) connection.coordinatorDied();
  }

  startAgent(site: Site): void {
    const { machine, guard, engine } = site;
    if (site.agent !== null || !machine.power.alive) return;
    const life = new Life(`agent of ${machine.name}`, machine.clock.rate);
    site.agent = life;
    site.agentSinceMs = this.timeline.nowMs;
    this.history.add({ kind: 'process', name: life.name, what: 'started' });
    const random = this.random(`${life.name} at ${this.timeline.nowMs}`);
    const { network, fabric, timeline } = this;
    timeline.at(random.between(5, 100), life, () =>
      startAgent({
        life,
        machine,
        guard,
        engine,
        network,
        fabric,
        timeline,
        random,
        log: this.logger(life.name),
        onRefused: (error) => {
          this.history.add({ kind: 'process', name: life.name, what: `refused: ${error.message}` });
          this.endAgent(site);
          timeline.at(2_000, this.life, () => this.startAgent(site));
        },
      }),
    );
  }

  endAgent(site: Site): void {
    const { agent } = site;
    if (agent === null) return;
    site.agent = null;
    // Of its two fences a node loses one at a time; what leases promise is not meant for worse.
    site.guard.begin();
    this.history.add({ kind: 'process', name: agent.name, what: 'killed' });
    agent.end();
  }

  pauseAgent(site: Site, forMs: number): void {
    site.guard.begin();
    site.agent?.pauseUntil(this.timeline.nowMs + forMs);
  }

  /** @returns whether the agent's own fence holds meanwhile, and so the guard may go */
  killGuard({ guard, agent, agentSinceMs }: Site, forMs: number): boolean {
    const { nowMs } = this.timeline;
    const isFenced =
      agent !== null && agent.pausedUntilMs <= nowMs && nowMs - agentSinceMs > recoveredAfterMs;
    if (isFenced) guard.kill(forMs);
    return isFenced;
  }

  /** Its agent runs and its guard has been there for a while, so that nothing is in the way of a thaw. */
  isWell(name: string): boolean {
    const site = this.sites.find(({ machine }) => machine.name === name);
    const { nowMs } = this.timeline;
    if (site?.agent == null || site.agent.pausedUntilMs > nowMs) return false;
    const { guard, engine } = site;
    const areHere =
      Math.max(guard.hereSinceMs, engine.hereSinceMs, site.agentSinceMs) < nowMs - recoveredAfterMs;
    return areHere && guard.process.alive;
  }

  /** When the last pause of this node's agent and of the coordinator was over, or will be; 0: neither paused. */
  awakeSinceMs(name: string): number {
    const agent = this.sites.find(({ machine }) => machine.name === name)?.agent;
    return Math.max(agent?.pausedUntilMs ?? 0, this.coordinator?.pausedUntilMs ?? 0);
  }

  boot(site: Site): void {
    if (site.machine.power.alive || site.lost) return;
    // No machine is back before what it sent last has arrived.
    const waitMs = site.offAtMs + bootMs - this.timeline.nowMs;
    if (waitMs > 0) {
      this.timeline.at(waitMs, this.life, () => this.boot(site));
      return;
    }
    site.machine.boot();
    site.guard.begin();
    site.engine.begin();
    this.startAgent(site);
  }

  powerOff(site: Site): void {
    if (!site.machine.power.alive) return;
    site.offAtMs = this.timeline.nowMs;
    site.machine.powerOff();
    this.endAgent(site);
  }

  /** A rank is gone, and the others of its gang find out as soon as they want something of it. */
  private informGang({ task, program }: SimulatedProcess): void {
    if (!program.failsTogether) return;
    const others = this.sites.flatMap(({ machine }) => [...machine.processes.values()]);
    for (const other of others) {
      const isOfGang = other.task.jobId === task.jobId && other.task.attempt === task.attempt;
      if (!isOfGang || taskKey(other.task) === taskKey(task) || !other.isRunning) continue;
      other.after(this.gangLuck.between(1, 400), () => {
        if (other.state.kind !== 'running') return;
        other.isConsequence = true;
        other.end({ exitCode: 1, signal: null }, 'itself');
      });
    }
  }

  /** Leaves nothing behind. */
  close(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  private logger(name: string): Logger {
    const logAt = (level: string) => (fields: object, message: string) =>
      this.print(() => `${name} ${level}: ${message} ${JSON.stringify(fields)}`);
    return {
      info: logAt('info'),
      debug: logAt('debug'),
      warn: logAt('warn'),
      error: (fields, message) => {
        logAt('error')(fields, message);
        if ('guarantee' in fields) this.parts.onAssertion(message);
      },
    };
  }
}
