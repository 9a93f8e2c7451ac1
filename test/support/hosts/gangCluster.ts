/**
 * A Muster whose nodes are hosts of their own: a coordinator on one, an agent on each of the others, TLS between them.
 * Tests get one from `startContainerCluster` or `startNamespaceCluster`; scenarios do not notice which.
 */
import { randomUUID } from 'node:crypto';
import { cpSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JobSpecFile } from '@muster/common/spec/types';
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { musterProgram } from '../command.ts';
import { patienceMs } from '../patience.ts';
import { rootTasksFlags } from '../rootTasks.ts';
import { tempDir, waitFor } from '../services.ts';
import { type Doorway, openDoorway } from './doorway.ts';
import { enterMachine, seenFromOutside } from './enter.ts';
import { Host } from './host.ts';
import { HostProcess } from './hostProcess.ts';
import type { Machine, MachineRoom } from './machine.ts';
import { runProgram } from './programs.ts';

export interface GangClusterOptions {
  /** With an agent each; the coordinator's comes on top. Default 2. */
  readonly hosts?: number;
  /** Simulated, per host. Default 1. */
  readonly gpus?: number;
  /** Default 1s. */
  readonly heartbeat?: string;
  /** Default 12s: no node of a machine that is busy with something else is silent for that long. */
  readonly lease?: string;
  /** More flags of `muster coordinator`. */
  readonly coordinatorFlags?: readonly string[];
  /** More flags of `muster agent`. */
  readonly agentFlags?: (name: string) => readonly string[];
  /** Lines of daemon logs that this file provokes; every other complaint about an own mistake fails it. */
  readonly expectedErrors?: RegExp;
}

/** Whose output is meant. */
interface OutputOf {
  /** Of a node. Default 0. */
  readonly rank?: number;
  /** Default: the newest. */
  readonly attempt?: number;
}

const port = 7070;
const programsDir = fileURLToPath(new URL('programs/', import.meta.url));

export class GangCluster {
  readonly room: MachineRoom;
  readonly options: GangClusterOptions;
  readonly hosts: Host[] = [];
  private readonly logDir: string = tempDir('gang').path;
  private currentCoordinator: {
    readonly machine: Machine;
    readonly process: HostProcess;
    readonly doorway: Doorway;
  } | null = null;
  private client: { readonly api: MusterApi; readonly timesServed: number } | null = null;
  private readonly logMarks = new Map<HostProcess, number>();

  constructor(room: MachineRoom, options: GangClusterOptions) {
    this.room = room;
    this.options = options;
  }

  async start(): Promise<void> {
    // What jobs run lies where every host sees it.
    cpSync(programsDir, join(this.room.sharedDir, 'programs'), { recursive: true });
    const machine = await this.room.addMachine('coordinator');
    const coordinator = this.coordinatorOn(machine);
    await coordinator.start();
    this.currentCoordinator = { machine, process: coordinator, doorway: await openDoorway(machine, port) };
    await waitFor('the coordinator answers', () => this.api.getCluster());
    const names = Array.from({ length: this.options.hosts ?? 2 }, (_, index) => `host-${index + 1}`);
    this.hosts.push(...(await Promise.all(names.map((name) => this.hostCalled(name)))));
    await Promise.all(this.hosts.map(({ agent }) => agent.start()));
    await this.untilOnline();
  }

  /** Stops and starts as a process; its host stays. */
  get coordinator(): HostProcess {
    return this.open.process;
  }

  get coordinatorMachine(): Machine {
    return this.open.machine;
  }

  private get open(): {
    readonly machine: Machine;
    readonly process: HostProcess;
    readonly doorway: Doorway;
  } {
    if (this.currentCoordinator === null) throw new Error('the coordinator has never served');
    return this.currentCoordinator;
  }

  /** Where agents reach the coordinator; this test does not. */
  get address(): string {
    return `${this.open.machine.address}:${port}`;
  }

