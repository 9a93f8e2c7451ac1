/** Everything there is: machines with their agents, a coordinator and its disk, the network between them. */
import type { Clock } from '@muster/common/clock';
import type { Logger } from '@muster/common/log';
import { Memory } from '@muster/coordinator/store/memory/memoryStore';
import { startAgent } from './agentProcess.ts';
import { startCoordinator } from './coordinatorProcess.ts';
import { Guard } from './driver.ts';
import { History } from './history.ts';
import { Machine } from './machine.ts';
import { Network, type NetworkConditions } from './network.ts';
import { Random } from './random.ts';
import { SimulatedStore, type StoreFaults } from './store.ts';
import { Life, Timeline } from './timeline.ts';

const heartbeatIntervalMs = 1_000;

/** From power cut to the next start of the agent, at least. */
const bootMs = 5_000;

export interface Site {
  readonly machine: Machine;
  readonly guards: { readonly process: Guard; readonly docker: Guard };
  agent: Life | null;
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
  /** Something said itself that one of its own invariants broke. */
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
  /** Wall clocks jump; nothing may depend on them. */
  wallOffsetMs = 0;
  private coordinatorRuns = 0;
  private readonly parts: WorldParts;

  constructor(parts: WorldParts) {
    this.parts = parts;
    this.network = new Network({
      timeline: this.timeline,
      random: this.random('network'),
      history: this.history,
      conditions: parts.conditions,
      trace: (line) => this.print(line),
    });
    this.sites = parts.gpus.map((gpuCount, index) => {
      const name = `node-${index + 1}`;
      const random = this.random(name);
      const machine = new Machine(name, gpuCount, this.timeline, random, this.history);
      const guard = () => new Guard(machine, this.timeline, random);
      return {
        machine,
        guards: { process: guard(), docker: guard() },
        agent: null,
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
    const life = new Life(name);
    const random = this.random(name);
    this.coordinator = life;
    this.history.add({ kind: 'process', name, what: 'started' });
    const { timeline, history, memory, storeFaults: faults } = this;
    const store = new SimulatedStore({
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
        clock: this.clock(),
        random,
        log: this.logger(name),
        heartbeatIntervalMs,
        hasBallast: () => true,
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
    for (const connection of [...this.network.connections]) connection.coordinatorDied();
  }

  startAgent(site: Site): void {
    const { machine, guards } = site;
    if (site.agent !== null || !machine.power.alive) return;
    const life = new Life(`agent of ${machine.name}`);
    site.agent = life;
    this.history.add({ kind: 'process', name: life.name, what: 'started' });
    const random = this.random(`${life.name} at ${this.timeline.nowMs}`);
    const { network, timeline } = this;
    timeline.at(random.between(5, 100), life, () =>
      startAgent({
        ...{ life, machine, guards, network, timeline, random },
        clock: this.clock(),
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
    this.history.add({ kind: 'process', name: agent.name, what: 'killed' });
    agent.end();
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
    this.startAgent(site);
  }

  powerOff(site: Site): void {
    if (!site.machine.power.alive) return;
    site.offAtMs = this.timeline.nowMs;
    site.machine.powerOff();
    this.endAgent(site);
  }

  private clock(): Clock {
    return {
      wallMs: () => 1_700_000_000_000 + this.timeline.nowMs + this.wallOffsetMs,
      monotonicMs: () => this.timeline.nowMs,
    };
  }

  private logger(name: string): Logger {
    const say = (level: string) => (fields: object, message: string) =>
      this.print(() => `${name} ${level}: ${message} ${JSON.stringify(fields)}`);
    return {
      info: say('info'),
      debug: say('debug'),
      warn: say('warn'),
      error: (fields, message) => {
        say('error')(fields, message);
        if ('guarantee' in fields) this.parts.onAssertion(message);
      },
    };
  }
}
