/** Wiring of the agent, and nothing else: opens the parts in order, closes them in reverse. */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { Client, credentials, makeClientConstructor } from '@grpc/grpc-js';
import { systemClock } from '@muster/common/clock';
import { MusterError, messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import type { AgentHubClient } from '@muster/common/gen/muster/v1/AgentHub';
import { isNodeName, type TaskRef } from '@muster/common/ids';
import { createLogger } from '@muster/common/pinoLogger';
import { bearer } from '@muster/common/wire/client';
import { taskReportToWire } from '@muster/common/wire/codec';
import { agentHubService } from '@muster/common/wire/service';
import { fromServiceError } from '@muster/common/wire/status';
import { taskRefToWire } from '@muster/common/wire/taskRef';
import { credentialFile, obtainCredential } from './credential.ts';
import { createDockerDriver } from './drivers/docker/dockerDriver.ts';
import { createProcessDriver } from './drivers/process/driver.ts';
import { checkpointDirs } from './hooks/checkpointDir.ts';
import { holdPort } from './hooks/masterPort.ts';
import { networkInterfaceFor, nodeAddresses } from './host/addresses.ts';
import { HostInventory } from './host/inventory.ts';
import { LogUploader } from './logs/uploader.ts';
import { NodeWatch } from './nodeWatch.ts';
import type { AgentOptions } from './options.ts';
import { boottimeMs, readBootId } from './probes/boot.ts';
import { AgentSession } from './session.ts';
import { TaskManager } from './tasks/manager.ts';
import { TaskRecords } from './tasks/records.ts';

const joinTimeoutMs = 10_000;
/** A node with many tasks is welcomed with all of their specs in one message. */
const messageBytesMax = 64 * 1024 * 1024;

export interface RunningAgent {
  /** Rejects when the coordinator refuses this agent for good; resolves after `close`. */
  readonly closed: Promise<void>;
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
    await openAgent(options, opened, closed.reject);
    const close = () => closeAll().then(closed.resolve);
    return { closed: closed.promise, close };
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
): Promise<void> {
  const log = createLogger(`agent ${options.name}`, options.logLevel);
  const { wallMs, monotonicMs } = systemClock;
  if (!isNodeName(options.name)) {
    throw new MusterError(
      'invalid',
      `"${options.name}": a node name has 1 to 63 lower-case letters, digits and hyphens`,
    );
  }
  prepareDataDir(options.dataDir);
  const lock = await lockDataDir(options.dataDir);
  opened.push(() => void lock.close());
  const instanceId = readInstanceId(options.dataDir);

  const newClient = () => {
    const Hub = makeClientConstructor(agentHubService, 'AgentHub') as unknown as new (
      ...args: ConstructorParameters<typeof Client>
    ) => AgentHubClient;
    // A connection of its own for each lane: a full log window must not hold back heartbeats.
    const client = new Hub(options.coordinator, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      // Our own backoff decides when to dial; gRPC's, which grows to two minutes, would refuse to for that long.
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 500,
      'grpc.max_receive_message_length': messageBytesMax,
      // A coordinator whose machine lost its power says nothing: without this an upload would wait for it for ever.
      'grpc.keepalive_time_ms': 20_000,
      'grpc.keepalive_timeout_ms': 10_000,
    });
    opened.push(() => client.close());
    return client;
  };
  const control = newClient();
  const bulk = newClient();
  const telemetry = newClient();
  const credential = await obtainCredential(
    credentialFile(options.dataDir),
    options.name,
    options.joinToken,
    (joinToken, fresh) => requestJoin(control, options.name, joinToken, fresh),
  );
  const metadata = bearer(credential);

  const bootId = readBootId();
  const drivers = {
    process: createProcessDriver({
      guardCommand: options.guardCommand,
      runtimeDir: join(options.dataDir, 'run'),
      log,
    }),
    docker: createDockerDriver({
      socketPath: options.dockerSocket,
      agentId: instanceId,
      bootId,
      log,
    }),
  };
  const records = new TaskRecords(join(options.dataDir, 'tasks'));
  const { nics, rdmaDevices } = await new HostInventory().read();
  const [address = '127.0.0.1'] = nodeAddresses(nics, rdmaDevices, options.coordinator);

  const uploader = new LogUploader({
    openStream: () => bulk.UploadLogs(metadata),
    log,
    chance: Math.random,
    onComplete: (task) => manager.setUploaded(task),
  });
  const manager: TaskManager = new TaskManager({
    records,
    drivers,
    node: {
      gpusAreSimulated: options.gpus.kind === 'simulated',
      networkInterface: networkInterfaceFor(address, nics),
      hasInfiniband: rdmaDevices.some(({ linkLayer }) => linkLayer === 'InfiniBand'),
      baseEnvironment: loginEnvironment(),
    },
    checkpoints: checkpointDirs(join(options.dataDir, 'checkpoints')),
    nodeName: options.name,
    bootId,
    address,
    wallMs,
    boottimeMs,
    holdPort,
    log,
    send: (message) => {
      if (message.kind === 'report') session.send({ report: taskReportToWire(message.report) });
      else {
        const task = taskRefToWire(message.task);
        session.send({ claim: { task, masterAddr: message.addr, masterPort: message.port } });
      }
    },
    onOutput: (task: TaskRef, path: string, size: number | null) => uploader.follow(task, path, size),
    gpuUsage: (task: TaskRef) => watch.usageOf(task),
    onRemoved: (task: TaskRef) => {
      uploader.forget(task);
      watch.forget(task);
    },
  });
  const watch: NodeWatch = new NodeWatch({
    options,
    log,
    clock: systemClock,
    bootId,
    boottimeMs,
    searchPath: process.env['PATH'] ?? '/usr/bin:/bin',
    libraryPath: process.env['LD_LIBRARY_PATH'] ?? null,
    chance: Math.random,
    running: () => manager.running(),
    reports: () => manager.reports(),
    usageFileOf: (task) => join(records.directory(task), 'usage.json'),
    openTelemetryStream: () => telemetry.UploadTelemetry(metadata),
    connection: () => ({ connected: session.isConnected, heartbeatAgeMs: session.heartbeatAgeMs() }),
    onStatusChange: () => {
      session.sendStatus().catch((error: unknown) => {
        log.warn({ error: messageOf(error) }, 'the status of the node could not be said');
      });
    },
  });
  const session: AgentSession = new AgentSession({
    openStream: () => control.Session(metadata),
    manager,
    instanceId,
    bootId,
    status: () => watch.status(),
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
    () => uploader.close(),
    () => manager.close(),
    () => watch.close(),
    () => session.close(),
  );
  await manager.recover();
  await watch.start();
  session.start();
  log.info({ node: options.name, coordinator: options.coordinator }, 'agent started');
}

function requestJoin(
  client: AgentHubClient,
  nodeName: string,
  joinToken: string,
  credential: string,
): Promise<void> {
  const deadline = systemClock.wallMs() + joinTimeoutMs;
  return new Promise((resolve, reject) => {
    client.Join({ joinToken, nodeName, credential }, bearer(joinToken), { deadline }, (error) => {
      if (error === null) resolve();
      else reject(fromServiceError(error));
    });
  });
}

function prepareDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new MusterError(
      'permission_denied',
      `the data directory ${dataDir} cannot be made: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

/**
 * One agent per data directory: an abstract socket is freed by the kernel whenever and however its holder ends. Its name
 * is a digest, because names of sockets are short and paths are not.
 */
function lockDataDir(dataDir: string): Promise<Server> {
  const digest = createHash('sha256').update(realpathSync(dataDir)).digest('hex');
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.unref();
    server.on('error', (error) => {
      const isTaken = 'code' in error && error.code === 'EADDRINUSE';
      const message = isTaken
        ? `another agent is using ${dataDir}; stop it, or use another --data`
        : `the data directory ${dataDir} cannot be locked: ${error.message}`;
      reject(new MusterError('failed_precondition', message, { cause: error }));
    });
    server.listen(`\0muster-agent:${digest}`, () => resolve(server));
  });
}

function readInstanceId(dataDir: string): string {
  const path = join(dataDir, 'instance');
  if (!existsSync(path)) writeFileDurably(path, `${randomUUID()}\n`, 0o600);
  return readFileSync(path, 'utf8').trim();
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
