/**
 * A whole Muster on this machine, of real processes: one coordinator, N agents with simulated GPUs, their guards. Each can
 * be killed and started again by the test. Tests get one from `startCluster`, which also sees to its end.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { JobSpecFile } from '@muster/common/spec/types';
import { isTerminal, type JobStateKind } from '@muster/common/states';
import type { EventView, JobView } from '@muster/common/views';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { problemOfCloudEvent } from '@muster/coordinator/events/eventSchemaFixture';
import { commandOf, processesNaming } from '../../scripts/processes.mjs';
import { type CommandOptions, type CommandResult, MusterCommand } from './command.ts';
import { Daemon, type DaemonOptions } from './daemon.ts';
import { patienceMs } from './patience.ts';
import { asSeenBy, withOwnDisk } from './places.ts';
import { rootTasksFlags } from './rootTasks.ts';
import { faketimeLibrary, tempDir, waitFor } from './services.ts';

export interface ClusterOptions {
  /** Default 1. */
  readonly nodes?: number;
  /** Simulated, per node. Default 2. */
  readonly gpus?: number;
  /** Offered per node, whatever the machine has. Default 8. */
  readonly cpus?: number;
  /** Gives the coordinator's data directory a disk of its own, of this size; it is gone when the coordinator ends. */
  readonly coordinatorDiskMb?: number;
  /** The same for each agent's. */
  readonly agentDiskMb?: number;
  /** More flags of `muster coordinator`. */
  readonly coordinatorFlags?: readonly string[];
  /** More flags of `muster agent`. With `--gpu-source` among them the GPUs are not simulated. */
  readonly agentFlags?: (name: string) => readonly string[];
  /** Which `muster` a daemon is started with, by its title. Default: that of this checkout. */
  readonly programOf?: (title: string) => string;
  /** How far ahead the clock of a daemon is, by its title, asked at each start. Default: 0. */
  readonly clockAheadMs?: (title: string) => number;
  /** Clocks of daemons can be set while they run, by `setClock`. Not together with `clockAheadMs`. */
  readonly settableClocks?: boolean;
  /** Lines of daemon logs that this file provokes; every other complaint about an own mistake fails it. */
  readonly expectedErrors?: RegExp;
}

export type Spec = JobSpecFile;

const heartbeat = '1s';
const lease = '6s';

export class Cluster {
  /** Agents keep theirs here, one folder each. */
  readonly agentsDir: string;
  readonly coordinator: Daemon;
  readonly agents: Daemon[] = [];
  /** A folder for what belongs to this cluster; gone at the end. */
  readonly workDir: string;
  readonly options: ClusterOptions;
  /** As the coordinator sees it. */
  private readonly ownDataDir: string;
  private readonly environment: NodeJS.ProcessEnv;
  private readonly logMarks = new Map<Daemon, number>();
  private client: { readonly api: MusterApi; readonly timesServed: number } | null = null;

  /** What the agents are started with, by name. */
  private readonly joinTokens = new Map<string, string>();

  constructor(options: ClusterOptions, port: number) {
    this.options = options;
    this.workDir = tempDir('cluster').path;
    this.ownDataDir = join(this.workDir, 'data');
    this.agentsDir = join(this.workDir, 'agents');
    mkdirSync(this.agentsDir);
    // Nothing of the user who runs the tests: neither another Muster of theirs nor their settings may decide a test.
    this.environment = { PATH: process.env.PATH, HOME: this.workDir, TMPDIR: process.env.TMPDIR };
    const flags = [
      '--listen',
      `127.0.0.1:${port}`,
      '--http',
      '127.0.0.1:0',
      '--heartbeat',
      heartbeat,
      '--lease',
      lease,
    ];
    const args = ['coordinator', '--data', this.ownDataDir, ...flags, ...(options.coordinatorFlags ?? [])];
    const wrapper = withOwnDisk(this.ownDataDir, options.coordinatorDiskMb);
    this.coordinator = this.daemon('coordinator', { args: () => args, wrapper });
    for (let index = 0; index < (options.nodes ?? 1); index += 1) this.addAgent(`node-${index + 1}`);
  }

