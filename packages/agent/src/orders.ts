/** What the coordinator's messages ask of the task manager, and what that answers. */
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { Assign__Output } from '@muster/common/gen/muster/v1/Assign';
import type { Claim as WireClaim } from '@muster/common/gen/muster/v1/Claim';
import type { Release__Output } from '@muster/common/gen/muster/v1/Release';
import { isJobId, type TaskRef } from '@muster/common/ids';
import { taskReportToWire } from '@muster/common/wire/codec';
import { checkFromWire, endpointToWire, findingsToWire } from '@muster/common/wire/gangCodec';
import { taskRefToWire } from '@muster/common/wire/taskRef';
import { checkpointSeenToWire, resumeFromWire, trainingSignToWire } from '@muster/common/wire/trainingCodec';
import type { Order } from './tasks/entry.ts';
import type { ClaimMessage, TaskMessage } from './tasks/parts.ts';
import type { Assignment } from './tasks/records.ts';

export function orderOf(assign: Assign__Output, task: TaskRef): Order {
  const assignment = assignmentOf(assign, task);
  const { release, stop, check } = assign;
  if (stop !== null) return { kind: 'stop', assignment, graceMs: stop.graceMs, signal: stop.signal };
  if (release !== null) return runOrder(release, assignment);
  if (check !== null) return { kind: 'check', assignment, check: checkFromWire(check) };
  return { kind: 'prepare', assignment };
}

export function runOrder(release: Release__Output, assignment: Assignment | null): Order {
  const { masterAddr, masterPort, addresses } = release;
  return { kind: 'run', assignment, addr: masterAddr, port: masterPort, addresses };
}

/** One that is only to be prepared has no lease yet. */
export function letsRun({ release, stop }: Assign__Output): boolean {
  return release !== null || stop !== null;
}

function assignmentOf(assign: Assign__Output, task: TaskRef): Assignment {
  return {
    task,
    specJson: assign.specJson,
    nodeCount: assign.nodeCount,
    gpuUuids: assign.gpuUuids,
    array: assign.arraySize === 0 ? null : { index: assign.arrayIndex, size: assign.arraySize },
    resume: resumeFromWire(assign.resume),
    // It becomes the name of a directory; an older coordinator does not say it.
    checkpointJobId: isJobId(assign.checkpointJobId) ? assign.checkpointJobId : task.jobId,
    lineage: assign.lineage.filter(isJobId),
    batchScale: scaleFromWire(assign.batchScale),
    lrScale: scaleFromWire(assign.lrScale),
    quarantine: assign.quarantine,
    doubted: assign.doubted,
    proof: assign.proof,
  };
}

/** 0 is an older coordinator's. */
function scaleFromWire(scale: number): number {
  return Number.isFinite(scale) && scale > 0 ? scale : 1;
}

export function taskMessageToWire(message: TaskMessage): AgentMessage {
  switch (message.kind) {
    case 'claim':
      return { claim: claimToWire(message) };
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

function claimToWire({ task, master, endpoints, testPort }: ClaimMessage): WireClaim {
  return {
    task: taskRefToWire(task),
    masterAddr: master?.addr ?? '',
    masterPort: master?.port ?? 0,
    endpoints: endpoints.map(endpointToWire),
    testPort: testPort ?? 0,
  };
}
