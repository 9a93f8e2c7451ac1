/** What goes wrong. Each seed draws which of these happen and how often; in the quiet phase none does, and all heals. */
import type { Random } from './random.ts';
import type { Site, World } from './world.ts';

export type FaultKind = keyof typeof faults;

/** @returns for how many milliseconds, for the history */
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

/** Mostly short, sometimes long enough that the other side gives up, and now and then that leases run out for certain. */
export function someTimeMs(random: Random): number {
  if (random.chance(0.65)) return random.between(50, 2_000);
  return random.chance(0.6) ? random.between(2_000, 15_000) : random.between(12_000, 40_000);
}

/** Half a lease, two leases, and as long as it takes until every node has given up on it. */
function outageMs(random: Random): number {
  return random.chance(0.5)
    ? someTimeMs(random)
    : random.pick([3_000, 12_000, random.between(20_000, 60_000)]);
}

function partition(directions: readonly ('up' | 'down')[]): Fault {
  return onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    world.network.block(machine, directions);
    after(world, forMs, () => world.network.unblock(machine));
    return forMs;
  });
}

/** By then the coordinator has read its clock for the first time. */
const firstStartMs = 2_000;

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
    const forMs = outageMs(random);
    if (world.coordinator !== null) world.endCoordinator(world.coordinator);
    after(world, forMs, () => world.startCoordinator());
    return forMs;
  }),
  pauseCoordinator: onCoordinator((world, random) => {
    const forMs = outageMs(random);
    world.coordinator?.pauseUntil(world.timeline.nowMs + forMs);
    return forMs;
  }),
  pauseAgent: onSite((world, random, site) => {
    const forMs = someTimeMs(random);
    world.pauseAgent(site, forMs);
    return forMs;
  }),
  partition: partition(['up', 'down']),
  muteAgent: partition(['up']),
  deafAgent: partition(['down']),
  cutConnections: onSite((world, _random, { machine }) => {
    for (const connection of Array.from(world.network.connections))
      if (connection.machine === machine) connection.cut();
    return 0;
  }),
  /** A network that comes and goes: each time it is back for long enough to be believed. */
  flapping: onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    const untilMs = world.timeline.nowMs + forMs;
    const directions = random.pick([['up'], ['down'], ['up', 'down']] as const);
    const flap = () => {
      world.network.unblock(machine);
      if (world.timeline.nowMs >= untilMs) return;
      world.network.block(machine, directions);
      after(world, random.between(50, 3_000), () => {
        world.network.unblock(machine);
        after(world, random.between(50, 3_000), flap);
      });
    };
    flap();
    return forMs;
  }),
  /** The coordinator itself is cut off, from all nodes or all but one. */
  isolateCoordinator: onCoordinator((world, random) => {
    const forMs = outageMs(random);
    const spared = random.chance(0.5) ? random.pick(world.sites) : null;
    const cut = world.sites.filter((site) => site !== spared);
    for (const { machine } of cut) world.network.block(machine, ['up', 'down']);
    after(world, forMs, () => {
      for (const { machine } of cut) world.network.unblock(machine);
    });
    return forMs;
  }),
  guardAway: onSite((world, random, site) => {
    const forMs = someTimeMs(random);
    const { guard, engine } = site;
    if (random.chance(0.4)) engine.hang(forMs);
    else if (random.chance(0.3) || !world.killGuard(site, forMs)) guard.hang(forMs);
    return forMs;
  }),
  badImages: onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    machine.registry = random.pick(['fails', 'hangs']);
    machine.registryEverFailed = true;
    after(world, forMs, () => {
      machine.registry = 'well';
    });
    return forMs;
  }),
  brokenPath: onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    const network = random.pick(['10.0', '10.1'] as const);
    const how = random.pick(['refuses', 'swallows'] as const);
    const from = machine.name;
    const to = random.pick(world.sites).machine.name;
    const directions = [
      { from, to, network },
      ...(random.chance(0.6) ? [{ from: to, to: from, network }] : []),
    ];
    for (const direction of directions) world.fabric.break(direction, how);
    after(world, forMs, () => {
      for (const direction of directions) world.fabric.mend(direction);
    });
    return forMs;
  }),
  slowPath: onSite((world, random, { machine }) => {
    const forMs = someTimeMs(random);
    const other = random.pick(world.sites).machine;
    world.fabric.setSlow(machine.name, other.name, true);
    after(world, forMs, () => world.fabric.setSlow(machine.name, other.name, false));
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
    // The very first start believes its clock: there is nothing to compare it with.
    if (world.timeline.nowMs < firstStartMs) return 0;
    // From a second to 400 days, each order of magnitude as often as the others.
    const sizeMs = Math.round(1_000 * (400 * 86_400) ** random.next());
    const aheadMs = random.chance(0.5) ? sizeMs : -sizeMs;
    const isEveryones = random.chance(0.4);
    world.hasJumped = true;
    if (isEveryones || random.chance(0.6)) world.coordinatorWallOffsetMs = aheadMs;
    for (const { machine } of world.sites)
      if (isEveryones || random.chance(0.4)) world.wallOffsetsMs.set(machine.name, aheadMs);
    return 0;
  }),
  /** A node is cut off, and then the coordinator that granted its leases is another one. */
  cutBeforeRestart: onSite((world, random, { machine }) => {
    const forMs = random.between(12_000, 40_000);
    world.network.block(machine, ['up', 'down']);
    after(world, forMs, () => world.network.unblock(machine));
    after(world, random.between(0, 3_000), () => {
      if (world.coordinator !== null) world.endCoordinator(world.coordinator);
      after(world, random.between(50, 2_000), () => world.startCoordinator());
    });
    return forMs;
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

/** Nothing is in the way any longer. */
export function healAll(world: World): void {
  world.network.lossy = false;
  world.coordinatorWallOffsetMs = 0;
  world.wallOffsetsMs.clear();
  Object.assign(world.storeFaults, { fullCommits: 0, ioError: false, slowUntilMs: 0 });
  world.fabric.heal();
  world.startCoordinator();
  for (const site of world.sites) {
    const { machine, guard, engine } = site;
    world.network.unblock(machine);
    machine.disk.fullUntilMs = Math.min(machine.disk.fullUntilMs, world.timeline.nowMs);
    machine.health.heal();
    machine.registry = 'well';
    guard.heal();
    engine.heal();
    world.boot(site);
    world.startAgent(site);
  }
}
