/** The steps of a lineage as a graph that stays readable: items of one step are folded, and what is far away is not drawn. Pure. */
import type { ArtifactView, LineageStepView, LineageView } from '@muster/common/pipelines';

export interface LineageNode {
  /** One step, or the items of one. The first by start. */
  readonly steps: readonly [LineageStepView, ...LineageStepView[]];
  /** Whether it was asked about. */
  readonly isSubject: boolean;
  /** From 0; each comes after all that it has used. */
  readonly layer: number;
}

export interface LineageEdge {
  /** Places in the list of nodes. */
  readonly from: number;
  readonly to: number;
  /** Of the artifacts that are handed on. */
  readonly names: readonly string[];
}

export interface DrawnLineage {
  readonly nodes: readonly LineageNode[];
  readonly edges: readonly LineageEdge[];
  /** What there is too much of: steps that are not drawn, the farthest from the subject first. */
  readonly stepsLeftOut: number;
  readonly edgesLeftOut: number;
}

/** More items of one step than this are one node. */
const itemsMax = 4;
const nodesMax = 400;
const edgesMax = 2_000;

type Group = [LineageStepView, ...LineageStepView[]];

export function drawnLineage({ subject, kind, madeBy, usedBy }: LineageView): DrawnLineage {
  const steps = [...new Map([...madeBy, ...usedBy].map((step) => [keyOfStep(step), step])).values()];
  const groups = foldedItems(steps);
  const placeOf = new Map(
    groups.flatMap((group, place) => group.map((step) => [keyOfStep(step), place] as const)),
  );
  const links = linksOf(steps, placeOf);
  const asked = steps.filter((step) => isAsked(step, subject, kind));
  // The path of a checkpoint is none of an artifact: the steps that have made it come last.
  const first = asked.length > 0 ? asked : steps.filter((step) => step === madeBy.at(-1));
  const subjects = new Set(first.flatMap((step) => placeOf.get(keyOfStep(step)) ?? []));
  const kept = nearest(groups.length, subjects, links);
  const order = [...kept].toSorted((a, b) => a - b);
  const newPlace = new Map(order.map((place, index) => [place, index]));
  const inside = links.flatMap(({ from, to, names }): LineageEdge[] => {
    const [a, b] = [newPlace.get(from), newPlace.get(to)];
    return a === undefined || b === undefined ? [] : [{ from: a, to: b, names }];
  });
  const layers = layersOf(order.length, inside);
  const nodes = order.flatMap((place, index): LineageNode[] => {
    const group = groups[place];
    return group === undefined
      ? []
      : [{ steps: group, isSubject: subjects.has(place), layer: layers[index] ?? 0 }];
  });
  const drawn = nodes.reduce((sum, node) => sum + node.steps.length, 0);
  return {
    nodes,
    edges: inside.slice(0, edgesMax),
    stepsLeftOut: steps.length - drawn,
    edgesLeftOut: Math.max(0, inside.length - edgesMax),
  };
}

function keyOfStep({ run, step, index }: LineageStepView): string {
  return JSON.stringify([run, step, index]);
}

function keyOfArtifact({ path, digest }: ArtifactView): string {
  return JSON.stringify([digest, path]);
}

function isAsked(step: LineageStepView, subject: string, kind: string): boolean {
  if (kind === 'run') return step.run === subject;
  if (step.jobId === subject) return true;
  return step.outputs.some(({ path, digest }) => path === subject || digest === subject);
}

function foldedItems(steps: readonly LineageStepView[]): readonly Group[] {
  const byStep = Map.groupBy(steps, ({ run, step }) => JSON.stringify([run, step]));
  return [...byStep.values()].flatMap((items): readonly Group[] => {
    const [first, ...rest] = items;
    if (first === undefined) return [];
    return items.length > itemsMax ? [[first, ...rest]] : items.map((each): Group => [each]);
  });
}

/** Who has made it counts, and not who has taken it from the cache. */
function linksOf(
  steps: readonly LineageStepView[],
  placeOf: ReadonlyMap<string, number>,
): readonly LineageEdge[] {
  const makers = new Map<string, number>();
  for (const state of ['cached', 'succeeded'])
    for (const step of steps)
      if (step.state === state)
        for (const each of step.outputs) makers.set(keyOfArtifact(each), placeOf.get(keyOfStep(step)) ?? 0);
  const links = new Map<
    string,
    { readonly from: number; readonly to: number; readonly names: Set<string> }
  >();
  for (const step of steps)
    for (const input of step.inputs) {
      const from = makers.get(keyOfArtifact(input));
      const to = placeOf.get(keyOfStep(step));
      if (from === undefined || to === undefined || from === to) continue;
      const key = `${from} ${to}`;
      const link = links.get(key) ?? { from, to, names: new Set() };
      link.names.add(input.name);
      links.set(key, link);
    }
  return [...links.values()].map(({ from, to, names }) => ({ from, to, names: [...names] }));
}

function nearest(
  count: number,
  subjects: ReadonlySet<number>,
  links: readonly LineageEdge[],
): ReadonlySet<number> {
  const beside = Array.from({ length: count }, (): number[] => []);
  for (const { from, to } of links) {
    beside[from]?.push(to);
    beside[to]?.push(from);
  }
  const reached = new Set(subjects);
  for (const place of reached) for (const next of beside[place] ?? []) reached.add(next);
  // What is not linked to them, such as other steps of a run, comes last.
  return new Set([...new Set([...reached, ...beside.keys()])].slice(0, nodesMax));
}

/** The longest way from where it all begins. What leads back to itself, which wrong data could, counts once. */
function layersOf(count: number, edges: readonly LineageEdge[]): readonly number[] {
  const layers = Array.from({ length: count }, () => 0);
  const after = Array.from({ length: count }, (): number[] => []);
  const waitsFor = Array.from({ length: count }, () => 0);
  for (const { from, to } of edges) {
    after[from]?.push(to);
    waitsFor[to] = (waitsFor[to] ?? 0) + 1;
  }
  const ready = [...layers.keys()].filter((place) => waitsFor[place] === 0);
  for (const place of ready)
    for (const next of after[place] ?? []) {
      layers[next] = Math.max(layers[next] ?? 0, (layers[place] ?? 0) + 1);
      waitsFor[next] = (waitsFor[next] ?? 0) - 1;
      if (waitsFor[next] === 0) ready.push(next);
    }
  return layers;
}
