/** The part of the typed client that is about nodes, and about the clock of the coordinator. */
import type { ClockView } from '../clockView.ts';
import type { Condition } from '../conditions.ts';
import type { NodeTelemetry } from '../telemetry.ts';
import type { NodeView } from '../views.ts';
import { clockFromWire, nodeFromWire, nodeTelemetryFromWire } from './codec.ts';
import type { UnaryCall } from './unaryCalls.ts';

export interface NodeApi {
  listNodes(): Promise<readonly NodeView[]>;
  getNode(name: string): Promise<NodeView>;
  /** Ends a condition by hand; resolves with the node once it no longer has it. */
  clearCondition(
    condition: Pick<Condition, 'kind' | 'gpuUuid'> & { readonly node: string },
  ): Promise<NodeView>;
  /** A user confirms that nothing runs on a silent node any longer: its tasks end as lost. Refused while the node answers. */
  confirmDead(node: string): Promise<NodeView>;
  /** Lets the next machine with the credential of a node be that node. Refused while the node answers. */
  rejoinNode(node: string): Promise<NodeView>;
  /** @param deadlineMs time within which its tasks must have ended; null: there is no deadline */
  drainNode(node: string, reason: string, deadlineMs: number | null): Promise<NodeView>;
  undrainNode(node: string): Promise<NodeView>;
  /** Kills tasks that the store does not know. @returns the node with those that are being killed */
  endOrphans(node: string): Promise<NodeView>;
  removeNode(name: string): Promise<void>;
  /** The clocks of the coordinator. */
  getClock(): Promise<ClockView>;
  /** Confirms that the system clock of the coordinator is right. Refused if it was not stepped. */
  acceptClock(): Promise<ClockView>;
  /** The newest readings; without a name, of every node. */
  listTelemetry(node?: string): Promise<readonly NodeTelemetry[]>;
}

export function nodeClient(call: UnaryCall): NodeApi {
  return {
    listNodes: async () => (await call('ListNodes', {})).nodes.map(nodeFromWire),
    getNode: async (name) => nodeFromWire(await call('GetNode', { name })),
    clearCondition: async ({ gpuUuid, ...place }) =>
      nodeFromWire(await call('ClearCondition', gpuUuid === null ? place : { ...place, gpuUuid })),
    confirmDead: async (node) => nodeFromWire(await call('ConfirmDead', { node })),
    rejoinNode: async (node) => nodeFromWire(await call('RejoinNode', { node })),
    drainNode: async (node, reason, deadlineMs) =>
      nodeFromWire(await call('DrainNode', { node, reason, ...(deadlineMs === null ? {} : { deadlineMs }) })),
    undrainNode: async (node) => nodeFromWire(await call('UndrainNode', { node })),
    endOrphans: async (node) => nodeFromWire(await call('EndOrphans', { node })),
    removeNode: async (name) => {
      await call('RemoveNode', { name });
    },
    getClock: async () => clockFromWire(await call('GetClock', {})),
    acceptClock: async () => clockFromWire(await call('AcceptClock', {})),
    listTelemetry: async (node) =>
      (await call('ListTelemetry', node === undefined ? {} : { node })).nodes.map(nodeTelemetryFromWire),
  };
}
