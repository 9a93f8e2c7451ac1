/** The API's calls about alerts. */
import type { AlertEpisode, AlertScope, AlertView } from '@muster/common/alerts';
import { builtInAlertNames } from '@muster/common/builtInAlerts';
import { MusterError } from '@muster/common/errors';
import type { CreateAlertRequest__Output } from '@muster/common/gen/muster/v1/CreateAlertRequest';
import { isJobId } from '@muster/common/ids';
import { alertToWire } from '@muster/common/wire/codec';
import { type AlertWish, definitionOf, unknownAlert } from '../alerts/definitions.ts';
import type { AlertWatch } from '../alertWatch/alertWatch.ts';
import type { ActiveRule } from '../alertWatch/ruleSet.ts';
import { ownsAlert, requireProject } from '../auth/access.ts';
import { type Identity, userOf } from '../caller.ts';
import { acknowledgeAlert, deleteAlert, firedBy, setAlert, silenceAlert } from '../commands/alerts.ts';
import type { Command, Loop } from '../loop.ts';
import type { Job } from '../model.ts';
import type { ClusterState } from '../state/state.ts';
import type { StoredAlert } from '../store/alerts.ts';
import type { Store } from '../store/store.ts';
import { type MusterCalls, unary } from './calls.ts';
import { type ReferenceParts, resolveJobId } from './references.ts';
import { asReader, isWithinProjects, mayUseJob } from './visibleJobs.ts';

export interface AlertCallParts extends ReferenceParts {
  readonly state: ClusterState;
  readonly store: Store;
  readonly loop: Loop;
  readonly alerts: AlertWatch;
}

type AlertCalls = Pick<
  MusterCalls,
  'CreateAlert' | 'ListAlerts' | 'DeleteAlert' | 'SilenceAlert' | 'AcknowledgeAlert'
>;

/** Of one alert in an answer. */
const shownEpisodesMax = 100;

export function alertCalls(parts: AlertCallParts): AlertCalls {
  const { state, loop, alerts } = parts;

  return {
    CreateAlert: unary(async (request, caller) => {
      const check = await alerts.expectRule();
      const wish = await wishOf(parts, request, caller);
      const definition = definitionOf(wish, check);
      requireReach(caller, definition.scope);
      const owner = userOf(caller);
      const set: Command<StoredAlert> = (draft, nowMs) => setAlert(draft, definition, owner, nowMs);
      if (request.dryRun) {
        const rule = loop.tryOut(caller, set);
        const { episodes, count } = await alerts.tryOut(rule, owner, await endedJobOf(parts, rule));
        return alertToWire({ ...viewOf(parts, rule, episodes), pending: count });
      }
      const rule = await loop.run(caller, set);
      // A short job may have ended before its alert was set, and the alert is evaluated for it anyway.
      const ended = await endedJobOf(parts, rule);
      if (ended !== null) alerts.noteJob(ended, 0);
      return alertToWire(viewOf(parts, rule, []));
    }),

    ListAlerts: unary(async ({ name, firing }, caller) => {
      if (!alerts.rules.isEmpty) await alerts.rules.load();
      const names = await visibleNames(parts, caller);
      const named = names.filter((each) => name === undefined || each === name);
      if (name !== undefined && named.length === 0) throw unknownAlert(name, names);
      const views = await Promise.all(named.map((each) => shown(parts, each, caller)));
      const listed = views.flatMap((view) => view ?? []);
      return {
        alerts: listed.filter((view) => !firing || view.firing.length > 0).map(alertToWire),
      };
    }),

    DeleteAlert: unary(async ({ name }, caller) => {
      const rule = await ownAlert(parts, name, caller);
      if (rule === null)
        throw new MusterError(
          'failed_precondition',
          `${name} is built in; to switch it off, start the coordinator with --builtin-alerts all,-${name}, or silence it: ` +
            `muster alert silence ${name} --for 24h`,
        );
      await loop.run(caller, (draft, nowMs) => deleteAlert(draft, name, nowMs));
      return alertToWire(viewOf(parts, rule, []));
    }),

    SilenceAlert: unary(async ({ name, forMs, reason }, caller) => {
      const owner = (await ownAlert(parts, name, caller))?.owner ?? null;
      const by = userOf(caller);
      await loop.run(caller, (draft, nowMs) =>
        silenceAlert(draft, { name, owner, forMs, reason, by }, nowMs),
      );
      return alertToWire(await requireShown(parts, name, caller));
    }),

    AcknowledgeAlert: unary(async ({ name, subject }, caller) => {
      await requireShown(parts, name, caller);
      const alert = alerts.rules.rule(name)?.alert;
      const rule = state.alerts.rules.get(name);
      const firing = rule === undefined ? alert : firedBy(rule);
      const meant = (await visibleEpisodes(parts, name, caller)).filter(
        (episode) => subject === undefined || episode.subject === subject,
      );
      if (firing === undefined || meant.length === 0)
        throw new MusterError(
          'failed_precondition',
          `${name} does not fire${subject === undefined ? '' : ` for ${subject}`}; what fires: muster alert list --firing`,
        );
      if (!(await isTheirs(parts, caller, rule ?? null)))
        for (const episode of meant) await requireAcknowledge(parts, episode, caller);
      const by = userOf(caller);
      await loop.run(caller, (draft, nowMs) => {
        for (const episode of meant) {
          const isOver = isJobId(episode.subject) && draft.job(episode.subject) === undefined;
          acknowledgeAlert(draft, { alert: firing, episode, by, isOver }, nowMs);
        }
      });
      return alertToWire(await requireShown(parts, name, caller));
    }),
  };
}

