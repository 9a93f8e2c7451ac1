/** For tests: guards of their own, in directories of their own, gone afterwards. */

import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readBootId } from '@muster/common/boot';
import { silentLogger } from '@muster/common/log';
import { afterEach } from 'vitest';
import { compileCache, tempDir, tempDirOnDisk, waitFor } from '../../../../../test/support/services.ts';
import { allProcesses, carriesMarker, isRunning, readStat } from '../../fence/processes.ts';
import { guardCommand } from '../../guard/command.ts';
import type { ContainmentMode } from '../../guard/containment.ts';
import type { OutputLimits } from '../../guard/outputPace.ts';
import { exitAlreadyGuarded, type GuardHello, guardSocketPath, readLines } from '../../guard/protocol.ts';
import { readStoredTask } from '../../guard/records.ts';
import type { TaskLocation } from '../../taskFacts/execution.ts';
import type { TaskDriver, TaskLaunch } from '../driver.ts';
import { aLaunch } from '../launchFixture.ts';
import { createProcessDriver } from './driver.ts';
import { GuardClient, type GuardClientOptions } from './guardClient.ts';

const guardProgram = fileURLToPath(new URL('../../guard/main.ts', import.meta.url));

/** Shell code that runs until it is ended; traps run at once. */
export const idleScript = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

export interface GuardFixtureOptions {
  readonly containment?: ContainmentMode;
  readonly idleExitMs?: number;
  /** Name of a group beside the one of this process, which stands for the unit of systemd. */
  readonly tasksUnit?: string;
  readonly outputLimits?: OutputLimits;
}

export class GuardFixture {
  // Removed when the guard has ended, and once more after the test file: a guard that ends writes what it has compiled.
  readonly root: string;
  readonly runtimeDir: string;
  readonly guardArgv: readonly string[];
  private readonly limits: Pick<GuardFixtureOptions, 'outputLimits'>;
  private readonly drivers: TaskDriver[] = [];
  private readonly clients: GuardClient[] = [];
  private readonly launches: TaskLaunch[] = [];
  private hungPid: number | null = null;

  constructor({ containment = 'auto', idleExitMs = 5000, tasksUnit, ...limits }: GuardFixtureOptions = {}) {
    this.limits = limits;
    // Tasks that write without end would use up the memory of the machine if their guard did not hold them back.
    this.root = (limits.outputLimits === undefined ? tempDir : tempDirOnDisk)('guard').path;
    this.runtimeDir = join(this.root, 'run');
    this.guardArgv = [
      ...guardArgv(containment, idleExitMs),
      ...(tasksUnit === undefined ? [] : ['--tasks-unit', tasksUnit]),
    ];
  }

  driver(change: Partial<Pick<GuardClientOptions, 'log' | 'probeMs'>> = {}): TaskDriver {
    const driver = createProcessDriver({
      guardCommand: this.guardArgv,
      environment: { PATH: '/usr/bin:/bin', ...compileCache },
      runtimeDir: this.runtimeDir,
      log: silentLogger,
      ...this.limits,
      ...change,
    });
    this.drivers.push(driver);
    return driver;
  }

  /** What a container engine's driver is given. */
  fence(): GuardClient {
    const client = new GuardClient({
      guardCommand: this.guardArgv,
      environment: { PATH: '/usr/bin:/bin', ...compileCache },
      runtimeDir: this.runtimeDir,
      log: silentLogger,
      ...this.limits,
    });
    this.clients.push(client);
    return client;
  }

  async task(command: readonly string[], more: Partial<TaskLaunch> = {}): Promise<TaskLaunch> {
    const key = more.key ?? `t${randomUUID().slice(0, 13)}.1.0`;
    const directory = join(this.root, key);
    await mkdir(directory, { recursive: true });
    const env = { PATH: '/usr/bin:/bin' };
    const launch = aLaunch({ key, directory, command, env, ...more });
    this.launches.push(launch);
    return launch;
  }

  script(text: string): Promise<TaskLaunch> {
    return this.task(['/bin/sh', '-c', text]);
  }

  /** Pid of the guard that listens now; null: none does. */
  guardPid(): Promise<number | null> {
    return new Promise((resolve) => {
      const socket = connect(guardSocketPath(this.runtimeDir));
      socket.on('error', () => resolve(null)).on('close', () => resolve(null));
      readLines(socket, (line) => {
        resolve((JSON.parse(line) as GuardHello).pid);
        socket.destroy();
      });
    });
  }

  async livePid(): Promise<number> {
    const pid = await this.guardPid();
    if (pid === null) throw new Error('there is no guard');
    return pid;
  }

  /** Stops the guard as a debugger does, until `resume` or the end of the test. */
  async hang(): Promise<void> {
    const pid = await this.livePid();
    this.hungPid = pid;
    process.kill(pid, 'SIGSTOP');
    await waitFor('the guard to be stopped', () => readStat(pid)?.state === 'T');
  }

  resume(): void {
    if (this.hungPid !== null) process.kill(this.hungPid, 'SIGCONT');
    this.hungPid = null;
  }

