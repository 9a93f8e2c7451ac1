/**
 * The jobs that a preemption ends: the search of the planner beside two simpler choices, on clusters as people have them.
 * What counts is the work that is lost, the GPUs that are freed beyond need, and the CPU time of one choice.
 *
 *     node bench/victims.ts [nodes] [situations]
 */
import {
  anInventory,
  aSpec,
  jobIdOf,
  nodeNameOf,
  seededRandom,
  someGpus,
} from '@muster/coordinator/modelFixture';
import { demandKeyOf, type JobDemand, jobDemand, nodeTasksMax } from '@muster/coordinator/scheduler/capacity';
import { cheapestFirst, isMet, type Place, Preemptible } from '@muster/coordinator/scheduler/preemptible';
import { chooseVictims } from '@muster/coordinator/scheduler/victims';
import {
  type Holder,
  notDrained,
  type PlannedTask,
  type SchedulerNode,
} from '@muster/coordinator/scheduler/view';
import { report, reportMachine, rounded, summary } from './support.ts';

const [nodeCount = 64, situations = 300] = process.argv.slice(2).map(Number);
const gpusPerNode = 8;
const random = seededRandom(20_261_123);
const upTo = (maximum: number) => Math.floor(random() * (maximum + 1));
const oneOf = <T>(values: readonly T[]): T => values[upTo(values.length - 1)] as T;

interface Situation {
  readonly nodes: readonly SchedulerNode[];
  readonly holders: readonly Holder[];
}

/** A full cluster: gangs of whole nodes first, then what people put beside each other on one node. */
function aSituation(gangShare: number): Situation {
  const left = new Map(Array.from({ length: nodeCount }, (_, index) => [index, gpusPerNode]));
  const holders: Holder[] = [];
  const gpusOf = Array.from({ length: nodeCount }, (_, index) => someGpus(`node-${index}`, gpusPerNode));
  const add = (places: readonly number[], gpus: number) => {
    const number = holders.length + 1;
    const tasks = places.map((index): PlannedTask => {
      const before = left.get(index) ?? 0;
      left.set(index, before - gpus);
      const uuids = (gpusOf[index] ?? []).slice(gpusPerNode - before, gpusPerNode - before + gpus);
      return {
        node: nodeNameOf(`node-${index}`),
        gpuUuids: uuids.map(({ uuid }) => uuid),
        cpus: 0,
        memoryMb: 0,
      };
    });
    // Checkpoints every five minutes to two hours; where the attempt stands between two of them is chance.
    const unsavedS = Math.round(random() * oneOf([300, 900, 1_800, 3_600, 7_200]));
    holders.push({
      id: jobIdOf(number),
      submitSeq: number,
      priority: oneOf([10, 30, 50]),
      tasks,
      state: 'active',
      preemptor: null,
      isPreemptible: random() < 0.9,
      lostGpuSeconds: unsavedS * gpus * tasks.length,
      lostSince: 'start',
    });
  };
  const free = () => [...left].filter(([, gpus]) => gpus === gpusPerNode).map(([index]) => index);
  while (free().length > nodeCount * (1 - gangShare)) {
    const size = Math.min(free().length, oneOf([2, 2, 2, 4, 4, 8, 16]));
    // Some gangs take half of each of their nodes.
    add(
      free()
        .sort(() => random() - 0.5)
        .slice(0, size),
      random() < 0.3 ? 4 : 8,
    );
  }
  for (let index = 0; index < nodeCount; index += 1)
    for (let gpus = left.get(index) ?? 0; gpus > 0; gpus = left.get(index) ?? 0)
      add([index], Math.min(gpus, oneOf([1, 1, 1, 2, 2, 4, 8])));
  const nodes = gpusOf.map((gpus, index): SchedulerNode => {
    const inventory = anInventory({ gpus, cpus: 128, memoryMb: 1_000_000 });
    return {
      name: nodeNameOf(`node-${index}`),
      online: true,
      awaitedUntilMs: null,
      inventory,
      drained: notDrained,
      freeGpus: [],
      freeCpus: 128,
      freeMemoryMb: 1_000_000,
      freeTasks: nodeTasksMax,
      orphanedGpus: 0,
      needsPreflight: false,
    };
  });
  return { nodes, holders };
}

type Choose = (places: readonly Place[], count: number) => readonly Holder[] | null;

interface Choosing {
  readonly byHolder: ReadonlyMap<Holder, readonly Place[]>;
  readonly isMetBy: (place: Place, victims: ReadonlySet<Holder>) => boolean;
}

function choosing(places: readonly Place[]): Choosing {
  const byHolder = new Map<Holder, Place[]>();
  for (const place of places)
    for (const { holder } of place.candidates) byHolder.set(holder, [...(byHolder.get(holder) ?? []), place]);
  const isMetBy = ({ lack, candidates }: Place, victims: ReadonlySet<Holder>) =>
    isMet(
      lack,
      candidates.filter(({ holder }) => victims.has(holder)),
    );
  return { byHolder, isMetBy };
}