  async start(): Promise<void> {
    await this.coordinator.start();
    await Promise.all(this.agents.map((agent) => agent.start()));
    await this.untilOnline();
  }

  private daemon(title: string, options: Partial<DaemonOptions> & Pick<DaemonOptions, 'args'>): Daemon {
    const { programOf, clockAheadMs, settableClocks } = this.options;
    const env = async () => ({
      ...this.environment,
      ...clockAhead(clockAheadMs?.(title) ?? 0),
      ...(settableClocks === true ? this.settableClock(title) : {}),
      ...(await options.env?.()),
    });
    const program = programOf === undefined ? {} : { program: () => programOf(title) };
    return new Daemon({ title, ...options, ...program, env, logPath: join(this.workDir, `${title}.log`) });
  }

  /** Sets the system clock of a daemon, and of what it has started, within a second. @param aheadMs negative: behind */
  setClock(title: string, aheadMs: number): void {
    writeFileSync(join(this.workDir, `${title}.clock`), offsetText(aheadMs));
  }

  private settableClock(title: string): Readonly<Record<string, string>> {
    const path = join(this.workDir, `${title}.clock`);
    if (!existsSync(path)) this.setClock(title, 0);
    return {
      ...faketime(),
      FAKETIME_TIMESTAMP_FILE: path,
      FAKETIME_CACHE_DURATION: '1',
    };
  }

  /** The agent joins again at its next start, with the data directory that it has. */
  async letJoinAnew(agent: Daemon): Promise<void> {
    const name = agent.options.title;
    this.joinTokens.set(name, (await this.api.createJoinToken(name, true)).token);
  }

  /** One more agent, not started yet. */
  addAgent(name: string, joinToken: string | null = null): Daemon {
    const { gpus = 2, cpus = 8, agentDiskMb, agentFlags } = this.options;
    const dataDir = join(this.agentsDir, name);
    if (joinToken !== null) this.joinTokens.set(name, joinToken);
    const agent = this.daemon(name, {
      args: () => {
        const place = ['--data', dataDir, '--name', name, '--coordinator', this.address];
        const flags = agentFlags?.(name) ?? [];
        const hardware = flags.includes('--gpu-source') ? [] : ['--gpus', String(gpus)];
        const usual = ['--cpus', String(cpus), '--metrics', 'off', ...rootTasksFlags(flags)];
        return ['agent', ...place, ...hardware, ...usual, ...flags];
      },
      wrapper: withOwnDisk(dataDir, agentDiskMb),
      env: async () => {
        const token = this.joinTokens.get(name) ?? (await this.api.createJoinToken(name)).token;
        this.joinTokens.set(name, token);
        return { MUSTER_JOIN_TOKEN: token };
      },
    });
    this.agents.push(agent);
    return agent;
  }

  agent(index: number): Daemon {
    const agent = this.agents[index];
    if (agent === undefined) throw new Error(`this cluster has no agent ${index}`);
    return agent;
  }

  /** `host:port`; the same after a restart of the coordinator. */
  get address(): string {
    if (this.coordinator.address === null) throw new Error('the coordinator has never served');
    return this.coordinator.address;
  }

  /** Of the coordinator, as this test sees it. */
  get dataDir(): string {
    const { coordinatorDiskMb } = this.options;
    return coordinatorDiskMb === undefined ? this.ownDataDir : asSeenBy(this.coordinator, this.ownDataDir);
  }

  /** Of an agent, as this test sees it. */
  agentDataDir(agent: Daemon): string {
    const path = join(this.agentsDir, agent.options.title);
    return this.options.agentDiskMb === undefined ? path : asSeenBy(agent, path);
  }

  /** PEM of the CA of its coordinator; null: it has no TLS. */
  get caCertificate(): string | null {
    const path = join(this.dataDir, 'tls/ca.pem');
    return existsSync(path) ? readFileSync(path, 'utf8') : null;
  }

  get adminToken(): string {
    return readFileSync(join(this.dataDir, 'admin.token'), 'utf8').trim();
  }

