/** Detects nodes that stopped answering. One pass is idempotent. */

import type { AgentRegistry } from '../agents/registry.ts';
import { coordinatorPart } from '../caller.ts';
import { nodeSilent } from '../commands/nodes.ts';
import type { Loop } from '../loop.ts';

const caller = coordinatorPart('silent nodes');

export function noticeSilentNodes(agents: AgentRegistry, loop: Loop): readonly Promise<void>[] {
  return agents
    .takeNewlySilent()
    .map((node) => loop.run(caller, (draft, nowMs) => nodeSilent(draft, node, nowMs)));
}
