/** The API's calls about sweeps. */
import { MusterError } from '@muster/common/errors';
import type { RandomBytes } from '@muster/common/ids';
import { parseDurationMs } from '@muster/common/spec/duration';
import { specBytesMax } from '@muster/common/spec/limits';
import { noOrigin, toProblems } from '@muster/common/spec/problems';
import { hasSweepEnded, type SweepView, type TrialState, type TrialView } from '@muster/common/sweeps';
import { sweepToWire, trialToWire } from '@muster/common/wire/codec';
import { readSweep, type SweepSpec, sweepToFile, trialsMax } from '@muster/experiments/file/sweepFile';
import { bestTrial, type Objective } from '@muster/experiments/objective';
import { deviationOf } from '@muster/experiments/seeds';
import { type KnownTrial, takenOver } from '@muster/experiments/warmStart';
import type { AgentRegistry } from '../agents/registry.ts';
import { mayUseOwned, requireProject } from '../auth/access.ts';
import type { Identity } from '../caller.ts';
import { createSweep, extendSweep, stopSweep } from '../commands/sweeps.ts';
import { type SweepUseParts, usedUp, useOfTrials } from '../commands/sweepUse.ts';
import type { DiskReserve } from '../diskReserve.ts';
import { checkJobLease } from '../leases/leases.ts';
import type { Loop } from '../loop.ts';
import type { TimeLimits } from '../reconcilers/timeLimits.ts';
import type { SecretVault } from '../secrets/vault.ts';
import { isPrivate } from '../state/people.ts';
import type { ClusterState } from '../state/state.ts';
import { openJobsOf, pointAsRun } from '../state/trialJobs.ts';
import type { Store } from '../store/store.ts';
import type { StoredSweep, StoredTrial } from '../store/sweeps.ts';
import type { SweepRunner } from '../sweeps/sweepRunner.ts';
import { trialsOfSweep } from '../sweeps/trialCount.ts';
import { type MusterCalls, unary } from './calls.ts';
import { intentDigest } from './jobRequests.ts';
import { Requests } from './requests.ts';
import { resolveNamed } from './resolveNamed.ts';
import { seesSweep } from './visibleJobs.ts';

export interface SweepCallParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readRequest' | 'readJob'>;
  readonly timeLimits: Pick<TimeLimits, 'runningMs'>;
  readonly costOf: SweepUseParts['costOf'];
  readonly loop: Loop;
  readonly agents: Pick<AgentRegistry, 'heartbeatIntervalMs'>;
  readonly vault: Pick<SecretVault, 'require'>;
  readonly reserve: Pick<DiskReserve, 'requireSpace'>;
  readonly sweeps: SweepRunner;
  /** Of GPUs, without which no budget can be in money. */
  readonly hasPrices: boolean;
  readonly random: RandomBytes;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
}

type SweepCalls = Pick<
  MusterCalls,
  'CreateSweep' | 'ListSweeps' | 'GetSweep' | 'ListTrials' | 'StopSweep' | 'ExtendSweep'
>;

const listLimitMax = 1_000;
const listLimitUsual = 100;
const reasonLengthMax = 200;

