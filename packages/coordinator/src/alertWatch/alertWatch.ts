/**
 * Looks at the conditions of alerts when something has happened: a commit has changed a job or a node, a heartbeat or a reading of a
 * GPU has arrived. What depends on time alone, such as how long a job has been in the queue, is looked at every ten seconds. All of
 * it is in memory; the store is read only after a start, for the jobs that ended while no coordinator looked.
 *
 * What follows is a command: a firing and its event are one commit, with the number of the event up to which all has been looked at.
 * After a kill the events from there on are looked at again, and what has fired does not fire twice.
 */
import type { AlertDefinition, AlertEpisode } from '@muster/common/alerts';
import { clusterSubject } from '@muster/common/eventKinds';
import { isJobId, isNodeName, type JobId, type NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { CheckCondition } from '../alerts/definitions.ts';
import { type AlertMoment, type AlertState, inactive, stepOf } from '../alerts/episodes.ts';
import { namesOfKind } from '../alerts/names.ts';
import { looksAtJob, looksAtNode } from '../alerts/reach.ts';
import { coordinatorPart } from '../caller.ts';
import { fireAlert, repeatAlert, resolveAlert } from '../commands/alerts.ts';
import type { Command, Loop } from '../loop.ts';
import { currentAttempt, type Job } from '../model.ts';
import type { Committed } from '../state/committed.ts';
import { nextRound } from '../work/inOrder.ts';
import { AlertCursor, type AlertCursorParts, setBy } from './alertCursor.ts';
import { type WouldFire, wouldFire } from './dryRun.ts';
import { LastValues } from './lastValues.ts';
import { type ActiveRule, goneAlert, type RuleGroup, RuleSet, type RuleSetParts } from './ruleSet.ts';
import {
  type AlertSources,
  type AlertSubject,
  alertMessage,
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

export interface AlertWatchParts extends AlertSources, Omit<RuleSetParts, 'state'> {
  readonly store: AlertCursorParts['store'];
  readonly loop: Pick<Loop, 'run'>;
  readonly log: Logger;
  readonly monotonicMs: () => number;
}

type Change = Command<void>;

interface EndedJob {
  readonly job: Job;
  readonly seq: number;
}

/** One look at what has changed. */
interface Round {
  readonly now: AlertMoment;
  /** Jobs that were submitted again since the last one. */
  readonly requeued: ReadonlySet<string>;
  /** What follows. */
  readonly changes: Change[];
}

export class AlertWatch {
  readonly rules: RuleSet;
  private readonly parts: AlertWatchParts;
  private readonly jobs = new Set<JobId>();
  private readonly nodes = new Set<NodeName>();
  private isClusterChanged = true;
  /** Ended since the last look, each with an event that is not before its end. */
  private readonly ended = new Map<JobId, EndedJob>();
  /** Submitted again since the last look. */
  private readonly requeued = new Set<string>();
  private readonly firing = new Map<string, Map<string, AlertEpisode>>();
  /** Episodes of each alert. */
  private readonly counts = new Map<string, number>();
  private readonly lastValues = new LastValues();
  private lastStartAtMs: number;
  private passedAtMs = Number.NEGATIVE_INFINITY;
  private readonly cursor: AlertCursor;
  private working: Promise<void> | null = null;

  constructor(parts: AlertWatchParts) {
    this.parts = parts;
    this.rules = new RuleSet(parts);
    this.lastStartAtMs = parts.wallMs();
    this.cursor = new AlertCursor(parts);
  }

  /** To be awaited before calls are served. @throws {StoreError} when the store cannot be read or written */
  async open(): Promise<void> {
    await (this.isIdle ? this.cursor.pause() : this.cursor.resume());
  }

  committed({ jobs, attempts, events, changedAlerts }: Committed): void {
    const last = events.at(-1)?.seq;
    if (last !== undefined) this.cursor.seq = last;
    if (attempts.some(({ attempt }) => attempt.state === 'allocated'))
      this.lastStartAtMs = this.parts.wallMs();
    // A commit may have both the end of a job and, behind it, an alert.
    const seqs = new Map(events.map((event) => [setBy(event) ?? event.subject, event.seq]));
    const seqOf = (subject: string) => seqs.get(subject) ?? this.cursor.seq;
    if (this.rules.isLoaded) this.rules.changed(changedAlerts, (name) => seqOf(`alert ${name}`));
    if (this.rules.isEmpty) return;
    for (const job of jobs) this.noteJob(job, seqOf(job.id));
    for (const { subject } of events)
      if (subject !== clusterSubject && isNodeName(subject)) this.nodes.add(subject);
    this.isClusterChanged = true;
    // What a new rule looks at has not changed, but may meet its condition already.
    if (changedAlerts.length > 0) this.passedAtMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * A job as it is now, or as it ended.
   * @param seq an event that is not before its end. 0: it ended before any alert was set but those of this job alone
   */
  noteJob(job: Job, seq: number): void {
    if (this.parts.state.jobs.has(job.id)) this.jobs.add(job.id);
    else this.ended.set(job.id, { job, seq });
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

  /** To be awaited before a rule is set. @throws {StoreError} when the store cannot be read or written */
  async expectRule(): Promise<CheckCondition> {
    await this.cursor.resume();
    return this.rules.load();
  }

  /** What an alert would fire for if it were set now. @param endedJob the one that its scope names, where it has ended */
  async tryOut(definition: AlertDefinition, owner: string, endedJob: Job | null): Promise<WouldFire> {
    const check = await this.rules.load();
    const condition = check(definition.condition, namesOfKind[definition.scope.kind]);
    const { lastStartAtMs } = this;
    return wouldFire(this.parts, { definition, condition, owner, endedJob, lastStartAtMs });
  }

  /** Looks at what has changed. May be called at any time. */
  run(): Promise<void> {
    this.working ??= this.work().finally(() => {
      this.working = null;
    });
    return this.working;
  }

  /** No alert is there, and none that was there still fires. */
  private get isIdle(): boolean {
    return this.rules.isEmpty && this.parts.state.alerts.episodes.size === 0;
  }

  private async work(): Promise<void> {
    if (this.isIdle) return this.cursor.pause();
    const { state } = this.parts;
    await this.rules.load();
    const missed = {
      ended: (job: Job, seq: number) => void this.ended.set(job.id, { job, seq }),
      requeued: (from: string) => void this.requeued.add(from),
      set: (alert: string, seq: number) => this.rules.wasSet(alert, seq),
    };
    await this.cursor.catchUp(missed);
    const upTo = this.cursor.seq;
    const ended = [...this.ended.values()];
    this.ended.clear();
    const requeued = new Set(taken(this.requeued));
    this.indexEpisodes();
    const now = { monotonicMs: this.parts.monotonicMs(), wallMs: this.parts.wallMs() };
    const round = { now, requeued, changes: [] };
    if (now.monotonicMs - this.passedAtMs >= passEveryMs) {
      this.passedAtMs = now.monotonicMs;
      for (const id of state.jobs.keys()) this.jobs.add(id);
      for (const node of state.nodes.keys()) this.nodes.add(node);
      this.isClusterChanged = true;
    }
    await this.lookAtJobs(ended, round);
    for (const name of taken(this.nodes)) {
      const node = state.nodes.get(name);
      if (node === undefined) continue;
      const subject = nodeSubject(this.parts, node);
      this.lookAtGroups(this.rules.groupsOf('node'), subject, round, ({ definition }) =>
        looksAtNode(definition.scope, name),
      );
    }
    if (this.isClusterChanged) {
      this.isClusterChanged = false;
      const subject = clusterSubjectOf(this.parts, clusterSubject, this.lastStartAtMs);
      this.lookAtGroups(this.rules.groupsOf('cluster'), subject, round, () => true);
    }
    if (this.passedAtMs === now.monotonicMs || requeued.size > 0) this.lookAtEpisodes(round);
    await this.commit(round.changes, upTo);
  }

  private async lookAtJobs(ended: readonly EndedJob[], round: Round): Promise<void> {
    const { state } = this.parts;
    const isPass = this.passedAtMs === round.now.monotonicMs;
    const names = this.rules.namesOfJobs();
    for (const [index, each] of [...ended, ...taken(this.jobs)].entries()) {
      if (index % subjectsPerRound === subjectsPerRound - 1) await nextRound();
      // As it is now: it may have changed meanwhile.
      const { job, seq } = typeof each === 'string' ? { job: state.jobs.get(each), seq: null } : each;
      if (job === undefined) continue;
      const subject = jobSubject(this.parts, job, seq);
      const looksAt = ({ definition, alert }: ActiveRule) =>
        looksAtJob(definition.scope, alert.owner, state.people, job);
      const hasChanged = this.changeOf(job, subject, names, isPass);
      for (const rule of this.rules.rulesOfJob(job.id).filter(hasChanged))
        this.lookAt(rule, subject, subject.holds(rule.condition), round, looksAt);
      this.lookAtGroups([...this.rules.groupsOf('job')].filter(hasChanged), subject, round, looksAt);
    }
  }

  /** @returns whether what has this condition has to look at the job */
  private changeOf(job: Job, { factOf }: AlertSubject, names: ReadonlySet<string>, isPass: boolean) {
    if (currentAttempt(job) === null) {
      this.lastValues.forget(job.id);
      return () => true;
    }
    const changes = this.lastValues.changes(job.id, names, factOf);
    return ({ condition }: Pick<RuleGroup, 'condition'>) =>
      isPass || condition.names.some((name) => changes.has(name));
  }

  private lookAtGroups(
    groups: Iterable<RuleGroup>,
    subject: AlertSubject,
    round: Round,
    looksAt: (rule: ActiveRule) => boolean,
  ): void {
    // Nearly all that is looked at neither fires nor begins to.
    const isFiring = this.firing.has(subject.id);
    for (const { condition, rules } of groups) {
      const holds = subject.holds(condition);
      for (const rule of rules)
        if (isFiring || holds === true || rule.pending.size > 0)
          this.lookAt(rule, subject, holds, round, looksAt);
    }
  }

  private lookAt(
    rule: ActiveRule,
    subject: AlertSubject,
    verdict: boolean | null,
    round: Round,
    looksAt: (rule: ActiveRule) => boolean,
  ): void {
    const { definition, alert, pending } = rule;
    const isOver = subject.endedSeq !== null;
    const holds = verdict ?? (isOver ? false : null);
    const episode = this.firing.get(subject.id)?.get(definition.name);
    const sinceMs = pending.get(subject.id);
    if (holds !== true && episode === undefined && sinceMs === undefined) return;
    // Its end was before anybody wanted to know of it.
    const isOld = subject.endedSeq !== null && subject.endedSeq < rule.setSeq;
    if (episode === undefined && isOld && definition.scope.jobId === null) return;
    if (!looksAt(rule)) {
      pending.delete(subject.id);
      if (episode !== undefined)
        round.changes.push((draft, nowMs) => resolveAlert(draft, alert, episode, 'deleted', nowMs));
      return;
    }
    const state: AlertState =
      episode !== undefined
        ? { kind: 'firing', episode }
        : sinceMs !== undefined
          ? { kind: 'pending', sinceMs }
          : inactive;
    const episodeRule = this.episodeRule(rule);
    // What its end made true holds for ever, and nobody looks at it later.
    const step = stepOf(isOver ? { ...episodeRule, forMs: 0 } : episodeRule, state, holds, round.now);
    this.take(rule, subject, step, episode, round);
    if (isOver) pending.delete(subject.id);
  }

  private take(
    { definition, alert, pending }: ActiveRule,
    subject: AlertSubject,
    step: ReturnType<typeof stepOf>,
    episode: AlertEpisode | undefined,
    { changes, requeued }: Round,
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
        const message = alertMessage(definition, subject);
        const fired = { subject: id, subjectName, project, message, isSilenced: step.isSilenced };
        changes.push((draft, nowMs) => {
          fireAlert(draft, alert, fired, nowMs);
          const begun = requeued.has(id) ? draft.alerts.episode({ alert: name, subject: id }) : undefined;
          if (begun !== undefined) resolveAlert(draft, alert, begun, 'requeued', nowMs);
        });
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
  private lookAtEpisodes({ now, requeued, changes }: Round): void {
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
        if (requeued.has(subject)) resolve('requeued');
        else if (now.wallMs - firedAtMs > endedKeptMs) resolve('expired');
        else {
          const step = stepOf(this.episodeRule(rule), { kind: 'firing', episode }, true, now);
          if (step.kind === 'repeat')
            changes.push((draft, nowMs) => repeatAlert(draft, alert, episode, nowMs));
        }
      } else if (subject !== clusterSubject && !state.nodes.has(subject as NodeName)) resolve('deleted');
    }
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

  private async commit(changes: readonly Change[], upTo: number): Promise<void> {
    const { loop } = this.parts;
    for (let first = 0; first < changes.length; first += changesPerCommand) {
      const some = changes.slice(first, first + changesPerCommand);
      const isLast = first + changesPerCommand >= changes.length;
      await loop.run(caller, (draft, nowMs) => {
        for (const change of some) change(draft, nowMs);
        if (isLast) draft.alerts.dealtWith(upTo);
      });
    }
    if (changes.length === 0) {
      if (!this.cursor.isBehind(upTo)) return;
      await loop.run(caller, (draft) => draft.alerts.dealtWith(upTo));
    }
    this.cursor.stored(upTo);
  }
}

/** Takes all of a set out of it. */
function taken<T>(set: Set<T>): readonly T[] {
  const all = [...set];
  set.clear();
  return all;
}
