/** Commands about alerts: of users, who set, delete, silence and acknowledge them; and of the watch, which fires and resolves them. */
import type { AlertDefinition, AlertEpisode, AlertKind } from '@muster/common/alerts';
import { isBuiltInAlert } from '@muster/common/builtInAlerts';
import { MusterError } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import { unknownAlert } from '../alerts/definitions.ts';
import type { Draft } from '../state/state.ts';
import type { StoredAlert } from '../store/alerts.ts';

/** Of the whole cluster, and of one user: what each costs in memory and at each sample is small. */
const alertsMax = 10_000;
const alertsOfUserMax = 1_000;
const silenceMsMax = 30 * 24 * 60 * 60_000;
const reasonLengthMax = 200;

/** Repeated with the same definition, it changes nothing. @throws {MusterError} `already_exists`, or `resource_exhausted` */
export function setAlert(
  draft: Draft,
  definition: AlertDefinition,
  owner: string,
  nowMs: number,
): StoredAlert {
  const before = draft.alerts.rule(definition.name);
  if (before !== undefined) {
    const { owner: ownerBefore, createdAtMs: _, ...definitionBefore } = before;
    if (ownerBefore === owner && isSame(definitionBefore, definition)) return before;
    throw new MusterError(
      'already_exists',
      `there is an alert ${definition.name} already; choose another name, or delete it: muster alert delete ${definition.name}`,
    );
  }
  const every = draft.alerts.everyRule();
  const own = every.filter((rule) => rule.owner === owner).length;
  if (every.length >= alertsMax || own >= alertsOfUserMax)
    throw new MusterError(
      'resource_exhausted',
      `${own} alerts of ${owner} and ${every.length} in all; expected at most ${alertsOfUserMax} and ${alertsMax}: ` +
        'delete some that are no longer needed, or set one for several jobs, by label or project',
    );
  const rule = { ...definition, owner, createdAtMs: nowMs };
  draft.alerts.putRule(rule);
  const { name: alert, severity, condition, scope } = rule;
  const data = { alert, owner, severity, condition, scope };
  draft.emit({ kind: 'alert.created', subject: clusterSubject, data }, nowMs);
  return rule;
}

function isSame(a: AlertDefinition, b: AlertDefinition): boolean {
  return canonical(a) === canonical(b);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}

/** What fires is resolved. @throws {MusterError} `not_found` */
export function deleteAlert(draft: Draft, name: string, nowMs: number): void {
  const rule = draft.alerts.rule(name);
  if (rule === undefined) throw unknownAlert(name, []);
  for (const episode of draft.alerts.episodesOf(name))
    resolveAlert(draft, firedBy(rule), episode, 'deleted', nowMs);
  draft.alerts.removeRule(name);
  draft.alerts.removeSilence(name);
  const data = { alert: name, owner: rule.owner };
  draft.emit({ kind: 'alert.deleted', subject: clusterSubject, data }, nowMs);
}

/** @param owner null: it is built in @throws {MusterError} `invalid` */
export function silenceAlert(
  draft: Draft,
  {
    name,
    owner,
    forMs,
    reason,
    by,
  }: {
    readonly name: string;
    readonly owner: string | null;
    readonly forMs: number;
    readonly reason: string;
    readonly by: string;
  },
  nowMs: number,
): void {
  if (!Number.isSafeInteger(forMs) || forMs < 0 || forMs > silenceMsMax)
    throw new MusterError('invalid', `for: ${forMs} ms; expected at most 30 days, or 0 to end the silence`);
  if (reason.length > reasonLengthMax)
    throw new MusterError(
      'invalid',
      `reason: ${reason.length} characters; expected at most ${reasonLengthMax}`,
    );
  const untilMs = forMs === 0 ? 0 : nowMs + forMs;
  if (forMs === 0) draft.alerts.removeSilence(name);
  else draft.alerts.putSilence({ alert: name, untilMs, by, reason });
  const data = { alert: name, owner, untilMs, by, reason };
  draft.emit({ kind: 'alert.silenced', subject: clusterSubject, data }, nowMs);
}

