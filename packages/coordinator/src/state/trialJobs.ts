/** The jobs of a trial. Pure. */
import type { JobId } from '@muster/common/ids';
import { scaledParams } from '@muster/common/scales';
import type { Job } from '../model.ts';
import type { SeedRun, StoredTrial } from '../store/sweeps.ts';

/** In the order in which they ran, of one seed. */
export function jobsOfTrial({
  jobId,
  earlierJobs = [],
}: Pick<StoredTrial, 'jobId' | 'earlierJobs'>): readonly JobId[] {
  return [...earlierJobs, jobId];
}

/** Those whose ends are not recorded yet: with seeds there may be several, and none while the next one waits for room. */
export function openJobsOf({
  state,
  jobId,
  seedRuns,
}: Pick<StoredTrial, 'state' | 'jobId' | 'seedRuns'>): readonly JobId[] {
  if (state !== 'running') return [];
  if (seedRuns === undefined) return [jobId];
  return seedRuns.filter((run) => run.state === 'running').map((run) => run.jobId);
}

/** The parameters with which a trial ran. */
export function pointAsRun({ point, ran }: Pick<StoredTrial, 'point' | 'ran'>): StoredTrial['point'] {
  return { ...point, ...ran };
}

/** What a job leaves of the parameters of its trial. Of several seeds, the least values count: they are those that work with all. */
export function ranWith(
  { point, ran }: Pick<StoredTrial, 'point' | 'ran'>,
  { spec, batchScale, lrScale }: Pick<Job, 'spec' | 'batchScale' | 'lrScale'>,
): Pick<StoredTrial, 'ran'> {
  const scaled = Object.entries(scaledParams(spec, { batchScale, lrScale })).filter(([name]) =>
    Object.hasOwn(point, name),
  );
  if (scaled.length === 0) return ran === undefined ? {} : { ran };
  const least = scaled.map(([name, value]) => [name, Math.min(value, ran?.[name] ?? value)] as const);
  return { ran: { ...ran, ...Object.fromEntries(least) } };
}

export function startedSeedRun(seed: number, jobId: JobId): SeedRun {
  return { seed, jobId, state: 'running', value: null, furtherValues: [], step: null, cause: null };
}
