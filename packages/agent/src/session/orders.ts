/** What the coordinator's messages ask of the task manager, and what that answers. */

import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { Assignment__Output } from '@muster/common/gen/muster/v1/Assignment';
import type { Prepared } from '@muster/common/gen/muster/v1/Prepared';
import type { Start__Output } from '@muster/common/gen/muster/v1/Start';
import { isJobId, type TaskRef } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import {
  checkFromWire,
  checkpointSeenToWire,
  endpointToWire,
  findingsToWire,
  resumeFromWire,
  taskRefToWire,
  taskReportToWire,
  trainingSignToWire,
} from '@muster/common/wire/codec';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { PreparedMessage, TaskMessage } from '../tasks/messages.ts';
import type { Order } from '../tasks/state.ts';

export function orderOf(assigned: Assignment__Output, task: TaskRef): Order {
  const assignment = assignmentOf(assigned, task);
  const { start, stop, check } = assigned;
  if (stop !== null) return { kind: 'stop', assignment, graceMs: stop.graceMs, signal: stop.signal };
  if (start !== null) return startOrder(start, assignment);
  if (check !== null) return { kind: 'check', assignment, check: checkFromWire(check) };
  return { kind: 'prepare', assignment };
}

export function startOrder(start: Start__Output, assignment: Assignment | null): Order {
  const { masterAddr, masterPort, addresses } = start;
  return { kind: 'start', assignment, addr: masterAddr, port: masterPort, addresses };
}

/** One that is only to be prepared has no lease yet. */
export function letsRun({ start, stop }: Assignment__Output): boolean {
  return start !== null || stop !== null;
}

function assignmentOf(assigned: Assignment__Output, task: TaskRef): Assignment {
  return {
    task,
    spec: decodeJobSpec(assigned.specJson),
    nodeCount: assigned.nodeCount,
    gpuUuids: assigned.gpuUuids,
    array: assigned.arraySize === 0 ? null : { index: assigned.arrayIndex, size: assigned.arraySize },
    resume: resumeFromWire(assigned.resume),
    // It becomes the name of a directory; an older coordinator does not say it.
    checkpointJobId: isJobId(assigned.checkpointJobId) ? assigned.checkpointJobId : task.jobId,
    lineage: assigned.lineage.filter(isJobId),
    batchScale: scaleFromWire(assigned.batchScale),
    lrScale: scaleFromWire(assigned.lrScale),
    quarantine: assigned.quarantine,
    doubted: assigned.doubted,
    proof: assigned.proof,
  };
}

/** 0 is an older coordinator's. */
function scaleFromWire(scale: number): number {
  return Number.isFinite(scale) && scale > 0 ? scale : 1;
}

export function taskMessageToWire(message: TaskMessage): AgentMessage {
  switch (message.kind) {
    case 'prepared':
      return { prepared: preparedToWire(message) };
    case 'checked':
      return { checked: findingsToWire(message.task, message.findings) };
    case 'checkpoint':
      return { checkpoint: checkpointSeenToWire(message) };
    case 'trainingSign': {
      const { task, sign } = message;
      return { trainingSign: { task: taskRefToWire(task), sign: trainingSignToWire(sign) } };
    }
    case 'report':
      return { report: taskReportToWire(message.report) };
    default: {
      const never: never = message;
      return never;
    }
  }
}

function preparedToWire({ task, master, endpoints, testPort }: PreparedMessage): Prepared {
  return {
    task: taskRefToWire(task),
    masterAddr: master?.addr ?? '',
    masterPort: master?.port ?? 0,
    endpoints: endpoints.map(endpointToWire),
    testPort: testPort ?? 0,
  };
}
