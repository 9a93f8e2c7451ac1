/**
 * Judges the ends of phases: each pass looks at the jobs that await a verdict, reads what the attempts of the phase have printed, and
 * sends the verdict. It keeps nothing that a restart must find again. What follows from a verdict, the lifecycle decides.
 */
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { coordinatorPart } from '../caller.ts';
import { awaitedPhase } from '../lifecycle/phases.ts';
import type { Loop } from '../loop.ts';
import type { Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import { judgePhase } from './phaseConditions.ts';

export interface PhaseRunnerParts {
  readonly state: Pick<ClusterState, 'jobs'>;
  readonly store: Pick<Store, 'readJob'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly log: Logger;
}

const caller = coordinatorPart('phases');

export class PhaseRunner {
  private readonly parts: PhaseRunnerParts;
  private work: Promise<void> | null = null;
  private isAskedAgain = false;

  constructor(parts: PhaseRunnerParts) {
    this.parts = parts;
  }

  /** One pass over all jobs that await a verdict; one that is asked for meanwhile follows it. */
  run(): Promise<void> {
    if (this.work !== null) this.isAskedAgain = true;
    this.work ??= this.passes().finally(() => {
      this.work = null;
    });
    return this.work;
  }

  /** An attempt has ended a phase. What fails now is done by the next tick. */
  committed({ jobs }: Pick<Committed, 'jobs'>): void {
    if (!jobs.some(isAwaiting)) return;
    this.run().catch((error: unknown) =>
      this.parts.log.warn({ error: messageOf(error) }, 'a pass over the phases of jobs has failed'),
    );
  }

  private async passes(): Promise<void> {
    do {
      this.isAskedAgain = false;
      for (const job of Array.from(this.parts.state.jobs.values()).filter(isAwaiting)) await this.judge(job);
    } while (this.isAskedAgain);
  }

  private async judge(job: Job): Promise<void> {
    const { store, loop } = this.parts;
    const { phase, id } = job;
    const success = awaitedPhase(job)?.success ?? null;
    if (phase === null || phase.awaiting === null || success === null) return;
    const { attempt } = phase.awaiting;
    const first = phase.firstAttempt ?? attempt;
    const attempts = (await store.readJob(id))?.attempts ?? [];
    const judged = await judgePhase(
      success,
      attempts.filter(({ number }) => number >= first && number <= attempt),
    );
    const event = { kind: 'phaseJudged', attempt, ...judged } as const;
    await loop.run(caller, (draft, nowMs) => applyJobEvent(draft, id, event, nowMs), true);
  }
}

function isAwaiting({ state, phase }: Job): boolean {
  return state.kind === 'queued' && phase?.awaiting != null;
}
