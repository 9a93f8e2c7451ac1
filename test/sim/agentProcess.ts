/** One run of an agent: its real wiring, on the ports of a simulated node. */

import { type AgentPorts, openAgent } from '@muster/agent/agent';
import type { EndOfTask } from '@muster/agent/failure/taskFailure';
import type { NodeStatus } from '@muster/agent/node/nodeWatch';
import { type MusterError, messageOf } from '@muster/common/errors';
import type { TaskFailure } from '@muster/common/gangs';
import { emptyInventory } from '@muster/common/hardware';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { checkpointDirectory, SimulatedCheckpoints } from './checkpoints.ts';
import { SimulatedDriver } from './driver.ts';
import { addressOf, type Fabric } from './fabric.ts';
import type { Guard } from './guard.ts';
import type { Machine } from './machine.ts';
import type { Network } from './network.ts';
import type { Random } from './random.ts';
import type { Service } from './service.ts';
import type { Life, Timeline } from './timeline.ts';

/** Of the machine's health. */
const lookEveryMs = 10_000;
/** From a change to its report. */
const noticeMsMax = 1_000;

export interface AgentParts {
  readonly life: Life;
  readonly machine: Machine;
  readonly guard: Guard;
  readonly engine: Service;
  readonly network: Network;
  readonly fabric: Fabric;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly log: Logger;
  /** The coordinator wants no agent like this one. */
  readonly onRefused: (error: MusterError) => void;
}

/** To be called in the turn of the process itself. */
export function startAgent(parts: AgentParts): void {
  const { life, machine, guard, engine, network, timeline, random, log } = parts;
  const { clock } = machine;
  const address = addressOf(machine, '10.0');
  const driver = (name: 'process' | 'docker', service: Service) =>
    new SimulatedDriver({ name, service, machine, guard, agent: life });
  const { manager, session, start } = openAgent({
    nodeName: machine.name,
    bootId: machine.bootId,
    instanceId: `instance-of-${machine.name}`,
    address,
    openStream: () => network.connect(machine, life) as unknown as ReturnType<AgentPorts['openStream']>,
    whyUnconnected: messageOf,
    // Nothing is renewed here.
    renewal: { take() {}, welcomed() {}, refused: () => false, explain: (refusal) => refusal },
    terms: machine.disk.terms(),
    continuity: machine.disk.continuity(),
    machine: { hostName: machine.name, firmwareUuid: `firmware-of-${machine.name}`, cardAddresses: [] },
    onRefused: parts.onRefused,
    shutdownGraceMs: 0,
    records: machine.disk.recordsFor(life),
    drivers: { process: driver('process', guard), docker: driver('docker', engine) },
    node: {
      gpusAreSimulated: true,
      containers: { network: 'bridge', haveAccounts: true },
      network: () => ({ nics: [], rdmaDevices: [], addresses: {} }),
      baseEnvironment: {},
      accounts: { rules: [], others: 'agent' },
      secrets: noSecrets,
    },
    secrets: noSecrets,
    readSecrets: async () => [],
    rendezvous: parts.fabric.rendezvousOf(machine, life),
    readNetwork: async () => {},
    checkpointDirs: {
      pathFor: checkpointDirectory,
      hostPathFor: checkpointDirectory,
      placeOf: (jobId, spec, name) => ({ root: checkpointDirectory(jobId, spec), name }),
      pathOf: (jobId, spec, name) => `${checkpointDirectory(jobId, spec)}/${name}`,
      isOwn: ({ checkpoint, image }) => checkpoint.dir === null && image === null,
      prepare: () => {},
      cleanUp: () => {},
    },
    checkpointPlaceProblem: async () => null,
    openObservers: (agent) => ({
      checkpoints: new SimulatedCheckpoints({ machine, agent: life, send: agent.send }),
      // What output tells of training has tests of its own.
      training: { progress: () => null, hang: () => null, finishForReport: () => null, reportGoes: () => 0 },
      failureOf: async (end) => failureOf(machine, end),
      gpuUsage: () => null,
      onOutput: (task, _path, size) => {
        if (size !== null) upload(task);
      },
      onRemoved: (task) => void machine.disk.outputSizes.delete(taskKey(task)),
      status: async () => statusOf(machine, address),
      occupiedGpu: async () => null,
      onClockSkew: () => {},
      onKeepCheckpoints: () => {},
      onClearCondition: (kind, gpuUuid) => machine.health.clearByHand({ kind, gpuUuid }),
      periodic: [],
      start: async () => {},
      close: async () => {},
    }),
    wallMs: clock.wallMs,
    boottimeMs: clock.boottimeMs,
    monotonicMs: clock.monotonicMs,
    chance: () => random.next(),
    log,
  });

  /** Output has a connection and tests of its own; here it arrives whenever there is a coordinator to send it to. */
  function upload(task: TaskRef): void {
    timeline.at(random.between(20, 400), life, () => {
      const isAway = network.coordinator === null || network.isBlocked(machine, 'up');
      if (isAway || machine.hasUnsent(task)) upload(task);
      else manager.setUploaded(task);
    });
  }

  /** Looked at now and then; reported again even when nothing but the time has changed. */
  function look(): void {
    timeline.at(lookEveryMs, life, () => {
      machine.health.seeAgain(clock.wallMs());
      void session.sendStatus();
      look();
    });
  }
  machine.health.onChange = () =>
    void timeline.at(random.between(1, noticeMsMax), life, () => void session.sendStatus());
  look();

  start().catch((error: unknown) =>
    log.error({ error: String(error) }, 'the agent could not find its earlier tasks'),
  );
}

function statusOf({ health }: Machine, address: string): NodeStatus {
  const { gpus, conditions } = health;
  const inventory = {
    ...emptyInventory,
    gpus,
    cpus: 64,
    memoryMb: 262_144,
    addresses: [address],
    drivers: ['process', 'docker'],
  };
  return { inventory, conditions };
}

/** What a task's output would tell: what it died of, or that it failed because another one had. */
function failureOf({ processes, clock }: Machine, { exit, directory, stopping }: EndOfTask): TaskFailure {
  const key = directory.slice(directory.lastIndexOf('/') + 1);
  const process = processes.get(key);
  const isConsequence = process?.isConsequence === true;
  const printed = stopping || isConsequence ? null : (process?.lastOutput ?? null);
  const nowMs = clock.boottimeMs();
  const agoMs = nowMs - (exit.finishedBoottimeMs ?? nowMs);
  return {
    source: isConsequence || printed !== null ? 'log' : 'exit',
    consequence: isConsequence || stopping,
    rank: null,
    message: printed?.message ?? (isConsequence ? 'connection reset by peer' : 'it ended'),
    kind: printed?.kind ?? null,
    blame: null,
    line: printed === null ? null : 1,
    atBoottimeMs: Math.max(0, Math.round(nowMs - agoMs)),
  };
}

/** No job here names one. */
const noSecrets: AgentPorts['secrets'] & AgentPorts['node']['secrets'] = {
  has: () => false,
  keep() {},
  async keepOnly() {},
  maskOf: () => null,
  async remove() {},
  provided: () => ({ directory: null, variables: {}, script: null }),
};
