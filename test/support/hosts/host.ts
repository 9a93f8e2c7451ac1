/** A host with one agent, as scenarios see it: what can be done to it, and what runs on it. */
import { readlinkSync } from 'node:fs';
import { hasEnded, readStat } from '../../../packages/agent/src/fence/processes.ts';
import { waitFor } from '../services.ts';
import { enterMachine, enterNetwork } from './enter.ts';
import type { HostProcess } from './hostProcess.ts';
import type { Machine } from './machine.ts';
import { allPids, childrenOf, mustRun, type ProgramResult, readLinesOf, runProgram } from './programs.ts';

/** Bytes of a burst: one full packet of a veth pair, which knows no smaller ones. */
const burstBytes = 65_536;

export class Host {
  readonly agent: HostProcess;
  readonly machine: Machine;

  constructor(machine: Machine, agent: HostProcess) {
    this.machine = machine;
    this.agent = agent;
  }

  get name(): string {
    return this.machine.name;
  }

  get address(): string {
    return this.machine.address;
  }

  /** Runs a program in the host, as root there. */
  exec(argv: readonly string[], timeoutMs?: number): Promise<ProgramResult> {
    return runProgram([...enterMachine(this.machine), ...argv], timeoutMs);
  }

  /** Runs a program of this machine on the network of the host: `['ip', 'route', 'add', 'blackhole', '10.77.0.12']`. */
  onNetwork(argv: readonly string[]): Promise<string> {
    return mustRun([...enterNetwork(this.machine), ...argv]);
  }

  /** No process of it runs; its clocks continue. */
  pause(): Promise<void> {
    return this.machine.pause();
  }

  unpause(): Promise<void> {
    return this.machine.unpause();
  }

  /** Pulls the network cable: packets vanish, in both directions. */
  unplug(network?: number): Promise<void> {
    return this.machine.unplug(network);
  }

  plug(network?: number): Promise<void> {
    return this.machine.plug(network);
  }

  /** Limits what the host sends. null: no limit. @param bitsPerS what its network lets through */
  async slow(bitsPerS: number | null, networkInterface = 'eth0'): Promise<void> {
    const qdisc = ['dev', networkInterface, 'root'];
    if (bitsPerS === null) {
      await this.onNetwork(['tc', 'qdisc', 'del', ...qdisc]);
      return;
    }
    const bucket = ['tbf', 'rate', `${bitsPerS}bit`, 'burst', `${burstBytes}b`, 'latency', '2s'];
    await this.onNetwork(['tc', 'qdisc', 'replace', ...qdisc, ...bucket]);
  }

  /** A power cut; the agent goes with it. */
  async kill(): Promise<void> {
    this.agent.expectEnd();
    await this.machine.cutPower();
    await this.agent.untilEnded();
  }

  /** Power is back: a new boot id, and the agent is started, as an init system does. */
  async boot(): Promise<void> {
    await this.machine.boot();
    await this.agent.start();
  }

  /** Live processes in it that carry the mark of a job, found from outside: frozen and paused ones as well. */
  processes(jobId: string): readonly number[] {
    return this.pids().filter((pid) => environmentOf(pid).get('MUSTER_JOB_ID') === jobId);
  }

  /** The process of one rank of a job. */
  rankProcess(jobId: string, rank: number): Promise<number> {
    const find = () =>
      this.processes(jobId)
        .filter((pid) => environmentOf(pid).get('RANK') === String(rank))
        .at(0);
    return waitFor(`rank ${rank} of ${jobId} runs on ${this.name}`, find).then(Number);
  }

  /** The parent of its bare tasks; it outlives agents. null: nothing has needed one yet. */
  guardPid(): number | null {
    return this.pids().find(isGuard) ?? null;
  }

  /** Commands of all that runs in it and belongs neither to the host nor to its agent. */
  foreignProcesses(): readonly string[] {
    const agentPids = this.agent.isRunning ? [this.agent.pid, ...verifiersOf(this.agent.pid)] : [];
    const own = new Set([this.machine.initPid, ...agentPids]);
    return this.pids()
      .filter((pid) => !own.has(pid) && !isGuard(pid))
      .map((pid) => `${pid} ${commandOf(pid)}`);
  }

  private pids(): readonly number[] {
    const { initPid } = this.machine;
    if (initPid === null) return [];
    const namespace = pidNamespaceOf(initPid);
    return allPids().filter((pid) => namespace !== null && pidNamespaceOf(pid) === namespace && isAlive(pid));
  }
}

function pidNamespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  const stat = readStat(pid);
  return stat !== null && !hasEnded(stat);
}

function environmentOf(pid: number): ReadonlyMap<string, string> {
  const pairs = readLinesOf(`/proc/${pid}/environ`, '\0').map((pair) => {
    const equals = pair.indexOf('=');
    return [pair.slice(0, equals), pair.slice(equals + 1)] as const;
  });
  return new Map(pairs);
}

function commandOf(pid: number): string {
  return readLinesOf(`/proc/${pid}/cmdline`, '\0').join(' ');
}

/** What an agent reads checkpoints with stays for a while, for the next one. */
function verifiersOf(agentPid: number): readonly number[] {
  return childrenOf(agentPid).filter((pid) => /\bcheckpoint-verifier\b/.test(commandOf(pid)));
}

/** It outlives its agent, to hold the fence. */
function isGuard(pid: number): boolean {
  return /\bguard\b/.test(commandOf(pid)) && !environmentOf(pid).has('MUSTER_JOB_ID');
}