/** Takes out what is superfluous, the dearest first. */
function withoutSuperfluous(
  victims: ReadonlySet<Holder>,
  places: readonly Place[],
  count: number,
  { byHolder, isMetBy }: Choosing,
): readonly Holder[] {
  const needed = new Set(victims);
  const met = new Set(places.filter((place) => isMetBy(place, needed)));
  for (const victim of [...victims].sort((a, b) => b.lostGpuSeconds - a.lostGpuSeconds)) {
    needed.delete(victim);
    const lost = (byHolder.get(victim) ?? []).filter((place) => met.has(place) && !isMetBy(place, needed));
    if (met.size - lost.length < count) needed.add(victim);
    else for (const place of lost) met.delete(place);
  }
  return [...needed];
}

/** The cheapest attempts of the whole cluster, one after the other, until the job fits. */
const cheapestAttempts: Choose = (places, count) => {
  const choice = choosing(places);
  const candidates = places.flatMap((place) => place.candidates).sort(cheapestFirst);
  const victims = new Set<Holder>();
  const met = new Set(places.filter((place) => choice.isMetBy(place, victims)));
  for (const holder of new Set(candidates.map((each) => each.holder))) {
    if (met.size >= count) break;
    victims.add(holder);
    for (const place of choice.byHolder.get(holder) ?? []) if (choice.isMetBy(place, victims)) met.add(place);
  }
  return met.size < count ? null : withoutSuperfluous(victims, places, count, choice);
};

/** On each node its cheapest attempts; then node after node, the one that costs least beside what is chosen already. */
const cheapestNodes: Choose = (places, count) => {
  const choice = choosing(places);
  const victims = new Set<Holder>();
  const planOf = ({ lack, candidates }: Place) => {
    const taken = candidates.filter(({ holder }) => victims.has(holder));
    const added = [];
    for (const each of candidates.filter(({ holder }) => !victims.has(holder))) {
      if (isMet(lack, [...taken, ...added])) break;
      added.push(each);
    }
    if (!isMet(lack, [...taken, ...added])) return null;
    for (const each of added.toReversed())
      if (isMet(lack, [...taken, ...added.filter((other) => other !== each)]))
        added.splice(added.indexOf(each), 1);
    return { added, cost: added.reduce((sum, { cost }) => sum + cost.gpuSeconds, 0) };
  };
  const plans = new Map(places.map((place) => [place, planOf(place)]));
  for (let met = 0; met < count; met += 1) {
    let best: Place | null = null;
    for (const [place, plan] of plans)
      if (plan !== null && (best === null || plan.cost < (plans.get(best)?.cost ?? 0))) best = place;
    if (best === null) return null;
    const plan = plans.get(best);
    plans.delete(best);
    for (const { holder } of plan?.added ?? []) {
      victims.add(holder);
      for (const place of choice.byHolder.get(holder) ?? [])
        if (plans.has(place)) plans.set(place, planOf(place));
    }
  }
  return withoutSuperfluous(victims, places, count, choice);
};

const jobs = [
  { gpus: 1 },
  { gpus: 4 },
  { gpus: 8 },
  { gpus: 8, nodes: 2 },
  { gpus: 8, nodes: 4 },
  { gpus: 4, nodes: 8 },
  { gpus: 8, nodes: 16 },
] as const;

function demandOf(resources: (typeof jobs)[number]): { readonly key: string; readonly demand: JobDemand } {
  const spec = aSpec({ resources });
  return { key: demandKeyOf(spec), demand: jobDemand(spec.resources, 'process') };
}

reportMachine();
for (const gangShare of [0.2, 0.6, 0.9]) {
  for (const resources of jobs) {
    const { key, demand } = demandOf(resources);
    const choices: Readonly<Record<string, Choose>> = {
      search: (places) => chooseVictims(places, demand.resources, null),
      cheapestAttempts,
      cheapestNodes,
    };
    const results = new Map(
      Object.keys(choices).map((name) => [
        name,
        { lost: 0, freed: 0, worse: 0, ratios: [] as number[], ms: [] as number[] },
      ]),
    );
    for (let round = 0; round < situations; round += 1) {
      const { nodes, holders } = aSituation(gangShare);
      const places = new Preemptible(holders).placesOf(nodes, demand, key, 90);
      let least = 0;
      for (const [name, choose] of Object.entries(choices)) {
        const result = results.get(name);
        const before = performance.now();
        const victims = choose(places, demand.resources.minNodes);
        result?.ms.push(performance.now() - before);
        if (victims === null || result === undefined) continue;
        const lost = victims.reduce((sum, { lostGpuSeconds }) => sum + lostGpuSeconds, 0);
        if (name === 'search') least = lost;
        result.lost += lost;
        result.freed += victims.flatMap(({ tasks }) => tasks.flatMap(({ gpuUuids }) => gpuUuids)).length;
        result.worse += Number(lost > least);
        result.ratios.push(least === 0 ? 1 : lost / least);
      }
    }
    const needed = demand.task.gpus * demand.resources.minNodes * situations;
    for (const [name, { lost, freed, worse, ratios, ms }] of results) {
      report(`victims: ${gangShare * 100} % gangs, ${demand.resources.minNodes} × ${demand.task.gpus} GPUs`, {
        choice: name,
        found: ratios.length,
        gpuHoursLost: rounded(lost / 3_600 / situations),
        worse,
        worstRatio: rounded(Math.max(...ratios, 0)),
        freedPerNeeded: rounded(freed / needed),
        ms: summary(ms),
      });
    }
  }
}
