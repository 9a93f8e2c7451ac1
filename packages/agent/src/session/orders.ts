/** Decodes the coordinator's orders about tasks, and delivers each with the lease that comes with it. */

import type { Assignment__Output } from '@muster/common/gen/muster/v1/Assignment';
import type { CoordinatorMessage__Output } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { Start__Output } from '@muster/common/gen/muster/v1/Start';
import { isJobId, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import {
  lookOrderFromWire,
  pathCheckFromWire,
  resumeFromWire,
  taskRefFromWire,
} from '@muster/common/wire/codec';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { GivenOrder, TaskManager } from '../tasks/manager.ts';
import type { Order } from '../tasks/state.ts';

/** The length of a lease that an order leaves out: the task is never fenced. */
export const neverFenced = 0;

/**
 * Delivers the order that a message brings. A message about no task, or about one that cannot be read, brings none.
 * @param askedMs CLOCK_BOOTTIME at which the question was sent that the coordinator answered last: the message itself gives
 *   no more time, because it may have been on its way for long. null: no question was answered
 */
export function deliver(
  { prepare, check, start, stop, forget }: CoordinatorMessage__Output,
  tasks: Pick<TaskManager, 'setOrder'>,
  askedMs: number | null,
): void {
  const setOrder = (
    wire: Parameters<typeof taskRefFromWire>[0],
    order: Order,
    leaseMs: number | null = null,
  ) => {
    const task = taskRefFromWire(wire);
    if (task !== null) tasks.setOrder(given(task, order, leaseMs, askedMs));
  };
  if (prepare != null) for (const order of desired([prepare], askedMs).values()) tasks.setOrder(order);
  if (check?.check != null)
    setOrder(check.task, { kind: 'check', assignment: null, check: pathCheckFromWire(check.check) });
  if (start != null) setOrder(start.task, startOrder(start, null), start.leaseMs ?? neverFenced);
  if (stop != null) {
    const { task, graceMs, signal } = stop;
    setOrder(task, { kind: 'stop', assignment: null, graceMs, signal });
  }
  if (forget != null) setOrder(forget.task, { kind: 'forget' });
}

/**
 * The orders of assignments, each with its lease.
 * @param askedMs CLOCK_BOOTTIME, as for `deliver`
 */
export function desired(
  assignments: readonly Assignment__Output[],
  askedMs: number | null,
): ReadonlyMap<TaskKey, GivenOrder> {
  const orders = new Map<TaskKey, GivenOrder>();
  for (const assigned of assignments) {
    const task = taskRefFromWire(assigned.task);
    if (task === null) continue;
    const leaseMs = letsRun(assigned) ? (assigned.leaseMs ?? neverFenced) : null;
    orders.set(taskKey(task), given(task, orderOf(assigned, task), leaseMs, askedMs));
  }
  return orders;
}

function given(task: TaskRef, order: Order, leaseMs: number | null, askedMs: number | null): GivenOrder {
  return { task, order, lease: leaseMs === null || askedMs === null ? null : { askedMs, leaseMs } };
}

export function orderOf(assigned: Assignment__Output, task: TaskRef): Order {
  const assignment = assignmentOf(assigned, task);
  const { start, stop, check } = assigned;
  if (stop !== null) return { kind: 'stop', assignment, graceMs: stop.graceMs, signal: stop.signal };
  if (start !== null) return startOrder(start, assignment);
  if (check !== null) return { kind: 'check', assignment, check: pathCheckFromWire(check) };
  return { kind: 'prepare', assignment };
}

function startOrder(start: Start__Output, assignment: Assignment | null): Order {
  const { masterAddr, masterPort, addresses, resume } = start;
  const chosen = resume === null ? undefined : resume.resume && resumeFromWire(resume.resume);
  const order = { kind: 'start', assignment, addr: masterAddr, port: masterPort, addresses } as const;
  return chosen === undefined ? order : { ...order, resume: chosen };
}

/** One that is only to be prepared has no lease yet. */
export function letsRun({ start, stop }: Assignment__Output): boolean {
  return start !== null || stop !== null;
}

function assignmentOf(assigned: Assignment__Output, task: TaskRef): Assignment {
  const { arrayIndex = 0, arraySize } = assigned;
  return {
    task,
    spec: decodeJobSpec(assigned.specJson),
    user: assigned.user,
    nodeCount: assigned.nodeCount,
    gpuUuids: assigned.gpuUuids,
    array: arraySize === undefined ? null : { index: arrayIndex, size: arraySize },
    resume: assigned.resume && resumeFromWire(assigned.resume),
    // It becomes the name of a directory; an older coordinator does not say it.
    checkpointJobId: isJobId(assigned.checkpointJobId) ? assigned.checkpointJobId : task.jobId,
    lineage: assigned.lineage.filter(isJobId),
    batchScale: assigned.batchScale,
    lrScale: assigned.lrScale,
    quarantine: assigned.quarantine,
    doubted: assigned.doubted,
    proof: assigned.proof,
    traceparent: assigned.traceparent ?? null,
    look: assigned.look && lookOrderFromWire(assigned.look),
  };
}
