/** What goes wrong. Each seed draws which of these happen and how often; in the quiet phase none does, and all heals. */
import type { Random } from './random.ts';
import type { Site, World } from './world.ts';

export type FaultKind = keyof typeof faults;

/** @returns for how long, to say so in the history */
type Fault = (world: World, random: Random) => { readonly where: string; readonly forMs: number };

const after = (world: World, delayMs: number, heal: () => void) =>
  void world.timeline.at(delayMs, world.life, heal);

function onSite(act: (world: World, random: Random, site: Site) => number): Fault {
  return (world, random) => {
    const site = random.pick(world.sites);
    return { where: site.machine.name, forMs: act(world, random, site) };
  };
}

function onCoordinator(act: (world: World, random: Random) => number): Fault {
  return (world, random) => ({ where: 'coordinator', forMs: act(world, random) });
}

/** Mostly short, sometimes long enough that the other side gives up. */
function someTimeMs(random: Random): number {
  return random.chance(0.7) ? random.between(50, 2_000) : random.between(2_000, 15_000);
}

function partition(directions: readonly ('up' | 'down')[]): Fault {
  return onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    world.network.block(machine, directions);
    after(world, forMs, () => world.network.unblock(machine));
    return forMs;
  });
}

export const faults = {
  killAgent: onSite((world, random, site) => {
    const forMs = someTimeMs(random);
    world.endAgent(site);
    after(world, forMs, () => world.startAgent(site));
    return forMs;
  }),
  reboot: onSite((world, random, site) => {
    if (!site.machine.power.alive) return 0;
    const forMs = random.between(5_000, 15_000);
    world.powerOff(site);
    after(world, forMs, () => world.boot(site));
    return forMs;
  }),
  killCoordinator: onCoordinator((world, random) => {
    const forMs = someTimeMs(random);
    if (world.coordinator !== null) world.endCoordinator(world.coordinator);
    after(world, forMs, () => world.startCoordinator());
    return forMs;
  }),
  pauseCoordinator: onCoordinator((world, random) => {
    const forMs = someTimeMs(random);
    world.coordinator?.pauseUntil(world.timeline.nowMs + forMs);
    return forMs;
  }),
  pauseAgent: onSite((world, random, site) => {
    const forMs = someTimeMs(random);
    site.agent?.pauseUntil(world.timeline.nowMs + forMs);
    return forMs;
  }),
  partition: partition(['up', 'down']),
  muteAgent: partition(['up']),
  deafAgent: partition(['down']),
  cutConnections: onSite((world, _random, { machine }) => {
    for (const connection of [...world.network.connections])
      if (connection.machine === machine) connection.cut();
    return 0;
  }),
  guardAway: onSite((_world, random, { guards }) => {
    const forMs = someTimeMs(random);
    random.pick([guards.process, guards.docker]).goAway(forMs);
    return forMs;
  }),
  nodeDiskFull: onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    machine.disk.fullUntilMs = world.timeline.nowMs + forMs;
    return forMs;
  }),
  sickGpu: onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    const { uuid: gpuUuid } = random.pick(machine.gpus);
    const action = random.chance(0.8) ? 'drain_gpu' : 'note';
    const clears = random.chance(0.3) ? 'by_hand' : 'when_gone';
    const condition = {
      kind: random.pick(['xid_48', 'ecc_uncorrectable']),
      gpuUuid,
      action,
      clears,
    } as const;
    machine.health.raise(condition);
    after(world, forMs, () => machine.health.recover(condition));
    return forMs;
  }),
  sickNode: onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    const clears = random.chance(0.3) ? 'by_hand' : 'when_gone';
    const condition = { kind: 'disk_read_only', gpuUuid: null, action: 'drain_node', clears } as const;
    machine.health.raise(condition);
    after(world, forMs, () => machine.health.recover(condition));
    return forMs;
  }),
  vanishingGpu: onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    const { uuid } = random.pick(machine.gpus);
    machine.health.setMissing(uuid, true);
    after(world, forMs, () => machine.health.setMissing(uuid, false));
    return forMs;
  }),
  slowStore: onCoordinator((world, random) => {
    const forMs = someTimeMs(random);
    world.storeFaults.slowUntilMs = world.timeline.nowMs + forMs;
    return forMs;
  }),
  fullStore: onCoordinator((world) => {
    world.storeFaults.fullCommits = 1;
    return 0;
  }),
  brokenStore: onCoordinator((world) => {
    world.storeFaults.ioError = true;
    return 0;
  }),
  wallClockJump: onCoordinator((world, random) => {
    world.wallOffsetMs = random.between(-86_400_000, 86_400_000);
    return 0;
  }),
} satisfies Record<string, Fault>;

export const faultKinds = Object.keys(faults) as FaultKind[];

/** Lets each of these faults strike until `untilMs`, once per `meanPauseMs` on average. */
export function beginFaults(
  world: World,
  random: Random,
  kinds: readonly { readonly kind: FaultKind; readonly meanPauseMs: number }[],
  untilMs: number,
): void {
  for (const { kind, meanPauseMs } of kinds) {
    const strike = () => {
      if (world.timeline.nowMs >= untilMs) return;
      const { where, forMs } = faults[kind](world, random);
      world.history.add({ kind: 'fault', what: kind, where, forMs });
      world.timeline.at(random.waitMs(meanPauseMs), world.life, strike);
    };
    world.timeline.at(random.waitMs(meanPauseMs), world.life, strike);
  }
}

/** This machine is gone for good. */
export function lose(world: World, site: Site): void {
  site.lost = true;
  world.powerOff(site);
  world.history.add({
    kind: 'fault',
    what: 'lost',
    where: site.machine.name,
    forMs: Number.MAX_SAFE_INTEGER,
  });
}

/** Nothing is in the way any more. */
export function healAll(world: World): void {
  world.network.lossy = false;
  Object.assign(world.storeFaults, { fullCommits: 0, ioError: false, slowUntilMs: 0 });
  world.startCoordinator();
  for (const site of world.sites) {
    const { machine, guards } = site;
    world.network.unblock(machine);
    machine.disk.fullUntilMs = 0;
    machine.health.heal();
    for (const guard of Object.values(guards)) guard.awayUntilMs = 0;
    world.boot(site);
    world.startAgent(site);
  }
}
