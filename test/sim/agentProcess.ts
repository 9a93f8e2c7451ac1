/** One run of an agent: the real session and task manager, on a simulated node. */

import { AgentSession, type SessionParts } from '@muster/agent/session';
import { TaskManager } from '@muster/agent/tasks/manager';
import type { Clock } from '@muster/common/clock';
import type { MusterError } from '@muster/common/errors';
import { emptyInventory } from '@muster/common/hardware';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { taskReportToWire } from '@muster/common/wire/codec';
import { taskRefToWire } from '@muster/common/wire/taskRef';
import { type Guard, SimulatedDriver } from './driver.ts';
import type { Machine } from './machine.ts';
import type { Network } from './network.ts';
import type { Random } from './random.ts';
import type { Life, Timeline } from './timeline.ts';

/** Of the machine's health. */
const lookEveryMs = 10_000;
/** From a change to the word of it. */
const noticeMsMax = 1_000;

export interface AgentParts {
  readonly life: Life;
  readonly machine: Machine;
  readonly guards: { readonly process: Guard; readonly docker: Guard };
  readonly network: Network;
  readonly timeline: Timeline;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** The coordinator wants no agent like this one. */
  readonly onRefused: (error: MusterError) => void;
}

/** To be called in the turn of the process itself. */
export function startAgent(parts: AgentParts): void {
  const { life, machine, guards, network, timeline, clock, random, log } = parts;
  const address = `10.0.0.${machine.name.slice(-1)}`;

  const manager: TaskManager = new TaskManager({
    records: machine.disk.recordsFor(life),
    drivers: {
      process: new SimulatedDriver('process', machine, guards.process, life),
      docker: new SimulatedDriver('docker', machine, guards.docker, life),
    },
    node: { gpusAreSimulated: true, networkInterface: null, hasInfiniband: false, baseEnvironment: {} },
    checkpoints: { pathFor: () => null, prepare: async () => {}, cleanUp: async () => {} },
    nodeName: machine.name,
    bootId: machine.bootId,
    address,
    wallMs: clock.wallMs,
    boottimeMs: clock.monotonicMs,
    holdPort: async () => machine.holdPort(life),
    log,
    send: (message) => {
      if (message.kind === 'report') session.send({ report: taskReportToWire(message.report) });
      else {
        const task = taskRefToWire(message.task);
        session.send({ claim: { task, masterAddr: message.addr, masterPort: message.port } });
      }
    },
    onOutput: (task, _path, size) => {
      if (size !== null) upload(task);
    },
    gpuUsage: () => null,
    onRemoved: (task) => void machine.disk.outputSizes.delete(taskKey(task)),
  });
  const session: AgentSession = new AgentSession({
    openStream: () => network.connect(machine, life) as unknown as ReturnType<SessionParts['openStream']>,
    manager,
    instanceId: `instance-of-${machine.name}`,
    bootId: machine.bootId,
    status: async () => ({
      inventory: {
        ...emptyInventory,
        gpus: machine.health.gpus,
        cpus: 64,
        memoryMb: 262_144,
        addresses: [address],
        drivers: ['process', 'docker'],
      },
      conditions: machine.health.conditions,
    }),
    onClockSkew: () => {},
    wallMs: clock.wallMs,
    onClearCondition: (kind, gpuUuid) => machine.health.clearByHand({ kind, gpuUuid }),
    boottimeMs: clock.monotonicMs,
    monotonicMs: clock.monotonicMs,
    chance: () => random.next(),
    log,
    onRefused: parts.onRefused,
  });

  /** Output has a connection and tests of its own; here it arrives whenever there is a coordinator to send it to. */
  function upload(task: TaskRef): void {
    timeline.at(random.between(20, 400), life, () => {
      if (network.coordinator === null || network.isBlocked(machine, 'up')) upload(task);
      else manager.setUploaded(task);
    });
  }

  /** Looked at now and then; said again even when nothing but the time has changed. */
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

  manager.recover().then(
    () => session.start(),
    (error: unknown) => log.error({ error: String(error) }, 'the agent could not find its earlier tasks'),
  );
}
