/**
 * Runs sweeps: each pass looks at what is stored of them and at their jobs, records what has ended, and starts what there is room for.
 * It keeps nothing that a restart must find again. A trial and its job are one commit, so none is started twice.
 */
import { messageOf } from '@muster/common/errors';
import type { JobId, RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { isTerminal } from '@muster/common/states';
import { hasSweepEnded } from '@muster/common/sweeps';
import { readSweep, type SweepSpec } from '@muster/experiments/file/sweepFile';
import { lossesOf } from '@muster/experiments/objective';
import { samplers } from '@muster/experiments/samplers/byName';
import type { Observation } from '@muster/experiments/samplers/sampler';
import { EmptySpaceError, type Point, type SearchSpace } from '@muster/experiments/space';
import type { Promotion } from '@muster/experiments/stopping/rules';
import { sweepLabel, trialSpec } from '@muster/experiments/trialSpec';
import { fitsSpace, knownObservations } from '@muster/experiments/warmStart';
import type { RunningMs } from '../commands/budgets.ts';
import { pauseTrial, prunePausedTrials, resumeTrial } from '../commands/pausedTrials.ts';
import { closeTrials, endSeedRun, startSeedRun } from '../commands/seedRuns.ts';
import {
  endSweep,
  endTrial,
  giveUpSweep,
  limitTrials,
  removeEndedSweep,
  startTrial,
  stopTrialEarly,
} from '../commands/sweeps.ts';
import { type SweepUseParts, useAfter, usedUp } from '../commands/sweepUse.ts';
import type { Command, Loop } from '../loop.ts';
import type { OutputEnds } from '../outputEnds/outputEnds.ts';
import type { RowStore } from '../rows/rowStore.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import { openJobsOf, pointAsRun, ranWith } from '../state/trialJobs.ts';
import { isRefusal } from '../store/noSpace.ts';
import type { Store } from '../store/store.ts';
import type { StoredSweep, StoredTrial } from '../store/sweeps.ts';
import { namedFailure } from '../work/contained.ts';
import { nextRound } from '../work/inOrder.ts';
import { EarlyStops } from './earlyStops.ts';
import { sweepsToRemove } from './endedSweeps.ts';
import { spaceOfSweep } from './searchSpace.ts';
import { nextSweepStep, type SweepLook, type SweepStep } from './sweepPlan.ts';
import { TrialEnds } from './trialEnds.ts';

/** Between two looks at which sweeps are no longer kept. */
const removeEveryMs = 60_000;

export interface SweepRunnerParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readJob'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly rows: Pick<RowStore, 'lookAt'>;
  readonly outputEnds: Pick<OutputEnds, 'rowSenders'>;
  readonly runningMs: RunningMs;
  readonly costOf: SweepUseParts['costOf'];
  readonly random: RandomBytes;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
  /** False while the time is in doubt, and nothing may be removed for its age. */
  readonly isCertain: () => boolean;
  readonly log: Logger;
}

interface Known {
  readonly text: string;
  readonly spec: SweepSpec;
  readonly space: SearchSpace;
}

export class SweepRunner {
  private readonly parts: SweepRunnerParts;
  private readonly known = new Map<string, Known>();
  private readonly earlyStops: EarlyStops;
  private readonly ends: TrialEnds;
  private work: Promise<void> | null = null;
  private isAskedAgain = false;
  private removesAtMs = 0;

  constructor(parts: SweepRunnerParts) {
    this.parts = parts;
    const { store, rows, outputEnds } = parts;
    this.earlyStops = new EarlyStops(rows);
    this.ends = new TrialEnds({ store, rows, outputEnds });
  }

