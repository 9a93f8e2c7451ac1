/** Commands about triggers of pipelines: of users, who create, pause and delete them; and of the runner, which carries out their fires. */
import { MusterError } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import type { RandomBytes } from '@muster/common/ids';
import { verbsOf } from '@muster/common/people';
import { hasPipelineEnded } from '@muster/common/pipelines';
import type { FireOutcome, TriggerBlock } from '@muster/common/triggers';
import type { PipelineValues } from '@muster/pipelines/model';
import { budgetOf } from '../caller.ts';
import type { Draft } from '../state/state.ts';
import type { StoredPipeline } from '../store/pipelines.ts';
import type { RequestRecord } from '../store/store.ts';
import type { StoredTrigger, WaitingFire } from '../store/triggers.ts';
import { requireBudgetOf } from './budgets.ts';
import { addRun, stopPipeline } from './pipelines.ts';

/** Of the whole cluster, and of one user. */
const triggersMax = 1_000;
const triggersOfUserMax = 100;
const waitingMax = 100;
/** Kept with a trigger; all of them are events. */
const firesMax = 20;

export type NewTrigger = Omit<
  StoredTrigger,
  'user' | 'by' | 'isPaused' | 'eventSeq' | 'blocked' | 'waiting' | 'fires' | 'createdAtMs'
>;

/** Repeated with the same definition, it changes nothing. @throws {MusterError} `already_exists`, or `resource_exhausted` */
export function createTrigger(draft: Draft, wish: NewTrigger, user: string, nowMs: number): StoredTrigger {
  const { name } = wish;
  const before = draft.pipelines.trigger(name);
  if (before !== undefined) {
    if (before.user === user && definitionText(before) === definitionText(wish)) return before;
    throw new MusterError(
      'already_exists',
      `there is a trigger ${name} already; choose another name, or delete it: muster trigger delete ${name}`,
    );
  }
  const every = draft.pipelines.everyTrigger();
  const own = every.filter((each) => each.user === user).length;
  if (every.length >= triggersMax || own >= triggersOfUserMax)
    throw new MusterError(
      'resource_exhausted',
      `${own} triggers of ${user} and ${every.length} in all; expected at most ${triggersOfUserMax} and ${triggersMax}: ` +
        'delete some that are no longer needed with muster trigger delete',
    );
  const trigger = {
    ...wish,
    user,
    by: draft.by,
    isPaused: false,
    eventSeq: wish.source.kind === 'event' ? draft.nextEventSeq - 1 : null,
    waiting: [],
    fires: [],
    createdAtMs: nowMs,
  };
  draft.pipelines.putTrigger(trigger);
  emitChange(draft, 'trigger.created', trigger, nowMs);
  return trigger;
}

function definitionText({
  project,
  pipeline,
  spec,
  params,
  usesCache,
  source,
  overlap,
}: Pick<
  NewTrigger,
  'project' | 'pipeline' | 'spec' | 'params' | 'usesCache' | 'source' | 'overlap'
>): string {
  return JSON.stringify([project, pipeline, spec, params, usesCache, source, overlap]);
}

/** Runs of it continue; what waits is not started. @throws {MusterError} `not_found` */
export function deleteTrigger(draft: Draft, name: string, nowMs: number): void {
  const trigger = requireTrigger(draft, name);
  draft.pipelines.removeTrigger(name);
  emitChange(draft, 'trigger.deleted', trigger, nowMs);
}

/**
 * A trigger that is paused already, or not, stays as it is. Nobody watches the directory of one that is paused.
 * @param nextAtMs of one that is resumed: what was due meanwhile is not carried out
 * @throws {MusterError} `not_found`, or `permission_denied`
 */
