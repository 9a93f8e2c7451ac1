/** Starts steps of one run: as jobs or sweeps, or with the outputs of an earlier run. */
import { createHash } from 'node:crypto';
import { MusterError, messageOf } from '@muster/common/errors';
import type { RandomBytes } from '@muster/common/ids';
import type { ArtifactView } from '@muster/common/pipelines';
import { formatPath } from '@muster/common/spec/path';
import type { Finding } from '@muster/common/spec/problems';
import { readSweep, sweepToFile } from '@muster/experiments/file/sweepFile';
import {
  cacheText,
  countOfInstances,
  itemsOf,
  type StepRun,
  stepJob,
  stepSweep,
} from '@muster/pipelines/file/stepJob';
import type { PipelineSpec, PipelineStep } from '@muster/pipelines/model';
import type { InstanceRef } from '@muster/pipelines/plan';
import { substitute } from '@muster/pipelines/substitute';
import type { RunningMs } from '../commands/budgets.ts';
import { type StepStart, settleStep, startJobStep, startSweepStep } from '../commands/pipelines.ts';
import type { Command, Loop } from '../loop.ts';
import { pipelineStepKey } from '../state/pipelines.ts';
import type { ClusterState } from '../state/state.ts';
import type { StoredPipeline, StoredPipelineStep } from '../store/pipelines.ts';
import type { JobRecord, Store } from '../store/store.ts';
import { trialsOfSweep } from '../sweeps/trialCount.ts';
import type { StartRefusals } from './startRefusals.ts';

export interface StepStarterParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readJob'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly runningMs: RunningMs;
  readonly random: RandomBytes;
  readonly wallMs: () => number;
  readonly refusals: Pick<StartRefusals, 'note' | 'refusedForMs'>;
}

/** What may pass: a budget is used up, or another job has the directory. */
const passing: readonly string[] = ['resource_exhausted', 'failed_precondition'];
/** A stopped run waits for no longer with its last steps, because nothing else would end it. */
const lastWaitMs = 600_000;

export class StepStarter {
  private readonly parts: StepStarterParts;
  private readonly run: StoredPipeline;
  private readonly spec: PipelineSpec;
  /** What earlier runs have made, by what they have done. Read once. */
  private earlier: ReadonlyMap<string, StoredPipelineStep> | null = null;

  constructor(parts: StepStarterParts, run: StoredPipeline, spec: PipelineSpec) {
    this.parts = parts;
    this.run = run;
    this.spec = spec;
  }

  /**
   * What cannot be started has failed, for the reason that a submit would give. What may only not be started yet uses up no try: it waits,
   * for the timeout of the step at most.
   */
  async start({ step: name, index, try: tryNumber }: InstanceRef & { readonly try: number }): Promise<void> {
    const step = this.spec.steps.find((each) => each.name === name);
    if (step === undefined) return;
    const { id, project, params } = this.run;
    const inputs = Object.fromEntries(step.inputs.map((each) => [each.name, this.inputOf(each)]));
    const item = itemsOf(step, params)?.[index] ?? null;
    const stepRun = {
      pipeline: this.spec,
      run: id,
      project,
      step,
      index,
      try: tryNumber,
      item,
      params,
      inputs,
    };
    const { code } = this.spec;
    const text = cacheText(stepRun, code !== null && 'digest' in code ? code.digest : null);
    const start: StepStart = {
      run: id,
      step: name,
      index,
      try: tryNumber,
      cacheKey: text === null ? null : createHash('sha256').update(text).digest('hex'),
      inputs: artifactsOf(inputs),
    };
    try {
      await this.begin(stepRun, start);
    } catch (error) {
      const isRefusal =
        error instanceof MusterError && error.code !== 'unavailable' && error.code !== 'internal';
      if (!isRefusal) throw error;
      const mayPass = passing.includes(error.code);
      if (mayPass && this.parts.refusals.refusedForMs(start) < this.longestWaitMsOf(step)) {
        this.parts.refusals.note(start, `it cannot be started yet: ${messageOf(error)}`);
        return;
      }
      const what = mayPass ? 'it could not be started in time' : 'it cannot be started';
      const end = { state: 'failed', reason: `${what}: ${messageOf(error)}` } as const;
      await this.command((draft, nowMs) => settleStep(draft, start, end, nowMs));
    }
  }

  private longestWaitMsOf({ timeoutMs, group }: PipelineStep): number {
    const isLast = group === 'finally' && this.run.state === 'stopping';
    return timeoutMs ?? (isLast ? lastWaitMs : Number.POSITIVE_INFINITY);
  }

