/**
 * Judges the ends of phases: each pass looks at the jobs that await a verdict, reads what the attempts of the phase have printed, and
 * sends the verdict. Where the criterion depends on what an evaluation measures, it sees to it that the last checkpoint of the phase is
 * evaluated, and judges once that evaluation has ended. It keeps nothing that a restart must find again. What follows from a verdict, the
 * lifecycle decides.
 */
import { messageOf } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { coordinatorPart } from '../caller.ts';
import { awaitedPhase, checkpointOfPhase } from '../lifecycle/phases.ts';
import type { Loop } from '../loop.ts';
import type { Job } from '../model.ts';
import { type FinalTrainingParts, finalTraining } from '../outputEnds/finalTraining.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { Committed } from '../state/committed.ts';
import { evaluationOfCheckpoint, isOpen } from '../state/evaluations.ts';
import { requireEvaluation } from '../state/requireEvaluation.ts';
import type { ClusterState } from '../state/state.ts';
import type { StoredEvaluation } from '../store/evaluations.ts';
import type { Store } from '../store/store.ts';
import { namedFailure } from '../work/contained.ts';
import { dependsOn, judgePhase, type MeasuredMetric, type PhaseAttempt } from './phaseConditions.ts';

export interface PhaseRunnerParts extends FinalTrainingParts {
  readonly state: Pick<ClusterState, 'jobs' | 'evaluations'>;
  readonly store: Pick<Store, 'readJob'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly log: Logger;
}

const caller = coordinatorPart('phases');

export class PhaseRunner {
  private readonly parts: PhaseRunnerParts;
  private readonly awaits = new Map<JobId, string>();
  private work: Promise<void> | null = null;
  private isAskedAgain = false;

  constructor(parts: PhaseRunnerParts) {
    this.parts = parts;
  }

  /** The metrics that the verdict on a job waits for, in words. null: it waits for none */
  awaitsOf(jobId: JobId): string | null {
    return this.awaits.get(jobId) ?? null;
  }

  /** The rest of a task's metrics has arrived. */
  rowsComplete(jobId: JobId): void {
    if (this.awaits.has(jobId)) this.begin();
  }

  /** One pass over all jobs that await a verdict; one that is asked for meanwhile follows it. */
  run(): Promise<void> {
    if (this.work !== null) this.isAskedAgain = true;
    this.work ??= this.passes().finally(() => {
      this.work = null;
    });
    return this.work;
  }

  /** An attempt has ended a phase, or an evaluation has ended. What fails now is done by the next tick. */
  committed({ jobs, events }: Pick<Committed, 'jobs' | 'events'>): void {
    if (jobs.some(isAwaiting) || events.some(({ kind }) => kind === 'checkpoint.evaluated')) this.begin();
  }

  private begin(): void {
    this.run().catch((error: unknown) =>
      this.parts.log.warn({ error: messageOf(error) }, 'a pass over the phases of jobs has failed'),
    );
  }

  /** What fails of one job keeps no other from its verdict, and is thrown at the end. */
  private async passes(): Promise<void> {
    const failures: unknown[] = [];
    do {
      this.isAskedAgain = false;
      for (const job of Array.from(this.parts.state.jobs.values()).filter(isAwaiting))
        await this.judge(job).catch((error: unknown) => failures.push(namedFailure(job.id, error)));
    } while (this.isAskedAgain);
    if (failures.length > 0) throw failures[0];
  }

  private async judge(job: Job): Promise<void> {
    const { store, loop } = this.parts;
    const { phase, id } = job;
    const success = awaitedPhase(job)?.success ?? null;
    if (phase === null || phase.awaiting === null || success === null) return;
    const { attempt } = phase.awaiting;
    const measured = await this.measured(job, success);
    if (measured === 'pending') return;
    const first = phase.firstAttempt ?? attempt;
    const attempts: PhaseAttempt[] = [];
    for (const each of (await store.readJob(id))?.attempts ?? []) {
      if (each.number < first || each.number > attempt) continue;
      const final = await finalTraining(this.parts, id, each);
      if (final.kind === 'awaited') {
        this.awaits.set(id, final.reason);
        return;
      }
      attempts.push({ ...final.attempt, lost: final.lost });
    }
    this.awaits.delete(id);
    const judged = await judgePhase(success, attempts, measured);
    const event = { kind: 'phaseJudged', attempt, ...judged } as const;
    await loop.run(caller, (draft, nowMs) => applyJobEvent(draft, id, event, nowMs), true);
  }

  /** @returns 'pending': the evaluation that tells has not ended. null: the criterion depends on none */
  private async measured(job: Job, success: string): Promise<MeasuredMetric | 'pending' | null> {
    const { state, loop } = this.parts;
    const name = job.spec.evaluate?.metric?.name;
    if (name === undefined || !(await dependsOn(success, name))) return null;
    const checkpoint = checkpointOfPhase(job);
    if (checkpoint === null) return { name, value: null };
    const found = evaluationOfCheckpoint(state.evaluations.byJob.get(job.id), checkpoint);
    if (found === null) {
      await loop.run(caller, (draft, nowMs) => requireEvaluation(draft, job.id, checkpoint, nowMs), true);
      return 'pending';
    }
    return isOpen(found) ? 'pending' : { name, value: valueOf(found, name) };
  }
}

/** A value that an evaluation has printed before it failed is of no checkpoint that anybody knows. */
function valueOf({ state, metrics }: StoredEvaluation, name: string): number | null {
  return state === 'complete' ? (metrics[name] ?? null) : null;
}

function isAwaiting({ state, phase }: Job): boolean {
  return state.kind === 'queued' && phase?.awaiting != null;
}
