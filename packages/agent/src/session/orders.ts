/** What the coordinator's messages ask of the task manager, and what that answers. */

import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { Assignment__Output } from '@muster/common/gen/muster/v1/Assignment';
import type { Prepared } from '@muster/common/gen/muster/v1/Prepared';
import type { Start__Output } from '@muster/common/gen/muster/v1/Start';
import { isJobId, type TaskRef } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import {
  checkpointSeenToWire,
  endpointToWire,
  findingsToWire,
  pathCheckFromWire,
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
  if (check !== null) return { kind: 'check', assignment, check: pathCheckFromWire(check) };
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
  };
}

export function taskMessageToWire(message: TaskMessage): AgentMessage {
  switch (message.kind) {
    case 'prepared':
      return { prepared: preparedToWire(message) };
    case 'checked':
      return {
        checked: { task: taskRefToWire(message.task), findings: findingsToWire(message.findings) },
      };
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
    master,
    endpoints: endpoints.map(endpointToWire),
    ...(testPort === null ? {} : { testPort }),
  };
}
