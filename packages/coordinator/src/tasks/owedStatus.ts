/** Tells what was held back of nodes that change without end, once it may be told. */
import type { StatusPacer } from '../agents/statusPacer.ts';
import { coordinatorPart } from '../caller.ts';
import { tellOwed } from '../commands/nodes.ts';
import type { Loop } from '../loop.ts';

const caller = coordinatorPart('node status');

/** One pass; idempotent. */
export function tellOwedStatus(pacer: StatusPacer, loop: Loop): readonly Promise<void>[] {
  const owing = pacer.owing();
  if (owing.length === 0) return [];
  return [
    loop.run(caller, (draft, nowMs) => {
      for (const node of owing) tellOwed(draft, node, nowMs, pacer);
    }),
  ];
}