  /** A client as admin. Once the coordinator serves again a new one, which does not wait before it dials. */
  get api(): MusterApi {
    const { timesServed } = this.coordinator;
    if (this.client?.timesServed !== timesServed) {
      this.client?.api.close();
      this.client = { api: this.newClient(), timesServed };
    }
    return this.client.api;
  }

  newClient(token: string = this.adminToken): MusterApi {
    return connectMuster({ address: this.address, token, caCertificate: this.caCertificate });
  }

  /** Starts a `muster` command, which finds this cluster unless `options` name another one. */
  startMuster(args: readonly string[], options: Partial<CommandOptions> = {}): MusterCommand {
    const env = { ...this.environment, MUSTER_DATA: this.ownDataDir, ...options.env };
    return new MusterCommand(args, { cwd: this.workDir, ...options, env });
  }

  /** Runs one to its end. */
  muster(args: readonly string[], options: Partial<CommandOptions> = {}): Promise<CommandResult> {
    return this.startMuster(args, options).ended;
  }

  // ---- Jobs

  async submit(spec: Spec, requestId: string = randomUUID()): Promise<string> {
    const [jobId] = (await this.api.submit({ specJson: JSON.stringify(spec), requestId })).jobIds;
    if (jobId === undefined) throw new Error('the submit was answered without a job id');
    return jobId;
  }

  async submitArray(
    spec: Spec,
    arraySize: number,
  ): Promise<{ readonly arrayId: string; readonly jobIds: readonly string[] }> {
    const array = { specJson: JSON.stringify(spec), requestId: randomUUID(), arraySize };
    const { arrayId, jobIds } = await this.api.submit(array);
    if (arrayId === null) throw new Error('the submit of an array was answered without its id');
    return { arrayId, jobIds };
  }

  /** Submits a job and waits for its end. */
  async run(spec: Spec, options: { timeoutMs?: number } = {}): Promise<JobView> {
    return this.untilEnded(await this.submit(spec), options);
  }

  async untilEnded(jobId: string, options: { timeoutMs?: number } = {}): Promise<JobView> {
    return this.untilJob(jobId, 'has ended', (job) => isTerminal(job.state), options);
  }

  /** Waits for a state. A job that has ended in another one fails the test at once. */
  async until(jobId: string, state: JobStateKind, options: { timeoutMs?: number } = {}): Promise<JobView> {
    const job = await this.untilJob(
      jobId,
      `is ${state}`,
      (seen) => seen.state === state || isTerminal(seen.state),
      options,
    );
    if (job.state === state) return job;
    throw new Error(`${jobId} was to be ${state} and is ${show(job)}`);
  }

  /**
   * Waits until `reached` is true of the job, and looks again at each of its events; over restarts of the coordinator too.
   * @throws {Error} after the deadline, with the job as it was seen last
   */
  async untilJob(
    jobId: string,
    what: string,
    reached: (job: JobView) => boolean,
    { timeoutMs = patienceMs }: { timeoutMs?: number } = {},
  ): Promise<JobView> {
    const deadline = AbortSignal.timeout(timeoutMs);
    let last: unknown = 'nothing';
    while (!deadline.aborted) {
      const { api } = this;
      try {
        for await (const _event of api.watchEvents({ subject: jobId, follow: true }, deadline)) {
          const job = await api.getJob(jobId);
          last = job;
          if (reached(job)) return job;
        }
      } catch (error) {
        if (this.coordinator.isRunning && !isAway(error)) throw error;
        last = error;
        await delay(50);
      }
    }
    throw new Error(`${jobId} ${what}: not within ${timeoutMs} ms; last seen: ${show(last)}`);
  }

  /** The whole output of one rank, once it is complete. */
  async output(
    jobId: string,
    { rank = 0, attempt }: { rank?: number; attempt?: number } = {},
  ): Promise<string> {
    const pieces: Uint8Array[] = [];
    const wanted = { jobId, nodeRank: rank, follow: true, ...(attempt === undefined ? {} : { attempt }) };
    const deadline = AbortSignal.timeout(patienceMs);
    for await (const piece of this.api.readLogs(wanted, deadline)) pieces.push(piece.data);
    const text = Buffer.concat(pieces).toString('utf8');
    if (deadline.aborted)
      throw new Error(`the output of ${jobId} was not complete within ${patienceMs} ms:\n${text}`);
    return text;
  }

