/** The API's calls about nodes and the cluster. */

import { type Condition, conditionKey } from '@muster/common/conditions';
import { MusterError } from '@muster/common/errors';
import { isNodeName, type NodeName } from '@muster/common/ids';
import type { Upkeep } from '@muster/common/upkeep';
import { musterVersion } from '@muster/common/version';
import { clockToWire, nodeToWire, upkeepToWire } from '@muster/common/wire/codec';
import type { OrphanTasks } from '../agents/orphans.ts';
import type { AgentRegistry } from '../agents/registry.ts';
import type { Caller } from '../caller.ts';
import { clockProblem } from '../clock/clockText.ts';
import type { TrustedClock } from '../clock/trustedClock.ts';
import { drainNode, undrainNode } from '../commands/drains.ts';
import { rejoinNode } from '../commands/identity.ts';
import { removeNode } from '../commands/nodes.ts';
import type { CommitNotifier } from '../events/notices.ts';
import type { Loop } from '../loop.ts';
import type { Node } from '../model.ts';
import type { PathHistory } from '../paths/pathHistory.ts';
import type { LeaseKeeper } from '../reconcilers/leaseKeeper.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';
import { nodeView } from '../views.ts';
import { type MusterCalls, unary } from './calls.ts';

export interface NodeCallParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly orphans: OrphanTasks;
  readonly leases: LeaseKeeper;
  readonly clock: TrustedClock;
  readonly paths: PathHistory;
  /** Rings after every commit, with the subjects of its events. */
  readonly committed: CommitNotifier;
  readonly upkeep: Upkeep;
  /** How long to wait for a node to be without a condition that was cleared; default: 8 s. */
  readonly clearWaitMs?: number;
}

/** For the agent to check whether a condition still holds, and to report it. Below the 10 s for which our clients wait. */
const usualClearWaitMs = 8_000;

type NodeCalls = Pick<
  MusterCalls,
  | 'ListNodes'
  | 'GetNode'
  | 'ClearCondition'
  | 'ConfirmDead'
  | 'RejoinNode'
  | 'RemoveNode'
  | 'GetCluster'
  | 'GetUpkeep'
  | 'SetMaintenance'
  | 'AdvanceStore'
  | 'GetClock'
  | 'AcceptClock'
  | 'DrainNode'
  | 'UndrainNode'
  | 'EndOrphans'
>;

