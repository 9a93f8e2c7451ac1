/**
 * What tasks did, as they wrote it down themselves: every task appends a line when it starts and one when it ends to a
 * file that Muster knows nothing of. Afterwards that history is compared with what Muster says.
 */
import type { JobView } from '@muster/common/views';

/**
 * Shell code of a task that leaves signs of life.
 * @param path of the file, without characters that a shell would interpret
 * @param work shell code between start and end; what it exits with in the end is the exit code of the task
 */
export function withSignsOfLife(path: string, work: string): string {
  // CLOCK_BOOTTIME in hundredths of a second; a line is one write to a file opened for appending, so lines stay whole.
  return `sign() { read now rest </proc/uptime; echo "$1 $MUSTER_JOB_ID $MUSTER_ATTEMPT $NODE_RANK $$ $now $2" >>${path}; }
sign start -
( ${work} )
code=$?
sign end $code
exit $code`;
}

/** One task of one attempt, as it ran. */
export interface Run {
  readonly jobId: string;
  readonly attempt: number;
  readonly nodeRank: number;
  readonly pid: number;
  /** Seconds since boot. */
  readonly startedAt: number;
  /** null: it was killed, or runs still. */
  readonly end: { readonly at: number; readonly exitCode: number } | null;
}

/** @throws {Error} for text that tasks cannot have written */
export function parseHistory(text: string): readonly Run[] {
  const runs: Run[] = [];
  const lines = text.split('\n').filter((line) => line !== '');
  for (const line of lines) {
    const [sign, jobId = '', attempt, nodeRank, pid, now, exitCode] = line.split(' ');
    const place = { jobId, attempt: Number(attempt), nodeRank: Number(nodeRank), pid: Number(pid) };
    if (sign === 'start') {
      runs.push({ ...place, startedAt: Number(now), end: null });
      continue;
    }
    const index = runs.findIndex(
      (run) => run.end === null && isSameTask(run, place) && run.pid === place.pid,
    );
    const run = runs[index];
    if (sign !== 'end' || run === undefined) throw new Error(`no task can have written: ${line}`);
    runs[index] = { ...run, end: { at: Number(now), exitCode: Number(exitCode) } };
  }
  return runs;
}

/**
 * @param jobs all jobs there are, with all their attempts
 * @returns what contradicts that every task runs once per attempt, one attempt at a time, and ends as recorded
 */
export function contradictions(runs: readonly Run[], jobs: readonly JobView[]): readonly string[] {
  return [
    ...jobs.flatMap((job) =>
      contradictionsOfJob(
        job,
        runs.filter((run) => run.jobId === job.id),
      ),
    ),
    ...runs
      .filter((run) => !jobs.some((job) => job.id === run.jobId))
      .map((run) => `${run.jobId} ran, and there is no such job`),
  ];
}

function contradictionsOfJob(job: JobView, runs: readonly Run[]): readonly string[] {
  const found: string[] = [];
  const numbers = job.attempts.map((attempt) => attempt.number);
  for (const run of runs) {
    if (!numbers.includes(run.attempt)) found.push(`${nameOf(run)} ran, and there is no such attempt`);
  }
  for (const attempt of job.attempts) {
    for (const { nodeRank, exit } of attempt.tasks) {
      const place = { jobId: job.id, attempt: attempt.number, nodeRank };
      const own = runs.filter((run) => isSameTask(run, place));
      if (own.length > 1) found.push(`${nameOf(place)} ran ${own.length} times`);
      if (exit === null || exit.exitCode === null) continue;
      if (own.length === 0) found.push(`${nameOf(place)} is said to have exited, and never ran`);
      for (const { end } of own) {
        if (end?.exitCode === exit.exitCode) continue;
        const how = end === null ? 'never ended' : `exited with ${end.exitCode}`;
        found.push(`${nameOf(place)} is said to have exited with ${exit.exitCode}, and ${how}`);
      }
    }
  }
  for (const earlier of runs) {
    const lastSign = earlier.end?.at ?? earlier.startedAt;
    for (const later of runs) {
      if (later.attempt <= earlier.attempt || later.startedAt >= lastSign) continue;
      found.push(
        `${nameOf(later)} started at ${later.startedAt}, while ${nameOf(earlier)} lived until ${lastSign}`,
      );
    }
  }
  return found;
}

type Place = Pick<Run, 'jobId' | 'attempt' | 'nodeRank'>;

function isSameTask(a: Place, b: Place): boolean {
  return a.jobId === b.jobId && a.attempt === b.attempt && a.nodeRank === b.nodeRank;
}

function nameOf({ jobId, attempt, nodeRank }: Place): string {
  return `rank ${nodeRank} of attempt ${attempt} of ${jobId}`;
}
