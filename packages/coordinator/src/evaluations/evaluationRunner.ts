/**
 * Runs evaluations of checkpoints: each pass looks at what is stored of them and at their jobs, submits those that wait, and records what
 * has ended. It keeps nothing that a restart must find again. An evaluation and its job are one commit, so none is started twice.
 */
import { evaluatesLabel } from '@muster/common/checkpoints';
import { messageOf } from '@muster/common/errors';
import type { JobId, RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { isTerminal } from '@muster/common/states';
import { coordinatorPart } from '../caller.ts';
import type { RunningMs } from '../commands/budgets.ts';
import {
  type EvaluationEnd,
  endEvaluation,
  removeEvaluations,
  startEvaluation,
  withoutMetrics,
} from '../commands/evaluations.ts';
import type { Command, Loop } from '../loop.ts';
import type { Job } from '../model.ts';
import { type FinalTrainingParts, finalTraining } from '../outputEnds/finalTraining.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import type { JobEvaluations, StoredEvaluation } from '../store/evaluations.ts';
import { isRefusal } from '../store/noSpace.ts';
import type { JobRecord, Store } from '../store/store.ts';
import { namedFailure } from '../work/contained.ts';
import { nextRound } from '../work/inOrder.ts';
import { evaluationSpec } from './evaluationSpec.ts';

/** The evaluations of a job are removed this many milliseconds after the last of them has ended, once the job has ended. */
const keptMs = 90 * 24 * 60 * 60_000;
/** Between two searches for evaluations to remove. */
const removalEveryMs = 60 * 60_000;

export interface EvaluationRunnerParts extends FinalTrainingParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readJob'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly runningMs: RunningMs;
  readonly random: RandomBytes;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
  /** False while the time is in doubt, and nothing may be removed for its age. */
  readonly isCertain: () => boolean;
  readonly log: Logger;
}

const caller = coordinatorPart('evaluations');

export class EvaluationRunner {
  private readonly parts: EvaluationRunnerParts;
  private work: Promise<void> | null = null;
  private isAskedAgain = false;
  private removalAtMs = 0;

  constructor(parts: EvaluationRunnerParts) {
    this.parts = parts;
  }

  /** One pass over all evaluations that have not ended; one that is asked for meanwhile follows it. */
  run(): Promise<void> {
    if (this.work !== null) this.isAskedAgain = true;
    this.work ??= this.passes().finally(() => {
      this.work = null;
    });
    return this.work;
  }

  /** A checkpoint was saved, or the job of an evaluation has ended. What fails now is done by the next tick. */
  committed({ jobs }: Pick<Committed, 'jobs'>): void {
    if (this.parts.state.evaluations.open.size === 0) return;
    const isOurs = jobs.some(
      ({ spec, state }) =>
        spec.evaluate !== null || (isTerminal(state.kind) && spec.labels[evaluatesLabel] !== undefined),
    );
    if (!isOurs) return;
    this.run().catch((error: unknown) =>
      this.parts.log.warn({ error: messageOf(error) }, 'a pass over the evaluations has failed'),
    );
  }

  /** What fails of one job keeps no other from its pass, and is thrown at the end. */
  private async passes(): Promise<void> {
    const failures: unknown[] = [];
    do {
      this.isAskedAgain = false;
      for (const id of Array.from(this.parts.state.evaluations.open))
        await this.pass(id).catch((error: unknown) => failures.push(namedFailure(id, error)));
    } while (this.isAskedAgain);
    await this.removeOld().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }

  private async pass(id: JobId): Promise<void> {
    for (const each of this.parts.state.evaluations.byJob.get(id)?.evaluations ?? []) {
      if (each.state === 'waiting') await this.start(id, each);
      if (each.state === 'running' && each.jobId !== null) await this.settle(id, each, each.jobId);
    }
    await nextRound();
  }

  private async settle(id: JobId, evaluation: StoredEvaluation, jobId: JobId): Promise<void> {
    const { state, store } = this.parts;
    if (state.jobs.has(jobId)) return;
    const record = await store.readJob(jobId);
    const last = record?.attempts.at(-1);
    const isWell = record?.job.state.kind === 'succeeded';
    const final = last === undefined || !isWell ? null : await finalTraining(this.parts, jobId, last);
    if (final?.kind === 'awaited') return;
    const read = record === null || final === null ? record : { ...record, attempts: [final.attempt] };
    const lost = final?.lost ?? null;
    await this.end(id, evaluation.number, evaluationEndOf(read, await this.evaluated(id), evaluation, lost));
  }