export function sweepCalls(parts: SweepCallParts): SweepCalls {
  const { state, loop, sweeps } = parts;
  const requests = new Requests(parts.store);
  const awaitsOf: AwaitsOf = (trial) => sweeps.awaitsOf(openJobsOf(trial));

  async function viewOf(sweep: StoredSweep): Promise<SweepView> {
    const trials = state.sweeps.trials.get(sweep.id) ?? [];
    const { runningMs } = parts.timeLimits;
    const used = await useOfTrials({ ...parts, runningMs }, trials, parts.hasPrices);
    const priced = { ...used, usd: parts.hasPrices ? used.usd : null };
    return sweepView(sweep, trials, priced, awaitsOf, parts.wallMs());
  }

  function current(id: string): StoredSweep {
    const sweep = state.sweeps.sweeps.get(id);
    if (sweep === undefined) throw new MusterError('not_found', `there is no sweep ${id}`);
    return sweep;
  }

  /** @throws {MusterError} `failed_precondition` */
  async function requireBudget(sweep: StoredSweep, budget: SweepSpec['budget']): Promise<void> {
    const { runningMs } = parts.timeLimits;
    const trials = state.sweeps.trials.get(sweep.id) ?? [];
    const spent = budget === null ? null : await usedUp({ ...parts, runningMs }, budget, sweep, trials);
    if (spent !== null)
      throw new MusterError(
        'failed_precondition',
        `${sweep.id} would start no trial: ${spent}; start another sweep with a budget of its own`,
      );
  }

  return {
    CreateSweep: unary(async ({ specJson, requestId, dryRun }, caller) => {
      const spec = decodeSweep(specJson);
      const { name, sampler, job } = spec;
      requireProject(caller, job.project);
      checkJobLease(job.leaseMs, parts.agents.heartbeatIntervalMs);
      await parts.vault.require(job);
      if (spec.budget?.usd != null && !parts.hasPrices)
        throw new MusterError(
          'failed_precondition',
          'budget.usd: this coordinator knows no prices of GPUs; give it some with --prices, or limit gpu_hours',
        );
      const trials = await trialsOfSweep(spec);
      // Of what was sent: the sweeps from which it takes over may have other trials when it is repeated.
      const digest = intentDigest(['sweep', JSON.stringify(sweepToFile(spec))]);
      const fieldsNow = () => {
        const text = textWithKnownTrials(state, spec, caller);
        return { name, project: job.project, spec: text, sampler, trials, requestId, digest };
      };
      if (dryRun)
        return sweepToWire(
          await viewOf({
            ...fieldsNow(),
            id: '',
            user: caller.kind === 'user' ? caller.user : caller.kind,
            by: caller,
            state: 'running',
            reason: null,
            createdAtMs: parts.wallMs(),
            endedAtMs: null,
          }),
        );
      const { record } = await requests.once({ requestId, digest }, () => {
        parts.reserve.requireSpace(parts.monotonicMs());
        const fields = fieldsNow();
        return loop.run(caller, (draft, nowMs) => createSweep(draft, fields, parts.random, nowMs));
      });
      sweeps.begin();
      return sweepToWire(await viewOf(current(record.arrayId ?? '')));
    }),

    ListSweeps: unary(async ({ active, limit }, caller) => {
      const listed = visibleSweeps(state, caller).filter((each) => !active || !hasSweepEnded(each.state));
      const count = Math.min(limit ?? listLimitUsual, listLimitMax);
      return {
        sweeps: (await Promise.all(listed.slice(0, count).map(viewOf))).map(sweepToWire),
        more: listed.length > count,
      };
    }),

    GetSweep: unary(async ({ sweep }, caller) =>
      sweepToWire(await viewOf(resolveSweep(state, sweep, caller))),
    ),

    ListTrials: unary(async ({ sweep, fromNumber, limit }, caller) => {
      const { id } = resolveSweep(state, sweep, caller);
      const trials = state.sweeps.trials.get(id) ?? [];
      const end = Math.max(0, fromNumber) + Math.min(limit ?? listLimitMax, listLimitMax);
      return {
        trials: trials
          .slice(Math.max(0, fromNumber), end)
          .map((each) => trialToWire(trialView(each, awaitsOf))),
        more: trials.length > end,
      };
    }),

    StopSweep: unary(async ({ sweep, reason }, caller) => {
      if (reason.length > reasonLengthMax)
        throw new MusterError(
          'invalid',
          `reason: ${reason.length} characters; expected at most ${reasonLengthMax}`,
        );
      const { id } = requireChange(state, resolveSweep(state, sweep, caller), caller);
      await loop.run(caller, (draft, nowMs) => stopSweep(draft, id, reason || 'stopped by a user', nowMs));
      sweeps.begin();
      return sweepToWire(await viewOf(current(id)));
    }),

    ExtendSweep: unary(async ({ sweep, trials: by, requestId }, caller) => {
      if (by < 1) throw new MusterError('invalid', `trials: got ${by}; expected at least 1`);
      const found = requireChange(state, resolveSweep(state, sweep, caller), caller);
      const { id } = found;
      const { sampler, budget } = decodeSweep(found.spec);
      if (sampler === 'grid')
        throw new MusterError(
          'failed_precondition',
          `${id} tries the points of a grid, which has no others; start another sweep with more values`,
        );
      const digest = intentDigest(['extend sweep', id, by]);
      const command = { id, by, trialsMax, requestId, digest };
      await requests.once({ requestId, digest }, async () => {
        await requireBudget(found, budget);
        return loop.run(caller, (draft, nowMs) => extendSweep(draft, command, nowMs));
      });
      sweeps.begin();
      return sweepToWire(await viewOf(current(id)));
    }),
  };
}