  host(name: string): Host {
    const host = this.hosts.find((each) => each.name === name);
    if (host === undefined) throw new Error(`this cluster has no host ${name}`);
    return host;
  }

  get processes(): readonly HostProcess[] {
    return [
      ...(this.currentCoordinator === null ? [] : [this.coordinator]),
      ...this.hosts.map(({ agent }) => agent),
    ];
  }

  /** A client as admin. Once the coordinator serves again a new one, which does not wait before it dials. */
  get api(): MusterApi {
    const { machine, process, doorway } = this.open;
    if (this.client?.timesServed !== process.timesServed) {
      this.client?.api.close();
      const fileOf = (name: string) =>
        readFileSync(seenFromOutside(machine, join(machine.homeDir, 'data', name)), 'utf8');
      const token = fileOf('admin.token').trim();
      const api = connectMuster({ address: doorway.address, token, caCertificate: fileOf('tls/ca.pem') });
      this.client = { api, timesServed: process.timesServed };
    }
    return this.client.api;
  }

  /** For files that jobs leave for the test to read. */
  get sharedDir(): string {
    return this.room.sharedDir;
  }

  /** Path of one of `programs/`, for commands of jobs. */
  program(name: string): string {
    return join(this.sharedDir, 'programs', name);
  }

  // ---- Jobs

  async submit(spec: JobSpecFile): Promise<string> {
    const request = { specJson: JSON.stringify(spec), requestId: randomUUID() };
    const [jobId] = (await this.api.submit(request)).jobIds;
    if (jobId === undefined) throw new Error('the submit was answered without a job id');
    return jobId;
  }

  /** @throws {Error} after the deadline, with the job as it was seen last */
  untilJob(jobId: string, what: string, reached: (job: JobView) => boolean): Promise<JobView> {
    return waitFor(`${jobId} ${what}`, () => this.api.getJob(jobId), {
      intervalMs: 50,
      until: reached,
    });
  }

  untilEnded(jobId: string): Promise<JobView> {
    return this.untilJob(jobId, 'has ended', ({ state }) => isTerminal(state));
  }

  /** The whole output of one rank, once it is complete. */
  async output(jobId: string, of: OutputOf = {}): Promise<string> {
    return (await this.read(jobId, of, () => false)).text;
  }

  /**
   * Waits until a node rank has printed `text`, and until its job is no longer shown as starting: the output of a
   * task may arrive before the report that the task runs.
   * @returns all that the node rank has printed by then
   */
  async untilOutput(jobId: string, text: string, of: OutputOf = {}): Promise<string> {
    const { text: seen, found } = await this.read(jobId, of, (output) => output.includes(text));
    if (!found)
      throw new Error(
        `node rank ${of.rank ?? 0} of ${jobId} has not printed ${JSON.stringify(text)}, but:\n${seen}`,
      );
    await this.untilJob(jobId, 'has started', ({ state }) => state !== 'starting');
    return seen;
  }

  private async read(
    jobId: string,
    { rank: nodeRank = 0, attempt }: OutputOf,
    until: (text: string) => boolean,
  ): Promise<{ readonly text: string; readonly found: boolean }> {
    const deadline = AbortSignal.timeout(patienceMs);
    const pieces: Uint8Array[] = [];
    let text = '';
    const request = { jobId, nodeRank, follow: true, ...(attempt === undefined ? {} : { attempt }) };
    for await (const piece of this.api.readLogs(request, deadline)) {
      pieces.push(piece.data);
      text = Buffer.concat(pieces).toString('utf8');
      if (until(text)) return { text, found: true };
    }
    if (deadline.aborted) {
      throw new Error(`the output of ${jobId} was not complete within ${patienceMs} ms:\n${text}`);
    }
    return { text, found: false };
  }

  /** Live processes of a job, on all hosts. */
  processesOf(jobId: string): readonly string[] {
    return this.hosts.flatMap((host) => host.processes(jobId).map((pid) => `${host.name}: ${pid}`));
  }

