/** What must be true of every gang, whatever happened to it: from its signs of life and from what the cluster reports. */
import type { EventView, JobView } from '@muster/common/views';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import { type Beat, boottimeMs, violations } from '../../support/hosts/signOfLife.ts';

/**
 * Wall time becomes boot time by one reading of both, one in steps of 10 ms, and anyone who keeps the machine's wall clock
 * right moves it a little in the course of a wave. A gang that starts in part does so seconds too early.
 */
const clockErrorMs = 250;

async function eventsOf(cluster: GangCluster, jobId: string): Promise<readonly EventView[]> {
  const events: EventView[] = [];
  for await (const event of cluster.api.watchEvents({ sinceSeq: 0, subject: jobId })) events.push(event);
  return events;
}

/**
 * Two attempts at once or too close on each other, and ranks that ran before every rank was ready.
 * @param beats of the job; without those that a fence cannot prevent
 */
export async function historyProblems(
  cluster: GangCluster,
  beats: readonly Beat[],
  job: JobView,
): Promise<readonly string[]> {
  const releasedAtMs = await releases(cluster, job.id);
  const ran = new Set(beats.map(({ attempt }) => attempt));
  const fenced = lostRanks(job).filter(({ attempt }) => releasedAtMs.has(attempt));
  const early = beats
    .filter(({ attempt, atMs }) => atMs < (releasedAtMs.get(attempt) ?? Number.POSITIVE_INFINITY))
    .map(({ attempt, rank }) => `rank ${rank} of attempt ${attempt} ran before its release`);
  return [
    // An attempt that was given up before its release has run nowhere, and has nothing to show.
    ...(ran.size === 0 && releasedAtMs.size === 0 ? [] : violations(beats, job.id, { fenced })),
    ...new Set(early),
  ];
}

/** Of the coordinator of these tests, in milliseconds: a lease, the time that a fence may take, and the margin. */
export const leaseTimes = { leaseMs: 6_000, fenceMs: 2_000, marginMs: 2_000 } as const;
const shortestSilenceMs = leaseTimes.leaseMs + leaseTimes.fenceMs + leaseTimes.marginMs;

/**
 * Attempts that ran and were given up without need. A machine that is busy with something else can keep a node from
 * answering for longer than a lease, so that its gang has to move though nobody has cut it off. What shows that is the
 * event of the fence with the silence before it; how long the test has waited shows nothing.
 */
export function needlessMoves(beats: readonly Beat[], job: JobView, silences: Silences): readonly string[] {
  const ran = job.attempts
    .slice(0, -1)
    .filter(({ number }) => beats.some(({ attempt }) => attempt === number));
  return ran.flatMap(({ number, cause, tasks }) => {
    if (cause?.kind !== 'node_lost') return [`attempt ${number} ended with ${JSON.stringify(cause)}`];
    const fences = tasks.flatMap(({ node }) => silences.get(silenceKey(node, job.id, number)) ?? []);
    return fences.some((silentForMs) => silentForMs >= shortestSilenceMs)
      ? []
      : [
          `attempt ${number} was lost after silences of ${fences.join(', ') || 'no node'} ms, of ${shortestSilenceMs}`,
        ];
  });
}

/** Milliseconds that nodes were silent before they were fenced, by node, job and attempt. */
export type Silences = ReadonlyMap<string, readonly number[]>;

function silenceKey(node: string, jobId: string, attempt: number): string {
  return `${node} ${jobId} ${attempt}`;
}

/** Of all fences since the cluster was started. */
export async function silencesOf(cluster: GangCluster): Promise<Silences> {
  const silences = new Map<string, number[]>();
  for await (const { kind, subject, cloudEvent } of cluster.api.watchEvents({ sinceSeq: 0 })) {
    if (kind !== 'node.fenced') continue;
    const { silentForMs, tasks } = cloudEvent['data'] as FencedData;
    for (const { jobId, attempt } of tasks) {
      const key = silenceKey(subject, jobId, attempt);
      // A node that a new coordinator has not heard at all has been silent since that one started: nobody knows more.
      silences.set(key, [...(silences.get(key) ?? []), silentForMs ?? Number.POSITIVE_INFINITY]);
    }
  }
  return silences;
}

interface FencedData {
  readonly silentForMs: number | null;
  readonly tasks: readonly { readonly jobId: string; readonly attempt: number }[];
}

/** Milliseconds from the last sign of life of each fenced rank to the first one of the attempt after it. */
export function gapsOf(beats: readonly Beat[], job: JobView): readonly number[] {
  return lostRanks(job).flatMap(({ attempt, rank }) => {
    const last = beats.filter((beat) => beat.attempt === attempt && beat.rank === rank);
    const next = beats.filter((beat) => beat.attempt > attempt);
    if (last.length === 0 || next.length === 0) return [];
    return [Math.min(...next.map(({ atMs }) => atMs)) - Math.max(...last.map(({ atMs }) => atMs))];
  });
}

/** Process ids that an attempt had, by rank. */
export function pidsOf(beats: readonly Beat[], attempt: number): readonly (readonly number[])[] {
  return [0, 1].map((rank) => [
    ...new Set(beats.filter((beat) => beat.attempt === attempt && beat.rank === rank).map(({ pid }) => pid)),
  ]);
}

function lostRanks(job: JobView): readonly { readonly attempt: number; readonly rank: number }[] {
  return job.attempts.flatMap(({ number, tasks }) =>
    tasks.flatMap(({ nodeRank, exit }) =>
      exit?.startError?.kind === 'node_lost' ? [{ attempt: number, rank: nodeRank }] : [],
    ),
  );
}

/** CLOCK_BOOTTIME at which attempts were released, by number. */
async function releases(cluster: GangCluster, jobId: string): Promise<ReadonlyMap<number, number>> {
  const offsetMs = Date.now() - boottimeMs();
  return new Map(
    (await eventsOf(cluster, jobId))
      .filter(({ kind }) => kind === 'attempt.released')
      .map(({ cloudEvent, timeMs }) => {
        const { attempt } = cloudEvent['data'] as { attempt: number };
        return [attempt, timeMs - offsetMs - clockErrorMs];
      }),
  );
}