/** The job that the scope names. @returns null: it names none, or the job has not ended */
async function endedJobOf(
  { state, store }: AlertCallParts,
  { scope: { jobId } }: StoredAlert,
): Promise<Job | null> {
  if (jobId === null || !isJobId(jobId) || state.jobs.has(jobId)) return null;
  return (await store.readJob(jobId))?.job ?? null;
}

async function wishOf(
  parts: AlertCallParts,
  request: CreateAlertRequest__Output,
  caller: Identity,
): Promise<AlertWish> {
  const { name, condition, labels, forMs } = request;
  const { severity = null, message = null, repeatMs = null } = request;
  if (request.scope === null)
    return { name, condition, labels, forMs, severity, message, repeatMs, scope: null };
  const { kind, labels: ofJobs, nodes, jobId, project } = request.scope;
  const job = jobId === undefined ? null : await resolveJobId(parts, jobId, caller);
  const scope = { kind: kind || 'job', jobId: job, labels: ofJobs, project: project ?? null, nodes };
  return { name, condition, labels, forMs, severity, message, repeatMs, scope };
}

/** @throws {MusterError} `permission_denied` */
function requireReach(caller: Identity, { kind, jobId, project }: AlertScope): void {
  if (caller.kind !== 'user') return;
  if (kind !== 'job' && !caller.verbs.includes('operate'))
    throw new MusterError(
      'permission_denied',
      `only operators set alerts on ${kind === 'node' ? 'nodes' : 'the cluster'}; ${caller.user} may set them on jobs`,
    );
  if (project !== null) requireProject(caller, project);
  if (caller.onlyProjects !== null && project === null && jobId === null)
    throw new MusterError(
      'permission_denied',
      `this token is for ${caller.onlyProjects.join(', ')}: name one with --project, or a job with --job`,
    );
}

/** Whether the caller may change and see an alert. @param rule null: it is built in */
async function isTheirs(
  parts: AlertCallParts,
  caller: Identity,
  rule: Pick<StoredAlert, 'owner' | 'scope'> | null,
): Promise<boolean> {
  if (!ownsAlert(caller, rule?.owner)) return false;
  return isWithinProjects(parts, caller, rule?.scope ?? everyJob);
}