  private async begin(stepRun: StepRun, start: StepStart): Promise<void> {
    const { step } = stepRun;
    const { runningMs, random } = this.parts;
    const runsWhenStopped = step.group === 'finally';
    const earlier = this.earlierOf(step, start.cacheKey);
    if (earlier !== null) {
      const { outputs, run } = earlier;
      const end = { state: 'cached', reason: null, outputs, cachedFrom: run } as const;
      await this.command((draft, nowMs) => settleStep(draft, start, end, nowMs));
      return;
    }
    if (step.work.kind === 'sweep') {
      const read = readSweep(stepSweep(stepRun));
      if (!read.ok) throw refusal(read.findings);
      const { name, sampler } = read.sweep;
      const spec = JSON.stringify(sweepToFile(read.sweep));
      const trials = await trialsOfSweep(read.sweep);
      const sweep = { name, project: this.run.project, spec, sampler, trials };
      await this.command((draft, nowMs) =>
        startSweepStep(draft, { ...start, sweep, runsWhenStopped }, random, nowMs),
      );
      return;
    }
    const made = stepJob(stepRun);
    if (!made.ok) throw refusal(made.findings);
    const { job: spec } = made;
    const before = await this.jobBefore(start);
    const work = { spec, runningMs, runsWhenStopped, before };
    await this.command((draft, nowMs) => startJobStep(draft, { ...start, ...work }, random, nowMs));
  }

  /**
   * The newest job of this step that has not succeeded: of this run, or of the run that it repeats.
   * @returns null: there is none, or retention has removed it, and what it has saved with it
   */
  private async jobBefore({ step, index }: InstanceRef): Promise<JobRecord['job'] | null> {
    const { pipelines } = this.parts.state;
    const key = pipelineStepKey(step, index);
    for (let run: string | null = this.run.id; run !== null; ) {
      const found = pipelines.steps.get(run)?.get(key);
      if (found?.state === 'succeeded' || found?.state === 'cached') return null;
      if (found != null && found.jobId !== null)
        return (await this.parts.store.readJob(found.jobId))?.job ?? null;
      run = pipelines.runs.get(run)?.rerunOf ?? null;
    }
    return null;
  }

  /** Of a step with `for_each`, the outputs of all its instances, in the order of its items. */
  private inputOf(input: PipelineStep['inputs'][number]): readonly ArtifactView[] | string {
    const { params } = this.run;
    if (input.kind === 'text')
      return String(substitute(input.text, { params, inputs: {}, outputs: {}, item: null }));
    const source = this.spec.steps.find(({ name }) => name === input.step);
    const steps = this.parts.state.pipelines.steps.get(this.run.id);
    const count = source === undefined ? 0 : countOfInstances(source, params);
    const instances = Array.from({ length: count }, (_, index) =>
      steps?.get(pipelineStepKey(input.step, index)),
    );
    if (source?.work.kind === 'sweep') return instances[0]?.best ?? '';
    return instances.flatMap((each) => each?.outputs.filter(({ name }) => name === input.output) ?? []);
  }

  private earlierOf({ cache }: PipelineStep, key: string | null): StoredPipelineStep | null {
    if (cache === null || key === null || !this.run.usesCache) return null;
    this.earlier ??= this.cachedSteps();
    const found = this.earlier.get(key);
    const oldest = cache.ttlMs === null ? 0 : this.parts.wallMs() - cache.ttlMs;
    return found === undefined || (found.endedAtMs ?? 0) < oldest ? null : found;
  }

  private cachedSteps(): ReadonlyMap<string, StoredPipelineStep> {
    const newest = new Map<string, StoredPipelineStep>();
    for (const steps of this.parts.state.pipelines.steps.values())
      for (const step of steps.values()) {
        if (step.state !== 'succeeded' || step.cacheKey === null) continue;
        const other = newest.get(step.cacheKey);
        if ((other?.endedAtMs ?? 0) <= (step.endedAtMs ?? 0)) newest.set(step.cacheKey, step);
      }
    return newest;
  }

  private command<T>(command: Command<T>): Promise<T> {
    return this.parts.loop.run(this.run.by, command, true);
  }
}

function artifactsOf(
  inputs: Readonly<Record<string, readonly ArtifactView[] | string>>,
): StepStart['inputs'] {
  return Object.fromEntries(
    Object.entries(inputs).flatMap(([name, input]) => (typeof input === 'string' ? [] : [[name, input]])),
  );
}

function refusal([first]: readonly Finding[]): MusterError {
  const place = first === undefined ? '' : `${formatPath(first.path)}: `;
  return new MusterError('invalid', `${place}${first?.message ?? 'invalid'}`);
}