/** What an episode belongs to, as its events say it. */
export interface FiringAlert extends Pick<AlertDefinition, 'name' | 'severity' | 'labels'> {
  readonly kind: AlertKind;
  readonly owner: string | null;
}

export function firedBy({ name, severity, labels, scope, owner }: StoredAlert): FiringAlert {
  return { name, severity, labels, kind: scope.kind, owner };
}

export interface NewEpisode {
  readonly subject: string;
  readonly subjectName: string;
  /** Of a job. */
  readonly project: string | null;
  readonly message: string;
  readonly isSilenced: boolean;
}

/** One firing of an episode: where it fires already, or its alert was deleted meanwhile, nothing happens. */
export function fireAlert(draft: Draft, alert: FiringAlert, fired: NewEpisode, nowMs: number): void {
  const { subject, subjectName, project, message, isSilenced } = fired;
  const key = { alert: alert.name, subject };
  if (draft.alerts.episode(key) !== undefined) return;
  if (!isBuiltInAlert(alert.name) && draft.alerts.rule(alert.name) === undefined) return;
  const episode = {
    ...key,
    id: `${alert.name}-${draft.nextEventSeq}`,
    subjectName,
    project,
    message,
    firedAtMs: nowMs,
    notifiedAtMs: isSilenced ? null : nowMs,
    acknowledgedAtMs: null,
    acknowledgedBy: null,
  };
  draft.alerts.putEpisode(episode);
  const data = dataOf(alert, episode, isSilenced);
  draft.emit({ kind: 'alert.firing', subject: clusterSubject, data }, nowMs);
}

/** Notifies again. */
export function repeatAlert(draft: Draft, alert: FiringAlert, episode: AlertEpisode, nowMs: number): void {
  const now = draft.alerts.episode(episode);
  if (now?.id !== episode.id) return;
  draft.alerts.putEpisode({ ...now, notifiedAtMs: nowMs });
  const data = dataOf(alert, now, false);
  draft.emit({ kind: 'alert.repeated', subject: clusterSubject, data }, nowMs);
}

/** Once: of an episode that is over already nothing is emitted. */
export function resolveAlert(
  draft: Draft,
  alert: FiringAlert,
  episode: AlertEpisode,
  reason: ResolveReason,
  nowMs: number,
): void {
  const now = draft.alerts.episode(episode);
  if (now?.id !== episode.id) return;
  draft.alerts.removeEpisode(episode);
  const data = { ...dataOf(alert, now, now.notifiedAtMs === null), reason };
  draft.emit({ kind: 'alert.resolved', subject: clusterSubject, data }, nowMs);
}

export type ResolveReason =
  | 'over'
  /** The alert was deleted or switched off, or no longer looks at this job or node. */
  | 'deleted'
  /** The job has ended, and what the condition says of it will not change: somebody has acknowledged it, */
  | 'acknowledged'
  /** it was submitted again, */
  | 'requeued'
  /** or this was a day ago. */
  | 'expired';

/** @param isOver the job has ended, so nothing more is to come */
export function acknowledgeAlert(
  draft: Draft,
  { alert, episode, by, isOver }: { alert: FiringAlert; episode: AlertEpisode; by: string; isOver: boolean },
  nowMs: number,
): void {
  const now = draft.alerts.episode(episode);
  if (now?.id !== episode.id) return;
  const { subject: of, id } = now;
  draft.alerts.putEpisode({ ...now, acknowledgedAtMs: nowMs, acknowledgedBy: by });
  const data = { alert: alert.name, owner: alert.owner, episode: id, of, by };
  draft.emit({ kind: 'alert.acknowledged', subject: clusterSubject, data }, nowMs);
  if (isOver) resolveAlert(draft, alert, now, 'acknowledged', nowMs);
}

function dataOf({ kind, owner, severity, labels }: FiringAlert, episode: AlertEpisode, silenced: boolean) {
  const { alert, id, subject: of, subjectName: name, project, message, firedAtMs } = episode;
  return {
    alert,
    owner,
    episode: id,
    of,
    kind,
    name,
    project,
    severity,
    message,
    labels,
    firedAtMs,
    silenced,
  };
}