const everyJob = { jobId: null, project: null } as const;

async function visibleNames(parts: AlertCallParts, caller: Identity): Promise<readonly string[]> {
  const { state, alerts } = parts;
  const own: string[] = [];
  for (const rule of Array.from(state.alerts.rules.values()))
    if (await isTheirs(parts, caller, rule)) own.push(rule.name);
  const builtIn = builtInAlertNames.filter((name) => alerts.rules.rule(name) !== undefined);
  return [...own.sort(), ...builtIn];
}

/** @returns null: it is built in @throws {MusterError} `not_found`, or `permission_denied` */
async function ownAlert(parts: AlertCallParts, name: string, caller: Identity): Promise<StoredAlert | null> {
  const rule = parts.state.alerts.rules.get(name);
  if (rule !== undefined && (await isTheirs(parts, caller, rule))) return rule;
  if (parts.alerts.rules.rule(name)?.alert.owner !== null)
    throw unknownAlert(name, await visibleNames(parts, caller));
  if (await isTheirs(parts, caller, null)) return null;
  throw new MusterError(
    'permission_denied',
    `only operators, with a token that is not limited to projects, may change ${name}, which is built in`,
  );
}

async function requireShown(parts: AlertCallParts, name: string, caller: Identity): Promise<AlertView> {
  const names = await visibleNames(parts, caller);
  const view = names.includes(name) ? await shown(parts, name, caller) : null;
  if (view === null) throw unknownAlert(name, names);
  return view;
}

async function shown(parts: AlertCallParts, name: string, caller: Identity): Promise<AlertView | null> {
  const rule = parts.state.alerts.rules.get(name) ?? parts.alerts.rules.rule(name);
  return rule === undefined ? null : viewOf(parts, rule, await visibleEpisodes(parts, name, caller));
}

/** Of an alert that is built in, everybody sees what fires for nodes and for jobs that they may read. */
async function visibleEpisodes(
  parts: AlertCallParts,
  name: string,
  caller: Identity,
): Promise<readonly AlertEpisode[]> {
  const episodes = episodesOf(parts, name);
  if (parts.state.alerts.rules.has(name)) return episodes;
  const visible = await Promise.all(
    episodes.map(async ({ subject }) => !isJobId(subject) || mayUseJob(parts, asReader(caller), subject)),
  );
  return episodes.filter((_episode, index) => visible[index]);
}

function episodesOf({ state }: AlertCallParts, alert: string): readonly AlertEpisode[] {
  return [...state.alerts.episodes.values()]
    .filter((episode) => episode.alert === alert)
    .sort((a, b) => a.firedAtMs - b.firedAtMs || (a.subject < b.subject ? -1 : 1));
}

function viewOf(
  { state, alerts }: AlertCallParts,
  rule: StoredAlert | ActiveRule,
  episodes: readonly AlertEpisode[],
): AlertView {
  const { name, severity, condition, message, labels, forMs, repeatMs, scope } =
    'definition' in rule ? rule.definition : rule;
  const facts =
    'definition' in rule
      ? { owner: null, builtIn: true, createdAtMs: null }
      : { owner: rule.owner, builtIn: false, createdAtMs: rule.createdAtMs };
  const definition = { name, severity, condition, message, labels, forMs, repeatMs, scope };
  return {
    ...definition,
    ...facts,
    silence: state.alerts.silences.get(name) ?? null,
    firing: episodes.slice(0, shownEpisodesMax),
    pending: alerts.rules.rule(name)?.pending.size ?? 0,
  };
}

/** Of an alert that is built in, also by those who may change the job. @throws {MusterError} `permission_denied` */
async function requireAcknowledge(
  parts: AlertCallParts,
  { alert, subject }: AlertEpisode,
  caller: Identity,
): Promise<void> {
  if (isJobId(subject) && (await mayUseJob(parts, caller, subject))) return;
  throw new MusterError('permission_denied', `only operators may acknowledge ${alert} of ${subject}`);
}