  async untilOnline(hosts: readonly Host[] = this.hosts): Promise<void> {
    const names = hosts.map(({ name }) => name);
    await waitFor(
      `${names.join(', ')} online`,
      async () => (await this.api.listNodes()).map(({ name, state }) => `${name} ${state}`),
      { until: (seen) => names.every((name) => seen.includes(`${name} online`)) },
    );
  }

  /** Runs a `muster` command as its admin, on the host of the coordinator. @returns what it printed, stderr after stdout */
  async muster(...args: readonly string[]): Promise<string> {
    const { machine } = this.open;
    const env = Object.entries(this.environmentOn(machine)).map(([name, value]) => `${name}=${value}`);
    const flags = ['--data', join(machine.homeDir, 'data')];
    const program = ['env', '-i', ...env, musterProgram, ...args, ...flags];
    const { exitCode, stdout, stderr } = await runProgram([...enterMachine(machine), ...program]);
    if (exitCode !== 0) throw new Error(`muster ${args.join(' ')} ended with ${exitCode}: ${stderr}`);
    return stdout + stderr;
  }

  // ---- Its end

  /** The room itself is removed by the caller. */
  closeConnections(): void {
    this.client?.api.close();
    this.currentCoordinator?.doorway.close();
  }

  markLogs(): void {
    for (const each of this.processes) this.logMarks.set(each, each.log.length);
  }

  logsSinceMark(): string {
    return this.processes
      .map(
        (each) => `--- ${each.options.title}\n${each.log.slice(this.logMarks.get(each) ?? 0).slice(-20_000)}`,
      )
      .join('');
  }

  // ---- Its parts

  private coordinatorOn(machine: Machine): HostProcess {
    const { heartbeat = '1s', lease = '12s', coordinatorFlags = [] } = this.options;
    const fence = ['--fence-time', '2s', '--fence-margin', '2s'];
    const times = ['--heartbeat', heartbeat, '--lease', lease, ...fence];
    const listen = ['--listen', `${machine.address}:${port}`, '--http', 'off'];
    return this.processOn(machine, 'coordinator', {
      args: () => [
        'coordinator',
        '--data',
        join(machine.homeDir, 'data'),
        ...listen,
        ...times,
        ...coordinatorFlags,
      ],
    });
  }

  private async hostCalled(name: string): Promise<Host> {
    const { gpus = 1, agentFlags } = this.options;
    const machine = await this.room.addMachine(name);
    const place = ['--data', join(machine.homeDir, 'data'), '--name', name, '--coordinator', this.address];
    const hardware = ['--gpus', String(gpus), '--cpus', '8', '--metrics', 'off'];
    const flags = agentFlags?.(name) ?? [];
    let token: string | null = null;
    const agent = this.processOn(machine, `agent of ${name}`, {
      args: () => ['agent', ...place, ...hardware, ...rootTasksFlags(flags), ...flags],
      env: async () => {
        token ??= (await this.api.createJoinToken(name)).token;
        return { MUSTER_JOIN_TOKEN: token };
      },
    });
    return new Host(machine, agent);
  }

  private processOn(
    machine: Machine,
    title: string,
    { args, env }: { args: () => readonly string[]; env?: () => Promise<NodeJS.ProcessEnv> },
  ): HostProcess {
    const own = this.environmentOn(machine);
    return new HostProcess({
      title,
      enter: () => enterMachine(machine),
      args,
      env: async () => ({ ...own, ...(await env?.()) }),
      logPath: join(this.logDir, `${machine.name}.log`),
    });
  }

  /** Nothing of the user who runs the tests: neither another Muster of theirs nor their settings may decide a test. */
  private environmentOn({ homeDir }: Machine): Readonly<Record<string, string>> {
    return {
      PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin`,
      HOME: homeDir,
      TMPDIR: homeDir,
    };
  }
}