export function pauseTrigger(
  draft: Draft,
  name: string,
  wish: { readonly isPaused: true } | { readonly isPaused: false; readonly nextAtMs: number | null },
  nowMs: number,
): void {
  const trigger = requireTrigger(draft, name);
  if (!wish.isPaused) requireBudgetOf(draft.by, budgetOf(trigger.by), `trigger ${name}`);
  if (trigger.isPaused === wish.isPaused) return;
  const eventSeq = trigger.source.kind === 'event' ? draft.nextEventSeq - 1 : null;
  const changed = { ...trigger, ...wish, eventSeq, blocked: null };
  draft.pipelines.putTrigger(changed);
  emitChange(draft, wish.isPaused ? 'trigger.paused' : 'trigger.resumed', changed, nowMs);
}

export interface TriggerFire {
  readonly trigger: Pick<StoredTrigger, 'name' | 'createdAtMs'>;
  /** Whether the trigger, as it is stored now, has not carried this fire out. */
  readonly isDue: (trigger: StoredTrigger) => boolean;
  /** What of the trigger shows afterwards that the fire was carried out. */
  readonly moved: Partial<Pick<StoredTrigger, 'nextAtMs' | 'eventSeq' | 'dataDigest'>>;
  readonly cause: string;
  /** Names of the triggers that have led to it. */
  readonly after: readonly string[];
  readonly wanted: WantedRun;
  /** Of one that somebody has asked for. Absent: nobody has. */
  readonly requestId?: string;
}

/** A fire that somebody has asked for, by which it is known when it is sent again. */
export type RequestedFire = Omit<TriggerFire, 'isDue' | 'moved' | 'after'> & {
  readonly request: Pick<RequestRecord, 'requestId' | 'digest'>;
};

export type WantedRun =
  | {
      readonly kind: 'run';
      readonly params: PipelineValues;
      readonly stepCount: number;
      /** Beside why it is not started, as far as it is not. */
      readonly note: string | null;
    }
  | { readonly kind: 'none'; readonly outcome: 'missed' | 'failed'; readonly reason: string };

/**
 * Carries out one fire: the run and that the trigger has fired are one commit, so that no kill starts a run twice or loses one.
 * @returns what has become of it. null: it was carried out before, or the trigger is paused or gone
 */
export function fireTrigger(
  draft: Draft,
  { trigger: { name, createdAtMs }, isDue, moved, cause, after, wanted, requestId }: TriggerFire,
  random: RandomBytes,
  nowMs: number,
): FireOutcome | null {
  const before = draft.pipelines.trigger(name);
  if (before === undefined || before.createdAtMs !== createdAtMs || before.isPaused || !isDue(before))
    return null;
  const trigger = { ...before, ...moved };
  if (wanted.kind === 'none') {
    const { outcome, reason } = wanted;
    return settleFire(draft, trigger, { cause, outcome, run: null, reason }, nowMs);
  }
  const { params, note } = wanted;
  const { overlap } = trigger;
  const active = activeRuns(draft, name);
  const fire: WaitingFire = { cause, params, after, ...(requestId !== undefined && { requestId }) };
  const isFree = active.length === 0 && trigger.waiting.length === 0;
  if (isFree || overlap === 'allow') return startRun(draft, trigger, fire, wanted, random, nowMs);
  const reason = withNote(`${active[0]?.id ?? 'an earlier fire'} of it has not ended`, note);
  if (overlap === 'skip')
    return settleFire(draft, trigger, { cause, outcome: 'skipped', run: null, reason }, nowMs);
  if (overlap === 'queue' && trigger.waiting.length >= waitingMax) {
    const full = withNote(`${waitingMax} fires of it wait already`, note);
    return settleFire(draft, trigger, { cause, outcome: 'skipped', run: null, reason: full }, nowMs);
  }
  if (overlap === 'queue') {
    const queued = { ...trigger, waiting: [...trigger.waiting, fire] };
    return settleFire(draft, queued, { cause, outcome: 'queued', run: null, reason }, nowMs);
  }
  for (const { id, state } of active)
    if (state === 'running') stopPipeline(draft, id, `trigger ${name} has fired again`, nowMs);
  const replacedFor = 'a newer fire takes its place';
  let changed: StoredTrigger = { ...trigger, waiting: [fire] };
  for (const { cause: replaced } of trigger.waiting)
    changed = noteFire(
      draft,
      changed,
      { cause: replaced, outcome: 'skipped', run: null, reason: replacedFor },
      nowMs,
    );
  return settleFire(draft, changed, { cause, outcome: 'queued', run: null, reason }, nowMs);
}

