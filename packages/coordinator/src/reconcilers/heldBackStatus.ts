/** Publishes status changes that were held back because their node changed too often, as soon as its rate allows. */
import type { StatusPacer } from '../agents/statusPacer.ts';
import { coordinatorPart } from '../caller.ts';
import { publishHeldBack } from '../commands/nodes.ts';
import type { Loop } from '../loop.ts';

const caller = coordinatorPart('node status');

/** One pass; idempotent. */
export function publishHeldBackStatus(pacer: StatusPacer, loop: Loop): readonly Promise<void>[] {
  const heldBackNodes = pacer.heldBackNodes();
  if (heldBackNodes.length === 0) return [];
  return [
    loop.run(caller, (draft, nowMs) => {
      for (const node of heldBackNodes) publishHeldBack(draft, node, nowMs, pacer);
    }),
  ];
}
