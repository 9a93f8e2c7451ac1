/** The jobs of a trial. Pure. */
import type { JobId } from '@muster/common/ids';
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

export function startedSeedRun(seed: number, jobId: JobId): SeedRun {
  return { seed, jobId, state: 'running', value: null, furtherValues: [], step: null, cause: null };
}