export function nodeCalls(parts: NodeCallParts): NodeCalls {
  const { state, loop, agents, leases, paths, orphans } = parts;
  const view = (node: Node, held = heldTasks(state.jobs.values())) => {
    const { name } = node;
    const tasks = held.get(name) ?? [];
    const extras = {
      fencedInMs: leases.fencedInMs(
        name,
        tasks.map(({ job }) => job),
      ),
      bandwidths: paths.bandwidthsOf(name),
      orphans: orphans.of(name),
    };
    return nodeToWire(nodeView(node, tasks, agents.isOnline(name), agents.silentForMs(name), extras));
  };
  const nodeNamed = (name: string) => {
    const node = isNodeName(name) ? state.nodes.get(name) : undefined;
    if (node !== undefined) return node;
    throw new MusterError('not_found', `there is no node ${name}; \`muster nodes\` lists them`);
  };

  const cluster = () => {
    const queued = state.groups.queuedCount();
    return {
      id: state.clusterId,
      version: musterVersion,
      lastEventSeq: state.lastEventSeq,
      nodesOnline: agents.online().size,
      nodesTotal: state.nodes.size,
      jobsQueued: queued,
      jobsActive: state.jobs.size - queued,
      pausedBecause: leases.paused() ?? '',
      maintenanceMs: leases.maintenanceMs(),
      clockProblem: clockProblem(parts.clock.view()) ?? '',
    };
  };

  return {
    ListNodes: unary(async () => {
      const nodes = [...state.nodes.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      const held = heldTasks(state.jobs.values());
      return { nodes: nodes.map((node) => view(node, held)) };
    }),

    GetNode: unary(async (request) => view(nodeNamed(request.name))),

    ClearCondition: unary(async (request, caller) => {
      const { name } = nodeNamed(request.node);
      await clearCondition(parts, caller, name, { kind: request.kind, gpuUuid: request.gpuUuid ?? null });
      return view(nodeNamed(name));
    }),

    DrainNode: unary(async ({ node, reason, deadlineMs = null }, caller) => {
      const { name } = nodeNamed(node);
      // Tasks that are stopped at once may be gone by the time of the answer, which must list them anyway.
      const held = await loop.run(caller, (draft, nowMs) => {
        drainNode(draft, { node: name, reason, deadlineMs }, nowMs);
        return heldTasks(draft.activeJobs());
      });
      return view(nodeNamed(name), held);
    }),

    UndrainNode: unary(async ({ node }, caller) => {
      const { name } = nodeNamed(node);
      await loop.run(caller, (draft, nowMs) => undrainNode(draft, name, nowMs));
      return view(nodeNamed(name));
    }),

    EndOrphans: unary(async ({ node }, caller) => {
      const { name } = nodeNamed(node);
      if (!agents.isOnline(name)) {
        const message = `${name} does not answer, and only its agent can end what runs there; try again once it is online`;
        throw new MusterError('failed_precondition', message);
      }
      const before = view(nodeNamed(name));
      const tasks = orphans.condemn(name).map(({ task }) => task);
      if (tasks.length > 0) {
        const data = { count: tasks.length, tasks };
        await loop.run(caller, (draft, nowMs) =>
          draft.emit({ kind: 'node.orphans_ended', subject: name, data }, nowMs),
        );
        agents.kill(name, tasks);
      }
      return before;
    }),

    RemoveNode: unary(async ({ name }, caller) => {
      if (!isNodeName(name)) nodeNamed(name);
      await loop.run(caller, (draft, nowMs) => removeNode(draft, name as NodeName, nowMs));
      return {};
    }),

    GetCluster: unary(async () => cluster()),

    GetUpkeep: unary(async () => {
      const { certificates, diskUse } = parts.upkeep;
      return upkeepToWire({ certificates: certificates(), ...(await diskUse()) });
    }),

    ConfirmDead: unary(async (request, caller) => {
      const { name } = nodeNamed(request.node);
      await leases.confirmDead(name, caller);
      return view(nodeNamed(name));
    }),

    RejoinNode: unary(async (request, caller) => {
      const { name } = nodeNamed(request.node);
      await loop.run(caller, (draft, nowMs) => rejoinNode(draft, name, agents.isOnline(name), nowMs));
      leases.duplicates.end(name);
      return view(nodeNamed(name));
    }),

    SetMaintenance: unary(async ({ forMs }, caller) => {
      await leases.setMaintenance(forMs, caller);
      return cluster();
    }),

    GetClock: unary(async () => clockToWire(parts.clock.view())),

    AcceptClock: unary(async (_request, caller) => {
      await parts.clock.accept(loop, caller);
      return clockToWire(parts.clock.view());
    }),

    AdvanceStore: unary(async (_request, caller) => {
      await leases.advanceStore(caller);
      return cluster();
    }),
  };
}

type ConditionPlace = Pick<Condition, 'kind' | 'gpuUuid'>;

/**
 * Forwards a user's confirmation to the node's agent, and waits until the node no longer has the condition.
 * @throws {MusterError} `not_found` when it has none such; `failed_precondition` when it does not answer, or still has it
 */
async function clearCondition(
  parts: NodeCallParts,
  caller: Caller,
  node: NodeName,
  place: ConditionPlace,
): Promise<void> {
  const { kind, gpuUuid } = place;
  const what = gpuUuid === null ? kind : `${kind} of ${gpuUuid}`;
  if (conditionOf(parts.state, node, place) === undefined) {
    const message = `${node} has no condition ${what}; \`muster node ${node}\` lists those it has`;
    throw new MusterError('not_found', message);
  }
  const silent = `${node} does not respond, and only its agent can clear ${what}; try again once it is online`;
  if (!parts.agents.clearCondition(node, place)) throw new MusterError('failed_precondition', silent);
  await parts.loop.run(caller, (draft, nowMs) =>
    draft.emit({ kind: 'node.clear_asked', subject: node, data: { kind, gpuUuid } }, nowMs),
  );
  const left = await conditionAfterWait(parts, node, place);
  if (left === undefined) return;
  if (!parts.agents.isOnline(node)) throw new MusterError('failed_precondition', silent);
  throw new MusterError('failed_precondition', `${what} on ${node} still holds: ${left.message}`);
}

function conditionOf(state: ClusterState, node: NodeName, place: ConditionPlace): Condition | undefined {
  const conditions = state.nodes.get(node)?.conditions ?? [];
  return conditions.find((each) => conditionKey(each) === conditionKey(place));
}

/** @returns undefined as soon as it is gone */
export async function conditionAfterWait(
  { state, committed, clearWaitMs = usualClearWaitMs }: NodeCallParts,
  node: NodeName,
  place: ConditionPlace,
): Promise<Condition | undefined> {
  const waiting = new AbortController();
  const timer = setTimeout(() => waiting.abort(), clearWaitMs);
  try {
    for (;;) {
      const changed = committed.next(waiting.signal, node);
      const condition = conditionOf(state, node, place);
      if (condition === undefined || waiting.signal.aborted) return condition;
      await changed;
    }
  } finally {
    clearTimeout(timer);
    waiting.abort();
  }
}