  /**
   * Waits until a rank has printed `text`, and until its job is no longer shown as starting: the output of a task
   * may arrive before the report that the task runs.
   * @returns all that the rank has printed by then
   */
  async untilOutput(jobId: string, text: string, rank = 0, timeoutMs = patienceMs): Promise<string> {
    const deadline = AbortSignal.timeout(timeoutMs);
    let seen = '';
    for await (const piece of this.api.readLogs({ jobId, nodeRank: rank, follow: true }, deadline)) {
      seen += Buffer.from(piece.data).toString('utf8');
      if (!seen.includes(text)) continue;
      await this.untilJob(jobId, 'has started', ({ state }) => state !== 'starting');
      return seen;
    }
    throw new Error(`rank ${rank} of ${jobId} has not printed ${JSON.stringify(text)}, but:\n${seen}`);
  }

  /** All events so far, each in the form that docs/events.schema.json defines. */
  async events(subject?: string): Promise<readonly EventView[]> {
    const events: EventView[] = [];
    const of = { sinceSeq: 0, ...(subject === undefined ? {} : { subject }) };
    for await (const event of this.api.watchEvents(of)) events.push(event);
    const problems = events.flatMap(({ cloudEvent }) => problemOfCloudEvent(cloudEvent) ?? []);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    return events;
  }

  /** Live processes of a job's tasks, by their marker. */
  processesOf(jobId: string): readonly number[] {
    return processesNaming(this.agentsDir).filter((pid) => taskOf(pid)?.startsWith(`${jobId}.`) === true);
  }

  // ---- Nodes

  async untilOnline(agents: readonly Daemon[] = this.agents): Promise<void> {
    const names = agents.map(({ options }) => options.title);
    await waitFor(
      `${names.join(', ')} online`,
      async () => (await this.api.listNodes()).map(({ name, state }) => `${name} ${state}`),
      { until: (seen) => names.every((name) => seen.includes(`${name} online`)) },
    );
  }

  /** Pid of the guard of an agent; null: it has none now. */
  guardPid(agent: Daemon): number | null {
    const runtimeDir = join(this.agentsDir, agent.options.title, 'run');
    const isGuard = (pid: number) => commandOf(pid).includes('guard') && commandOf(pid).endsWith(runtimeDir);
    return processesNaming(runtimeDir).find(isGuard) ?? null;
  }

  // ---- What its processes print

  markLogs(): void {
    for (const daemon of this.daemons) this.logMarks.set(daemon, daemon.log.length);
  }

  logsSinceMark(): string {
    return this.daemons
      .map(
        (daemon) =>
          `--- ${daemon.options.title}\n${daemon.log.slice(this.logMarks.get(daemon) ?? 0).slice(-20_000)}`,
      )
      .join('');
  }

  get daemons(): readonly Daemon[] {
    return [this.coordinator, ...this.agents];
  }
}

/** A coordinator that is being restarted: the next try may find it. */
function isAway(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'unavailable';
}

function show(value: unknown): string {
  return value instanceof Error ? value.message : inspect(value, { depth: 8, breakLength: 110 });
}

/** The key of the task that a process belongs to. */
function taskOf(pid: number): string | null {
  try {
    return /(?:^|\0)MUSTER_TASK=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1] ?? null;
  } catch {
    return null;
  }
}

/** The environment of a process whose clock is ahead by so much, or behind; what it starts has that clock too. */
function clockAhead(ms: number): Readonly<Record<string, string>> {
  if (ms === 0) return {};
  return { ...faketime(), FAKETIME: offsetText(ms) };
}

/** As libfaketime reads it. */
function offsetText(ms: number): string {
  return `${ms < 0 ? '' : '+'}${ms / 1_000}s`;
}

function faketime(): Readonly<Record<string, string>> {
  return { LD_PRELOAD: faketimeLibrary(), FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}
