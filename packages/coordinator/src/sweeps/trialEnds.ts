/** How trials end: what follows from the end of their jobs, once all of their metrics are here or can no longer come. */
import type { JobId } from '@muster/common/ids';
import type { SweepSpec } from '@muster/experiments/file/sweepFile';
import type { Objective } from '@muster/experiments/objective';
import { pausesTrials } from '@muster/experiments/stopping/rules';
import { canBeResumed } from '../commands/pausedTrials.ts';
import type { TrialEnd } from '../commands/sweeps.ts';
import type { OutputEnds } from '../outputEnds/outputEnds.ts';
import { mayHavePrinted } from '../outputEnds/sender.ts';
import { type AttemptRows, type ValueEnd, valueEnd } from '../outputEnds/valueEnd.ts';
import type { RowStore } from '../rows/rowStore.ts';
import { jobsOfTrial } from '../state/trialJobs.ts';
import type { JobRecord, Store } from '../store/store.ts';
import type { StoredTrial } from '../store/sweeps.ts';
import { infeasibleCauses } from './sweepPlan.ts';
import { readTrialValue, type TrialValueOrigin } from './trialValue.ts';

export interface TrialEndsParts {
  readonly store: Pick<Store, 'readJob'>;
  readonly rows: Pick<RowStore, 'lookAt'>;
  readonly outputEnds: Pick<OutputEnds, 'rowSenders'>;
}

type EndedTrial = Pick<StoredTrial, 'jobId' | 'earlierJobs' | 'stoppedEarly'>;
type EndOfTrial = Omit<TrialEnd, 'used'>;

/** The attempts of one job. */
interface JobAttempts {
  readonly jobId: JobId;
  readonly attempts: readonly AttemptRows[];
}

export class TrialEnds {
  private readonly parts: TrialEndsParts;
  private readonly awaits = new Map<JobId, string>();

  constructor(parts: TrialEndsParts) {
    this.parts = parts;
  }

  /** The metrics that a trial waits for, in words. null: it waits for none */
  awaitsOf(jobId: JobId): string | null {
    return this.awaits.get(jobId) ?? null;
  }

  forget(jobId: JobId): void {
    this.awaits.delete(jobId);
  }

  /** @returns null: some of its metrics have not arrived, and still can */
  async endOf(
    { objective, furtherObjectives, earlyStopping, acceptIncomplete }: SweepSpec,
    record: JobRecord | null,
    trial: EndedTrial,
  ): Promise<EndOfTrial | 'paused' | null> {
    const { stoppedEarly } = trial;
    const none = { value: null, step: null };
    if (record === null) return { ...none, state: 'failed', cause: 'removed' };
    const { state } = record.job;
    if (state.kind === 'cancelled' && stoppedEarly !== undefined) {
      const canResume = canBeResumed(record.job);
      if (canResume && earlyStopping !== null && pausesTrials(earlyStopping)) return 'paused';
      const { value, step } = stoppedEarly;
      return { value, step, state: 'pruned', cause: null };
    }
    if (state.kind === 'cancelled') return { ...none, state: 'stopped', cause: state.cause.kind };
    if (state.kind === 'failed') {
      const { kind, blame } = state.cause;
      // Another program had the memory: that says nothing of the parameters.
      const isOurs = infeasibleCauses.has(kind) && !(kind === 'cuda_oom' && blame !== 'job');
      return { ...none, state: isOurs ? 'infeasible' : 'failed', cause: kind };
    }
    return this.valued([objective, ...furtherObjectives], record, trial, acceptIncomplete);
  }

  /** Of a trial whose job has succeeded. */
  private async valued(
    objectives: readonly Objective[],
    record: JobRecord,
    trial: EndedTrial,
    acceptIncomplete: boolean,
  ): Promise<EndOfTrial | null> {
    // Who could send more is asked before the rows are read: what arrives in between makes a value newer, never older.
    const jobs = await this.jobsOf(record, trial);
    const values: number[] = [];
    let step: number | null = null;
    let problem: 'none' | 'notFinite' | null = null;
    let lost: string | null = null;
    for (const [index, objective] of objectives.entries()) {
      const found = await readTrialValue(this.parts.rows, trial, objective);
      const end = endOfValue(jobs, found.origin, objective);
      if (end.kind === 'awaited') {
        this.awaits.set(record.job.id, end.reason);
        return null;
      }
      if (end.kind === 'incomplete') lost ??= end.reason;
      if (found.kind !== 'value') problem ??= found.kind;
      else {
        values.push(found.value);
        if (index === 0) ({ step } = found);
      }
    }
    const [value = null, ...furtherValues] = values;
    // What has arrived lacks the metric, and what was lost may have had it.
    if (problem !== null && lost !== null)
      return { value: null, step: null, state: 'incomplete', cause: 'metrics_lost', lost };
    if (problem !== null) return withoutValue(problem);
    const more = furtherValues.length === 0 ? {} : { furtherValues };
    if (lost === null) return { state: 'complete', value, ...more, step, cause: null };
    return { state: acceptIncomplete ? 'complete' : 'incomplete', value, ...more, step, cause: null, lost };
  }

  /** The jobs of a trial, oldest first. Of one that was removed nothing more comes. */
  private async jobsOf(record: JobRecord, trial: EndedTrial): Promise<readonly JobAttempts[]> {
    const jobs: JobAttempts[] = [];
    for (const jobId of jobsOfTrial(trial)) {
      const { attempts = [] } =
        jobId === record.job.id ? record : ((await this.parts.store.readJob(jobId)) ?? {});
      const ran: AttemptRows[] = [];
      for (const attempt of attempts) {
        if (!mayHavePrinted(attempt)) continue;
        const senders = await this.parts.outputEnds.rowSenders(jobId, attempt);
        ran.push({ number: attempt.number, resume: attempt.resume, senders });
      }
      jobs.push({ jobId, attempts: ran });
    }
    return jobs;
  }
}

function endOfValue(
  jobs: readonly JobAttempts[],
  origin: TrialValueOrigin | null,
  { of }: Pick<Objective, 'of'>,
): ValueEnd {
  const attempts = jobs.flatMap((job) => job.attempts.map((attempt) => ({ ...attempt, jobId: job.jobId })));
  const index = attempts.findIndex(
    ({ jobId, number }) => jobId === origin?.jobId && number === origin.attempt,
  );
  const at = origin === null || index === -1 ? null : { index, nodeRank: origin.nodeRank };
  return valueEnd(attempts, at, of === 'best' ? 'all' : 'newest');
}

/** The end of a trial whose output lacks what an objective needs. */
function withoutValue(kind: 'none' | 'notFinite'): EndOfTrial {
  return kind === 'none'
    ? { value: null, step: null, state: 'failed', cause: 'no_metric' }
    : { value: null, step: null, state: 'infeasible', cause: 'nan_loss' };
}
