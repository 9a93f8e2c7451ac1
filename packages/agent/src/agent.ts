/**
 * The composition root: the parts of an agent, wired on ports. `main.ts` gives it the ports of a machine, the simulation
 * simulated ones, and tests those of a fake node, so that all three run the same wiring.
 */

import { messageOf } from '@muster/common/errors';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { Cause } from '@muster/common/views';
import type { TaskLeasesParts } from './leases/taskLeases.ts';
import { TaskLeases } from './leases/taskLeases.ts';
import { Leaving } from './leaving/leaving.ts';
import type { NodeStatus } from './node/nodeWatch.ts';
import { CoordinatorSession, type SessionParts } from './session/session.ts';
import { taskMessageToWire } from './session/sessionMessages.ts';
import { gpuProblem } from './tasks/gpuProblem.ts';
import { type ManagerParts, TaskManager } from './tasks/manager.ts';
import type { TaskMessage } from './tasks/messages.ts';

/** What the observers of an agent may ask of it, once it is open. */
export interface AgentCalls
  extends Pick<
    TaskManager,
    'running' | 'reports' | 'assignmentOf' | 'reportChange' | 'setUploaded' | 'endFailed'
  > {
  /** Sends a message, or drops it while there is no connection. */
  readonly send: (message: TaskMessage) => void;
  readonly isFrozen: (task: TaskRef) => boolean;
  /** The node's status is another than it was. */
  readonly statusChanged: () => void;
  readonly connection: () => { readonly connected: boolean; readonly heartbeatAgeMs: number | null };
}

/** Work that is repeated for as long as the agent is open. */
export interface PeriodicWork {
  readonly everyMs: number;
  readonly run: () => void;
}

/** What watches the node and its tasks: hardware, health, output, training, checkpoints, failures. */
export interface Observers
  extends Pick<
      ManagerParts,
      'checkpoints' | 'training' | 'failureOf' | 'gpuUsage' | 'onOutput' | 'onRemoved'
    >,
    Pick<SessionParts, 'status' | 'onClockSkew' | 'onClearCondition' | 'onKeepCheckpoints' | 'onWelcome'> {
  /** Why GPUs are in use by a process that is no task. null: they are not. */
  readonly occupiedGpu: (gpuUuids: readonly string[], abort: AbortSignal) => Promise<Cause | null>;
  readonly periodic: readonly PeriodicWork[];
  /** Called when the earlier tasks are found, and before the first Hello. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface AgentPorts
  extends Pick<
      ManagerParts,
      | 'records'
      | 'drivers'
      | 'node'
      | 'nodeName'
      | 'address'
      | 'checkpointDirs'
      | 'checkpointPlaceProblem'
      | 'rendezvous'
      | 'readNetwork'
      | 'secrets'
      | 'readSecrets'
    >,
    Pick<
      SessionParts,
      | 'openStream'
      | 'whyUnconnected'
      | 'instanceId'
      | 'renewal'
      | 'terms'
      | 'continuity'
      | 'machine'
      | 'wallMs'
      | 'monotonicMs'
      | 'chance'
      | 'onRefused'
    >,
    Pick<TaskLeasesParts, 'bootId' | 'boottimeMs'> {
  /** From the notice that this machine is switched off to the end, milliseconds. */
  readonly shutdownGraceMs: number;
  readonly openObservers: (agent: AgentCalls) => Observers;
  readonly log: Logger;
}

export interface OpenedAgent {
  readonly manager: TaskManager;
  readonly session: CoordinatorSession;
  readonly leaving: Leaving;
  /** Finds the earlier tasks of this node, then dials the coordinator. */
  start(): Promise<void>;
  /** Stops looking. Tasks run on. */
  close(): Promise<void>;
}

/** Wires an agent. Nothing runs before `start`. */
export function openAgent(ports: AgentPorts): OpenedAgent {
  const { bootId, boottimeMs, monotonicMs, log } = ports;
  /** The status that was read last for the coordinator serves the tasks of the node, too. */
  let status: NodeStatus | null = null;
  const send = (message: TaskMessage) => session.send(taskMessageToWire(message));
  const leases = new TaskLeases({
    bootId,
    boottimeMs,
    log,
    onChange: (task) => manager.leaseChanged(task),
  });
  const observers = ports.openObservers({
    send,
    running: () => manager.running(),
    reports: () => manager.reports(),
    assignmentOf: (task) => manager.assignmentOf(task),
    reportChange: (task) => manager.reportChange(task),
    setUploaded: (task) => manager.setUploaded(task),
    endFailed: (task) => manager.endFailed(task),
    isFrozen: (task) => leases.isFrozen(task),
    statusChanged: () => {
      session.sendStatus().catch((error: unknown) => {
        log.warn({ error: messageOf(error) }, 'the status of the node could not be reported');
      });
    },
    connection: () => ({ connected: session.isConnected, heartbeatAgeMs: session.heartbeatAgeMs() }),
  });
  const manager: TaskManager = new TaskManager({
    ...ports,
    ...observers,
    leases,
    gpuProblem: async (gpuUuids, abort) =>
      gpuProblem(gpuUuids, status) ?? observers.occupiedGpu(gpuUuids, abort),
    send,
  });
  const leaving = new Leaving({
    graceMs: ports.shutdownGraceMs,
    tasks: () => manager.reports().length,
    onLeaving: () => session.sendStatus(),
    monotonicMs,
    log,
  });
  const session: CoordinatorSession = new CoordinatorSession({
    ...ports,
    ...observers,
    manager,
    status: async () => {
      status = await observers.status();
      return status;
    },
    leavingInMs: () => leaving.leavingInMs(),
  });
  const timers: NodeJS.Timeout[] = [];
  return {
    manager,
    session,
    leaving,
    async start() {
      await manager.recover();
      const known = new Set(manager.reports().map(({ task }) => taskKey(task)));
      await ports.secrets.keepOnly(known).catch((error: unknown) => {
        log.warn({ error: messageOf(error) }, 'secrets of earlier tasks could not be removed');
      });
      await observers.start();
      session.start();
      timers.push(...observers.periodic.map(({ everyMs, run }) => setInterval(run, everyMs)));
    },
    async close() {
      for (const timer of timers) clearInterval(timer);
      leaving.close();
      session.close();
      await manager.close();
      await observers.close();
    },
  };
}
