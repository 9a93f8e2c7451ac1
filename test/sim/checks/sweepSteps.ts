/**
 * Sweeps as steps of pipelines: each try of such a step is one sweep, each trial of it is one job, and a step succeeds by a sweep that
 * is done.
 */
import { hasSweepEnded, type SweepState } from '@muster/common/sweeps';
import type { StoredEvent } from '@muster/coordinator/model';
import type { StoredPipelineStep } from '@muster/coordinator/store/pipelines';
import type { StoredTrial } from '@muster/coordinator/store/sweeps';
import type { Committed, Fact } from '../history.ts';
import { isTrialName } from '../pipelineFiles.ts';
import type { Verdict } from './verdict.ts';

interface Sweep {
  /** The run, step, index and try that it is of. */
  readonly place: string;
  state: SweepState;
  /** The newest row of each trial, by its number. */
  readonly trials: Map<number, StoredTrial>;
}

export class SweepStepCheck {
  private readonly sweeps = new Map<string, Sweep>();
  /** The trial that each job is of. */
  private readonly trialOfJob = new Map<string, string>();
  private readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    this.verdict = verdict;
  }

  see(fact: Fact): void {
    if (fact.kind === 'committed') this.onCommit(fact);
  }

  isTrial(jobId: string): boolean {
    return this.trialOfJob.has(jobId);
  }

  requireSettled(): void {
    for (const [id, { state }] of this.sweeps)
      this.must(hasSweepEnded(state), () => `${id} is ${state} for ever`);
  }

  private onCommit({ events, steps, trials }: Committed): void {
    for (const row of steps) if (row.sweepId !== null) this.onStep(row, row.sweepId);
    for (const trial of trials) this.onTrial(trial);
    for (const event of events) this.onEvent(event);
  }

  private onStep({ run, step, index, tries, state }: StoredPipelineStep, id: string): void {
    const place = `${run} ${step}/${index}, try ${tries}`;
    for (const [other, sweep] of this.sweeps)
      this.must(
        (other === id) === (sweep.place === place),
        () => `${place} has the sweeps ${other} and ${id}`,
      );
    const sweep = this.sweeps.get(id) ?? { place, state: 'running', trials: new Map() };
    this.sweeps.set(id, sweep);
    if (state === 'succeeded')
      this.must(sweep.state === 'done', () => `${place} has succeeded, and ${id} is ${sweep.state}`);
  }

  private onTrial(trial: StoredTrial): void {
    const { sweep: id, number, jobId, state } = trial;
    const what = `trial ${number} of ${id}`;
    const earlier = this.sweeps.get(id)?.trials.get(number);
    this.must((earlier?.jobId ?? jobId) === jobId, () => `${what} is ${jobId}, and was ${earlier?.jobId}`);
    const other = this.trialOfJob.get(jobId) ?? what;
    this.must(other === what, () => `${jobId} is ${what}, and ${other}`);
    const isBack = state === 'running' && earlier !== undefined && earlier.state !== 'running';
    this.must(!isBack, () => `${what} runs, and was ${earlier?.state}`);
    this.trialOfJob.set(jobId, what);
    this.sweeps.get(id)?.trials.set(number, trial);
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    const isOfUser = data['requeuedFrom'] !== undefined;
    if (kind === 'job.submitted' && isTrialName(String(data['name'])) && !isOfUser)
      this.must(this.isTrial(subject), () => `${subject} was stored without the trial that it is`);
    const id = String(data['sweep']);
    const sweep = this.sweeps.get(id);
    if (kind === 'sweep.created')
      this.must(sweep !== undefined, () => `${id} was stored without the step that it is of`);
    if (kind !== 'sweep.ended' || sweep === undefined) return;
    this.must(!hasSweepEnded(sweep.state), () => `${id} ends twice`);
    sweep.state = data['state'] as SweepState;
    const running = [...sweep.trials.values()].filter(({ state }) => state === 'running');
    this.must(running.length === 0, () => `${id} has ended, and ${running[0]?.jobId} of it runs`);
  }

  private must(holds: boolean, what: () => string): void {
    this.verdict.require(holds, 'pipeline', what);
  }
}
