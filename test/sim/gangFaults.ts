/** Faults that wait for their moment: a member of a gang is struck in a certain phase of its attempt. */
import type { StoredEvent } from '@muster/coordinator/model';
import { someTimeMs } from './faults.ts';
import type { Fact } from './history.ts';
import type { Random } from './random.ts';
import type { Site, World } from './world.ts';

/** What a member of a gang has just begun, or come to. */
type Phase = 'preparing' | 'prepared' | 'checking' | 'checked' | 'starting' | 'running' | 'stopping';

/** A phase is over in a moment or takes seconds. */
const strikesWithinMs = [0, 0, 20, 1_000];

interface Member {
  readonly node: string;
  readonly phase: Phase;
}

/** @param chance of a strike, for each member that comes into a phase */
export function strikeAtPhases(world: World, random: Random, chance: number, untilMs: number): void {
  const nodes = new Map<string, readonly string[]>();
  world.history.listen((fact, nowMs) => {
    if (nowMs >= untilMs) return;
    for (const { node, phase } of membersIn(fact, nodes)) {
      const site = world.sites.find(({ machine }) => machine.name === node);
      if (site === undefined || !random.chance(chance)) continue;
      const kind = random.pick(['kill', 'hang', 'cut', 'off'] as const);
      world.timeline.at(random.between(0, random.pick(strikesWithinMs)), world.life, () => {
        const forMs = strikes[kind](world, random, site);
        world.history.add({ kind: 'fault', what: `${kind} while ${phase}`, where: node, forMs });
      });
    }
  });
}

const strikes = {
  kill: (world, random, site) => {
    const forMs = someTimeMs(random);
    world.endAgent(site);
    world.timeline.at(forMs, world.life, () => world.startAgent(site));
    return forMs;
  },
  hang: (world, random, site) => {
    const forMs = someTimeMs(random);
    world.pauseAgent(site, forMs);
    return forMs;
  },
  cut: (world, random, { machine }) => {
    const forMs = someTimeMs(random);
    world.network.block(machine, ['up', 'down']);
    world.timeline.at(forMs, world.life, () => world.network.unblock(machine));
    return forMs;
  },
  off: (world, random, site) => {
    if (!site.machine.power.alive) return 0;
    const forMs = random.between(5_000, 15_000);
    world.powerOff(site);
    world.timeline.at(forMs, world.life, () => world.boot(site));
    return forMs;
  },
} satisfies Record<string, (world: World, random: Random, site: Site) => number>;

/** @param nodes of attempts, kept from their allocation on */
function membersIn(fact: Fact, nodes: Map<string, readonly string[]>): readonly Member[] {
  if (fact.kind === 'committed') return fact.events.flatMap((event) => membersOf(event, nodes));
  if (!('task' in fact)) return [];
  const phase = phaseOf(fact);
  const { jobId, attempt, nodeRank } = fact.task;
  const gang = nodes.get(`${jobId}.${attempt}`) ?? [];
  const node = gang[nodeRank];
  return phase === null || node === undefined || gang.length < 2 ? [] : [{ node, phase }];
}

function phaseOf({ kind }: Fact): Phase | null {
  if (kind === 'prepared') return 'preparing';
  if (kind === 'reportedPrepared') return 'prepared';
  if (kind === 'pathTried') return 'checking';
  return kind === 'started' ? 'starting' : null;
}

/** Every member of a gang at once. */
function membersOf(
  { kind, subject, data }: StoredEvent,
  nodes: Map<string, readonly string[]>,
): readonly Member[] {
  const attempt = Number(data['attempt']);
  const key = `${subject}.${attempt}`;
  if (kind === 'attempt.allocated')
    nodes.set(
      key,
      (data['tasks'] as { node: string }[]).map(({ node }) => node),
    );
  const phase = phases[kind];
  const gang = nodes.get(key) ?? [];
  if (phase === undefined || gang.length < 2) return [];
  return gang.map((node) => ({ node, phase }));
}

const phases: Readonly<Record<string, Phase>> = {
  'attempt.released': 'checked',
  'attempt.running': 'running',
  'job.stopping': 'stopping',
};
