/** Notices nodes that stopped answering. One pass; idempotent. */
import type { AgentRegistry } from '../agents/registry.ts';
import { nodeSilent } from '../commands/nodes.ts';
import type { Loop } from '../loop.ts';

export function endSilentSessions(agents: AgentRegistry, loop: Loop): readonly Promise<void>[] {
  return agents.silent().map((session) => {
    agents.remove(session);
    session.end();
    return loop.run((draft, nowMs) => nodeSilent(draft, session.node, nowMs));
  });
}
