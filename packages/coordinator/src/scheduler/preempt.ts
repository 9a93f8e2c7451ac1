/**
 * Room for a job that does not fit: by waiting for what is on its way out, or else by preempting what is less urgent.
 *
 * Nothing is remembered from pass to pass. An attempt that was told to give way is stopping, so the next pass finds its
 * place among what is coming free, keeps it for the same job and asks nobody else. Only attempts of lower priority ever
 * give way, so a victim can never take its place back.
 */
import type { JobId, NodeName } from '@muster/common/ids';
import type { PendingReason } from '@muster/common/views';
import { driverOf, hasRoom, jobDemand, taskDemand } from './capacity.ts';
import { type Fit, fit, mayUse } from './fit.ts';
import type { Preemptible } from './preemptible.ts';
import type { Room } from './room.ts';
import { chooseVictims } from './victims.ts';
import type { Holder, JobPast, NodeView, PlannedTask, QueuedJob } from './view.ts';

export interface Preemption {
  readonly victim: JobId;
  /** Why, for both sides. */
  readonly message: string;
  readonly lostGpuSeconds: number;
}

/** What a job waits for. */
export interface Way {
  readonly preemptions: readonly Preemption[];
  /** The places that are kept for it. */
  readonly places: readonly PlannedTask[];
  readonly reason: PendingReason;
}

/** More names than these make no sentence. */
const namedMax = 3;

/**
 * Keeps a place for a job in what is coming free, after asking others to give way where that is what it takes.
 * @param demandKey equal for jobs that ask for the same
 * @param refusal why it cannot start now
 * @returns null when that would not help either
 */
export function findWay(
  job: QueuedJob,
  past: JobPast,
  demandKey: string,
  refusal: PendingReason,
  { room, reserved, preemptible }: Means,
): Way | null {
  let victims = victimsFor(job, past, demandKey, room.coming, { room, reserved, preemptible });
  if (victims === null && room.hasHeirs) {
    // Only if that helps: who is to have a place had better find it where it was when its victims were chosen.
    victims = victimsFor(job, past, demandKey, room.comingForAll, { room, reserved, preemptible });
    if (victims !== null) room.handOverAll();
  }
  if (victims === null) return null;
  room.letGo(victims);
  preemptible.take(victims);
  const places = placesIn(room.coming, job, past, reserved);
  return places === null ? null : keep(job, places, refusal, room, victims);
}

/** What a pass has to make room with. */
export interface Means {
  readonly room: Room;
  readonly reserved: ReadonlySet<NodeName>;
  readonly preemptible: Preemptible;
}

/** @returns empty when what is coming free will do; null when nothing will */
function victimsFor(
  job: QueuedJob,
  past: JobPast,
  demandKey: string,
  coming: readonly NodeView[],
  { room, reserved, preemptible }: Means,
): readonly Holder[] | null {
  if (room.hasComing && placesIn(coming, job, past, reserved) !== null) return [];
  const { resources, priority } = job.spec;
  if (!preemptible.isOutrankedBy(priority)) return null;
  const demand = jobDemand(resources, driverOf(job.spec));
  const nodes = mayUse(coming, demand, reserved, past);
  const places = preemptible.placesOf(nodes, demand, demandKey, priority);
  const victims = chooseVictims(places, resources, past.pin);
  return victims === null || victims.length === 0 ? null : victims;
}

/** As few nodes as will do: a job that can use more takes what is there when it starts. */
function placesIn(
  nodes: readonly NodeView[],
  job: QueuedJob,
  past: JobPast,
  reserved: ReadonlySet<NodeName>,
): readonly PlannedTask[] | null {
  const { resources } = job.spec;
  const least = { ...resources, nodes: resources.minNodes };
  const result = fit(nodes, least, driverOf(job.spec), reserved, past);
  return result.kind === 'fits' ? tasksOf(job, result.placements) : null;
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

function keep(
  job: QueuedJob,
  places: readonly PlannedTask[],
  refusal: PendingReason,
  room: Room,
  victims: readonly Holder[],
): Way {
  const demand = jobDemand(job.spec.resources, driverOf(job.spec));
  const taken = room.openNamed(places.map(({ node }) => node)).filter((node) => !hasRoom(node, demand));
  const awaited = room.leavingFrom(taken.map(({ name }) => name));
  room.keep(places);
  return {
    preemptions: victims.map((victim) => preemption(victim, job)),
    places,
    reason: reasonOf(awaited, new Set(victims), refusal),
  };
}

function reasonOf(
  awaited: readonly Holder[],
  victims: ReadonlySet<Holder>,
  refusal: PendingReason,
): PendingReason {
  const giving = awaited.filter((holder) => holder.state === 'giving_way' || victims.has(holder));
  if (giving.length === 0) return refusal;
  const named = giving.slice(0, namedMax).map(({ id, priority }) => `${id} (priority ${priority})`);
  const more = giving.length > namedMax ? ` and ${giving.length - namedMax} more` : '';
  return {
    kind: 'preempting',
    message: `waiting for ${named.join(', ')}${more} to save and release its GPUs`,
    remedy: null,
  };
}

/** `gave way to job_h (priority 80 over 20); 3 GPU-minutes since its last checkpoint of step 500` */
function preemption(victim: Holder, { id, spec }: QueuedJob): Preemption {
  const { lostGpuSeconds, lostSince, tasks } = victim;
  const loss =
    lostSince === null
      ? ' before it began'
      : tasks.some(({ gpuUuids }) => gpuUuids.length > 0)
        ? `; ${gpuTimeText(lostGpuSeconds)} ${lostSince}`
        : '';
  const message = `preempted by ${id} (priority ${spec.priority} over ${victim.priority})${loss}`;
  return { victim: victim.id, message, lostGpuSeconds };
}

function gpuTimeText(seconds: number): string {
  if (seconds < 120) return `${seconds} GPU-second${seconds === 1 ? '' : 's'}`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} GPU-minutes` : `${Math.round(minutes / 60)} GPU-hours`;
}