  private async start(id: JobId, { number, checkpoint, step }: StoredEvaluation): Promise<void> {
    const { runningMs, random } = this.parts;
    const of = await this.evaluated(id);
    const spec = of === null ? null : evaluationSpec(of, { name: checkpoint, step }, number);
    if (of === null || spec === null) {
      const message = 'the job that has saved the checkpoint was removed';
      await this.end(id, number, { ...withoutMetrics, cause: 'removed', message });
      return;
    }
    try {
      await this.command((draft, nowMs) =>
        startEvaluation(draft, { of: draft.job(id) ?? of, number, spec, runningMs }, random, nowMs),
      );
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.end(id, number, { ...withoutMetrics, cause: 'refused', message: messageOf(error) });
    }
  }

  /** @returns null: it is no longer there */
  private async evaluated(id: JobId): Promise<Job | null> {
    return this.parts.state.jobs.get(id) ?? (await this.parts.store.readJob(id))?.job ?? null;
  }

  private async removeOld(): Promise<void> {
    const { state, monotonicMs, wallMs, isCertain } = this.parts;
    if (monotonicMs() < this.removalAtMs || !isCertain()) return;
    this.removalAtMs = monotonicMs() + removalEveryMs;
    const beforeMs = wallMs() - keptMs;
    for (const of of Array.from(state.evaluations.byJob.values())) {
      const isInUse = state.jobs.has(of.job) || state.evaluations.open.has(of.job);
      if (!isInUse && lastOf(of) < beforeMs) await this.command((draft) => removeEvaluations(draft, of.job));
    }
  }

  private end(of: JobId, number: number, end: EvaluationEnd): Promise<void> {
    return this.command((draft, nowMs) => endEvaluation(draft, { of, number }, end, nowMs));
  }

  /** What the job was submitted with is carried out, whatever has become of its user since. */
  private command<T>(command: Command<T>): Promise<T> {
    return this.parts.loop.run(caller, command, true);
  }
}

function lastOf({ evaluations }: JobEvaluations): number {
  return Math.max(0, ...evaluations.map(({ endedAtMs, dueAtMs }) => endedAtMs ?? dueAtMs));
}

/**
 * @param record of the job of the evaluation. null: it is no longer there
 * @param of the job that has saved the checkpoint. null: it is no longer there
 * @param lost which of its metrics can no longer come. null: all are here
 */
export function evaluationEndOf(
  record: JobRecord | null,
  of: Pick<Job, 'checkpoints' | 'spec'> | null,
  { checkpoint, version }: Pick<StoredEvaluation, 'checkpoint' | 'version'>,
  lost: string | null = null,
): EvaluationEnd {
  if (record === null) return { ...withoutMetrics, cause: 'removed', message: 'its job was removed' };
  const { state } = record.job;
  if (state.kind === 'failed' || state.kind === 'cancelled')
    return { ...withoutMetrics, cause: state.cause.kind, message: state.cause.message };
  const isReplaced = of?.checkpoints.some((each) => each.name === checkpoint && each.version !== version);
  if (isReplaced === true) {
    const message = 'another checkpoint was saved under its name while it was evaluated';
    return { ...withoutMetrics, cause: 'gone', message };
  }
  const metrics = metricsOf(record);
  if (lost !== null) return { state: 'failed', metrics, cause: 'metrics_lost', message: lost };
  const wanted = of?.spec.evaluate?.metric?.name;
  if (wanted !== undefined && metrics[wanted] === undefined) {
    const message = `its output shows no finite ${wanted}`;
    return { state: 'failed', metrics, cause: 'no_metric', message };
  }
  return { state: 'complete', metrics, cause: null, message: null };
}

/** What the last attempt has printed last, by the first rank that has printed any. */
function metricsOf({ attempts }: JobRecord): Readonly<Record<string, number>> {
  for (const { exit } of attempts.at(-1)?.tasks ?? []) {
    const latest = Object.entries(exit?.training?.latest ?? {});
    if (latest.length > 0) return Object.fromEntries(latest);
  }
  return {};
}
