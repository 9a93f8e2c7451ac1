/**
 * The agent's view of its node: opens the sources, lets the sampler look at them, and hands what it sees to the health
 * monitor, the Prometheus page, the job files and the telemetry stream. The rest of the agent asks it for the node's
 * status and the usage of tasks, and never waits for a driver.
 */

import { existsSync } from 'node:fs';
import { withDeadline } from '@muster/common/async';
import type { Clock } from '@muster/common/clock';
import type { Condition } from '@muster/common/conditions';
import { messageOf } from '@muster/common/errors';
import { emptyInventory, type NodeInventory } from '@muster/common/hardware';
import type { TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { taskStates } from '@muster/common/states';
import type { GpuUsage, HostReading } from '@muster/common/telemetry';
import { musterVersion } from '@muster/common/version';
import type { TaskReport } from '@muster/common/views';
import type { DirectoryProblem } from '../checkpoints/directoryProblems.ts';
import { type ForeignProcess, foreignProcessesOn } from '../gpus/foreignProcesses.ts';
import { GpuReader } from '../gpus/gpuReader.ts';
import type { GpuObservation, GpuProblem } from '../gpus/gpuSource.ts';
import { nvidiaSmiReadingMs, openSources } from '../gpus/openSources.ts';
import { readSimulatedStates } from '../gpus/simulated.ts';
import type { KernelRecord } from '../health/kernelLog.ts';
import { type HealthWatch, startHealth } from '../health/start.ts';
import { HostMetrics, type HostSample, toReading } from '../host/hostMetrics.ts';
import { type HostInventory, sameInventory } from '../host/inventory.ts';
import type { LastXid } from '../metrics/gpuPage.ts';
import { GpuReads } from '../metrics/gpuReads.ts';
import { HpcJobFiles } from '../metrics/hpcJobFiles.ts';
import { type MetricsServer, startMetricsServer } from '../metrics/metricsServer.ts';
import { renderPage } from '../metrics/page.ts';
import type { AgentOptions } from '../options.ts';
import { engineAnswers } from '../probes/engine.ts';
import { TelemetrySampler } from '../telemetry/sampler.ts';
import { TelemetryUploader, type TelemetryUploaderParts } from '../telemetry/telemetryUploader.ts';
import { UsageMeter } from '../telemetry/usageMeter.ts';
import { type GuardProbe, probeHelpers } from './helperProbe.ts';
import { buildInventory } from './inventory.ts';

/**
 * Of finding the sources and the first listing. A driver that takes longer is met by a node that has no GPUs yet, not by
 * one that is silent.
 */
const firstListingMs = 15_000;
/** What can change without anybody noticing: cables, Docker. */
const statusIntervalMs = 60_000;
/** Beside the agent's own: what jobs write to without thinking of it. NCCL and data loaders share memory in /dev/shm. */
const watchedPaths = ['/', '/tmp', '/dev/shm', '/var/lib/docker'];
/** nvidia-smi starts a process for each reading; NVML does not. */
const sampleIntervalMs = { nvml: 1_000, simulated: 1_000, none: 10_000, 'nvidia-smi': 5_000 } as const;
/** An inventory by nvidia-smi can take seconds of CPU time. */
const listIntervalMs = { nvml: 60_000, simulated: 600_000, none: 600_000, 'nvidia-smi': 600_000 } as const;

/** Of the sources at the end. A reader that hangs in the kernel is never gone. */
const closeMs = 2_000;

const nothingSeen: GpuObservation = {
  gpus: [],
  gpuDriver: emptyInventory.gpuDriver,
  samples: new Map(),
  problems: [],
  holders: new Map(),
  atMs: 0,
};

/** What the coordinator schedules by, whole. */
export interface NodeStatus {
  readonly inventory: NodeInventory;
  readonly conditions: readonly Condition[];
}

/** What the training of the node's tasks has to do with watching the node. */
export interface WatchedTraining {
  /** What the GPUs of tasks do shows whether these hang. */
  observe(observation: GpuObservation): void;
}

export interface NodeWatchParts {
  readonly options: AgentOptions;
  readonly log: Logger;
  readonly clock: Clock;
  readonly hostInventory: HostInventory;
  readonly bootId: string;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  /** Asks a guard for a greeting, and starts none. */
  readonly probeGuard: GuardProbe;
  /** PATH. */
  readonly searchPath: string;
  /** LD_LIBRARY_PATH; null: not set. */
  readonly libraryPath: string | null;
  readonly chance: () => number;
  /** Tasks that run, with their GPUs. */
  readonly running: () => readonly { readonly task: TaskRef; readonly gpuUuids: readonly string[] }[];
  readonly reports: () => readonly TaskReport[];
  readonly training: WatchedTraining;
  /** Where to keep the usage of a task. */
  readonly usageFileOf: (task: TaskRef) => string;
  readonly openTelemetryStream: TelemetryUploaderParts['openStream'];
  readonly connection: () => { readonly connected: boolean; readonly heartbeatAgeMs: number | null };
  /** The node's status is another than it was when it was last asked for. */
  readonly onStatusChange: () => void;
  /** Gets each record of the kernel log. */
  readonly onKernelRecord: (record: KernelRecord) => void;
  /** How long `start` waits for the GPUs; default: 15 s. */
  readonly firstListingMs?: number;
}

export class NodeWatch {
  private readonly parts: NodeWatchParts;
  private readonly meter: UsageMeter;
  private readonly hostMetrics: HostMetrics;
  private readonly gpuReads = new GpuReads();
  private readonly uploader: TelemetryUploader;
  private readonly hpcJobFiles: HpcJobFiles | null;
  private readonly startedAtMs: number;
  private reader: GpuReader | null = null;
  private announcesXids = false;
  private sampler: TelemetrySampler | null = null;
  private health: HealthWatch | null = null;
  private server: MetricsServer | null = null;
  private lookAgain: NodeJS.Timeout | null = null;
  private hostBefore: HostSample | null = null;
  private published: NodeStatus | null = null;
  private isClosed = false;

  constructor(parts: NodeWatchParts) {
    this.parts = parts;
    const { options, clock, log } = parts;
    this.startedAtMs = clock.wallMs();
    this.hostMetrics = new HostMetrics({ paths: [options.dataDir], monotonicMs: () => clock.monotonicMs() });
    this.meter = new UsageMeter({
      fileOf: parts.usageFileOf,
      intervalMs: options.sampleIntervalMs ?? 0,
      onError: (task, error) =>
        log.debug({ task, error: messageOf(error) }, 'the usage of a task could not be kept'),
    });
    this.uploader = new TelemetryUploader({
      openStream: parts.openTelemetryStream,
      page: async () => this.page(),
      log,
      chance: parts.chance,
    });
    const { hpcJobDir } = options;
    this.hpcJobFiles = hpcJobDir === null ? null : new HpcJobFiles({ dir: hpcJobDir, log });
  }

  /** Takes in what the kernel log has by now. */
  readKernelLog(): void {
    this.health?.readKernelLog();
  }

  /** Resolves when the node has been looked at once, or when its driver has had its time to answer. */
  async start(): Promise<void> {
    const { options, log, clock, bootId, boottimeMs } = this.parts;
    this.health = await startHealth({
      dataDir: options.dataDir,
      kernelLog: options.kernelLog,
      conditionTable: options.conditionTable,
      paths: watchedPaths.filter((path) => existsSync(path)),
      probeHelpers: () => probeHelpers(this.parts.probeGuard, options.dockerSocket),
      bootId,
      log,
      now: () => ({ wallMs: clock.wallMs(), uptimeMs: boottimeMs() }),
      onKernelRecord: this.parts.onKernelRecord,
    });
    this.health.monitor.onChange(() => this.parts.onStatusChange());
    this.hostBefore = this.hostMetrics.sample();
    const { firstListingMs: waitMs = firstListingMs } = this.parts;
    const opening = this.openGpus();
    if ((await withDeadline(opening, waitMs)) === 'late') {
      log.warn({ waitMs }, 'the GPUs have not been listed yet; the node starts without them');
      opening.catch((error: unknown) =>
        log.error({ error: messageOf(error) }, 'the GPUs of this node are not watched; restart the agent'),
      );
    }
    await this.serve();
    this.uploader.start();
    // Sent again though nothing may have changed: the next status repairs the loss of an earlier one.
    this.lookAgain = setInterval(() => this.parts.onStatusChange(), statusIntervalMs);
  }

  /** Finds the sources, lists and reads once; from then on the sampler runs automatically. */
  private async openGpus(): Promise<void> {
    const { options, log, clock, searchPath, libraryPath } = this.parts;
    const { source, profiling, profilingName } = await openSources(options, {
      log,
      clock,
      searchPath,
      libraryPath,
      busyGpus: () => new Set(this.holders().keys()),
      listedGpus: () => this.sampler?.lastListing.gpus ?? [],
      simulatedStates: () => readSimulatedStates(options.dataDir),
    });
    const reader = new GpuReader({
      source,
      profiling,
      clock,
      log,
      deadlines: source.name === 'nvidia-smi' ? { sampleMs: nvidiaSmiReadingMs } : {},
    });
    // The agent may have ended while a driver took its time.
    if (this.isClosed) return void (await withDeadline(reader.close(), closeMs));
    this.reader = reader;
    reader.onXid((event) => this.health?.monitor.xid(event));
    this.announcesXids = source.onXid !== null;
    const sampler = new TelemetrySampler({
      gpus: reader,
      sourceName: source.name,
      profilingSource: profilingName,
      intervalMs: options.sampleIntervalMs ?? sampleIntervalMs[source.name],
      listIntervalMs: listIntervalMs[source.name],
      holders: () => this.holders(),
      isGpuMissing: () =>
        this.health?.monitor.conditions().some(({ kind }) => kind === 'gpu_missing') === true,
      readHost: () => this.readHost(),
      meter: this.meter,
      wallMs: () => clock.wallMs(),
      monotonicMs: () => clock.monotonicMs(),
      log,
      onRead: (seconds, problems) => this.countRead(seconds, problems),
      onObservation: (observation) => this.onObservation(observation),
      onReadings: (gpus, host) => this.uploader.send(gpus, host),
    });
    this.sampler = sampler;
    await sampler.start();
    log.info(
      { source: source.name, profiling: profilingName(), gpus: sampler.lastListing.gpus.length },
      'the node is watched',
    );
  }

  /** The node as it is now, whole. */
  async status(): Promise<NodeStatus> {
    const { options } = this.parts;
    const [devices, hasEngine] = await Promise.all([
      this.parts.hostInventory.read(),
      engineAnswers(options.dockerSocket),
    ]);
    const observation = this.observation();
    const inventory = buildInventory(options, {
      listing: { gpus: observation.gpus, links: this.sampler?.lastListing.links ?? [] },
      gpuDriver: observation.gpuDriver,
      devices,
      drivers: hasEngine ? ['process', 'docker'] : ['process'],
    });
    const status = { inventory, conditions: this.health?.monitor.conditions() ?? [] };
    this.published = status;
    return status;
  }

  /** Processes on these GPUs that belong to no task that runs here, as far as the driver reports. */
  foreignProcessesOn(gpuUuids: readonly string[]): readonly ForeignProcess[] {
    const tasks = this.parts.running().map(({ task }) => task);
    return foreignProcessesOn(gpuUuids, this.observation().samples, tasks);
  }

  usageOf(task: TaskRef): GpuUsage | null {
    return this.meter.usageOf(task);
  }

  /** Nothing more will be asked of a task. */
  forget(task: TaskRef): void {
    this.meter.forget(task);
  }

  clearCondition(kind: string, gpuUuid: string | null): void {
    this.health?.monitor.clear(kind, gpuUuid);
    // Also when there was none: anyone who asked is waiting to see that it is gone.
    this.parts.onStatusChange();
  }

  directoryProblem(problem: DirectoryProblem | null): void {
    this.health?.monitor.directoryProblem(problem);
  }

  clockSkew(skewMs: number): void {
    this.health?.monitor.clockSkew(skewMs);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    if (this.lookAgain !== null) clearInterval(this.lookAgain);
    this.sampler?.close();
    this.meter.save(this.parts.running().map(({ task }) => task));
    this.uploader.close();
    this.health?.close();
    await this.server?.close();
    if (this.reader !== null) await withDeadline(this.reader.close(), closeMs);
  }

  private observation(): GpuObservation {
    return this.sampler?.observation() ?? nothingSeen;
  }

  private onObservation(observation: GpuObservation): void {
    this.health?.monitor.observe(observation);
    this.parts.training.observe(observation);
    this.hpcJobFiles?.update(observation.gpus, observation.holders);
    if (this.published === null || observation.gpus === this.published.inventory.gpus) return;
    this.publishChange().catch((error: unknown) =>
      this.parts.log.warn({ error: messageOf(error) }, 'the node could not be looked at'),
    );
  }

  /** Sends the status again if the inventory is another than the one that was sent. */
  private async publishChange(): Promise<void> {
    const before = this.published;
    const { inventory } = await this.status();
    if (before === null || this.isClosed || sameInventory(before.inventory, inventory)) return;
    this.parts.onStatusChange();
  }

  private holders(): ReadonlyMap<string, TaskRef> {
    return new Map(
      this.parts.running().flatMap(({ task, gpuUuids }) => gpuUuids.map((uuid) => [uuid, task] as const)),
    );
  }

  private countRead(seconds: number, problems: readonly GpuProblem[]): void {
    const { source } = this.observation().gpuDriver;
    this.gpuReads.took(source, seconds);
    for (const { kind } of problems) this.gpuReads.failed(source, kind);
  }

  private async readHost(): Promise<HostReading | null> {
    const before = this.hostBefore;
    const sample = this.hostMetrics.sample();
    this.hostBefore = sample;
    return before === null ? null : toReading(before, sample, this.parts.clock.wallMs());
  }

  /** The page is a convenience: an agent whose port is taken still runs jobs, and the coordinator fetches it anyway. */
  private async serve(): Promise<void> {
    const { options, log } = this.parts;
    if (options.metricsListen === null) return;
    try {
      this.server = await startMetricsServer({
        listen: options.metricsListen,
        render: () => this.page(),
        log,
      });
      log.info({ address: this.server.address }, 'the metrics page is served');
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'the metrics page is not served here');
    }
  }

  private page(): string {
    const { options, reports } = this.parts;
    const { connected, heartbeatAgeMs } = this.parts.connection();
    const observation = this.observation();
    const tasks = new Map<string, number>(taskStates.map((state) => [state, 0]));
    for (const { state } of reports()) tasks.set(state, (tasks.get(state) ?? 0) + 1);
    const { user, system } = process.cpuUsage();
    return renderPage({
      gpus: {
        observation,
        nodeName: options.name,
        hostnameLabel: options.hostnameLabel,
        lastXids: this.lastXids(),
      },
      host: this.hostBefore,
      agent: {
        version: musterVersion,
        startedAtMs: this.startedAtMs,
        cpuSeconds: (user + system) / 1e6,
        residentBytes: process.memoryUsage.rss(),
        tasks,
        connected,
        heartbeatAgeSeconds: heartbeatAgeMs === null ? null : heartbeatAgeMs / 1000,
        gpuReads: this.gpuReads,
        conditions: this.health?.monitor.conditions() ?? [],
      },
    });
  }

  /** By UUID of the card; null: nobody watches, and a card without an Xid cannot be distinguished from one whose Xids go unseen. */
  private lastXids(): ReadonlyMap<string, LastXid> | null {
    const { health } = this;
    const isWatched = this.announcesXids || health?.kernelLogState().kind === 'reading';
    if (health === null || !isWatched) return null;
    const known = health.monitor.lastXids();
    return new Map(Array.from(known, ([uuid, xid]) => [uuid, { xid, message: `Xid ${xid}` }]));
  }
}