  /** One pass over all sweeps; one that is asked for meanwhile follows it. */
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
      this.parts.log.warn({ error: messageOf(error) }, 'a pass over the sweeps has failed'),
    );
  }

  /** A trial that starts makes room in the queue, and one that ends makes room in its sweep. */
  committed({ jobs }: Pick<Committed, 'jobs'>): void {
    const isOurs = jobs.some(
      ({ spec, state }) =>
        spec.labels[sweepLabel] !== undefined && (state.kind === 'starting' || isTerminal(state.kind)),
    );
    if (isOurs) this.begin();
  }

  /** The rest of a task's metrics has arrived. */
  rowsComplete(jobId: JobId): void {
    this.earlyStops.refresh(jobId);
    if (this.ends.awaitsOf(jobId) !== null) this.begin();
  }

  /** The metrics that jobs of a trial have not sent although they have ended, in words. null: none is awaited */
  awaitsOf(jobIds: readonly JobId[]): string | null {
    for (const jobId of jobIds) {
      const awaits = this.ends.awaitsOf(jobId);
      if (awaits !== null) return awaits;
    }
    return null;
  }

  /** What fails of one sweep keeps no other from its pass, and is thrown at the end. */
  private async passes(): Promise<void> {
    const failures: unknown[] = [];
    do {
      this.isAskedAgain = false;
      for (const sweep of Array.from(this.parts.state.sweeps.sweeps.values()))
        await this.pass(sweep).catch((error: unknown) => failures.push(namedFailure(sweep.id, error)));
    } while (this.isAskedAgain);
    await this.removeEnded();
    if (failures.length > 0) throw failures[0];
  }

  private async removeEnded(): Promise<void> {
    const { state, wallMs, monotonicMs, isCertain } = this.parts;
    if (monotonicMs() < this.removesAtMs || !isCertain()) return;
    this.removesAtMs = monotonicMs() + removeEveryMs;
    for (const sweep of sweepsToRemove(state.sweeps.sweeps.values(), wallMs())) {
      await this.command(sweep, (draft) => removeEndedSweep(draft, sweep.id));
      await nextRound();
    }
  }

  private async pass(sweep: StoredSweep): Promise<void> {
    if (hasSweepEnded(sweep.state)) {
      if (this.known.delete(sweep.id)) this.earlyStops.forget(this.trialsOf(sweep));
      return;
    }
    const known = await this.knownOf(sweep);
    for (const trial of this.trialsOf(sweep))
      for (const jobId of openJobsOf(trial)) await this.settle(sweep, known, trial, jobId);
    const { stops, promotions } = await this.earlyStops.of(known.spec, this.trialsOf(sweep));
    for (const { trial, at } of stops)
      await this.command(sweep, (draft, nowMs) => stopTrialEarly(draft, trial, at, nowMs));
    const spent = await this.spentOf(sweep, known.spec);
    for (;;) {
      const now = this.parts.state.sweeps.sweeps.get(sweep.id);
      if (now === undefined || !(await this.step(now, known, { promotions, spent }))) return;
      await nextRound();
    }
  }

  /** @returns whether more may follow */
  private async step(
    sweep: StoredSweep,
    { spec, space }: Known,
    found: Pick<SweepLook, 'promotions' | 'spent'>,
  ): Promise<boolean> {
    const { id } = sweep;
    const trials = this.trialsOf(sweep);
    const { jobs } = this.parts.state;
    const queued = trials
      .flatMap(openJobsOf)
      .filter((jobId) => jobs.get(jobId)?.state.kind === 'queued').length;
    const { seeds, parallel, maxFailures, objective } = spec;
    const step = nextSweepStep({ sweep, trials, seeds, parallel, maxFailures, queued, ...found });
    switch (step.kind) {
      case 'wait':
        return false;
      case 'end':
        await this.command(sweep, (draft, nowMs) => endSweep(draft, id, { ...step, objective }, nowMs));
        return false;
      case 'giveUp':
        await this.command(sweep, (draft) => giveUpSweep(draft, id, step.reason, step.isSpent));
        return true;
      case 'prune':
        await this.command(sweep, (draft, nowMs) => prunePausedTrials(draft, id, step.numbers, nowMs));
        return true;
      case 'close':
        await this.command(sweep, (draft, nowMs) => closeTrials(draft, id, { ...step, seeds }, nowMs));
        return true;
      case 'startSeed':
        await this.giveUpWhenRefused(sweep, () => this.startSeed(sweep, spec, trials, step));
        return true;
      case 'resume':
        await this.giveUpWhenRefused(sweep, () => this.resume(sweep, trials, step.promotion));
        return true;
      default:
        await this.giveUpWhenRefused(sweep, () => this.start(sweep, { spec, space }, trials, step.number));
        return true;
    }
  }

  /** A trial that cannot be submitted, such as for a budget that is used up, is the end of its sweep. */
  private async giveUpWhenRefused(sweep: StoredSweep, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isRefusal(error) && !(error instanceof EmptySpaceError)) throw error;
      await this.command(sweep, (draft) => giveUpSweep(draft, sweep.id, messageOf(error)));
    }
  }

  private async resume(
    sweep: StoredSweep,
    trials: readonly StoredTrial[],
    { number, rung }: Promotion,
  ): Promise<void> {
    const { store, runningMs, random } = this.parts;
    const trial = trials[number];
    if (trial === undefined) return;
    const before = (await store.readJob(trial.jobId))?.job;
    await this.command(sweep, (draft, nowMs) => {
      // Retention has removed its job, and what it has saved with it.
      if (before === undefined) prunePausedTrials(draft, sweep.id, [number], nowMs);
      else resumeTrial(draft, { sweep: sweep.id, number, before, rung, runningMs }, random, nowMs);
    });
  }

  private async start(
    sweep: StoredSweep,
    { spec, space }: Pick<Known, 'spec' | 'space'>,
    trials: readonly StoredTrial[],
    number: number,
  ): Promise<void> {
    const { id } = sweep;
    const { runningMs, random } = this.parts;
    const point = pointOf(spec, space, trials, number);
    if (point === null) {
      await this.command(sweep, (draft) => limitTrials(draft, id, number));
      return;
    }
    const hasSeeds = spec.seeds > 1;
    const job = trialSpec({ ...spec, number, point, seed: hasSeeds ? 0 : null }, id);
    const trial = { sweep: id, number, point, spec: job, hasSeeds, runningMs };
    await this.command(sweep, (draft, nowMs) => startTrial(draft, trial, random, nowMs));
  }

  private async startSeed(
    sweep: StoredSweep,
    spec: SweepSpec,
    trials: readonly StoredTrial[],
    { number, seed }: Extract<SweepStep, { kind: 'startSeed' }>,
  ): Promise<void> {
    const { runningMs, random } = this.parts;
    const trial = trials[number];
    if (trial === undefined) return;
    const { id } = sweep;
    const job = trialSpec({ ...spec, number, point: trial.point, seed }, id);
    const run = { sweep: id, number, seed, seeds: spec.seeds, spec: job, runningMs };
    await this.command(sweep, (draft, nowMs) => startSeedRun(draft, run, random, nowMs));
  }

  /** @returns null: it has no budget, or something of it is left */
  private async spentOf(sweep: StoredSweep, { budget }: SweepSpec): Promise<string | null> {
    if (budget === null || sweep.reason !== null) return null;
    return usedUp(this.parts, budget, sweep, this.trialsOf(sweep));
  }

  /** Records the end of a job of a trial. */
  private async settle(sweep: StoredSweep, { spec }: Known, trial: StoredTrial, jobId: JobId): Promise<void> {
    if (this.parts.state.jobs.has(jobId)) return;
    const record = await this.parts.store.readJob(jobId);
    const hasSeeds = trial.seedRuns !== undefined;
    const end = await this.ends.endOf(spec, record, hasSeeds ? { jobId } : trial);
    if (end === null) return;
    this.ends.forget(jobId);
    if (hasSeeds) {
      if (end === 'paused') throw new Error(`a seed of trial ${trial.number} was stopped early`);
      const { state, furtherValues = [], ...rest } = end;
      const used = useAfter({}, record, this.parts.costOf);
      const job = record?.job ?? null;
      // A single job of the trial was stopped, and not at a rung.
      const kept = state === 'pruned' ? 'stopped' : state;
      const run = { ...rest, state: kept, furtherValues, jobId, used, job, seeds: spec.seeds } as const;
      await this.command(sweep, (draft, nowMs) => endSeedRun(draft, trial, run, nowMs));
      return;
    }
    const used = useAfter(trial, record, this.parts.costOf);
    const ran = record === null ? {} : ranWith(trial, record.job);
    await this.command(sweep, (draft, nowMs) =>
      end === 'paused'
        ? pauseTrial(draft, trial, used, nowMs)
        : endTrial(draft, trial, { ...end, ...ran, used }, nowMs),
    );
  }

  private trialsOf({ id }: StoredSweep): readonly StoredTrial[] {
    return this.parts.state.sweeps.trials.get(id) ?? [];
  }

  /** What was acknowledged is carried out, whatever has become of its user since. */
  private command<T>({ by }: StoredSweep, command: Command<T>): Promise<T> {
    return this.parts.loop.run(by, command, true);
  }

  private async knownOf({ id, spec: text }: StoredSweep): Promise<Known> {
    const before = this.known.get(id);
    if (before?.text === text) return before;
    const read = readSweep(JSON.parse(text));
    if (!read.ok)
      throw new Error(`the stored sweep ${id} cannot be read: ${read.findings[0]?.message ?? ''}`);
    const known = { text, spec: read.sweep, space: await spaceOfSweep(read.sweep) };
    this.known.set(id, known);
    return known;
  }
}

