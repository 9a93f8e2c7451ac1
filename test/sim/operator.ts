/**
 * A person who looks at the nodes now and then, for good, and confirms what only a person can end; who
 * goes and sees that a machine is off before saying so, announces a maintenance now and then, and takes machines out of use
 * for a while.
 */
import type { Node__Output } from '@muster/common/gen/muster/v1/Node';
import { nodeFromWire } from '@muster/common/wire/codec';
import { CallError, type Client } from './client.ts';
import type { Plan } from './plan.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

const meanPauseMs = 4_000;
/** It takes a while to get to a machine. By then most jobs have moved on by themselves. */
const goThereMs = 25_000;

/** @param plan the person does so until its faults end */
export async function operate(
  world: World,
  client: Client,
  random: Random,
  { faultPhaseMs: untilMs, drainChance: given }: Pick<Plan, 'faultPhaseMs' | 'drainChance'>,
): Promise<never> {
  const maintenanceChance = random.pick([0, 0, 0.04, 0.25]);
  const drawn = random.pick([0, 0, 0.15, 0.3]);
  const drainChance = given ?? drawn;
  for (;;) {
    await client.pause(random.waitMs(meanPauseMs));
    await orRefused(clearSome(client, random));
    await orRefused(confirmDead(world, client));
    if (world.timeline.nowMs < untilMs && random.chance(maintenanceChance))
      await orRefused(maintain(client, random));
    const drains = world.timeline.nowMs < untilMs && random.chance(drainChance);
    if (drains) await orRefused(drainSome(client, random));
    await orRefused(undrainSome(client, random, world.timeline.nowMs < untilMs ? 0.05 : 1));
  }
}

/** Mostly one that has work, for that is where it matters. */
async function drainSome(client: Client, random: Random): Promise<void> {
  const nodes = (await client.call<{ nodes: Node__Output[] }>('ListNodes', {})).nodes.map(nodeFromWire);
  const busy = nodes.filter(({ gpuUses }) => gpuUses.length > 0);
  if (nodes.length === 0) return;
  const { name: node } = random.pick(busy.length > 0 && random.chance(0.8) ? busy : nodes);
  const deadlineMs = random.chance(0.7) ? random.pick([0, 9_500, 9_500, 14_000]) : null;
  const request = { node, reason: 'a new kernel', ...(deadlineMs === null ? {} : { deadlineMs }) };
  await client.call('DrainNode', request);
}

async function undrainSome(client: Client, random: Random, chance: number): Promise<void> {
  const { nodes } = await client.call<{ nodes: Node__Output[] }>('ListNodes', {});
  for (const { name, drain: drained } of nodes.map(nodeFromWire)) {
    if (drained !== null && random.chance(chance))
      await orRefused(client.call('UndrainNode', { node: name }));
  }
}

/** Only of machines whose power is off: nothing else that a person could see is proof. */
async function confirmDead({ sites, timeline, history }: World, client: Client): Promise<void> {
  for (const { machine, offAtMs } of sites) {
    if (machine.power.alive || timeline.nowMs - offAtMs < goThereMs) continue;
    history.add({ kind: 'seenDead', machine: machine.name });
    await orRefused(client.call('ConfirmDead', { node: machine.name }));
  }
}

async function maintain(client: Client, random: Random): Promise<void> {
  await client.call('SetMaintenance', { forMs: random.chance(0.2) ? 0 : random.between(10_000, 40_000) });
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

async function orRefused(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
  }
}
