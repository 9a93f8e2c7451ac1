/** How the steps of pipelines end: what follows from the end of their jobs and sweeps. */
import type { JobId } from '@muster/common/ids';
import { hasSweepEnded } from '@muster/common/sweeps';
import { bestTrial, type Objective } from '@muster/experiments/objective';
import { itemsOf, outputsOf, stepPlaceOf } from '@muster/pipelines/file/stepJob';
import type { PipelineSpec } from '@muster/pipelines/model';
import { storedOutputs } from '@muster/pipelines/storeArtifacts';
import type { StepEnd } from '../commands/pipelines.ts';
import type { LogStore } from '../logs/logStore.ts';
import type { OutputEnds } from '../outputEnds/outputEnds.ts';
import type { SenderState } from '../outputEnds/sender.ts';
import { awaitedText, lossText } from '../outputEnds/valueEnd.ts';
import type { ClusterState } from '../state/state.ts';
import type { StoredPipeline, StoredPipelineStep } from '../store/pipelines.ts';
import type { JobRecord, Store } from '../store/store.ts';
import type { StoredTrial } from '../store/sweeps.ts';
import { readStepReport } from './artifactReports.ts';

export interface StepEndParts {
  readonly state: Pick<ClusterState, 'jobs' | 'sweeps'>;
  readonly store: Pick<Store, 'readJob'>;
  readonly logs: Pick<LogStore, 'size' | 'read' | 'tailOffset'>;
  readonly outputEnds: Pick<OutputEnds, 'logSender'>;
}

export class StepEnds {
  private readonly parts: StepEndParts;
  private readonly awaits = new Map<JobId, string>();

  constructor(parts: StepEndParts) {
    this.parts = parts;
  }

  forget(jobId: JobId | null): void {
    if (jobId !== null) this.awaits.delete(jobId);
  }

  /** The output that a step waits for although its job has ended, in words. null: it waits for none */
  awaitsOf(jobId: JobId): string | null {
    return this.awaits.get(jobId) ?? null;
  }

  /** @returns null: it has not ended, or its last output may still arrive */
  async endOf(run: StoredPipeline, spec: PipelineSpec, step: StoredPipelineStep): Promise<StepEnd | null> {
    const { jobId, sweepId } = step;
    if (sweepId !== null) return this.endOfSweep(sweepId, step);
    if (jobId === null || this.parts.state.jobs.has(jobId)) return null;
    const record = await this.parts.store.readJob(jobId);
    if (record === null) return failed('its job has been removed');
    return this.endOfJob(run, spec, step, record);
  }

  private async endOfJob(
    run: StoredPipeline,
    spec: PipelineSpec,
    stored: StoredPipelineStep,
    { job: { id, state }, attempts }: JobRecord,
  ): Promise<StepEnd | null> {
    const { step: name, index, tries, isExpired } = stored;
    if (isExpired && state.kind !== 'succeeded') return failed('its timeout is up');
    if (state.kind === 'cancelled') return { ...failed(state.cause.message), state: 'stopped' };
    const step = spec.steps.find((each) => each.name === name);
    if (step === undefined) return failed('the pipeline has no such step');
    const item = itemsOf(step, run.params)?.[index] ?? null;
    const { project, params } = run;
    const of = { pipeline: spec, run: run.id, project, step, index, try: tries, item, params };
    const wanted = outputsOf(of);
    const readsArtifacts = Object.keys(stored.inputs).length > 0;
    if (wanted.length === 0 && state.kind === 'succeeded') return succeeded([], null);
    const last = attempts.at(-1) ?? null;
    const attempt = last?.number ?? 0;
    if (spec.artifacts?.kind === 'store') {
      if (state.kind !== 'succeeded') return state.kind === 'failed' ? failed(state.cause.message) : null;
      const kept = last?.tasks[0]?.exit?.artifacts ?? [];
      const outputs = storedOutputs(stepPlaceOf(of), { id, attempt }, wanted, kept);
      if (outputs.length === wanted.length) return succeeded(outputs, null);
      return failed('its agent has not kept its outputs: it does not know stores; upgrade it');
    }
    // Before the output is read: what is complete by now is all there.
    const [task] = last?.tasks ?? [];
    const sender =
      last === null || task === undefined ? allHere : await this.parts.outputEnds.logSender(id, last, task);
    const report = await readStepReport(this.parts.logs, id, attempt, wanted);
    if (state.kind === 'succeeded') {
      if (report.outputs.length === wanted.length) return succeeded(report.outputs, null);
      if (sender.kind === 'complete') return failed('its output does not name its artifacts');
      const node = task?.node ?? '';
      if (sender.kind === 'lost') return failed(lossText(sender.why, 'the last lines', attempt, node));
      const what = 'its output, which names its artifacts: the last lines';
      this.awaits.set(id, `waits for ${awaitedText(what, attempt, node, sender.isSilent)}`);
      return null;
    }
    if (state.kind !== 'failed') return null;
    if (report.problem !== null) return failed(report.problem);
    const mayExplain = wanted.length > 0 || readsArtifacts;
    // What it says of a failure only explains it: a node that does not respond is not waited for.
    const isComing = sender.kind === 'awaited' && !sender.isSilent;
    if (mayExplain && hasArtifactCode(state.cause.message) && isComing) return null;
    return failed(state.cause.message);
  }

  private endOfSweep(sweepId: string, { isExpired }: StoredPipelineStep): StepEnd | null {
    const { sweeps } = this.parts.state;
    const sweep = sweeps.sweeps.get(sweepId);
    if (sweep === undefined) return failed('its sweep has been removed');
    if (!hasSweepEnded(sweep.state)) return null;
    if (isExpired && sweep.state !== 'done') return failed('its timeout is up');
    const why = sweep.reason ?? 'no cause is known';
    if (sweep.state === 'stopped') return { ...failed(why), state: 'stopped' };
    if (sweep.state === 'failed') return failed(why);
    const { objective } = JSON.parse(sweep.spec) as { readonly objective: Objective };
    const best = bestTrial(objective, sweeps.trials.get(sweepId) ?? []);
    return best === null
      ? failed(withoutBest(sweeps.trials.get(sweepId) ?? []))
      : succeeded([], JSON.stringify(best.point));
  }
}

const allHere: SenderState = { kind: 'complete' };

function withoutBest(trials: readonly StoredTrial[]): string {
  const incomplete = trials.filter(({ state }) => state === 'incomplete').length;
  const hint = 'metrics were lost; a sweep with accept_incomplete: true counts them';
  return `no trial of its sweep has a value${incomplete === 0 ? '' : ` that is complete: of ${incomplete} ${hint}`}`;
}

/** The exit codes with which a step's job says that something is wrong with an input or an output. */
function hasArtifactCode(message: string): boolean {
  return /\b6[56]\b/.test(message);
}

function failed(reason: string): StepEnd {
  return { state: 'failed', reason, outputs: [], best: null };
}

function succeeded(outputs: StepEnd['outputs'], best: string | null): StepEnd {
  return { state: 'succeeded', reason: null, outputs, best };
}
