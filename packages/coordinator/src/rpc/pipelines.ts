/** The API's calls about pipelines. */
import { MusterError } from '@muster/common/errors';
import type { RandomBytes } from '@muster/common/ids';
import { hasPipelineEnded, type PipelineRunView, type PipelineStepView } from '@muster/common/pipelines';
import { closest } from '@muster/common/spec/suggest';
import { pipelineToWire } from '@muster/common/wire/codec';
import { needsOf } from '@muster/pipelines/file/graph';
import { countOfInstances, itemsOf } from '@muster/pipelines/file/stepJob';
import type { PipelineSpec } from '@muster/pipelines/model';
import type { AgentRegistry } from '../agents/registry.ts';
import { mayUseOwned, requireProject } from '../auth/access.ts';
import type { Identity } from '../caller.ts';
import { createPipeline, stopPipeline } from '../commands/pipelines.ts';
import type { DiskReserve } from '../diskReserve.ts';
import type { Loop } from '../loop.ts';
import type { PipelineRunner } from '../pipelines/pipelineRunner.ts';
import { decodeParams, decodePipeline } from '../pipelines/sentPipeline.ts';
import { requireSteps } from '../pipelines/stepChecks.ts';
import { conditionsOfSteps } from '../pipelines/stepConditions.ts';
import { storedPipelineSpec } from '../pipelines/storedSpecs.ts';
import type { SecretVault } from '../secrets/vault.ts';
import { isPrivate } from '../state/people.ts';
import { pipelineStepKey } from '../state/pipelines.ts';
import type { ClusterState } from '../state/state.ts';
import type { StoredPipeline, StoredPipelineStep } from '../store/pipelines.ts';
import type { Store } from '../store/store.ts';
import { type MusterCalls, unary } from './calls.ts';
import { intentDigest } from './jobRequests.ts';
import { Requests } from './requests.ts';
import { resolveNamed } from './resolveNamed.ts';
import { seesSweep } from './visibleJobs.ts';

export interface PipelineCallParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readRequest'>;
  readonly loop: Loop;
  readonly agents: Pick<AgentRegistry, 'heartbeatIntervalMs'>;
  readonly vault: Pick<SecretVault, 'require'>;
  readonly reserve: Pick<DiskReserve, 'requireSpace'>;
  readonly pipelines: PipelineRunner;
  readonly random: RandomBytes;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
}

type PipelineCalls = Pick<
  MusterCalls,
  'RunPipeline' | 'ListPipelines' | 'GetPipeline' | 'StopPipeline' | 'RerunPipeline'
>;

const listLimitMax = 1_000;
const listLimitUsual = 100;
const reasonLengthMax = 200;

export function pipelineCalls(parts: PipelineCallParts): PipelineCalls {
  const { state, loop, pipelines } = parts;
  const requests = new Requests(parts.store);

  function current(id: string): PipelineRunView {
    const run = state.pipelines.runs.get(id);
    if (run === undefined) throw new MusterError('not_found', `there is no run ${id} of a pipeline`);
    return viewOf(run);
  }

  function viewOf(run: StoredPipeline): PipelineRunView {
    const stored = state.pipelines.steps.get(run.id) ?? new Map();
    return pipelineView(run, stepViews(run, stored, pipelines));
  }

  return {
    RunPipeline: unary(async ({ specJson, paramsJson, requestId, dryRun, noCache }, caller) => {
      const { text, spec } = decodePipeline(specJson);
      const params = decodeParams(spec, paramsJson);
      const { name, project } = spec;
      requireProject(caller, project);
      await conditionsOfSteps(spec);
      await requireSteps(spec, params, parts);
      const usesCache = !noCache;
      const fields = { name, project, spec: text, params, usesCache, rerunOf: null, triggers: [] };
      if (dryRun) {
        const user = caller.kind === 'user' ? caller.user : caller.kind;
        const none = { id: '', user, by: caller, state: 'running', reason: null, endedAtMs: null } as const;
        return pipelineToWire(viewOf({ ...fields, ...none, createdAtMs: parts.wallMs() }));
      }
      const digest = intentDigest(['pipeline', text, JSON.stringify(params), String(usesCache)]);
      const command = { ...fields, kept: [], stepCount: spec.steps.length, requestId, digest };
      const { record } = await requests.once({ requestId, digest }, () => {
        parts.reserve.requireSpace(parts.monotonicMs());
        return loop.run(caller, (draft, nowMs) => createPipeline(draft, command, parts.random, nowMs));
      });
      pipelines.begin();
      return pipelineToWire(current(record.arrayId ?? ''));
    }),

    ListPipelines: unary(async ({ active, limit }, caller) => {
      const listed = visibleRuns(state, caller).filter((each) => !active || !hasPipelineEnded(each.state));
      const count = Math.min(limit ?? listLimitUsual, listLimitMax);
      const runs = listed.slice(0, count).map((each) => pipelineToWire(pipelineView(each, [])));
      return { runs, more: listed.length > count };
    }),

    GetPipeline: unary(async ({ run }, caller) => pipelineToWire(viewOf(resolveRun(state, run, caller)))),

    StopPipeline: unary(async ({ run, reason }, caller) => {
      if (reason.length > reasonLengthMax)
        throw new MusterError(
          'invalid',
          `reason: ${reason.length} characters; expected at most ${reasonLengthMax}`,
        );
      const { id } = requireChange(state, resolveRun(state, run, caller), caller);
      await loop.run(caller, (draft, nowMs) => stopPipeline(draft, id, reason || 'stopped by a user', nowMs));
      pipelines.begin();
      return pipelineToWire(current(id));
    }),

    RerunPipeline: unary(async ({ run, fromStep, requestId, noCache }, caller) => {
      const before = requireChange(state, resolveRun(state, run, caller), caller);
      requireProject(caller, before.project);
      if (!hasPipelineEnded(before.state))
        throw new MusterError(
          'failed_precondition',
          `${before.id} has not ended; stop it with muster pipeline stop ${before.id}`,
        );
      const { name, project, spec: text, params, id } = before;
      const { spec } = decodePipeline(text);
      const kept = keptSteps(spec, before, state.pipelines.steps.get(id)?.values() ?? [], fromStep);
      const digest = intentDigest(['rerun pipeline', id, fromStep, String(noCache)]);
      const fields = {
        name,
        project,
        spec: text,
        params,
        // Who names a step wants it to run, and not what it has made before.
        usesCache: !noCache && fromStep === '',
        rerunOf: id,
        triggers: [],
        kept,
      };
      const command = { ...fields, stepCount: spec.steps.length, requestId, digest };
      const { record } = await requests.once({ requestId, digest }, () => {
        parts.reserve.requireSpace(parts.monotonicMs());
        return loop.run(caller, (draft, nowMs) => createPipeline(draft, command, parts.random, nowMs));
      });
      pipelines.begin();
      return pipelineToWire(current(record.arrayId ?? ''));
    }),
  };
}

