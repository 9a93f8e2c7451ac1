/** What agents report of their nodes and tasks, with its moments by our wall clock. */
import type { Condition } from '@muster/common/conditions';
import type { Condition__Output } from '@muster/common/gen/muster/v1/Condition';
import type { Hello__Output } from '@muster/common/gen/muster/v1/Hello';
import type { NodeInventory__Output } from '@muster/common/gen/muster/v1/NodeInventory';
import type { TaskReport__Output } from '@muster/common/gen/muster/v1/TaskReport';
import { emptyInventory, type NodeInventory } from '@muster/common/hardware';
import { type NodeName, type TaskKey, taskKey } from '@muster/common/ids';
import type { OrphanTask, TaskReport } from '@muster/common/views';
import {
  conditionFromWire,
  inventoryFromWire,
  taskRefFromWire,
  taskReportFromWire,
} from '@muster/common/wire/codec';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { duplicateKind } from '../commands/identity.ts';
import type { FailureTimes } from '../commands/nodes.ts';
import { type AgentAccount, doubtKind } from '../leases/testimony.ts';
import type { ClusterState } from '../state/state.ts';
import { boundedReport } from './trainingMessages.ts';

/** A UUID is one GPU, however often it is reported: no GPU is allocated twice. @param wire null: nothing was reported */
export function inventoryReported(wire: NodeInventory__Output | null): NodeInventory {
  if (wire === null) return emptyInventory;
  const inventory = inventoryFromWire(wire);
  return { ...inventory, gpus: [...new Map(inventory.gpus.map((gpu) => [gpu.uuid, gpu])).values()] };
}

/**
 * Those of tasks that we can name, with the moments of their starts and ends by the coordinator's clock. They are converted from the
 * node's CLOCK_BOOTTIME where the agent reports it: its wall clock may have been set since, and the report may be late.
 */
export function reportsFromWire(
  taskStatus: TaskStatusCache,
  node: NodeName,
  wire: readonly TaskReport__Output[],
): readonly TaskReport[] {
  const momentOf = (boottimeMs: number | null) =>
    boottimeMs === null ? null : taskStatus.wallOfBoottime(node, boottimeMs);
  return wire.flatMap((each) => {
    const known = taskReportFromWire(each);
    if (known === null) return [];
    const report = boundedReport(known);
    const { exit } = report;
    const startedAtMs = momentOf(report.startedBoottimeMs);
    if (exit === null || exit.finishedAtMs === null) return [{ ...report, startedAtMs }];
    const finishedAtMs = momentOf(report.endedBoottimeMs) ?? taskStatus.wallOfNode(node, exit.finishedAtMs);
    return [{ ...report, startedAtMs, exit: { ...exit, finishedAtMs } }];
  });
}

/** What runs there and what it holds, as a Hello says it. */
export function heldTasksFromWire(wire: readonly TaskReport__Output[]): readonly OrphanTask[] {
  return wire.flatMap((each) => {
    const known = taskReportFromWire(each);
    if (known === null || known.state === 'ended') return [];
    const { task, frozen } = known;
    return [{ task, name: each.jobName, gpuUuids: each.gpuUuids, frozen }];
  });
}

/** When the first thing went wrong in each task, as near as its node and our clock can tell. */
export function failureTimes(taskStatus: TaskStatusCache, node: NodeName, bootId: string): FailureTimes {
  return ({ failure }) => (failure === null ? null : taskStatus.wallOf(node, bootId, failure.atBoottimeMs));
}

/** Conditions that only the coordinator finds: claims of a node that are doubted, and copies of its identity. */
const ownKinds: ReadonlySet<string> = new Set([doubtKind, duplicateKind]);

/** Conditions that an agent reports, with those that the coordinator has found. */
export function conditionsReported(
  wire: readonly Condition__Output[],
  ...own: readonly (Condition | null)[]
): readonly Condition[] {
  const reported = wire.map(conditionFromWire).filter(({ kind }) => !ownKinds.has(kind));
  return [...own.flatMap((each) => each ?? []), ...reported];
}

/** Terms of another cluster mean nothing here. */
export function accountReported(
  state: ClusterState,
  { highestTerm = 0, termProof = '', clusterId = state.clusterId, proofs }: Hello__Output,
): Pick<AgentAccount, 'highestTerm' | 'termProof' | 'proofs'> {
  const isOurs = clusterId === state.clusterId;
  const entries = proofs.flatMap(({ task: wire, proof }): [TaskKey, string][] => {
    const task = taskRefFromWire(wire);
    return task === null ? [] : [[taskKey(task), proof]];
  });
  return { highestTerm: isOurs ? highestTerm : 0, termProof, proofs: new Map(entries) };
}
