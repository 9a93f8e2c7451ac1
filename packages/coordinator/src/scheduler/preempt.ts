/**
 * Capacity for a job that does not fit: it waits for what is being released, or else preempts jobs of lower priority.
 *
 * Nothing is remembered from pass to pass. A preempted attempt is stopping, so the next pass finds what it holds in
 * `coming`, holds it for the same job and preempts nothing more. Only attempts of lower priority are ever preempted, so a
 * victim can never take its placement back.
 */
import type { NodeName } from '@muster/common/ids';
import { driverOf, hasRoom, jobDemand, taskDemand } from './capacity.ts';
import { type Fit, fit, mayUse } from './fit.ts';
import type { PassCapacity } from './passCapacity.ts';
import type { FindReason } from './plan.ts';
import type { Preemptible } from './preemptible.ts';
import type { RankedJob } from './reasons.ts';
import { chooseVictims } from './victims.ts';
import type { Holder, PlacementHistory, PlannedTask, QueuedJob, SchedulerNode } from './view.ts';

/** The attempt of a job ends, as soon as it has saved, for the sake of another. */
export interface Preemption {
  readonly victim: Holder;
  readonly by: RankedJob;
}

/** What a job waits for: attempts to preempt, possibly none, and the placement that is held for it. */
export interface PreemptionPlan {
  readonly preemptions: readonly Preemption[];
  /** By node rank. */
  readonly places: readonly PlannedTask[];
  readonly why: FindReason;
}

/**
 * Holds a placement for a job in `coming`, and chooses the attempts to preempt where that takes any.
 * @param demandKey equal for jobs that ask for the same
 * @param refusal why it cannot start now
 * @returns null when that would not help either
 */
export function planPreemption(
  job: QueuedJob,
  history: PlacementHistory,
  demandKey: string,
  refusal: FindReason,
  { capacity, reserved, preemptible }: PassState,
): PreemptionPlan | null {
  let victims = victimsFor(job, history, demandKey, capacity.coming, { capacity, reserved, preemptible });
  if (victims === null && capacity.hasPromised) {
    // Only if that helps: a preemptor should find its placement where it was when its victims were chosen.
    victims = victimsFor(job, history, demandKey, capacity.comingWithPromised, {
      capacity,
      reserved,
      preemptible,
    });
    if (victims !== null) capacity.grantAll();
  }
  if (victims === null) return null;
  capacity.release(victims);
  preemptible.take(victims);
  const places = placesIn(capacity.coming, job, history, reserved);
  return places === null ? null : hold(job, places, refusal, capacity, victims);
}

/** What one pass has used up and what it may still use. */
export interface PassState {
  readonly capacity: PassCapacity;
  readonly reserved: ReadonlySet<NodeName>;
  readonly preemptible: Preemptible;
}

/** @returns empty: `coming` is enough; null: no preemption would be */
function victimsFor(
  job: QueuedJob,
  history: PlacementHistory,
  demandKey: string,
  coming: readonly SchedulerNode[],
  { capacity, reserved, preemptible }: PassState,
): readonly Holder[] | null {
  if (capacity.hasComing && placesIn(coming, job, history, reserved) !== null) return [];
  const { resources, priority } = job.spec;
  if (!preemptible.isOutrankedBy(priority)) return null;
  const demand = jobDemand(resources, driverOf(job.spec));
  const nodes = mayUse(coming, demand, reserved, history);
  const places = preemptible.placesOf(nodes, demand, demandKey, priority);
  const victims = chooseVictims(places, resources, history.pin);
  return victims === null || victims.length === 0 ? null : victims;
}

/** For the least number of nodes: a job that can use more takes what is free when it starts. */
function placesIn(
  nodes: readonly SchedulerNode[],
  job: QueuedJob,
  history: PlacementHistory,
  reserved: ReadonlySet<NodeName>,
): readonly PlannedTask[] | null {
  const { resources } = job.spec;
  const least = { ...resources, nodes: resources.minNodes };
  const placements = fit(nodes, jobDemand(least, driverOf(job.spec)), reserved, history);
  return placements === null ? null : tasksOf(job, placements);
}

export function tasksOf({ spec }: QueuedJob, placements: readonly Fit[]): readonly PlannedTask[] {
  const { cpus, memoryMb } = taskDemand(spec.resources);
  return placements.map(({ node, gpus }) => ({
    node: node.name,
    gpuUuids: gpus.map(({ uuid }) => uuid),
    cpus,
    memoryMb,
  }));
}

function hold(
  job: QueuedJob,
  places: readonly PlannedTask[],
  refusal: FindReason,
  capacity: PassCapacity,
  victims: readonly Holder[],
): PreemptionPlan {
  const demand = jobDemand(job.spec.resources, driverOf(job.spec));
  const taken = capacity.openNamed(places.map(({ node }) => node)).filter((node) => !hasRoom(node, demand));
  const awaited = capacity.leavingFrom(taken.map(({ name }) => name));
  capacity.hold(places);
  const by = { id: job.id, priority: job.spec.priority };
  return {
    preemptions: victims.map((victim) => ({ victim, by })),
    places,
    why: whyOf(awaited, new Set(victims), refusal),
  };
}

function whyOf(awaited: readonly Holder[], victims: ReadonlySet<Holder>, refusal: FindReason): FindReason {
  const preempting = awaited.filter((holder) => holder.state === 'preempted' || victims.has(holder));
  if (preempting.length === 0) return refusal;
  return () => ({ kind: 'preempting', victims: preempting.map(({ id, priority }) => ({ id, priority })) });
}
