/** What a run is made of: drawn from its seed, but for what is given. */
import { type FaultKind, faultKinds } from './faults.ts';
import type { NetworkConditions } from './network.ts';
import { Random } from './random.ts';

export interface Plan {
  readonly gpus: readonly number[];
  readonly conditions: NetworkConditions;
  readonly lossy: boolean;
  readonly faults: readonly { readonly kind: FaultKind; readonly meanPauseMs: number }[];
  /** Of a strike against a member of a gang, whenever one comes into another phase. */
  readonly strikeChance: number;
  readonly faultPhaseMs: number;
  readonly meanUserPauseMs: number;
  /** Of a look at the nodes, that one of them is drained. null: the person decides. */
  readonly drainChance: number | null;
  /** People set alerts. */
  readonly hasAlerts: boolean;
  /** Of a job, that it has phases. */
  readonly phaseChance: number;
  /** People run pipelines, and set triggers. */
  readonly hasPipelines: boolean;
  /** Programs submit with tokens that have a budget. */
  readonly budgets: number;
  /** The first machine does not come back after the faults. */
  readonly losesMachine: boolean;
}

/** What is given, so that something comes about often that is rarely drawn. */
export type Circumstances = Partial<Plan>;

export function planOf(seed: number, circumstances: Circumstances): Plan {
  const random = new Random(seed, 'plan');
  const lossy = random.chance(0.3);
  // A few kinds at a time: with all of them together nothing ever gets far enough to break in an interesting way.
  const share = random.pick([0, 0.15, 0.3, 0.5]);
  const usualGpus = random.between(1, 4);
  const gpus = Array.from({ length: random.pick([1, 2, 3, 3, 4]) }, () => {
    return random.chance(0.7) ? usualGpus : random.between(1, 4);
  });
  return {
    gpus,
    conditions: {
      latencyMs: random.pick([1, 5, 30]),
      dropChance: lossy ? random.next() * 0.1 : 0,
      repeatChance: lossy ? random.next() * 0.1 : 0,
      reorderChance: lossy ? random.next() * 0.2 : 0,
    },
    lossy,
    faults: faultKinds
      .filter(() => random.chance(share))
      .map((kind) => ({ kind, meanPauseMs: random.pick([3_000, 10_000, 20_000]) })),
    strikeChance: random.pick([0, 0, 0.02, 0.1, 0.2]),
    faultPhaseMs: random.pick([random.between(8_000, 30_000), random.between(25_000, 50_000)]),
    meanUserPauseMs: random.pick([400, 1_000, 2_500]),
    losesMachine: gpus.length > 1 && random.chance(0.2),
    hasAlerts: new Random(seed, 'alerts').chance(0.4),
    phaseChance: seed % 4 === 0 ? 0.5 : 0,
    hasPipelines: seed % 4 === 2,
    budgets: new Random(seed, 'budgets').pick([0, 0, 0, 1, 2]),
    drainChance: null,
    ...circumstances,
  };
}

/** Each of them strikes once per `meanPauseMs` on average. */
export function faultsOf(meanPauseMs: number, ...kinds: readonly FaultKind[]): Plan['faults'] {
  return kinds.map((kind) => ({ kind, meanPauseMs }));
}
