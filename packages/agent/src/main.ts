/** The ports of an agent on a real machine: connections, drivers, records and what it watches. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { readBootId } from '@muster/common/boot';
import { systemClock } from '@muster/common/clock';
import { MusterError } from '@muster/common/errors';
import { isNodeName } from '@muster/common/ids';
import type { LogFacts } from '@muster/common/logFields';
import { createLogger } from '@muster/common/pinoLogger';
import { openAgent } from './agent.ts';
import { placeProblem } from './checkpoints/place.ts';
import { letAccountsPass, lockDataDir, prepareDataDir } from './dataDir/dataDir.ts';
import { openInstance } from './dataDir/instance.ts';
import { createDockerDriver } from './drivers/docker/dockerDriver.ts';
import { createProcessDriver } from './drivers/process/driver.ts';
import { GuardClient } from './drivers/process/guardClient.ts';
import { nodeAddresses } from './host/addresses.ts';
import { HostInventory } from './host/inventory.ts';
import { tryReadKernelFile } from './host/kernelFiles.ts';
import { readMachineIdentity } from './host/machineIdentity.ts';
import { readMounts } from './host/mounts.ts';
import { accountPolicy } from './launch/account.ts';
import { checkpointDirs } from './launch/checkpointDir.ts';
import { openHighestTerm } from './leases/highestTerm.ts';
import { Leaving } from './leaving/leaving.ts';
import { openObservers } from './observers.ts';
import type { AgentOptions } from './options.ts';
import { boottimeMs } from './probes/boot.ts';
import { taskPorts } from './rendezvous/portNumbers.ts';
import { programRunner } from './rendezvous/preflightRun.ts';
import { createRendezvous } from './rendezvous/rendezvous.ts';
import { TaskSecrets } from './secrets/taskSecrets.ts';
import { openContinuityTokens } from './session/continuity.ts';
import {
  caOfCoordinator,
  connectHub,
  HubLane,
  requestJoin,
  requestSecrets,
  tokenOf,
  whyUnconnected,
} from './session/coordinatorChannel.ts';
import { credentialFile, obtainCredential } from './session/credential.ts';
import { CredentialRenewal, offered } from './session/credentialRenewal.ts';
import { TaskRecords } from './tasks/records.ts';

/** The kernel retries at ever longer intervals: after an outage of the network a new connection is quicker. */
const connectTimeoutMs = 3_000;
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
    // Somebody may look at the agent a moment after the coordinator's refusal.
    closed.promise.catch(() => {});
    const leaving = await openOnMachine(options, opened, closed.reject);
    const close = () => closeAll().then(closed.resolve);
    return { closed: closed.promise, leave: () => leaving.leave(), close };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

type Close = () => void | Promise<void>;