/** @throws {MusterError} `invalid`, with every problem */
function decodeSweep(text: string): SweepSpec {
  if (Buffer.byteLength(text) > specBytesMax)
    throw new MusterError(
      'invalid',
      `the sweep has ${Buffer.byteLength(text)} bytes; at most ${specBytesMax}`,
    );
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new MusterError('invalid', 'spec_json is not JSON', { cause: error });
  }
  const read = readSweep(value);
  if (read.ok) return read.sweep;
  const problems = toProblems(read.findings.map((finding) => ({ finding, origin: noOrigin })));
  const [first] = problems;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  throw new MusterError(
    'invalid',
    `invalid sweep: ${first?.path ? `${first.path}: ` : ''}${first?.message ?? ''}${more}`,
    { problems },
  );
}

/**
 * The trials of earlier sweeps become part of the sweep file, so that the sweep stays the same whatever becomes of those.
 * @throws {MusterError} `not_found`; `invalid` for a sweep with another objective, or without a trial that fits
 */
function textWithKnownTrials(state: ClusterState, spec: SweepSpec, caller: Identity): string {
  const { warmStart, objective, parameters } = spec;
  const earlier = warmStart.sweeps.flatMap((name): readonly KnownTrial[] => {
    const { id, spec: text } = resolveSweep(state, name, caller);
    const { metric, goal } = decodeSweep(text).objective;
    const refuse = (message: string) => new MusterError('invalid', `warm_start: ${name}: ${message}`);
    if (metric !== objective.metric || goal !== objective.goal)
      throw refuse(`its objective is ${goal} ${metric}; expected ${objective.goal} ${objective.metric}`);
    const known = (state.sweeps.trials.get(id) ?? []).flatMap((trial): readonly KnownTrial[] => {
      if (trial.state === 'complete') return [{ params: pointAsRun(trial), value: trial.value }];
      return trial.state === 'infeasible' ? [{ params: pointAsRun(trial), value: null }] : [];
    });
    const fitting = takenOver(parameters, objective, known);
    if (fitting.length > 0) return fitting;
    throw refuse('none of its trials has ended with parameters of this sweep');
  });
  const trials = takenOver(parameters, objective, [...earlier, ...warmStart.trials]);
  const text = JSON.stringify(sweepToFile({ ...spec, warmStart: { sweeps: [], trials } }));
  const bytes = Buffer.byteLength(text);
  if (bytes <= specBytesMax) return text;
  throw new MusterError(
    'invalid',
    `warm_start: with ${trials.length} known trials the sweep has ${bytes} bytes; expected at most ${specBytesMax}`,
  );
}

/** Newest first. */
function visibleSweeps(state: ClusterState, caller: Identity): readonly StoredSweep[] {
  return [...state.sweeps.sweeps.values()]
    .filter((sweep) => seesSweep(state.people, caller, { ...sweep }))
    .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1));
}

/** @throws {MusterError} `not_found`, or `invalid` for the beginning of several ids */
function resolveSweep(state: ClusterState, text: string, caller: Identity): StoredSweep {
  return resolveNamed(visibleSweeps(state, caller), text, {
    plural: 'sweeps',
    missing: (shown) => `there is no sweep ${shown}`,
    list: 'muster sweep list',
  });
}

