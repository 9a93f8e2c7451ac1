/**
 * Runs pipelines: each pass looks at what is stored of their runs and at the jobs and sweeps of their steps, records what has ended, and
 * starts what is next. It keeps nothing that a restart must find again. A step and its job are one commit, so none is started twice.
 */
import { messageOf } from '@muster/common/errors';
import type { JobId, RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { hasPipelineEnded } from '@muster/common/pipelines';
import { isTerminal } from '@muster/common/states';
import { countOfInstances, pipelineLabel } from '@muster/pipelines/file/stepJob';
import type { PipelineSpec } from '@muster/pipelines/model';
import { nextPipelineActions, type PipelineAction } from '@muster/pipelines/plan';
import type { RunningMs } from '../commands/budgets.ts';
import { endPipeline, endStep, expireStep, settleStep } from '../commands/pipelines.ts';
import type { LogStore } from '../logs/logStore.ts';
import type { Command, Loop } from '../loop.ts';
import type { OutputEnds } from '../outputEnds/outputEnds.ts';
import type { Committed } from '../state/committed.ts';
import { pipelineStepKey } from '../state/pipelines.ts';
import type { ClusterState } from '../state/state.ts';
import type { StoredPipeline, StoredPipelineStep } from '../store/pipelines.ts';
import type { Store } from '../store/store.ts';
import { nextRound } from '../work/inOrder.ts';
import { runsToRemove } from './endedRuns.ts';
import { type RefusedStart, StartRefusals } from './startRefusals.ts';
import { conditionsOfSteps, type StepCondition } from './stepConditions.ts';
import { StepEnds } from './stepEnds.ts';
import { StepStarter } from './stepStarter.ts';
import { StepStartTimes } from './stepStartTimes.ts';
import { storedPipelineSpec } from './storedSpecs.ts';

/** Between two looks at what is no longer kept, and how many runs one commit removes. */
const removeEveryMs = 60_000;
const removedAtOnce = 100;

export interface PipelineRunnerParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readJob'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly logs: Pick<LogStore, 'size' | 'read' | 'tailOffset'>;
  readonly outputEnds: Pick<OutputEnds, 'logSender'>;
  readonly runningMs: RunningMs;
  readonly random: RandomBytes;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
  /** False while the time is in doubt, and nothing may be removed for its age. */
  readonly isCertain: () => boolean;
  readonly log: Logger;
}

export interface KnownPipeline {
  readonly spec: PipelineSpec;
  readonly conditions: ReadonlyMap<string, StepCondition>;
}

export class PipelineRunner {
  private readonly parts: PipelineRunnerParts;
  private readonly known = new Map<string, KnownPipeline>();
  private readonly ends: StepEnds;
  private readonly starts: StepStartTimes;
  private readonly refusals: StartRefusals;
  private work: Promise<void> | null = null;
  private isAskedAgain = false;
  private removesAtMs = 0;

  constructor(parts: PipelineRunnerParts) {
    this.parts = parts;
    this.ends = new StepEnds(parts);
    this.starts = new StepStartTimes(parts);
    this.refusals = new StartRefusals(parts.monotonicMs);
  }

  /** Why a try of a step is not started yet, although it is its turn. null: nothing is in its way. */
  waitReasonOf(start: RefusedStart): string | null {
    return this.refusals.reasonOf(start);
  }

  /** The output that a step waits for although its job has ended, in words. null: it waits for none */
  awaitsOf(jobId: JobId): string | null {
    return this.ends.awaitsOf(jobId);
  }

  /** One pass over all runs; one that is asked for meanwhile follows it. */
  run(): Promise<void> {
    if (this.work !== null) this.isAskedAgain = true;
    this.work ??= this.passes().finally(() => {
      this.work = null;
    });
    return this.work;
  }

  /** As `run`, for who does not wait for it: what fails now is done by the next tick. */
  begin(): void {
    this.run().catch((error: unknown) =>
      this.parts.log.warn({ error: messageOf(error) }, 'a pass over the pipelines has failed'),
    );
  }

  /** A job or a sweep that ends lets others begin. */
  committed({ jobs, events }: Pick<Committed, 'jobs' | 'events'>): void {
    const isOurs =
      jobs.some(({ spec, state }) => spec.labels[pipelineLabel] !== undefined && isTerminal(state.kind)) ||
      events.some(({ kind }) => kind === 'sweep.ended');
    if (isOurs) this.begin();
  }

  /** What fails of one run keeps no other from its pass, and is thrown at the end. */
  private async passes(): Promise<void> {
    const failures: unknown[] = [];
    do {
      this.isAskedAgain = false;
      for (const run of Array.from(this.parts.state.pipelines.runs.values()))
        await this.pass(run).catch((error: unknown) => failures.push(error));
      await this.removeOld().catch((error: unknown) => failures.push(error));
    } while (this.isAskedAgain);
    if (failures.length > 0) throw failures[0];
  }