/**
 * As `fireTrigger`, with the request and the run in one commit.
 * @throws {MusterError} `failed_precondition` when it is paused or gone; those of `requireBudgetOf`
 */
export function fireOnRequest(
  draft: Draft,
  { request, ...fire }: RequestedFire,
  random: RandomBytes,
  nowMs: number,
): { readonly record: RequestRecord; readonly fire: StoredTrigger['fires'][number] } {
  const { name } = fire.trigger;
  const { requestId } = request;
  const trigger = draft.pipelines.trigger(name);
  if (trigger !== undefined) requireBudgetOf(draft.by, budgetOf(trigger.by), `trigger ${name}`);
  const wish = { ...fire, isDue: () => true, moved: {}, after: [], requestId };
  const outcome = fireTrigger(draft, wish, random, nowMs);
  // The newest of them, as none was stored behind it.
  const [newest] = draft.pipelines.trigger(name)?.fires ?? [];
  if (outcome === null || newest === undefined)
    throw new MusterError(
      'failed_precondition',
      `trigger ${name} is paused, or gone; muster trigger resume ${name} lets it start runs again`,
    );
  const arrayId = outcome === 'started' ? newest.run : null;
  return {
    record: draft.putRequest({ ...request, jobIds: [], arrayId, createdAtMs: nowMs }),
    fire: newest,
  };
}

/** All events up to this one were looked at, and none of them has fired the trigger. */
export function noteTriggerSeq(
  draft: Draft,
  { name, createdAtMs }: TriggerFire['trigger'],
  seq: number,
): void {
  const trigger = draft.pipelines.trigger(name);
  if (trigger?.createdAtMs !== createdAtMs || (trigger.eventSeq ?? 0) >= seq) return;
  draft.pipelines.putTrigger({ ...trigger, eventSeq: seq });
}

/** @param found why its directory cannot be listed. null: it can be */
export function noteBlock(
  draft: Draft,
  { name, createdAtMs }: TriggerFire['trigger'],
  found: Omit<TriggerBlock, 'sinceMs'> | null,
  nowMs: number,
): void {
  const trigger = draft.pipelines.trigger(name);
  if (trigger?.createdAtMs !== createdAtMs || trigger.isPaused) return;
  const { blocked: before = null } = trigger;
  // Another cause of the same block is no news of its own.
  const blocked = found === null ? null : { ...found, sinceMs: before?.sinceMs ?? nowMs };
  draft.pipelines.putTrigger({ ...trigger, blocked });
  if (before === null && found !== null) {
    const data = { ...factsOf(trigger), ...found };
    draft.emit({ kind: 'trigger.blocked', subject: clusterSubject, data }, nowMs);
  }
  if (before !== null && found === null) emitChange(draft, 'trigger.unblocked', trigger, nowMs);
}

/** Starts the first of those that wait, once no run of the trigger is left. */
export function startWaitingFire(
  draft: Draft,
  name: string,
  stepCount: number,
  random: RandomBytes,
  nowMs: number,
): void {
  const trigger = draft.pipelines.trigger(name);
  const [next, ...waiting] = trigger?.waiting ?? [];
  if (trigger === undefined || next === undefined || trigger.isPaused) return;
  if (activeRuns(draft, name).length > 0) return;
  startRun(draft, { ...trigger, waiting }, next, { stepCount, note: null }, random, nowMs);
}