/**
 * Steps that a repetition takes over: those that have succeeded, but for the one that it starts from and what waits for that.
 * @throws {MusterError} `invalid` for a step that the pipeline does not have
 */
function keptSteps(
  { steps }: PipelineSpec,
  { id }: StoredPipeline,
  stored: Iterable<StoredPipelineStep>,
  from: string,
): readonly StoredPipelineStep[] {
  const names = steps.map(({ name }) => name);
  if (from !== '' && !names.includes(from)) {
    const meant = closest(from, names);
    const hint = meant === null ? `known are ${names.join(', ')}` : `did you mean "${meant}"?`;
    throw new MusterError('invalid', `from_step: there is no step "${from.slice(0, 60)}"; ${hint}`);
  }
  const again = new Set([from]);
  for (const step of steps)
    if (step.group !== 'steps' || needsOf(step).some((name) => again.has(name))) again.add(step.name);
  return [...stored].flatMap((step) => {
    if (again.has(step.step) || (step.state !== 'succeeded' && step.state !== 'cached')) return [];
    return [
      {
        ...step,
        state: 'cached' as const,
        cachedFrom: step.cachedFrom ?? id,
        tries: 0,
        jobId: null,
        sweepId: null,
      },
    ];
  });
}

/** Newest first. */
export function visibleRuns(state: ClusterState, caller: Identity): readonly StoredPipeline[] {
  return [...state.pipelines.runs.values()]
    .filter((run) => seesSweep(state.people, caller, { ...run }))
    .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1));
}

/** @throws {MusterError} `not_found`, or `invalid` for the beginning of several ids */
function resolveRun(state: ClusterState, text: string, caller: Identity): StoredPipeline {
  return resolveNamed(visibleRuns(state, caller), text, {
    plural: 'runs',
    missing: (shown) => `there is no run ${shown} of a pipeline`,
    list: 'muster pipeline list',
  });
}

/** @throws {MusterError} `permission_denied` */
function requireChange(state: ClusterState, run: StoredPipeline, caller: Identity): StoredPipeline {
  const { id, user, project } = run;
  if (mayUseOwned(caller, 'change', { user, project }, (name) => isPrivate(state.people, name))) return run;
  throw new MusterError(
    'permission_denied',
    `${id} belongs to ${user}: only they, members of ${project} and operators may change it`,
  );
}

function pipelineView(
  { by: _by, usesCache: _usesCache, requestId: _requestId, spec, triggers, ...rest }: StoredPipeline,
  steps: readonly PipelineStepView[],
): PipelineRunView {
  const trigger = triggers.at(-1) ?? null;
  return { ...rest, trigger, spec: JSON.parse(spec) as PipelineRunView['spec'], steps };
}

function stepViews(
  run: StoredPipeline,
  stored: ReadonlyMap<string, StoredPipelineStep>,
  pipelines: Pick<PipelineRunner, 'waitReasonOf' | 'awaitsOf'>,
): readonly PipelineStepView[] {
  const { params } = run;
  const mayStart = !hasPipelineEnded(run.state);
  return storedPipelineSpec(run).steps.flatMap((step) =>
    Array.from({ length: countOfInstances(step, params) }, (_, index): PipelineStepView => {
      const items = itemsOf(step, params);
      const found = stored.get(pipelineStepKey(step.name, index));
      const isOpen = mayStart && (found === undefined || found.state === 'failed');
      const next = { run: run.id, step: step.name, index, try: (found?.tries ?? 0) + 1 };
      const waitReason = isOpen ? pipelines.waitReasonOf(next) : null;
      const jobId = found?.jobId ?? null;
      const awaits = found?.state === 'running' && jobId !== null ? pipelines.awaitsOf(jobId) : null;
      return {
        step: step.name,
        group: step.group,
        index,
        item: items === null ? null : JSON.stringify(items[index]),
        state: waitReason === null && found !== undefined ? found.state : 'waiting',
        tries: found?.tries ?? 0,
        jobId,
        sweepId: found?.sweepId ?? null,
        cachedFrom: found?.cachedFrom ?? null,
        reason: waitReason ?? awaits ?? found?.reason ?? null,
        outputs: found?.outputs ?? [],
        startedAtMs: found?.startedAtMs ?? null,
        endedAtMs: found?.endedAtMs ?? null,
      };
    }),
  );
}
