/** The API's calls about triggers of pipelines. */
import { MusterError } from '@muster/common/errors';
import type { CreateTriggerRequest__Output } from '@muster/common/gen/muster/v1/CreateTriggerRequest';
import type { RandomBytes } from '@muster/common/ids';
import { hasPipelineEnded } from '@muster/common/pipelines';
import { closest } from '@muster/common/spec/suggest';
import {
  missedPolicies,
  overlapPolicies,
  type TriggerFireView,
  type TriggerView,
  triggerNameForm,
  triggerNamePattern,
} from '@muster/common/triggers';
import { triggerFireToWire, triggerToWire } from '@muster/common/wire/codec';
import { completeValues } from '@muster/pipelines/parameters';
import { referenceProblems, withFireSamples } from '@muster/pipelines/triggerValues';
import { mayUseOwned, requireProject } from '../auth/access.ts';
import { type Identity, userOf } from '../caller.ts';
import { createTrigger, deleteTrigger, type NewTrigger, pauseTrigger } from '../commands/triggers.ts';
import type { Command, Loop } from '../loop.ts';
import { decodeGiven, decodePipeline } from '../pipelines/sentPipeline.ts';
import { requireSteps, type StepCheckParts } from '../pipelines/stepChecks.ts';
import { conditionsOfSteps } from '../pipelines/stepConditions.ts';
import type { SecretVault } from '../secrets/vault.ts';
import { isPrivate } from '../state/people.ts';
import type { ClusterState } from '../state/state.ts';
import type { RequestRecord, Store } from '../store/store.ts';
import type { StoredTrigger, TriggerSource } from '../store/triggers.ts';
import type { ListData } from '../triggers/dataListing.ts';
import { eventConditionOf } from '../triggers/eventCondition.ts';
import { checkCron, timeAfter } from '../triggers/schedule.ts';
import { newWebhookSecret } from '../triggers/signature.ts';
import { factNames, type TriggerRunner, webhookSecretName } from '../triggers/triggerRunner.ts';
import { InOrder } from '../work/inOrder.ts';
import { type MusterCalls, unary } from './calls.ts';
import { intentDigest } from './jobRequests.ts';
import { Requests } from './requests.ts';
import { seesSweep } from './visibleJobs.ts';
import { runStartedFor } from './webhookDeliveries.ts';

export interface TriggerCallParts extends StepCheckParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly vault: SecretVault;
  readonly random: RandomBytes;
  readonly wallMs: () => number;
  readonly listData: ListData;
  readonly triggers: Pick<TriggerRunner, 'fireByHand'>;
  readonly store: Pick<Store, 'readRequest'>;
}

type TriggerCalls = Pick<
  MusterCalls,
  | 'CreateTrigger'
  | 'ListTriggers'
  | 'GetTrigger'
  | 'DeleteTrigger'
  | 'PauseTrigger'
  | 'ResumeTrigger'
  | 'RunTrigger'
>;

