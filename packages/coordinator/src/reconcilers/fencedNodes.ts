/** Ends the tasks of silent nodes whose leases have certainly expired. One pass is idempotent. */

import type { NodeName } from '@muster/common/ids';
import type { AgentRegistry } from '../agents/registry.ts';
import { coordinatorPart } from '../caller.ts';
import type { GrantedLeases } from '../leases/grantedLeases.ts';
import { endLostTasks } from '../leases/lostTasks.ts';
import type { Loop } from '../loop.ts';
import type { Attempt } from '../model.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState, Draft } from '../state/state.ts';

const caller = coordinatorPart('fences');

export interface FencedNodesParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly grantedLeases: Pick<GrantedLeases, 'fencedAtMs'>;
  readonly monotonicMs: () => number;
  /** Why nothing may be rescheduled; null: it may. */
  readonly paused: () => string | null;
}

export function endFencedTasks(parts: FencedNodesParts): readonly Promise<void>[] {
  if (parts.paused() !== null) return [];
  const due = [...heldTasks(parts.state.jobs.values())]
    .filter(([node, tasks]) => tasks.some(({ attempt }) => isFenced(parts, node, attempt)))
    .map(([node]) => node);
  return due.map((node) => parts.loop.run(caller, (draft, nowMs) => endTasksOf(parts, draft, node, nowMs)));
}

/** It waited for its turn, and the node may have been heard meanwhile: then its tasks have fresh leases. */
function endTasksOf(parts: FencedNodesParts, draft: Draft, node: NodeName, nowMs: number): void {
  const silentForMs = parts.agents.silentForMs(node);
  const silent =
    silentForMs === null
      ? `node ${node} has not responded since this coordinator started`
      : `node ${node} has been silent for ${Math.round(silentForMs / 1_000)} s`;
  const lastHeardMs = silentForMs === null ? null : nowMs - silentForMs;
  const loss = { message: `${silent} and its lease has expired`, lastHeardMs };
  const tasks = endLostTasks(draft, node, (attempt) => isFenced(parts, node, attempt), loss, nowMs);
  if (tasks.length > 0)
    draft.emit({ kind: 'node.fenced', subject: node, data: { silentForMs, tasks } }, nowMs);
}

function isFenced(
  { agents, grantedLeases, monotonicMs }: FencedNodesParts,
  node: NodeName,
  attempt: Attempt,
): boolean {
  if (!agents.isSilent(node)) return false;
  const fencedAtMs = grantedLeases.fencedAtMs(node, attempt);
  return fencedAtMs !== null && monotonicMs() >= fencedAtMs;
}
