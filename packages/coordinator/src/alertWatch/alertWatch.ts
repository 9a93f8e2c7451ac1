/**
 * Looks at the conditions of alerts when something has happened: a commit has changed a job or a node, a heartbeat or a reading of a
 * GPU has arrived. What depends on time alone, such as how long a job has been in the queue, is looked at every ten seconds. All of
 * it is in memory; the store is read only after a start, for the jobs that ended while no coordinator looked.
 *
 * What follows is a command: a firing and its event are one commit, with the number of the event up to which all has been looked at.
 * After a kill the events from there on are looked at again, and what has fired does not fire twice.
 */
import type { AlertEpisode } from '@muster/common/alerts';
import { clusterSubject } from '@muster/common/eventKinds';
import { isJobId, isNodeName, type JobId, type NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { type AlertMoment, type AlertState, inactive, stepOf } from '../alerts/episodes.ts';
import { messageText } from '../alerts/messages.ts';
import { namesOfEvery, namesOfKind } from '../alerts/names.ts';
import { looksAtJob, looksAtNode } from '../alerts/reach.ts';
import { coordinatorPart } from '../caller.ts';
import { fireAlert, repeatAlert, resolveAlert } from '../commands/alerts.ts';
import type { Command, Loop } from '../loop.ts';
import type { Job, StoredEvent } from '../model.ts';
import type { Committed } from '../state/committed.ts';
import { alertsCursorName } from '../store/alerts.ts';
import type { Store } from '../store/store.ts';
import { nextRound } from '../work/inOrder.ts';
import { type ActiveRule, type RuleGroup, RuleSet, type RuleSetParts } from './ruleSet.ts';
import {
  type AlertSources,
  type AlertSubject,
  clusterSubjectOf,
  jobSubject,
  nodeSubject,
} from './subjects.ts';

const caller = coordinatorPart('alerts');

/** Between two looks at everything. */
const passEveryMs = 10_000;
/** Looked at between two rounds of the event loop: some milliseconds. */
const subjectsPerRound = 50;
/** Changes in one command. */
const changesPerCommand = 50;
/** Of one alert. A rule that fits a whole array of broken jobs would fill the log of events. */
export const episodesPerAlertMax = 1_000;
/** Of a job that has ended, when nobody acknowledges it. */
const endedKeptMs = 24 * 60 * 60_000;
const eventsPerPage = 500;
/** How far the stored number of the last event may be behind, and for how long. */
const cursorBehindMax = 1_000;
const cursorBehindMsMax = 60_000;

export interface AlertWatchParts extends AlertSources, Omit<RuleSetParts, 'state'> {
  readonly store: Pick<Store, 'readEvents' | 'readMeta' | 'readJob'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly log: Logger;
  readonly monotonicMs: () => number;
}

type Change = Command<void>;

export class AlertWatch {
  readonly rules: RuleSet;
  private readonly parts: AlertWatchParts;
  private readonly jobs = new Set<JobId>();
  private readonly nodes = new Set<NodeName>();
  private isClusterChanged = true;
  /** Ended since the last look. */
  private readonly ended = new Map<JobId, Job>();
  /** Submitted again since the last look. */
  private readonly requeued = new Set<string>();
  private readonly firing = new Map<string, Map<string, AlertEpisode>>();
  /** Episodes of each alert. */
  private readonly counts = new Map<string, number>();
  private lastStartAtMs: number;
  private passedAtMs = Number.NEGATIVE_INFINITY;
  private hasCaughtUp = false;
  /** The last event that was committed, and the last one that the store knows to be looked at. */
  private seq: number;
  private storedSeq: number;
  private storedAtMs: number;
  private working: Promise<void> | null = null;

  constructor(parts: AlertWatchParts) {
    this.parts = parts;
    this.rules = new RuleSet(parts);
    this.lastStartAtMs = parts.wallMs();
    this.seq = parts.state.lastEventSeq;
    this.storedSeq = this.seq;
    this.storedAtMs = parts.monotonicMs();
  }

  committed({ jobs, attempts, events, changedAlerts }: Committed): void {
    const last = events.at(-1)?.seq;
    if (last !== undefined) this.seq = last;
    if (attempts.some(({ attempt }) => attempt.state === 'allocated'))
      this.lastStartAtMs = this.parts.wallMs();
    if (this.rules.isLoaded) this.rules.changed(changedAlerts);
    if (this.rules.isEmpty) return;
    for (const job of jobs) this.noteJob(job);
    for (const { subject } of events)
      if (subject !== clusterSubject && isNodeName(subject)) this.nodes.add(subject);
    this.isClusterChanged = true;
    // What a new rule looks at has not changed, and may fit all the same.
    if (changedAlerts.length > 0) this.passedAtMs = Number.NEGATIVE_INFINITY;
  }

  /** A job as it is now, or as it ended. */
  noteJob(job: Job): void {
    if (this.parts.state.jobs.has(job.id)) this.jobs.add(job.id);
    else this.ended.set(job.id, job);
    if (job.requeuedFrom !== null) this.requeued.add(job.requeuedFrom);
  }

  /** A heartbeat or a reading has something new of this job. */
  noteSample(jobId: JobId): void {
    if (!this.rules.isEmpty) this.jobs.add(jobId);
  }

  /** A reading has something new of this node. */
  noteNode(node: NodeName): void {
    if (!this.rules.isEmpty) this.nodes.add(node);
  }

  /** Looks at what has changed. May be called at any time. */
  run(): Promise<void> {
    this.working ??= this.work().finally(() => {
      this.working = null;
    });
    return this.working;
  }

  private async work(): Promise<void> {
    const { state } = this.parts;
    if (this.rules.isEmpty && state.alerts.episodes.size === 0) return;
    await this.rules.load();
    await this.catchUp();
    const upTo = this.seq;
    const changes: Change[] = [];
    this.indexEpisodes();
    const now = { monotonicMs: this.parts.monotonicMs(), wallMs: this.parts.wallMs() };
    if (now.monotonicMs - this.passedAtMs >= passEveryMs) {
      this.passedAtMs = now.monotonicMs;
      for (const id of state.jobs.keys()) this.jobs.add(id);
      for (const node of state.nodes.keys()) this.nodes.add(node);
      this.isClusterChanged = true;
    }
    await this.lookAtJobs(now, changes);
    for (const name of taken(this.nodes)) {
      const node = state.nodes.get(name);
      if (node === undefined) continue;
      const subject = nodeSubject(this.parts, node);
      this.lookAtGroups(this.rules.groupsOf('node'), subject, now, changes, ({ definition }) =>
        looksAtNode(definition.scope, name),
      );
    }
    if (this.isClusterChanged) {
      this.isClusterChanged = false;
      const subject = clusterSubjectOf(this.parts, clusterSubject, this.lastStartAtMs);
      this.lookAtGroups(this.rules.groupsOf('cluster'), subject, now, changes, () => true);
    }
    if (this.passedAtMs === now.monotonicMs || this.requeued.size > 0) this.lookAtEpisodes(now, changes);
    await this.commit(changes, upTo, now);
  }

  private async lookAtJobs(now: AlertMoment, changes: Change[]): Promise<void> {
    const { state } = this.parts;
    const ended = [...this.ended.values()];
    this.ended.clear();
    const running = taken(this.jobs).flatMap((id) => state.jobs.get(id) ?? []);
    for (const [index, job] of [...ended, ...running].entries()) {
      if (index % subjectsPerRound === subjectsPerRound - 1) await nextRound();
      const subject = jobSubject(this.parts, job);
      const looksAt = ({ definition, alert }: ActiveRule) =>
        looksAtJob(definition.scope, alert.owner, state.people, job);
      for (const rule of this.rules.rulesOfJob(job.id)) this.lookAt(rule, subject, now, changes, looksAt);
      this.lookAtGroups(this.rules.groupsOf('job'), subject, now, changes, looksAt);
    }
  }

  private lookAtGroups(
    groups: Iterable<RuleGroup>,
    subject: AlertSubject,
    now: AlertMoment,
    changes: Change[],
    looksAt: (rule: ActiveRule) => boolean,
  ): void {
    for (const { rules } of groups)
      for (const rule of rules) this.lookAt(rule, subject, now, changes, looksAt);
  }

  private lookAt(
    rule: ActiveRule,
    subject: AlertSubject,
    now: AlertMoment,
    changes: Change[],
    looksAt: (rule: ActiveRule) => boolean,
  ): void {
    const { definition, alert, pending } = rule;
    const isOver = subject.endedAtMs !== null;
    const holds = subject.holds(rule.condition) ?? (isOver ? false : null);
    const episode = this.firing.get(subject.id)?.get(definition.name);
    const sinceMs = pending.get(subject.id);
    if (holds !== true && episode === undefined && sinceMs === undefined) return;
    // Its end was before anybody wanted to know of it.
    const isOld = subject.endedAtMs !== null && subject.endedAtMs < rule.createdAtMs;
    if (episode === undefined && isOld && definition.scope.jobId === null) return;
    if (!looksAt(rule)) {
      pending.delete(subject.id);
      if (episode !== undefined)
        changes.push((draft, nowMs) => resolveAlert(draft, alert, episode, 'deleted', nowMs));
      return;
    }
    const state: AlertState =
      episode !== undefined
        ? { kind: 'firing', episode }
        : sinceMs !== undefined
          ? { kind: 'pending', sinceMs }
          : inactive;
    this.take(rule, subject, stepOf(this.episodeRule(rule), state, holds, now), episode, changes);
    if (isOver) pending.delete(subject.id);
  }

  private take(
    { definition, alert, pending }: ActiveRule,
    subject: AlertSubject,
    step: ReturnType<typeof stepOf>,
    episode: AlertEpisode | undefined,
    changes: Change[],
  ): void {
    switch (step.kind) {
      case 'none':
        return;
      case 'pending':
        pending.set(subject.id, step.sinceMs);
        return;
      case 'inactive':
        pending.delete(subject.id);
        return;
      case 'fire': {
        const { name } = definition;
        const count = (this.counts.get(name) ?? 0) + 1;
        if (count > episodesPerAlertMax) return;
        this.counts.set(name, count);
        pending.delete(subject.id);
        const { id, name: subjectName, project } = subject;
        const message = messageOf(definition, subject);
        const fired = { subject: id, subjectName, project, message, isSilenced: step.isSilenced };
        changes.push((draft, nowMs) => fireAlert(draft, alert, fired, nowMs));
        return;
      }
      case 'repeat':
        if (episode !== undefined) changes.push((draft, nowMs) => repeatAlert(draft, alert, episode, nowMs));
        return;
      case 'resolve':
        if (episode !== undefined)
          changes.push((draft, nowMs) => resolveAlert(draft, alert, episode, 'over', nowMs));
        return;
      default: {
        const never: never = step;
        throw new Error(`unknown step ${JSON.stringify(never)}`);
      }
    }
  }

  /** What fires for jobs that have ended and nodes that are gone is looked at by nobody else, nor what fires by rules that are gone. */
  private lookAtEpisodes(now: AlertMoment, changes: Change[]): void {
    const { state } = this.parts;
    for (const episode of state.alerts.episodes.values()) {
      const { alert: name, subject, firedAtMs, subjectName: _ } = episode;
      const rule = this.rules.rule(name);
      const alert = rule?.alert ?? goneAlert(episode);
      const resolve = (reason: Parameters<typeof resolveAlert>[3]) =>
        changes.push((draft, nowMs) => resolveAlert(draft, alert, episode, reason, nowMs));
      if (rule === undefined) resolve('deleted');
      else if (isJobId(subject)) {
        if (state.jobs.has(subject)) continue;
        if (this.requeued.has(subject)) resolve('requeued');
        else if (now.wallMs - firedAtMs > endedKeptMs) resolve('expired');
        else {
          const step = stepOf(this.episodeRule(rule), { kind: 'firing', episode }, true, now);
          if (step.kind === 'repeat')
            changes.push((draft, nowMs) => repeatAlert(draft, alert, episode, nowMs));
        }
      } else if (subject !== clusterSubject && !state.nodes.has(subject as NodeName)) resolve('deleted');
    }
    this.requeued.clear();
  }

  private episodeRule({ definition }: ActiveRule) {
    const { name, forMs, repeatMs } = definition;
    const silencedUntilMs = this.parts.state.alerts.silences.get(name)?.untilMs ?? null;
    return { forMs, repeatMs, silencedUntilMs };
  }

  private indexEpisodes(): void {
    this.firing.clear();
    this.counts.clear();
    for (const episode of this.parts.state.alerts.episodes.values()) {
      const ofSubject = this.firing.get(episode.subject);
      if (ofSubject === undefined) this.firing.set(episode.subject, new Map([[episode.alert, episode]]));
      else ofSubject.set(episode.alert, episode);
      this.counts.set(episode.alert, (this.counts.get(episode.alert) ?? 0) + 1);
    }
  }

  private async commit(changes: readonly Change[], upTo: number, now: AlertMoment): Promise<void> {
    const { loop } = this.parts;
    for (let first = 0; first < changes.length; first += changesPerCommand) {
      const some = changes.slice(first, first + changesPerCommand);
      const isLast = first + changesPerCommand >= changes.length;
      await loop.run(caller, (draft, nowMs) => {
        for (const change of some) change(draft, nowMs);
        if (isLast) draft.alerts.dealtWith(upTo);
      });
    }
    const isBehind =
      upTo - this.storedSeq >= cursorBehindMax ||
      (upTo > this.storedSeq && now.monotonicMs - this.storedAtMs >= cursorBehindMsMax);
    if (changes.length === 0 && !isBehind) return;
    if (changes.length === 0) await loop.run(caller, (draft) => draft.alerts.dealtWith(upTo));
    this.storedSeq = upTo;
    this.storedAtMs = now.monotonicMs;
  }

  /** Jobs that ended, or were submitted again, after what the store says was looked at. */
  private async catchUp(): Promise<void> {
    if (this.hasCaughtUp) return;
    const { store } = this.parts;
    let position = Number((await store.readMeta(alertsCursorName)) ?? this.seq);
    while (position < this.seq) {
      const events = await store.readEvents(position, eventsPerPage, null);
      for (const event of events) await this.lookAgainAt(event);
      const last = events.at(-1);
      if (last === undefined) break;
      position = last.seq;
      await nextRound();
    }
    this.hasCaughtUp = true;
  }

  private async lookAgainAt({ kind, subject, data }: StoredEvent): Promise<void> {
    if (kind === 'job.submitted' && typeof data['requeuedFrom'] === 'string')
      this.requeued.add(data['requeuedFrom']);
    const isEnd = kind === 'job.failed' || kind === 'job.succeeded' || kind === 'job.cancelled';
    if (!isEnd || !isJobId(subject)) return;
    const record = await this.parts.store.readJob(subject);
    if (record !== null) this.ended.set(subject, record.job);
  }
}

/** Takes all of a set out of it. */
function taken<T>(set: Set<T>): readonly T[] {
  const all = [...set];
  set.clear();
  return all;
}

function messageOf(
  { name, severity, message, scope }: ActiveRule['definition'],
  subject: AlertSubject,
): string {
  const ofEvery: Readonly<Record<string, string>> = { alert: name, severity, subject: subject.id };
  return messageText(message, (each) => ofEvery[each] ?? subject.factOf(each), {
    ...namesOfKind[scope.kind],
    ...namesOfEvery,
  });
}

/** Of a rule that is there no more, a built-in one that was switched off. */
function goneAlert({ alert: name, subject }: AlertEpisode) {
  const kind = isJobId(subject) ? 'job' : subject === clusterSubject ? 'cluster' : 'node';
  return { name, kind, owner: null, severity: 'info', labels: {} } as const;
}
