/**
 * Which attempts to preempt so that a job fits, with as little lost as can be.
 *
 * A job needs room on a number of nodes; an attempt that is preempted releases all of its nodes at once. What is lost
 * is a sum over the victims. Attempts on one node only concern that node alone, so there the cheapest choice is found
 * node by node, and the nodes with the cheapest choices are taken. Attempts over several nodes tie nodes together: these
 * are decided on one after the other, and a branch is given up as soon as it could not become cheaper than what is known
 * even if all attempts that are still undecided cost nothing.
 *
 * Both searches are exact as long as they end within their number of steps, which they do for the clusters that people
 * have: up to some ten gangs and a dozen small jobs on a node that stand in the way. Beyond, the best choice found so far
 * is taken: at first the nodes that are cheapest when every gang on them is paid in full. What is superfluous in it is
 * taken out again, so no attempt ever ends for nothing.
 */
import type { JobResources } from '@muster/common/spec/types';
import { isBoundToOneSwitch } from './gang.ts';
import { byName } from './order.ts';
import {
  type Candidate,
  cheapestFirst,
  cheapestOption,
  isMet,
  lackWithout,
  type Option,
  type Place,
} from './preemptible.ts';
import { nearestGroups } from './topology.ts';
import { type Cost, isCheaper, nothing, plus } from './victimCost.ts';
import type { Holder, Pin } from './view.ts';

/** Looks at one node in one situation, for all situations of one search together. */
const visitsMax = 100_000;

/** A place, with its candidates told apart. */
interface SearchedPlace extends Place {
  /** They hold something of no other place. */
  readonly locals: readonly Candidate[];
  readonly gangs: readonly Candidate[];
  readonly isAnchor: boolean;
}

interface Choice {
  readonly cost: Cost;
  readonly victims: ReadonlySet<Holder>;
}

/**
 * @param places where the job could have a task once some have given way; those where it could have one anyway included
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
    const found = cheapestChoice(group, resources.minNodes, pin);
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

function cheapestChoice(places: readonly Place[], count: number, pin: Pin | null): Choice | null {
  const isAnchor = ({ node }: Place) => pin === null || pin.nodes.has(node.name);
  const seen = new Map<Holder, number>();
  for (const { candidates } of places) {
    for (const { holder } of candidates) {
      if (holder.tasks.length > 1) seen.set(holder, (seen.get(holder) ?? 0) + 1);
    }
  }
  const isGang = ({ holder }: Candidate) => (seen.get(holder) ?? 0) > 1;
  if (![...seen.values()].some((times) => times > 1)) {
    const anchors = new Set(places.filter(isAnchor).map(({ node }) => node.name));
    const options = places.map(({ option }) => option);
    const taken = cheapest(options, count, ({ name }) => anchors.has(name));
    // Nothing is tied to anything: what is cheapest of each is cheapest of all.
    if (taken !== null && taken.every(({ isExact }) => isExact)) {
      return { cost: sumOf(taken), victims: new Set(taken.flatMap(({ victims }) => victims)) };
    }
  }
  const searched = places.map((place) => ({
    ...place,
    locals: place.candidates.filter((each) => !isGang(each)),
    gangs: place.candidates.filter(isGang),
    isAnchor: isAnchor(place),
  }));
  return new Search(searched, count).run();
}

/** As many of these as are needed, one of them where the checkpoint is; null when there are not enough. */
function cheapest(
  options: readonly Option[],
  count: number,
  isAnchor: (option: Option) => boolean,
): readonly Option[] | null {
  const sorted = options.toSorted(cheapestFirst);
  const anchor = sorted.find(isAnchor);
  if (anchor === undefined || sorted.length < count) return null;
  return [anchor, ...sorted.filter((option) => option !== anchor).slice(0, count - 1)];
}

function sumOf(costs: readonly { readonly cost: Cost }[]): Cost {
  return costs.reduce((sum, { cost }) => plus(sum, cost), nothing);
}