export function triggerCalls(parts: TriggerCallParts): TriggerCalls {
  const { state, loop, vault } = parts;
  const requests = new Requests(parts.store);
  /** Of webhooks, by name: the secret of each is stored before its trigger. */
  const creations = new InOrder<string>();

  function shown(name: string): ReturnType<typeof triggerToWire> {
    const trigger = state.pipelines.triggers.get(name);
    if (trigger === undefined) throw unknownTrigger(name, []);
    return triggerToWire(triggerView(state, trigger));
  }

  return {
    CreateTrigger: unary(async (request, caller) => {
      const wish = await wishOf(parts, request, caller);
      const user = userOf(caller);
      const create: Command<StoredTrigger> = (draft, nowMs) => createTrigger(draft, wish, user, nowMs);
      if (request.dryRun) return triggerToWire(triggerView(state, loop.tryOut(caller, create)));
      if (wish.source.kind !== 'webhook') {
        await loop.run(caller, create);
        return shown(wish.name);
      }
      return creations.run(wish.name, async () => {
        // First what would be refused, so that the secret of another trigger is not replaced.
        loop.tryOut(caller, create);
        // What is repeated changes nothing: whoever sends deliveries has the secret already.
        if (state.pipelines.triggers.has(wish.name)) return shown(wish.name);
        const secret = newWebhookSecret(parts.random);
        await vault.set(caller, wish.project, webhookSecretName(wish.name), Buffer.from(secret));
        await loop.run(caller, create);
        return { ...shown(wish.name), secret };
      });
    }),

    ListTriggers: unary(async (_request, caller) => ({
      triggers: visibleTriggers(state, caller).map((each) => triggerToWire(triggerView(state, each))),
    })),

    GetTrigger: unary(async ({ name }, caller) =>
      triggerToWire(triggerView(state, findTrigger(state, name, caller))),
    ),

    DeleteTrigger: unary(async ({ name }, caller) => {
      const trigger = requireChange(state, findTrigger(state, name, caller), caller);
      await loop.run(caller, (draft, nowMs) => deleteTrigger(draft, name, nowMs));
      if (trigger.source.kind === 'webhook')
        await vault.remove(caller, trigger.project, webhookSecretName(name)).catch(unlessMissing);
      return triggerToWire(triggerView(state, trigger));
    }),

    PauseTrigger: unary(async ({ name }, caller) => {
      requireChange(state, findTrigger(state, name, caller), caller);
      await loop.run(caller, (draft, nowMs) => pauseTrigger(draft, name, { isPaused: true }, nowMs));
      return shown(name);
    }),

    ResumeTrigger: unary(async ({ name }, caller) => {
      const { source } = requireChange(state, findTrigger(state, name, caller), caller);
      await loop.run(caller, (draft, nowMs) => {
        const nextAtMs = source.kind === 'cron' ? timeAfter(source, nowMs) : null;
        pauseTrigger(draft, name, { isPaused: false, nextAtMs }, nowMs);
      });
      return shown(name);
    }),

    RunTrigger: unary(async ({ name, paramsJson, requestId }, caller) => {
      const trigger = requireChange(state, findTrigger(state, name, caller), caller);
      requireProject(caller, trigger.project);
      const params = decodeGiven(paramsJson);
      const request = { requestId, digest: intentDigest(['run trigger', name, paramsJson]) };
      let fire: TriggerFireView | null = null;
      const { record } = await requests.once(request, async () => {
        const fired = await parts.triggers.fireByHand(caller, trigger, { params, request });
        ({ fire } = fired);
        return fired.record;
      });
      return triggerFireToWire(fire ?? repeatedFire(state, trigger, record));
    }),
  };
}

/** @throws {MusterError} `invalid`: it names the field, what is wrong, and what is expected */
async function wishOf(
  parts: TriggerCallParts,
  request: CreateTriggerRequest__Output,
  caller: Identity,
): Promise<NewTrigger> {
  const { name, specJson, paramsJson, noCache } = request;
  if (!triggerNamePattern.test(name))
    throw invalid('name', `"${name.slice(0, 60)}" is not a name`, triggerNameForm);
  const source = await sourceOf(request, parts.wallMs());
  // Data that came while a run had not ended would wait for the next change.
  const usual = source.kind === 'data' ? 'queue' : 'skip';
  const overlap = oneWord('overlap', request.overlap ?? usual, overlapPolicies);
  const { text: spec, spec: pipeline } = decodePipeline(specJson);
  const { project } = pipeline;
  requireProject(caller, project);
  const params = decodeGiven(paramsJson);
  const complete = completeValues(pipeline.params, withFireSamples(pipeline.params, params));
  const problems = [
    ...referenceProblems(params, factNames[source.kind]),
    ...(complete.ok ? [] : complete.problems),
  ];
  if (!complete.ok || problems.length > 0) throw new MusterError('invalid', problems.join('; '));
  await conditionsOfSteps(pipeline);
  await requireSteps(pipeline, complete.values, parts);
  const nextAtMs = source.kind === 'cron' ? timeAfter(source, parts.wallMs()) : null;
  const present = source.kind === 'data' ? await parts.listData(source.directory) : null;
  return {
    name,
    project,
    pipeline: pipeline.name,
    spec,
    params,
    usesCache: !noCache,
    source,
    overlap,
    nextAtMs,
    dataDigest: present?.digest ?? null,
  };
}

/** Of times, a condition, a webhook and a directory a trigger has one. */
async function sourceOf(
  { cron, timeZone, missed, webhook, condition, directory }: CreateTriggerRequest__Output,
  nowMs: number,
): Promise<TriggerSource> {
  const given = Object.entries({ cron, condition, webhook: webhook || undefined, directory }).filter(
    ([, value]) => value !== undefined,
  );
  const [first, second] = given.map(([name]) => name);
  if (first === undefined)
    throw invalid(
      'cron',
      'missing',
      'when the trigger is due, such as "0 3 * * *"; a condition; a webhook; or a directory',
    );
  if (second !== undefined)
    throw invalid(second, `given beside ${first}`, 'one of cron, condition, webhook and directory');
  if (cron === undefined) {
    if (timeZone !== undefined) throw invalid('time_zone', `given with a ${first}`, 'cron with it');
    if (missed !== undefined) throw invalid('missed', `given with a ${first}`, 'cron with it');
    if (directory !== undefined) return { kind: 'data', directory };
    if (condition === undefined) return { kind: 'webhook' };
    await eventConditionOf(condition);
    return { kind: 'event', condition };
  }
  const times = { cron, timeZone: timeZone ?? 'UTC' };
  checkCron(times, nowMs);
  return { kind: 'cron', ...times, missed: oneWord('missed', missed ?? 'run_once', missedPolicies) };
}

