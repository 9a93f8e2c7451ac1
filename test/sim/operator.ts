/** A person who looks at the nodes now and then, for good, and says of what only a person can end that it is dealt with. */
import type { Node__Output } from '@muster/common/gen/muster/v1/Node';
import { nodeFromWire } from '@muster/common/wire/nodeCodec';
import { CallError, type Client } from './client.ts';
import type { Random } from './random.ts';

const meanPauseMs = 4_000;

export async function operate(client: Client, random: Random): Promise<never> {
  for (;;) {
    await client.pause(random.waitMs(meanPauseMs));
    await orRefused(clearSome(client, random));
  }
}

async function clearSome(client: Client, random: Random): Promise<void> {
  const { nodes } = await client.call<{ nodes: Node__Output[] }>('ListNodes', {});
  for (const { name, conditions } of nodes.map(nodeFromWire)) {
    for (const condition of conditions) {
      // Now and then one that clears by itself: then the answer is that it holds, or that it is gone.
      if (condition.clears !== 'by_hand' && !random.chance(0.1)) continue;
      await orRefused(client.clearCondition(name, condition));
    }
  }
}

async function orRefused(call: Promise<void>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
  }
}
