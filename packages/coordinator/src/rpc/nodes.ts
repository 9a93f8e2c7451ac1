/** The API's calls about nodes and the cluster. */
import { MusterError } from '@muster/common/errors';
import type { MusterHandlers } from '@muster/common/gen/muster/v1/Muster';
import { isNodeName, type RandomBytes } from '@muster/common/ids';
import { musterVersion } from '@muster/common/version';
import { nodeToWire } from '@muster/common/wire/codec';
import type { AgentRegistry } from '../agents/registry.ts';
import { hashToken, joinTokenLifetimeMs, newToken } from '../auth/tokens.ts';
import type { Loop } from '../loop.ts';
import type { Node } from '../model.ts';
import type { ClusterState } from '../state.ts';
import { unary } from './calls.ts';
import { heldTasksByNode, nodeView } from './views.ts';

export interface NodeCallParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly random: RandomBytes;
}

type NodeCalls = Pick<MusterHandlers, 'ListNodes' | 'GetNode' | 'CreateJoinToken' | 'GetCluster'>;

export function nodeCalls(parts: NodeCallParts): NodeCalls {
  const { state, loop, agents } = parts;
  const view = (nodes: readonly Node[]) => {
    const held = heldTasksByNode(state.jobs.values());
    return nodes.map((node) => {
      const { name } = node;
      const tasks = held.get(name) ?? [];
      return nodeToWire(nodeView(node, tasks, agents.isOnline(name), agents.silentForMs(name)));
    });
  };

  return {
    ListNodes: unary(async () => {
      const nodes = [...state.nodes.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      return { nodes: view(nodes) };
    }),

    GetNode: unary(async (request) => {
      const node = isNodeName(request.name) ? state.nodes.get(request.name) : undefined;
      const [answer] = node === undefined ? [] : view([node]);
      if (answer === undefined) {
        throw new MusterError('not_found', `there is no node ${request.name}; \`muster nodes\` lists them`);
      }
      return answer;
    }),

    CreateJoinToken: unary(async (request) => {
      const { nodeName } = request;
      if (!isNodeName(nodeName)) {
        throw new MusterError(
          'invalid',
          `"${nodeName}": a node name has 1 to 63 lower-case letters, digits and hyphens`,
        );
      }
      const taken = [...state.credentials.values()].some(
        (each) => each.kind === 'agent' && each.subject === nodeName,
      );
      if (taken) {
        throw new MusterError(
          'already_exists',
          `a node named ${nodeName} has joined already; choose another name`,
        );
      }
      const token = newToken('join', parts.random);
      const expiresAtMs = await loop.run((draft, nowMs) => {
        const secretHash = hashToken(token);
        draft.putCredential({
          id: `join:${secretHash.slice(0, 16)}`,
          kind: 'join',
          subject: nodeName,
          secretHash,
          createdAtMs: nowMs,
          expiresAtMs: nowMs + joinTokenLifetimeMs,
          usedFor: null,
        });
        return nowMs + joinTokenLifetimeMs;
      });
      return { token, expiresAtMs };
    }),

    GetCluster: unary(async () => {
      const jobs = [...state.jobs.values()];
      const queued = jobs.filter((job) => job.state.kind === 'queued').length;
      return {
        id: state.clusterId,
        version: musterVersion,
        lastEventSeq: state.lastEventSeq,
        nodesOnline: agents.online().size,
        nodesTotal: state.nodes.size,
        jobsQueued: queued,
        jobsActive: jobs.length - queued,
      };
    }),
  };
}