  private async pass(run: StoredPipeline): Promise<void> {
    const { state } = this.parts;
    if (hasPipelineEnded(run.state)) {
      this.known.delete(run.id);
      this.starts.forget(run.id);
      this.refusals.forget(run.id);
      return;
    }
    const known = await this.knownOf(run);
    for (const step of this.stepsOf(run)) if (step.state === 'running') await this.settle(run, known, step);
    const starter = new StepStarter({ ...this.parts, refusals: this.refusals }, run, known.spec);
    for (;;) {
      const now = state.pipelines.runs.get(run.id);
      if (now === undefined || hasPipelineEnded(now.state)) return;
      const actions = this.actionsOf(now, known);
      if (actions.length === 0) return;
      for (const action of actions) await this.act(now, starter, action);
      await nextRound();
    }
  }

  private async removeOld(): Promise<void> {
    const { state, wallMs, monotonicMs, isCertain } = this.parts;
    if (monotonicMs() < this.removesAtMs || !isCertain()) return;
    this.removesAtMs = monotonicMs() + removeEveryMs;
    const old = runsToRemove(state.pipelines, wallMs());
    for (let at = 0; at < old.length; at += removedAtOnce) {
      const ids = old.slice(at, at + removedAtOnce);
      const first = state.pipelines.runs.get(ids[0] ?? '');
      if (first === undefined) return;
      await this.command(first, (draft) => {
        for (const id of ids) draft.pipelines.remove(id);
      });
      await nextRound();
    }
  }

  private actionsOf(run: StoredPipeline, { spec, conditions }: KnownPipeline): readonly PipelineAction[] {
    const steps = this.parts.state.pipelines.steps.get(run.id);
    const nowMs = this.parts.monotonicMs();
    const starts = this.starts.of(run.id, steps?.values() ?? []);
    return nextPipelineActions({
      steps: spec.steps,
      countOf: (step) => countOfInstances(step, run.params),
      instanceOf: (step, index) => {
        const key = pipelineStepKey(step, index);
        const found = steps?.get(key);
        return found === undefined ? null : { ...found, startedAtMs: starts.get(key)?.atMs ?? nowMs };
      },
      isHeldBack: (step, index) => this.refusals.isHeldBack(run.id, step, index),
      isStopping: run.state === 'stopping',
      parallel: spec.parallel,
      nowMs,
      holds: ({ name }, outcomes) => conditions.get(name)?.(run.params, outcomes) ?? null,
    });
  }

  private async act(run: StoredPipeline, starter: StepStarter, action: PipelineAction): Promise<void> {
    const { id } = run;
    switch (action.kind) {
      case 'start':
        return starter.start(action);
      case 'expire':
        return this.command(run, (draft, nowMs) => expireStep(draft, id, action, nowMs));
      case 'settle': {
        const { step, index, state, reason } = action;
        const start = { run: id, step, index, try: 1, cacheKey: null, inputs: {} };
        return this.command(run, (draft, nowMs) =>
          settleStep(draft, start, { state, reason, tries: 0 }, nowMs),
        );
      }
      default: {
        const { state, failed } = action;
        const reason =
          state === 'stopped' ? run.reason : failed === null ? null : this.failureOf(run, failed);
        return this.command(run, (draft, nowMs) => endPipeline(draft, id, { state, reason }, nowMs));
      }
    }
  }

  private failureOf(run: StoredPipeline, name: string): string {
    const failed = this.stepsOf(run).find(
      ({ step, state }) => step === name && (state === 'failed' || state === 'stopped'),
    );
    return `${name} has failed: ${failed?.reason ?? 'no cause is known'}`;
  }

  /** Records the end of a step whose job or sweep has ended. */
  private async settle(
    run: StoredPipeline,
    { spec }: KnownPipeline,
    step: StoredPipelineStep,
  ): Promise<void> {
    const end = await this.ends.endOf(run, spec, step);
    if (end === null) return;
    await this.command(run, (draft, nowMs) => endStep(draft, step, end, nowMs));
    this.ends.forget(step.jobId);
  }

  private stepsOf({ id }: StoredPipeline): readonly StoredPipelineStep[] {
    return [...(this.parts.state.pipelines.steps.get(id)?.values() ?? [])];
  }

  /** What was acknowledged is carried out, whatever has become of its user since. */
  private command<T>({ by }: StoredPipeline, command: Command<T>): Promise<T> {
    return this.parts.loop.run(by, command, true);
  }

  private async knownOf(run: StoredPipeline): Promise<KnownPipeline> {
    const { id } = run;
    const before = this.known.get(id);
    if (before !== undefined) return before;
    const spec = storedPipelineSpec(run);
    const known = { spec, conditions: await conditionsOfSteps(spec) };
    this.known.set(id, known);
    return known;
  }
}
