/**
 * Which attempts to preempt so that a job fits, with as little lost as can be.
 *
 * A job needs room on a number of nodes; an attempt that is preempted releases all of its nodes at once. What is lost
 * is a sum over the victims. On one node the cheapest choice is found by `cheapestOption`, and the nodes with the cheapest
 * choices are taken. Where the job needs several nodes, attempts over several nodes tie these together: such gangs are
 * decided on one after the other, and a branch is given up as soon as it could not become cheaper than what is known even
 * if all gangs that are still undecided cost nothing.
 *
 * Both searches are exact as long as they end within their number of steps, which they do for the clusters that people
 * have: up to some ten gangs and a dozen small jobs on a node that stand in the way. Beyond, the best choice found so far
 * is taken: at first the nodes that are cheapest when every gang on them is paid in full. What is superfluous in it is
 * taken out again, so no attempt ever ends for nothing. (docs/decisions/victims.md has what the simpler choices lose.)
 */

import type { JobResources } from '@muster/common/spec/types';
import { byName } from './order.ts';
import {
  type Candidate,
  type Cost,
  cheapestFirst,
  cheapestOption,
  isCheaper,
  isMet,
  lackWithout,
  nothing,
  type Option,
  type Place,
  plus,
} from './preemptible.ts';
import { nearestGroups } from './topology.ts';
import { isBoundToOneSwitch } from './topologyGroups.ts';
import type { Holder, Pin } from './view.ts';

/** Looks at one node in one situation, for all situations of one search together. */
const visitsMax = 100_000;

interface Choice {
  readonly cost: Cost;
  readonly victims: ReadonlySet<Holder>;
}

/** For each place that could take a task in a situation, how. */
type Options = ReadonlyMap<Place, Option>;

/**
 * @param places where the job could have a task if attempts there were preempted, or can have one anyway
 * @param pin one of the nodes has to see its checkpoint
 * @returns the first submitted first; null when it would not fit even then
 */
export function chooseVictims(
  places: readonly Place[],
  resources: JobResources,
  pin: Pin | null,
): readonly Holder[] | null {
  const sorted = places.toSorted((a, b) => byName(a.node, b.node));
  const groups = isBoundToOneSwitch(resources) ? groupsOf(sorted) : [sorted];
  let best: Choice | null = null;
  for (const group of groups) {
    const found = new Search(group, resources.minNodes, pin).run();
    if (found !== null && (best === null || isCheaper(found.cost, best.cost))) best = found;
  }
  return best === null ? null : [...best.victims].sort((a, b) => a.submitSeq - b.submitSeq);
}

function groupsOf(places: readonly Place[]): readonly (readonly Place[])[] {
  const byNode = new Map(places.map((place) => [place.node.name, place]));
  return nearestGroups(places.map(({ node }) => node)).map(({ nodes }) =>
    nodes.flatMap(({ name }) => byNode.get(name) ?? []),
  );
}

function sumOf(costs: readonly { readonly cost: Cost }[]): Cost {
  return costs.reduce((sum, { cost }) => plus(sum, cost), nothing);
}

/** Holders that are candidates on more than one of these places. */
function gangsOf(places: Iterable<Place>): ReadonlySet<Holder> {
  const seen = new Set<Holder>();
  const gangs = new Set<Holder>();
  for (const { candidates } of places) {
    for (const { holder } of candidates) {
      if (seen.has(holder)) gangs.add(holder);
      else if (holder.tasks.length > 1) seen.add(holder);
    }
  }
  return gangs;
}

/** The cheapest option for a place if these gangs end in any case. null: there is none. */
function optionBeside({ lack, candidates }: Place, gangs: ReadonlySet<Holder>, free: ReadonlySet<Holder>) {
  const gone = candidates.filter(({ holder }) => free.has(holder));
  const locals = candidates.filter(({ holder }) => !gangs.has(holder));
  return cheapestOption(lackWithout(lack, gone), locals);
}

function isReady({ lack, candidates }: Place, victims: ReadonlySet<Holder>): boolean {
  return isMet(
    lack,
    candidates.filter(({ holder }) => victims.has(holder)),
  );
}

/** One group of nodes, of which so many are needed. */
class Search {
  private readonly places: readonly Place[];
  private readonly count: number;
  private readonly pin: Pin | null;
  private gangs: ReadonlySet<Holder> = new Set();
  private best: Choice | null = null;
  private visitsLeft = visitsMax;

  constructor(places: readonly Place[], count: number, pin: Pin | null) {
    this.places = places;
    this.count = count;
    this.pin = pin;
  }