/** @param opened collects what must be closed at the end, in the order of opening */
async function openOnMachine(
  options: AgentOptions,
  opened: Close[],
  onRefused: (error: MusterError) => void,
): Promise<Leaving> {
  /** As the observers know it, once they are there. */
  let trainingOf: LogFacts['trainingOf'] = () => null;
  const log = createLogger(`agent ${options.name}`, options.logLevel, {
    node: options.name,
    trainingOf: (task) => trainingOf(task),
  });
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
  const { instanceId, setAside } = openInstance(options.dataDir, randomUUID);
  if (setAside !== null)
    log.warn(
      { setAside },
      'this data directory is a copy: the tasks in it belong to the agent of the original, and were set aside',
    );

  const file = credentialFile(options.dataDir);
  const { coordinator: address, name: nodeName, joinToken, caCertificate: named } = options;
  const trust = { address, nodeName, joinToken, caCertificate: named };
  const caCertificate = await caOfCoordinator(trust, file.read());
  const askToJoin = async (token: string, fresh: string) => {
    const client = connectHub({ address, caCertificate });
    const credential = await offered(fresh, nodeName, caCertificate !== null);
    const request = { nodeName, joinToken: token, credential };
    return requestJoin(client, { address, caCertificate }, request, wallMs).finally(() => client.close());
  };
  const stored = await obtainCredential(file, nodeName, joinToken, askToJoin, caCertificate);
  const renewal = new CredentialRenewal(file, stored, log);
  // A connection of its own for each lane: a full log window must not hold back heartbeats.
  const lane = () => new HubLane({ address, caCertificate }, renewal);
  const bulk = lane();
  const telemetry = lane();
  let control = lane().client();
  opened.push(() => {
    for (const each of [control, bulk, telemetry]) each.close();
  });
  /** A new connection each time: one that a cut network has silenced looks alive for half a minute more. */
  const dial = () => {
    control.close();
    control = lane().client();
    const stream = control.Session(metadata());
    control.waitForReady(wallMs() + connectTimeoutMs, (error) => {
      if (error !== undefined && error !== null) stream.cancel();
    });
    return stream;
  };
  /** Of the credential as it is then: it is renewed while the agent runs. */
  const metadata = () => tokenOf(renewal.current());

  const bootId = readBootId();
  const uid = process.geteuid?.() ?? 0;
  const accounts = accountPolicy(options.accounts, options.rootTasks, uid);
  if (accounts.rules.length > 0 || accounts.others === 'user') letAccountsPass(options.dataDir);
  const guard = {
    guardCommand: options.guardCommand,
    runtimeDir: join(options.dataDir, 'run'),
    log,
    environment: loginEnvironment(),
    outputLimits: options.outputLimits,
  };
  const fence = new GuardClient(guard);
  opened.push(() => fence.close());
  const drivers = {
    process: createProcessDriver(guard),
    docker: createDockerDriver({
      socketPath: options.dockerSocket,
      dataDir: options.dataDir,
      policy: options.containers,
      agentId: instanceId,
      bootId,
      fence,
      log,
    }),
  };
  const records = new TaskRecords(join(options.dataDir, 'tasks'));
  const hostInventory = new HostInventory({ monotonicMs });
  const devices = await hostInventory.read();
  const network = () => hostInventory.network();
  const [ownAddress = '127.0.0.1'] = nodeAddresses(devices.nics, devices.rdmaDevices, address);
  const rendezvous = createRendezvous({
    nodeName,
    coordinator: address,
    labels: options.labels,
    network,
    ports: taskPorts({
      ephemeral: tryReadKernelFile('/proc/sys/net/ipv4/ip_local_port_range'),
      reserved: tryReadKernelFile('/proc/sys/net/ipv4/ip_local_reserved_ports'),
    }),
    runProgram: programRunner((image) => (image === null ? drivers.process : drivers.docker)),
    monotonicMs,
    chance: Math.random,
  });

  const secrets = new TaskSecrets('/dev/shm', options.dataDir);
  const dirs = checkpointDirs(join(options.dataDir, 'checkpoints'));
  const agent = openAgent({
    nodeName,
    bootId,
    instanceId,
    address: ownAddress,
    openStream: dial,
    whyUnconnected: (error) => whyUnconnected({ address, caCertificate }, error),
    renewal,
    terms: openHighestTerm(join(options.dataDir, 'term'), log),
    continuity: openContinuityTokens(join(options.dataDir, 'continuity'), log),
    machine: readMachineIdentity(),
    onRefused,
    shutdownGraceMs: options.shutdownGraceMs,
    records,
    drivers,
    node: {
      gpusAreSimulated: options.gpus.kind === 'simulated',
      network,
      containers: {
        network: options.containers.network,
        haveAccounts: options.containers.user === 'account',
      },
      baseEnvironment: loginEnvironment(),
      accounts,
      secrets,
    },
    secrets,
    readSecrets: (task) => requestSecrets(control, task, metadata(), wallMs()),
    rendezvous,
    readNetwork: hostInventory.readRecent,
    checkpointDirs: dirs,
    checkpointPlaceProblem: (root, changes) =>
      placeProblem(root, changes, { fence, mounts: () => readMounts() }),
    openObservers: (calls) => {
      const ports = {
        options,
        log,
        bootId,
        records,
        secrets,
        dirs,
        hostInventory,
        probeGuard: (deadlineMs: number) => fence.probe(deadlineMs),
        metadata,
        bulk: () => bulk.client(),
        telemetry: () => telemetry.client(),
      };
      const observers = openObservers(ports, calls);
      trainingOf = (task) => observers.training.logFieldsOf(task);
      return observers;
    },
    wallMs,
    monotonicMs,
    boottimeMs,
    chance: Math.random,
    log,
  });
  opened.push(() => agent.close());
  await agent.start();
  log.info({ coordinator: options.coordinator }, 'agent started');
  return agent.leaving;
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