  async killGuard(): Promise<void> {
    const pid = await this.livePid();
    process.kill(pid, 'SIGKILL');
    await processGone(pid);
  }

  /**
   * As whatever watches over guards does; no agent has a part in it. One that finds the lock still held, by the last threads of the
   * guard before, leaves, and is started again.
   */
  async startGuard(): Promise<void> {
    let guard = this.spawnGuard();
    await waitFor('the guard to listen', async () => {
      if ((await this.guardPid()) !== null) return true;
      if (guard.exitCode === exitAlreadyGuarded) guard = this.spawnGuard();
      return false;
    });
  }

  private spawnGuard(): ChildProcess {
    const [file = '', ...args] = this.guardArgv;
    const log = openSync(join(this.runtimeDir, 'guard.log'), 'a', 0o600);
    const stdio: StdioOptions = ['ignore', log, log];
    const guard = spawn(file, [...args, '--runtime-dir', this.runtimeDir], { stdio, detached: true });
    guard.unref();
    closeSync(log);
    return guard;
  }

  guardLog(): string {
    return readFileSync(join(this.runtimeDir, 'guard.log'), 'utf8');
  }

  /** Ends tasks, drivers and guard; the guard goes when asked, because nothing runs any longer. */
  async cleanup(): Promise<void> {
    this.resume();
    try {
      if (this.launches.length > 0) await this.endTasks();
      for (const driver of this.drivers) await driver.close();
      for (const client of this.clients) client.close();
      const pid = await this.guardPid();
      if (pid === null) return;
      process.kill(pid, 'SIGTERM');
      await processGone(pid);
    } finally {
      // A guard that found another one in its place may still be on its way out.
      await rm(this.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    }
  }

  private async endTasks(): Promise<void> {
    const driver = this.driver();
    for (const launch of this.launches) {
      await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
      await driver.remove(launch);
    }
  }
}

/** Whether a guard can hold tasks together this way here. Control groups need a writable hierarchy, mostly root. */
export function canContain(mode: ContainmentMode): boolean {
  const runtimeDir = mkdtempSync(join(tmpdir(), 'guard-'));
  const [file = '', ...args] = guardArgv(mode, 0);
  const { status } = spawnSync(file, [...args, '--runtime-dir', runtimeDir], { stdio: 'ignore' });
  rmSync(runtimeDir, { recursive: true, maxRetries: 10 });
  return status === 0;
}

function guardArgv(containment: ContainmentMode, idleExitMs: number): string[] {
  const options = ['--containment', containment, '--idle-exit-ms', String(idleExitMs)];
  return [...guardCommand(process.execPath, guardProgram), ...options];
}

/** Its locks are held until its last thread has ended. */
export async function processGone(pid: number): Promise<void> {
  const stat = readStat(pid);
  if (stat === null) return;
  await waitFor(`process ${pid} to end`, () => !isRunning(stat));
}

/** Makes fixtures for the tests of a file, and ends each after its test. */
export function useGuards(): (options?: GuardFixtureOptions) => GuardFixture {
  const fixtures: GuardFixture[] = [];
  afterEach(async () => {
    for (const fixture of fixtures.splice(0)) await fixture.cleanup();
    for (const pid of foreignPids.splice(0)) killGroup(pid);
  });
  return (options) => {
    const fixture = new GuardFixture(options);
    fixtures.push(fixture);
    return fixture;
  };
}

const foreignPids: number[] = [];

/** A process in a session of its own that no guard started; its group is ended after the test. */
export function aForeignProcess(env: Record<string, string>, script = idleScript): number {
  const { pid } = spawn('/bin/sh', ['-c', script], {
    env: { PATH: '/usr/bin:/bin', ...env },
    stdio: 'ignore',
    detached: true,
  });
  if (pid === undefined) throw new Error('no shell');
  foreignPids.push(pid);
  return pid;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Puts a record where an earlier guard would have left one. */
export async function writeRecord(task: TaskLocation, fields: object): Promise<void> {
  const record = { version: 2, key: task.key, bootId: readBootId(), startedAtMs: 0, cgroup: null, ...fields };
  await writeFile(join(task.directory, 'process.jsonl'), JSON.stringify(record));
}

export async function mainPid(driver: TaskDriver, task: TaskLocation): Promise<number> {
  const observed = await driver.recover(task);
  if (observed.kind !== 'running' || observed.pid === null)
    throw new Error(`${task.key} has no main process`);
  return observed.pid;
}

export function processesOf(task: TaskLocation): number[] {
  return [...allProcesses()].map(({ pid }) => pid).filter((pid) => carriesMarker(pid, task));
}

export function cgroupOf(task: TaskLocation): string | null {
  return readStoredTask(task, '')?.cgroup ?? null;
}

export function never(): AbortSignal {
  return new AbortController().signal;
}

export function outputOf(task: TaskLocation): string {
  return readFileSync(join(task.directory, 'output.log'), 'utf8');
}

export async function outputContains(task: TaskLocation, text: string): Promise<void> {
  const path = join(task.directory, 'output.log');
  await waitFor(
    `${JSON.stringify(text)} in ${path}`,
    () => existsSync(path) && outputOf(task).includes(text),
  );
}
