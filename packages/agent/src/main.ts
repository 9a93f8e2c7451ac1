/** Wiring of the agent, and nothing else: opens the parts in order, closes them in reverse. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { VerifierProcess } from '@muster/checkpoints/verifierProcess';
import { systemClock } from '@muster/common/clock';
import { MusterError, messageOf } from '@muster/common/errors';
import { isNodeName, type TaskRef } from '@muster/common/ids';
import { createLogger } from '@muster/common/pinoLogger';
import { bearer } from '@muster/common/wire/channel';
import { placeProblem } from './checkpoints/place.ts';
import { CheckpointRoots } from './checkpoints/rootsWatch.ts';
import { verifierProgram } from './checkpoints/verifierProgram.ts';
import { CheckpointWatcher } from './checkpoints/watcher.ts';
import { lockDataDir, prepareDataDir, readInstanceId } from './dataDir/dataDir.ts';
import { createDockerDriver } from './drivers/docker/dockerDriver.ts';
import { createProcessDriver } from './drivers/process/driver.ts';
import { GuardClient } from './drivers/process/guardClient.ts';
import { rootTasksRefusal, rootTasksWarning } from './drivers/process/rootTasks.ts';
import { FailureReaderProcess } from './failure/failureReaderProcess.ts';
import { KernelEnds } from './failure/kernelEnds.ts';
import { failureReaderProgram } from './failure/readerProgram.ts';
import { TorchrunWatch } from './failure/torchrunWatch.ts';
import { nodeAddresses } from './host/addresses.ts';
import { HostInventory } from './host/inventory.ts';
import { tryReadKernelFile } from './host/kernelFiles.ts';
import { readMachineFacts } from './host/machine/read.ts';
import { readMounts } from './host/mounts.ts';
import { checkpointDirs } from './launch/checkpointDir.ts';
import { openHighestTerm } from './leases/highestTerm.ts';
import { TaskLeases } from './leases/taskLeases.ts';
import { Leaving } from './leaving/leaving.ts';
import { type NodeStatus, NodeWatch } from './node/nodeWatch.ts';
import type { AgentOptions } from './options.ts';
import { boottimeMs, readBootId } from './probes/boot.ts';
import { taskPorts } from './rendezvous/portNumbers.ts';
import { programRunner } from './rendezvous/preflightRun.ts';
import { createRendezvous } from './rendezvous/rendezvous.ts';
import { caOfCoordinator, connectHub, requestJoin } from './session/coordinatorChannel.ts';
import { credentialFile, obtainCredential } from './session/credential.ts';
import { CredentialRenewal } from './session/credentialRenewal.ts';
import { taskMessageToWire } from './session/orders.ts';
import { CoordinatorSession } from './session/session.ts';
import { gpuProblem, occupiedGpu } from './tasks/gpuProblem.ts';
import { TaskManager } from './tasks/manager.ts';
import { TaskRecords } from './tasks/records.ts';
import { TaskUploads } from './tasks/taskUploads.ts';
import { goodStepBefore } from './training/divergence.ts';
import { TaskTraining } from './training/taskTraining.ts';

/** The kernel's own repeats come ever later: after a cut it is quicker to begin anew. */
const connectTimeoutMs = 3_000;
/** A gang whose rank has died waits for no more than this on our account. */
const torchrunLookMs = 200;
const kernelEndsLookMs = 1_000;
/** Checkpoint roots that cannot be written to are tried again. */
const rootsAgainMs = 30_000;

export interface RunningAgent {
  /** Rejects when another agent has this one's name; resolves after `close`. */
  readonly closed: Promise<void>;
  /** This machine goes: resolves when no task is left on it, or its `shutdownGraceMs` are over. */
  leave(): Promise<void>;
  /** Ends the agent. Its tasks run on, and the next agent on this data directory finds them. */
  close(): Promise<void>;
}

/**
 * Starts an agent and resolves when it has found its earlier tasks and begun to dial.
 * @throws {MusterError} with one sentence for the user: name, data directory, credential
 */
