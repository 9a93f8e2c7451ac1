/** Who has the GPUs that a queued job waits for, and for how long: known here, and of no use to the planner. Pure. */
import type { PendingReason } from '@muster/common/views';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import type { Job } from '../model.ts';
import { driverOf, fitsEmpty, hasFreeGpus, isLeftByDrains, jobDemand } from '../scheduler/capacity.ts';
import type { SchedulerNode } from '../scheduler/view.ts';
import { heldTasks } from '../state/heldTasks.ts';
import { liveTraining } from '../views.ts';

/** More than a person wants to read in a sentence. */
const namedMax = 2;

/**
 * The reason with the names of who holds the GPUs, those that end first by their own reckoning in front:
 * `… (4 of 4 GPUs in use: llama-8b, ~12 min left)`. Any other reason as it is.
 */
export function withHolders(
  reason: PendingReason,
  { spec }: Job,
  jobs: Iterable<Job>,
  nodes: readonly SchedulerNode[],
  taskStatus: Pick<TaskStatusCache, 'of'>,
): PendingReason {
  const end = ' in use)';
  const at = reason.message.indexOf(end);
  if (reason.kind !== 'no_gpus_free' || at < 0) return reason;
  const demand = jobDemand(spec.resources, driverOf(spec));
  const full = nodes.filter(
    (node) =>
      node.online && fitsEmpty(node, demand) && isLeftByDrains(node, demand) && !hasFreeGpus(node, demand),
  );
  const held = heldTasks(jobs);
  const holders = new Set(
    full.flatMap(({ name }) =>
      (held.get(name) ?? []).flatMap(({ job, task }) => (task.gpuUuids.length > 0 ? [job] : [])),
    ),
  );
  if (holders.size === 0) return reason;
  const timed = Array.from(holders, (job) => ({
    job,
    etaMs: liveTraining(job, taskStatus)?.etaMs ?? null,
  })).sort((a, b) => (a.etaMs ?? Infinity) - (b.etaMs ?? Infinity) || a.job.submitSeq - b.job.submitSeq);
  const named = timed.slice(0, namedMax).map(({ job, etaMs }) => {
    return etaMs === null ? job.spec.name : `${job.spec.name}, ~${roughly(etaMs)} left`;
  });
  const more = timed.length - named.length;
  const who = [...named, ...(more === 0 ? [] : [`and ${more} more`])].join('; ');
  const message = `${reason.message.slice(0, at)} in use: ${who}${reason.message.slice(at + end.length - 1)}`;
  return { ...reason, message };
}

/** Of an estimate, one unit is enough. */
function roughly(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / 60_000));
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}