  run(): Choice | null {
    // The full cost of a gang counts on each of its nodes: quick to compute, and an upper limit for the choices that follow.
    const inFull = this.cheapest(new Map(this.places.map((place) => [place, place.option])));
    if (inFull === null) return null;
    const bar = this.takeWhenCheaper(inFull.flatMap(([, { victims }]) => victims)).cost;
    this.gangs = this.count > 1 ? gangsOf(this.places) : this.gangs;
    if (this.gangs.size > 0) this.decide(this.worthwhile(bar), [], this.gangs);
    return this.best;
  }

  /** The places that may be part of a choice that costs less than `bar`, if all gangs end that cost less than that. */
  private worthwhile(bar: Cost): Options {
    const affordable = this.places.flatMap((place) => {
      const candidates = place.candidates.filter(({ cost }) => isCheaper(cost, bar));
      return isMet(place.lack, candidates) ? { ...place, candidates } : [];
    });
    this.gangs = gangsOf(affordable);
    const options = affordable.flatMap((place): readonly (readonly [Place, Option])[] => {
      const option = optionBeside(place, this.gangs, this.gangs);
      return option === null ? [] : [[place, option]];
    });
    const others = sumOf(
      options
        .map(([, option]) => option)
        .sort(cheapestFirst)
        .slice(0, this.count - 1),
    );
    return new Map(options.filter(([, { cost }]) => isCheaper(plus(others, cost), bar)));
  }

  /** Takes these victims, without those that are superfluous, if that costs less than the best choice so far. */
  private takeWhenCheaper(victims: Iterable<Holder>): Choice {
    const needed = new Set(victims);
    const ready = new Set(this.places.filter((place) => isReady(place, needed)));
    const costs = new Map<Holder, Cost>();
    for (const { candidates } of ready) for (const { holder, cost } of candidates) costs.set(holder, cost);
    let cost = nothing;
    const dearestFirst = [...needed].map((holder) => ({ holder, cost: costs.get(holder) ?? nothing }));
    for (const victim of dearestFirst.sort((a, b) => cheapestFirst(b, a))) {
      needed.delete(victim.holder);
      const lost = [...ready].filter((place) => !isReady(place, needed));
      for (const place of lost) ready.delete(place);
      if (this.isEnough(ready)) continue;
      for (const place of lost) ready.add(place);
      needed.add(victim.holder);
      cost = plus(cost, victim.cost);
    }
    const choice = { cost, victims: needed };
    if (this.best === null || isCheaper(cost, this.best.cost)) this.best = choice;
    return choice;
  }

  private isEnough(ready: ReadonlySet<Place>): boolean {
    return ready.size >= this.count && [...ready].some((place) => this.isAnchor(place));
  }

  private isAnchor({ node }: Place): boolean {
    return this.pin === null || this.pin.nodes.has(node.name);
  }

  /**
   * Takes the best choice that ends these gangs, and any of those that are undecided.
   * @param options as if all gangs that are undecided ended
   */
  private decide(options: Options, gone: readonly Candidate[], undecided: ReadonlySet<Holder>): void {
    if (this.visitsLeft <= 0) return;
    this.visitsLeft -= options.size;
    const taken = this.cheapest(options);
    if (taken === null) return;
    const cost = sumOf([...gone, ...taken.map(([, option]) => option)]);
    if (this.best !== null && !isCheaper(cost, this.best.cost)) return;
    const [next] = taken
      .flatMap(([{ candidates }]) => candidates)
      .filter(({ holder }) => undecided.has(holder))
      .sort((a, b) => cheapestFirst(b, a));
    if (next === undefined) {
      const holders = gone.map(({ holder }) => holder);
      this.takeWhenCheaper([...holders, ...taken.flatMap(([, { victims }]) => victims)]);
      return;
    }
    const rest = new Set(undecided);
    rest.delete(next.holder);
    this.decide(
      this.without(next.holder, options, new Set([...rest, ...gone.map(({ holder }) => holder)])),
      gone,
      rest,
    );
    this.decide(options, [...gone, next], rest);
  }

  /** What is left of the options if this gang does not end. */
  private without(gang: Holder, options: Options, free: ReadonlySet<Holder>): Options {
    const left = new Map(options);
    for (const place of options.keys()) {
      if (!place.candidates.some(({ holder }) => holder === gang)) continue;
      const option = optionBeside(place, this.gangs, free);
      if (option === null) left.delete(place);
      else left.set(place, option);
    }
    return left;
  }

  /** As many of these as are needed, one of them where the checkpoint is; null when there are not enough. */
  private cheapest(options: Options): readonly (readonly [Place, Option])[] | null {
    const sorted = [...options].sort(([, a], [, b]) => cheapestFirst(a, b));
    const anchor = sorted.find(([place]) => this.isAnchor(place));
    if (anchor === undefined || sorted.length < this.count) return null;
    return [anchor, ...sorted.filter((each) => each !== anchor).slice(0, this.count - 1)];
  }
}