/** @returns null: every point has been tried */
function pointOf(
  { sampler, seed, objective, furtherObjectives, warmStart }: SweepSpec,
  space: SearchSpace,
  trials: readonly StoredTrial[],
  number: number,
): Point | null {
  const objectives = [objective, ...furtherObjectives];
  const history = trials.flatMap((trial): readonly Observation[] => {
    const { state, step, stoppedEarly, point, ran } = trial;
    if (state === 'failed' || state === 'stopped') return [];
    const [loss = null, ...furtherLosses] = lossesOf(objectives, trial) ?? [];
    // What it has shown says something, and not how it ends.
    const seen = state === 'paused' || state === 'incomplete' ? 'pruned' : state;
    const reached = step ?? stoppedEarly?.epoch ?? 0;
    const result = { state: seen, loss, furtherLosses, step: reached } as const;
    if (ran === undefined) return [{ point, ...result }];
    // What was asked for did not work; what ran instead counts if it is a point of the space.
    const asRun = pointAsRun(trial);
    return [
      { point, state: 'infeasible', loss: null, furtherLosses: [], step: 0 },
      ...(fitsSpace(space.parameters, asRun) ? [{ point: asRun, ...result }] : []),
    ];
  });
  const known = knownObservations(objective, warmStart.trials);
  return samplers[sampler]({ space, history: [...known, ...history], seed, number });
}