/** Newest first. */
export function activeRuns(draft: Draft, name: string): readonly StoredPipeline[] {
  return draft.pipelines
    .every()
    .filter(({ triggers, state }) => triggers.at(-1) === name && !hasPipelineEnded(state))
    .sort((a, b) => b.createdAtMs - a.createdAtMs);
}

/** What cannot be started has failed: the next fire may succeed. */
function startRun(
  draft: Draft,
  trigger: StoredTrigger,
  { cause, params, after, requestId }: WaitingFire,
  { stepCount, note }: { readonly stepCount: number; readonly note: string | null },
  random: RandomBytes,
  nowMs: number,
): FireOutcome {
  const { name, pipeline, project, spec, usesCache } = trigger;
  const fields = { name: pipeline, project, spec, params, usesCache, rerunOf: null, kept: [], stepCount };
  try {
    requireStandingOf(draft, trigger);
    const { by } = trigger;
    const wish = { ...fields, by, triggers: [...after, name], ...(requestId !== undefined && { requestId }) };
    const { id: run } = addRun(draft, wish, random, nowMs);
    return settleFire(draft, trigger, { cause, outcome: 'started', run, reason: note }, nowMs);
  } catch (error) {
    if (!(error instanceof MusterError)) throw error;
    const reason = withNote(error.message, note);
    return settleFire(draft, trigger, { cause, outcome: 'failed', run: null, reason }, nowMs);
  }
}

/**
 * A trigger may do what its user may do now. It does not end with the token that it was created with, which may be one of a login.
 * @throws {MusterError} `permission_denied`
 */
function requireStandingOf(draft: Draft, { by, name, user, project }: StoredTrigger): void {
  if (by.kind !== 'user') return;
  const known = draft.people.user(user);
  const isOperator = known?.role === 'operator' || known?.role === 'admin';
  const isMember = known !== undefined && (isOperator || known.projects.includes(project));
  if (known !== undefined && isMember && verbsOf[known.role].includes('submit')) return;
  throw new MusterError(
    'permission_denied',
    `${user} may no longer submit jobs to ${project}: a member of it creates the trigger again, after muster trigger delete ${name}`,
  );
}

function withNote(reason: string, note: string | null): string {
  return note === null ? reason : `${reason}; ${note}`;
}

type SettledFire = Omit<StoredTrigger['fires'][number], 'atMs'>;

function settleFire(draft: Draft, trigger: StoredTrigger, fire: SettledFire, nowMs: number): FireOutcome {
  draft.pipelines.putTrigger(noteFire(draft, trigger, fire, nowMs));
  return fire.outcome;
}

/** @returns the trigger with the fire, to be stored */
function noteFire(draft: Draft, trigger: StoredTrigger, fire: SettledFire, nowMs: number): StoredTrigger {
  const fires = [{ atMs: nowMs, ...fire }, ...trigger.fires].slice(0, firesMax);
  const data = { ...factsOf(trigger), ...fire };
  draft.emit({ kind: 'trigger.fired', subject: clusterSubject, data }, nowMs);
  return { ...trigger, fires };
}

function emitChange(
  draft: Draft,
  kind: 'trigger.created' | 'trigger.deleted' | 'trigger.paused' | 'trigger.resumed' | 'trigger.unblocked',
  trigger: StoredTrigger,
  nowMs: number,
): void {
  draft.emit({ kind, subject: clusterSubject, data: factsOf(trigger) }, nowMs);
}

/** What each event of it has. */
function factsOf({ name, user, project, pipeline, source }: StoredTrigger) {
  return { trigger: name, kind: source.kind, pipeline, user, project };
}

function requireTrigger(draft: Draft, name: string): StoredTrigger {
  const trigger = draft.pipelines.trigger(name);
  if (trigger !== undefined) return trigger;
  throw new MusterError('not_found', `there is no trigger ${name}; \`muster trigger list\` lists them`);
}