export async function runAgent(options: AgentOptions): Promise<RunningAgent> {
  const opened: Close[] = [];
  const closeAll = async () => {
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    const closed = Promise.withResolvers<void>();
    // Whoever runs the agent may look at it a moment after the coordinator's refusal.
    closed.promise.catch(() => {});
    const leaving = await openAgent(options, opened, closed.reject);
    const close = () => closeAll().then(closed.resolve);
    return { closed: closed.promise, leave: () => leaving.leave(), close };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

type Close = () => void | Promise<void>;

/** @param opened takes what is to be closed again, in the order of opening */
async function openAgent(
  options: AgentOptions,
  opened: Close[],
  onRefused: (error: MusterError) => void,
): Promise<Leaving> {
  const log = createLogger(`agent ${options.name}`, options.logLevel);
  const { wallMs, monotonicMs } = systemClock;
  if (!isNodeName(options.name)) {
    throw new MusterError(
      'invalid',
      `"${options.name}": a node name has 1 to 63 lower-case letters, digits and hyphens`,
    );
  }
  prepareDataDir(options.dataDir);
  const lock = lockDataDir(options.dataDir);
  opened.push(() => lock.close());
  const instanceId = readInstanceId(options.dataDir, randomUUID);

  const file = credentialFile(options.dataDir);
  const { coordinator: address, name: nodeName, joinToken, caCertificate: named } = options;
  const acquaintance = { address, nodeName, joinToken, caCertificate: named };
  const caCertificate = await caOfCoordinator(acquaintance, file.read());
  // A connection of its own for each lane: a full log window must not hold back heartbeats.
  const newClient = () => {
    const client = connectHub({ address, caCertificate });
    opened.push(() => client.close());
    return client;
  };
  let control = connectHub({ address, caCertificate });
  opened.push(() => control.close());
  /** A new connection each time: one that a cut network has silenced looks alive for half a minute more. */
  const dial = () => {
    control.close();
    control = connectHub({ address, caCertificate });
    const stream = control.Session(metadata());
    control.waitForReady(wallMs() + connectTimeoutMs, (error) => {
      if (error !== undefined && error !== null) stream.cancel();
    });
    return stream;
  };
  const bulk = newClient();
  const telemetry = newClient();
  const askToJoin = (token: string, fresh: string) =>
    requestJoin(
      control,
      { address, caCertificate },
      { nodeName, joinToken: token, credential: fresh },
      wallMs(),
    );
  const stored = await obtainCredential(file, nodeName, joinToken, askToJoin, caCertificate);
  const renewal = new CredentialRenewal(file, stored);
  /** Of the credential as it is then: it is renewed while the agent runs. */
  const metadata = () => bearer(renewal.current());

  const bootId = readBootId();
  const uid = process.geteuid?.() ?? 0;
  if (uid === 0 && options.rootTasks === null) log.warn({}, rootTasksWarning);
  const guard = {
    ...{ guardCommand: options.guardCommand, runtimeDir: join(options.dataDir, 'run'), log },
    environment: loginEnvironment(),
    outputLimits: options.outputLimits,
  };
  const fence = new GuardClient(guard);
  opened.push(() => fence.close());
  const drivers = {
    process: createProcessDriver({ ...guard, refusal: rootTasksRefusal(options.rootTasks, uid) }),
    docker: createDockerDriver({
      ...{ socketPath: options.dockerSocket, dataDir: options.dataDir, policy: options.containers },
      ...{ agentId: instanceId, bootId, fence, log },
    }),
  };
  const records = new TaskRecords(join(options.dataDir, 'tasks'));
  const hostInventory = new HostInventory({ monotonicMs });
  const devices = await hostInventory.read();
  const network = () => hostInventory.network();
  /** As it was said last: what looks at the node for the coordinator serves its tasks, too. */
  let status: NodeStatus | null = null;
  const [ownAddress = '127.0.0.1'] = nodeAddresses(devices.nics, devices.rdmaDevices, address);
  const rendezvous = createRendezvous({
    ...{ nodeName, coordinator: address, labels: options.labels, network },
    ports: taskPorts({
      ephemeral: tryReadKernelFile('/proc/sys/net/ipv4/ip_local_port_range'),
      reserved: tryReadKernelFile('/proc/sys/net/ipv4/ip_local_reserved_ports'),
    }),
    runProgram: programRunner((image) => (image === null ? drivers.process : drivers.docker)),
    ...{ monotonicMs, chance: Math.random },
  });

  const uploads = new TaskUploads({
    ...{ client: bulk, metadata, monotonicMs, chance: Math.random, log },
    finish: (task) => training.finish(task),
    onComplete: (task) => manager.setUploaded(task),
  });
  const leases = new TaskLeases({
    ...{ bootId, boottimeMs, log },
    onChange: (task) => manager.leaseChanged(task),
  });
  const training: TaskTraining = new TaskTraining({
    running: () => manager.running(),
    resumeOf: (task) => manager.assignmentOf(task)?.resume ?? null,
    isFrozen: (task) => leases.isFrozen(task),
    outputPathOf: (task) => records.outputPath(task),
    send: (message) => {
      const goodUntil = goodStepBefore(message.sign);
      if (goodUntil !== undefined) checkpoints.noteDivergence(message.task, goodUntil);
      return session.send(taskMessageToWire(message));
    },
    rows: uploads.rows,
    ...{ wallMs, monotonicMs, log },
  });
  const dirs = checkpointDirs(join(options.dataDir, 'checkpoints'));
  // One for each depth: a checkpoint that is read for minutes must not hold up one that a preemption waits for.
  const verifierOf = { program: verifierProgram, nodePath: process.execPath, log };
  const verifiers = {
    // Also the report that a task has ended waits for it: where tasks take every processor, it must get its turn.
    quick: new VerifierProcess({ ...verifierOf, isUrgent: true }),
    deep: new VerifierProcess(verifierOf),
  };
  const checkpoints = new CheckpointWatcher({
    ...{ dirs, nodeName, monotonicMs, log },
    verify: (order, signal) => verifiers[order.depth].verify(order, signal),
    metricsAt: (task, step) => training.metricsAt(task, step),
    mounts: () => readMounts(),
    send: (message) => session.send(taskMessageToWire(message)),
    onProgress: (task) => training.checkpointSeen(task),
    onTrainingComplete: (task) => manager.reportChange(task),
    onTrouble: (trouble) => roots.jobTrouble(trouble),
  });
  const roots = new CheckpointRoots({
    ...{ roots: options.checkpointRoots, mounts: () => readMounts(), againMs: rootsAgainMs, log },
    onTrouble: (trouble) => watch.checkpointTrouble(trouble),
  });
  const failures = new FailureReaderProcess({
    program: failureReaderProgram,
    now: () => ({ wallMs: wallMs(), boottimeMs: boottimeMs() }),
    log,
  });
  const manager: TaskManager = new TaskManager({
    records,
    drivers,
    node: {
      gpusAreSimulated: options.gpus.kind === 'simulated',
      network,
      containerNetwork: options.containers.network,
      baseEnvironment: loginEnvironment(),
    },
    checkpointDirs: dirs,
    ...{ checkpoints, training },
    checkpointPlaceProblem: (root, changes) =>
      placeProblem(root, changes, { fence, mounts: () => readMounts() }),
    rendezvous,
    leases,
    nodeName,
    bootId,
    address: ownAddress,
    wallMs,
    boottimeMs,
    readNetwork: hostInventory.readRecent,
    gpuProblem: async (gpuUuids, abort) =>
      gpuProblem(gpuUuids, status) ?? occupiedGpu(() => watch.strangersOn(gpuUuids), abort),
    failureOf: async (end, location) => {
      const failure = await failures.read(end);
      return end.stopping ? failure : kernelEnds.explain(location, end, failure);
    },
    log,
    send: (message) => session.send(taskMessageToWire(message)),
    onOutput: (task: TaskRef, path: string, size: number | null) => uploads.follow(task, path, size),
    gpuUsage: (task: TaskRef) => watch.usageOf(task),
    onRemoved: (task: TaskRef) => {
      uploads.forget(task);
      watch.forget(task);
      training.forget(task);
    },
  });
  const kernelEnds = new KernelEnds({
    running: () => manager.running(),
    directoryOf: (task) => records.directory(task),
    readKernelLog: () => watch.readKernelLog(),
    boottimeMs,
  });
  const torchruns = new TorchrunWatch({
    running: () => manager.running(),
    outputPathOf: (task) => records.outputPath(task),
    end: (task) => manager.endFailed(task),
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
    searchPath,
    libraryPath: process.env['LD_LIBRARY_PATH'] ?? null,
    chance: Math.random,
    running: () => manager.running(),
    reports: () => manager.reports(),
    onKernelRecord: (record) => kernelEnds.kernelRecord(record),
    training,
    usageFileOf: (task) => join(records.directory(task), 'usage.json'),
    openTelemetryStream: () => telemetry.UploadTelemetry(metadata()),
    connection: () => ({ connected: session.isConnected, heartbeatAgeMs: session.heartbeatAgeMs() }),
    onStatusChange: () => {
      session.sendStatus().catch((error: unknown) => {
        log.warn({ error: messageOf(error) }, 'the status of the node could not be reported');
      });
    },
  });
  const closing = new AbortController();
  let isMachineRead = false;
  /** After the first Hello: nothing that a node needs to take work waits for it. */
  const tellMachine = () => {
    if (isMachineRead) return;
    isMachineRead = true;
    readMachineFacts(closing.signal, { nodePath: process.execPath, searchPath })
      .then((machine) => {
        hostInventory.keepMachine(machine);
        return session.sendStatus();
      })
      .catch((error: unknown) => {
        if (!closing.signal.aborted)
          log.warn({ error: messageOf(error) }, 'the hardware inventory of this machine could not be read');
      });
  };
  const leaving = new Leaving({
    graceMs: options.shutdownGraceMs,
    tasks: () => manager.reports().length,
    onLeaving: () => session.sendStatus(),
    ...{ monotonicMs, log },
  });
  const session: CoordinatorSession = new CoordinatorSession({
    openStream: dial,
    manager,
    instanceId,
    bootId,
    renewal,
    terms: openHighestTerm(join(options.dataDir, 'term'), log),
    status: async () => {
      status = await watch.status();
      return status;
    },
    leavingInMs: () => leaving.leavingInMs(),
    onWelcome: () => {
      training.sayAgain();
      tellMachine();
    },
    onClockSkew: (skewMs) => watch.clockSkew(skewMs),
    onClearCondition: (kind, gpuUuid) => watch.clearCondition(kind, gpuUuid),
    wallMs,
    boottimeMs,
    monotonicMs,
    chance: Math.random,
    log,
    onRefused,
  });

  opened.push(
    () => closing.abort(),
    () => uploads.close(),
    () => verifiers.quick.close(),
    () => verifiers.deep.close(),
    () => checkpoints.close(),
    () => training.close(),
    () => failures.close(),
    () => roots.close(),
    () => manager.close(),
    () => watch.close(),
    () => session.close(),
    () => leaving.close(),
  );
  await manager.recover();
  await watch.start();
  roots.start();
  await training.start();
  session.start();
  const torchrunTimer = setInterval(() => torchruns.look(), torchrunLookMs);
  const kernelEndsTimer = setInterval(() => kernelEnds.look(), kernelEndsLookMs);
  opened.push(
    () => clearInterval(torchrunTimer),
    () => clearInterval(kernelEndsTimer),
  );
  log.info({ node: options.name, coordinator: options.coordinator }, 'agent started');
  return leaving;
}

/** What a bare process needs to find programs and its home; nothing else of the agent's environment is a job's business. */
function loginEnvironment(): Readonly<Record<string, string>> {
  const names = [
    'PATH',
    'HOME',
    'USER',
    'LOGNAME',
    'SHELL',
    'LANG',
    'LC_ALL',
    'TZ',
    'TMPDIR',
    'LD_LIBRARY_PATH',
  ];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