function oneWord<Word extends string>(path: string, value: string, words: readonly Word[]): Word {
  const found = words.find((each) => each === value);
  if (found !== undefined) return found;
  throw invalid(path, `"${value.slice(0, 60)}" is unknown`, words.join(', '));
}

function invalid(path: string, message: string, expected: string): MusterError {
  const problem = { path, message, expected, suggestion: null };
  return new MusterError('invalid', `${path}: ${message}; expected ${expected}`, { problems: [problem] });
}

/** A project may have lost the secret before. */
function unlessMissing(error: unknown): void {
  if (!(error instanceof MusterError) || error.code !== 'not_found') throw error;
}

/** What has become of a fire that was asked for before. @throws {MusterError} `failed_precondition` when it has started nothing */
function repeatedFire(
  { pipelines }: Pick<ClusterState, 'pipelines'>,
  { name }: StoredTrigger,
  { requestId, arrayId, createdAtMs }: RequestRecord,
): TriggerFireView {
  const started = arrayId ?? runStartedFor(pipelines, requestId);
  const isQueued =
    pipelines.triggers.get(name)?.waiting.some((each) => each.requestId === requestId) === true;
  if (started === null && !isQueued)
    throw new MusterError(
      'failed_precondition',
      `this request was carried out before and has started no run; muster trigger show ${name} says why`,
    );
  const outcome = started === null ? 'queued' : 'started';
  return {
    atMs: createdAtMs,
    cause: 'this request, which was repeated',
    outcome,
    run: started,
    reason: null,
  };
}

/** By name. */
function visibleTriggers(state: ClusterState, caller: Identity): readonly StoredTrigger[] {
  return [...state.pipelines.triggers.values()]
    .filter((trigger) => seesSweep(state.people, caller, { ...trigger }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** @throws {MusterError} `not_found` */
function findTrigger(state: ClusterState, name: string, caller: Identity): StoredTrigger {
  const visible = visibleTriggers(state, caller);
  const found = visible.find((each) => each.name === name);
  if (found !== undefined) return found;
  throw unknownTrigger(
    name,
    visible.map((each) => each.name),
  );
}

function unknownTrigger(name: string, known: readonly string[]): MusterError {
  const meant = closest(name, known);
  const hint = meant === null ? '`muster trigger list` lists them' : `did you mean "${meant}"?`;
  return new MusterError('not_found', `there is no trigger ${name.slice(0, 60)}; ${hint}`);
}

/** @throws {MusterError} `permission_denied` */
function requireChange(state: ClusterState, trigger: StoredTrigger, caller: Identity): StoredTrigger {
  const { name, user, project } = trigger;
  if (mayUseOwned(caller, 'change', { user, project }, (each) => isPrivate(state.people, each)))
    return trigger;
  throw new MusterError(
    'permission_denied',
    `${name} belongs to ${user}: only they, members of ${project} and operators may change it`,
  );
}

function triggerView({ pipelines }: ClusterState, trigger: StoredTrigger): TriggerView {
  const { name, user, project, pipeline, source, overlap, isPaused, nextAtMs, waiting, fires, spec } =
    trigger;
  const { cron = null, timeZone = null, missed = null } = source.kind === 'cron' ? source : {};
  const running = [...pipelines.runs.values()]
    .filter((run) => run.triggers.at(-1) === name && !hasPipelineEnded(run.state))
    .sort((a, b) => b.createdAtMs - a.createdAtMs)
    .map(({ id }) => id);
  return {
    name,
    kind: source.kind,
    user,
    project,
    pipeline,
    cron,
    timeZone,
    missed,
    condition: source.kind === 'event' ? source.condition : null,
    directory: source.kind === 'data' ? source.directory : null,
    blocked: trigger.blocked ?? null,
    overlap,
    paused: isPaused,
    nextAtMs: isPaused ? null : nextAtMs,
    running,
    queued: waiting.length,
    fires,
    spec: JSON.parse(spec) as TriggerView['spec'],
    params: trigger.params,
    createdAtMs: trigger.createdAtMs,
    secret: null,
  };
}
