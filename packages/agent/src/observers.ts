/** What an agent on a real machine watches: its node, and the output, the training, the checkpoints and the ends of its tasks. */

import { join } from 'node:path';
import type { Metadata } from '@grpc/grpc-js';
import { VerifierProcess } from '@muster/checkpoints/verifierProcess';
import { systemClock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import type { AgentHubClient } from '@muster/common/gen/muster/v1/AgentHub';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { goodStepBefore } from '@muster/common/training';
import type { AgentCalls, Observers } from './agent.ts';
import { CheckpointRoots } from './checkpoints/directoryProblems.ts';
import { verifierProgram } from './checkpoints/parts.ts';
import { CheckpointWatcher } from './checkpoints/watcher.ts';
import { FailureReaderProcess, failureReaderProgram } from './failure/failureReaderProcess.ts';
import { KernelEnds } from './failure/kernelEnds.ts';
import { TorchrunWatch } from './failure/torchrunWatch.ts';
import type { HostInventory } from './host/inventory.ts';
import { readMachineFacts } from './host/machine/read.ts';
import { readMounts } from './host/mounts.ts';
import type { CheckpointDirs } from './launch/checkpointDir.ts';
import { NodeWatch, type NodeWatchParts } from './node/nodeWatch.ts';
import type { AgentOptions } from './options.ts';
import { boottimeMs } from './probes/boot.ts';
import type { TaskSecrets } from './secrets/taskSecrets.ts';
import { occupiedGpu } from './tasks/gpuProblem.ts';
import type { TaskRecords } from './tasks/records.ts';
import { TaskUploads } from './tasks/taskUploads.ts';
import { TaskTraining } from './training/taskTraining.ts';

/** A gang whose rank has died waits for no more than this because of the agent. */
const torchrunLookMs = 200;
const kernelEndsLookMs = 1_000;
/** Checkpoint roots that cannot be written to are tried again. */
const rootsAgainMs = 30_000;

export interface ObserverPorts {
  readonly options: AgentOptions;
  readonly log: Logger;
  readonly bootId: string;
  readonly records: TaskRecords;
  readonly secrets: Pick<TaskSecrets, 'maskOf'>;
  readonly dirs: CheckpointDirs;
  readonly hostInventory: HostInventory;
  readonly probeGuard: NodeWatchParts['probeGuard'];
  /** Connections of their own: a full log window does not hold back heartbeats. Others after the credential was renewed. */
  readonly bulk: () => AgentHubClient;
  readonly telemetry: () => AgentHubClient;
  /** With the credential as it is then. */
  readonly metadata: () => Metadata;
}

export function openObservers(
  ports: ObserverPorts,
  agent: AgentCalls,
): Observers & { readonly training: TaskTraining } {
  const { options, log, bootId, records, secrets, dirs, hostInventory, bulk, telemetry, metadata } = ports;
  const { wallMs, monotonicMs } = systemClock;
  const chance = Math.random;
  const maskOf = (task: TaskRef) =>
    secrets.maskOf(taskKey(task), agent.assignmentOf(task)?.spec.secrets ?? null);
  const uploads = new TaskUploads({
    maskOf,
    client: bulk,
    metadata,
    monotonicMs,
    chance,
    log,
    finish: (task) => training.finish(task),
    onComplete: (task) => agent.setUploaded(task),
  });
  const training: TaskTraining = new TaskTraining({
    running: agent.running,
    resumeOf: (task) => agent.assignmentOf(task)?.resume ?? null,
    isFrozen: agent.isFrozen,
    outputPathOf: (task) => records.outputPath(task),
    send: (message) => {
      const goodUntil = goodStepBefore(message.sign);
      if (goodUntil !== undefined) checkpoints.noteDivergence(message.task, goodUntil);
      const mask = maskOf(message.task);
      const { sign } = message;
      agent.send(mask === null ? message : { ...message, sign: { ...sign, text: mask.text(sign.text) } });
    },
    rows: uploads.rows,
    wallMs,
    monotonicMs,
    log,
  });
  // One for each depth: a checkpoint that is read for minutes must not hold up one that a preemption waits for.
  const verifierOf = { program: verifierProgram, nodePath: process.execPath, log };
  const verifiers = {
    // Also the report that a task has ended waits for it: where tasks take every processor, it must get its turn.
    quick: new VerifierProcess({ ...verifierOf, isUrgent: true }),
    deep: new VerifierProcess(verifierOf),
  };
  const checkpoints = new CheckpointWatcher({
    dirs,
    nodeName: options.name,
    monotonicMs,
    wallMs,
    log,
    verify: (order, signal) => verifiers[order.depth].verify(order, signal),
    metricsAt: (task, step) => training.metricsAt(task, step),
    mounts: () => readMounts(),
    send: agent.send,
    onProgress: (task) => training.checkpointSeen(task),
    onTrainingComplete: agent.reportChange,
    onProblem: (problem) => roots.jobProblem(problem),
  });
  const roots = new CheckpointRoots({
    roots: options.checkpointRoots,
    mounts: () => readMounts(),
    againMs: rootsAgainMs,
    log,
    onProblem: (problem) => watch.directoryProblem(problem),
  });
  const failures = new FailureReaderProcess({
    program: failureReaderProgram,
    now: () => ({ wallMs: wallMs(), boottimeMs: boottimeMs() }),
    log,
  });
  const kernelEnds = new KernelEnds({
    running: agent.running,
    directoryOf: (task) => records.directory(task),
    readKernelLog: () => watch.readKernelLog(),
    boottimeMs,
  });
  const torchruns = new TorchrunWatch({
    running: agent.running,
    outputPathOf: (task) => records.outputPath(task),
    end: agent.endFailed,
    log,
  });
  const searchPath = process.env['PATH'] ?? '/usr/bin:/bin';
  const watch: NodeWatch = new NodeWatch({
    options,
    log,
    clock: systemClock,
    hostInventory,
    bootId,
    boottimeMs,
    probeGuard: ports.probeGuard,
    searchPath,
    libraryPath: process.env['LD_LIBRARY_PATH'] ?? null,
    chance,
    running: agent.running,
    reports: agent.reports,
    onKernelRecord: (record) => kernelEnds.kernelRecord(record),
    training,
    usageFileOf: (task) => join(records.directory(task), 'usage.json'),
    openTelemetryStream: () => telemetry().UploadTelemetry(metadata()),
    connection: agent.connection,
    onStatusChange: agent.statusChanged,
  });
  const closing = new AbortController();
  let isMachineRead = false;
  /** After the first Hello: nothing that a node needs to take work waits for it. */
  const readMachine = () => {
    if (isMachineRead) return;
    isMachineRead = true;
    readMachineFacts(closing.signal, { nodePath: process.execPath, searchPath })
      .then((machine) => {
        hostInventory.keepMachine(machine);
        agent.statusChanged();
      })
      .catch((error: unknown) => {
        if (!closing.signal.aborted)
          log.warn({ error: messageOf(error) }, 'the hardware inventory of this machine could not be read');
      });
  };
  return {
    checkpoints,
    training,
    failureOf: async (end, location) => {
      const failure = await failures.read(end);
      return end.stopping ? failure : kernelEnds.explain(location, end, failure);
    },
    gpuUsage: (task) => watch.usageOf(task),
    onOutput: (task, path, size) => uploads.follow(task, path, size),
    onRemoved: (task) => {
      uploads.forget(task);
      watch.forget(task);
      training.forget(task);
    },
    status: () => watch.status(),
    onClockSkew: (skewMs) => watch.clockSkew(skewMs),
    onClearCondition: (kind, gpuUuid) => watch.clearCondition(kind, gpuUuid),
    onKeepCheckpoints: (task, kept) => checkpoints.keep(task, kept),
    onWelcome: () => {
      training.resend();
      readMachine();
    },
    occupiedGpu: (gpuUuids, abort) => occupiedGpu(() => watch.foreignProcessesOn(gpuUuids), abort),
    periodic: [
      { everyMs: torchrunLookMs, run: () => torchruns.look() },
      { everyMs: kernelEndsLookMs, run: () => kernelEnds.look() },
    ],
    async start() {
      await watch.start();
      roots.start();
      await training.start();
    },
    async close() {
      closing.abort();
      await watch.close();
      roots.close();
      failures.close();
      training.close();
      await checkpoints.close();
      await verifiers.deep.close();
      await verifiers.quick.close();
      uploads.close();
    },
  };
}