/** @throws {MusterError} `permission_denied` */
function requireChange(state: ClusterState, sweep: StoredSweep, caller: Identity): StoredSweep {
  const { id, user, project } = sweep;
  if (mayUseOwned(caller, 'change', { user, project }, (name) => isPrivate(state.people, name))) return sweep;
  throw new MusterError(
    'permission_denied',
    `${id} belongs to ${user}: only they, members of ${project} and operators may change it`,
  );
}

/** Of the complete sweep file. */
interface BudgetFile {
  readonly gpu_hours?: number;
  readonly usd?: number;
  readonly wall_clock?: string;
}

/** The metrics that a trial waits for, in words. null: it waits for none */
type AwaitsOf = (trial: StoredTrial) => string | null;

/** `trial 3: the last metrics of attempt 1 from node-2, and 4 more` */
function awaitedTrials(trials: readonly StoredTrial[], awaitsOf: AwaitsOf): string | null {
  const awaited = trials.flatMap((trial) => {
    const awaits = awaitsOf(trial);
    return awaits === null ? [] : [`trial ${trial.number}: ${awaits}`];
  });
  const [first = null] = awaited;
  return awaited.length > 1 ? `${first}, and ${awaited.length - 1} more` : first;
}

const hourSeconds = 3_600;
const hourMs = 3_600_000;

function sweepView(
  sweep: StoredSweep,
  trials: readonly StoredTrial[],
  used: { readonly gpuSeconds: number; readonly usd: number | null },
  awaitsOf: AwaitsOf,
  nowMs: number,
): SweepView {
  const { by: _by, isSpent: _isSpent, failuresFrom: _from, spec: text, ...rest } = sweep;
  const spec = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const count = (state: TrialState) => trials.filter((trial) => trial.state === state).length;
  const best = bestTrial(spec['objective'] as Objective, trials);
  const {
    gpu_hours: gpuHours = null,
    usd = null,
    wall_clock: wallClock,
  } = (spec['budget'] ?? {}) as BudgetFile;
  const wallClockMs = wallClock === undefined ? null : parseDurationMs(wallClock);
  return {
    ...rest,
    spec,
    running: count('running'),
    paused: count('paused'),
    complete: count('complete'),
    incomplete: count('incomplete'),
    pruned: count('pruned'),
    infeasible: count('infeasible'),
    failed: count('failed'),
    stopped: count('stopped'),
    best: best === null ? null : trialView(best, awaitsOf),
    awaits: awaitedTrials(trials, awaitsOf),
    use: {
      trials: trials.length,
      trialsLimit: sweep.trials,
      gpuHours: used.gpuSeconds / hourSeconds,
      gpuHoursLimit: gpuHours,
      usd: used.usd,
      usdLimit: usd,
      wallClockHours: ((sweep.endedAtMs ?? nowMs) - sweep.createdAtMs) / hourMs,
      wallClockHoursLimit: wallClockMs === null ? null : wallClockMs / hourMs,
    },
  };
}

function trialView(trial: StoredTrial, awaitsOf: AwaitsOf): TrialView {
  const { sweep: _sweep, stoppedEarly: _early, promotedAt: _rung, used: _used, ...shown } = trial;
  const {
    earlierJobs = [],
    furtherValues = [],
    seedRuns = [],
    point: _point,
    ran: _ran,
    lost = null,
    ...rest
  } = shown;
  const values = seedRuns.flatMap(({ value }) => value ?? []);
  return {
    ...rest,
    earlierJobs,
    params: pointAsRun(trial),
    deviation: trial.value === null ? null : deviationOf(values),
    furtherValues,
    furtherDeviations: furtherValues.flatMap(
      (_, index) => deviationOf(seedRuns.flatMap((run) => run.furtherValues[index] ?? [])) ?? [],
    ),
    seeds: seedRuns.map(({ lost: lostOfRun = null, ...run }) => ({ ...run, lost: lostOfRun })),
    lost,
    awaits: awaitsOf(trial),
  };
}