/** One group of nodes, of which so many are needed. */
class Search {
  private readonly places: ReadonlyMap<string, SearchedPlace>;
  private readonly count: number;
  private readonly candidates: ReadonlyMap<Holder, Candidate>;
  private readonly options = new Map<string, Option | null>();
  private best: Choice | null = null;
  private visitsLeft = visitsMax;

  constructor(places: readonly SearchedPlace[], count: number) {
    this.places = new Map(places.map((place) => [place.node.name, place]));
    this.count = count;
    this.candidates = new Map(places.flatMap((place) => place.candidates.map((each) => [each.holder, each])));
  }

  run(): Choice | null {
    const places = [...this.places.values()];
    // As if a gang had to be paid for on each of its nodes anew: quick, and a bar for all that follows.
    const inFull = this.cheapest(places.map(({ option }) => option));
    if (inFull === null) return null;
    this.takeWhenCheaper(inFull.flatMap(({ victims }) => victims));
    this.decide(new Set(), new Set(places.flatMap(({ gangs }) => gangs.map(({ holder }) => holder))));
    return this.best;
  }

  private takeWhenCheaper(victims: Iterable<Holder>): void {
    const dearestFirst = [...new Set(victims)]
      .flatMap((holder) => this.candidates.get(holder) ?? [])
      .sort((a, b) => cheapestFirst(b, a));
    const needed = new Set(dearestFirst.map(({ holder }) => holder));
    for (const { holder } of dearestFirst) {
      needed.delete(holder);
      if (!this.isEnough(needed)) needed.add(holder);
    }
    const cost = sumOf(dearestFirst.filter(({ holder }) => needed.has(holder)));
    if (this.best === null || isCheaper(cost, this.best.cost)) this.best = { cost, victims: needed };
  }

  private isEnough(victims: ReadonlySet<Holder>): boolean {
    let count = 0;
    let hasAnchor = false;
    for (const { lack, candidates, isAnchor } of this.places.values()) {
      if (
        !isMet(
          lack,
          candidates.filter(({ holder }) => victims.has(holder)),
        )
      )
        continue;
      count += 1;
      hasAnchor ||= isAnchor;
    }
    return count >= this.count && hasAnchor;
  }

  /**
   * @param gone gangs that are preempted
   * @param undecided gangs that may or may not
   */
  private decide(gone: ReadonlySet<Holder>, undecided: ReadonlySet<Holder>): void {
    if (this.visitsLeft <= 0) return;
    this.visitsLeft -= this.places.size;
    const free = new Set([...gone, ...undecided]);
    const places = [...this.places.values()];
    const taken = this.cheapest(places.flatMap((place) => this.optionOf(place, free) ?? []));
    if (taken === null) return;
    const paid = [...gone].flatMap((holder) => this.candidates.get(holder) ?? []);
    if (this.best !== null && !isCheaper(sumOf([...paid, ...taken]), this.best.cost)) return;
    const [next] = taken
      .flatMap(({ name }) => this.places.get(name)?.gangs ?? [])
      .filter(({ holder }) => undecided.has(holder))
      .sort((a, b) => cheapestFirst(b, a));
    if (next === undefined) {
      this.takeWhenCheaper([...gone, ...taken.flatMap(({ victims }) => victims)]);
      return;
    }
    const rest = new Set(undecided);
    rest.delete(next.holder);
    this.decide(gone, rest);
    this.decide(new Set([...gone, next.holder]), rest);
  }

  private cheapest(options: readonly Option[]): readonly Option[] | null {
    return cheapest(options, this.count, ({ name }) => this.places.get(name)?.isAnchor === true);
  }

  private optionOf({ node, lack, locals, gangs }: SearchedPlace, free: ReadonlySet<Holder>): Option | null {
    const gone = gangs.filter(({ holder }) => free.has(holder));
    const key = `${node.name} ${gone.map(({ holder }) => holder.id).join()}`;
    let option = this.options.get(key);
    if (option === undefined) {
      option = cheapestOption(node.name, lackWithout(lack, gone), locals);
      this.options.set(key, option);
    }
    return option;
  }
}
