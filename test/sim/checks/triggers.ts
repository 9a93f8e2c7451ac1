/**
 * Triggers of pipelines: each thing that a trigger is for fires it once, whatever is killed in between, and none is missed; what has led
 * to an event does not fire again by it; one that is paused starts nothing, and what happens meanwhile never
 * fires it; and a fire is carried out as the overlap policy says.
 */
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import { concernsJob, type TriggerFile } from '../pipelineFiles.ts';
import type { Verdict } from './verdict.ts';

const minuteMs = 60_000;
/** Wall clock at the start of the world. */
const epochMs = 1_700_000_000_000;
/** A system clock that is less far away is followed. */
const followedMs = 12_000;
/** A pass of the coordinator, with time to start again. */
const carriedOutMs = 20_000;
/** Between two looks at a directory, and what it takes to start again and to store what was seen. */
const noticedMs = 60_000;
/** Data that has not changed for this long, by any clock, is complete. */
const settledMs = 27_000;

interface Known {
  readonly file: TriggerFile;
  /** When it was created, or resumed last. */
  sinceMs: number;
  isDeleted: boolean;
  isPaused: boolean;
  /** Numbers of events that have not fired it yet. */
  readonly due: Set<number>;
  /** What has become of each fire, by its cause. */
  readonly outcomes: Map<string, string>;
  /** Of a trigger by data: how many files there were when it was created, or has fired last. */
  files: number;
  hasFired: boolean;
  /** It has reported that its directory cannot be listed. */
  isBlocked: boolean;
  /** Causes of fires that wait, the first first. */
  queued: readonly string[];
  /** Runs that have not ended, and those of them that were stopped. */
  readonly active: Set<string>;
  readonly stopped: Set<string>;
  /** Of a trigger by time, the newest time that it has fired for. */
  newestMs: number;
}

export class TriggerCheck {
  private readonly known = new Map<string, Known>();
  private readonly jobNames = new Map<string, string>();
  /** Triggers that have led to each run. */
  private readonly chains = new Map<string, readonly string[]>();
  private readonly runOfEvent = new Map<number, string>();
  /** When this number of files was there first. */
  private readonly cameMs = new Map<number, number>();
  private filesNow = 0;
  private isAway = false;
  private awayChangedMs = 0;
  private readonly verdict: Verdict;
  private readonly files: ReadonlyMap<string, TriggerFile>;
  /** Wall clocks have never jumped. */
  private readonly isTimeSteady: () => boolean;

  /** @param files by the names of the triggers */
  constructor(verdict: Verdict, files: ReadonlyMap<string, TriggerFile>, isTimeSteady: () => boolean) {
    this.verdict = verdict;
    this.files = files;
    this.isTimeSteady = isTimeSteady;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'dataCame') {
      this.filesNow = fact.files;
      this.cameMs.set(fact.files, nowMs);
    }
    if (fact.kind === 'deliveryAnswered') this.onAnswer(fact);
    if (fact.kind === 'dataAway') {
      this.isAway = fact.isAway;
      this.awayChangedMs = nowMs;
    }
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event, nowMs);
  }

  /** Nothing is left that would still fire, and nothing waits. */
  isAtRest(): boolean {
    return [...this.known.values()].every(
      (each) =>
        each.isDeleted ||
        (each.due.size === 0 && each.queued.length === 0 && !each.isBlocked && this.hasSeenData(each)),
    );
  }

  requireSettled(): void {
    for (const [name, known] of this.known) {
      const { isDeleted, isPaused, due, queued } = known;
      if (isDeleted) continue;
      this.must(!isPaused, () => `${name} is paused, and was resumed`);
      this.must(due.size === 0, () => `${name} was never fired by the events ${[...due].join(', ')}`);
      this.must(!known.isBlocked, () => `${name} is blocked, and its directory is there`);
      this.must(this.hasSeenData(known), () => `${name} was never fired by the newest data`);
      this.must(queued.length === 0, () => `${name} has never started what waits: ${queued.join('; ')}`);
    }
  }

  private onEvent(event: StoredEvent, nowMs: number): void {
    const { kind, subject, data, seq } = event;
    const name = String(data['trigger']);
    if (kind === 'job.submitted') this.jobNames.set(subject, String(data['name']));
    else if (kind === 'trigger.created') this.onCreated(name, nowMs);
    else if (kind === 'trigger.deleted') this.onDeleted(name, nowMs);
    else if (kind === 'trigger.paused') this.onPaused(name);
    else if (kind === 'trigger.resumed') this.onResumed(name, nowMs);
    else if (kind === 'trigger.blocked') this.onBlock(name, true, nowMs);
    else if (kind === 'trigger.unblocked') this.onBlock(name, false, nowMs);
    else if (kind === 'trigger.fired') this.onFired(name, data, nowMs);
    else if (kind === 'pipeline.stopped')
      for (const each of this.known.values()) each.stopped.add(String(data['pipeline']));
    else if (kind === 'pipeline.ended') {
      const run = String(data['pipeline']);
      this.runOfEvent.set(seq, run);
      for (const each of this.known.values()) each.active.delete(run);
    }
    for (const [trigger, known] of this.known) if (this.concerns(trigger, known, event)) known.due.add(seq);
  }

  private concerns(
    name: string,
    { file, isDeleted, isPaused }: Known,
    { kind, subject, data }: StoredEvent,
  ): boolean {
    if (isDeleted || isPaused) return false;
    if (file.on === 'jobs') return kind === 'job.failed' && concernsJob(this.jobNames.get(subject) ?? '');
    if (file.on !== 'pipelines' || kind !== 'pipeline.ended' || data['state'] !== 'failed') return false;
    return !this.chainOf(String(data['pipeline'])).includes(name);
  }

  private onAnswer({ trigger, id, run }: Extract<Fact, { kind: 'deliveryAnswered' }>): void {
    const outcome = this.known.get(trigger)?.outcomes.get(`delivery ${id}`);
    this.must(
      outcome !== undefined,
      () => `${trigger} was never fired by the delivery ${id}, which was answered`,
    );
    this.must(
      run === null || outcome === 'started',
      () => `the delivery ${id} was ${outcome}, and has the run ${run}`,
    );
  }

  private hasSeenData({ file, files }: Known): boolean {
    return file.on !== 'data' || files >= this.filesNow;
  }

  private chainOf(run: string): readonly string[] {
    return this.chains.get(run) ?? [];
  }

  private onCreated(name: string, nowMs: number): void {
    const file = this.files.get(name);
    if (file === undefined) return;
    this.known.set(name, {
      file,
      sinceMs: nowMs,
      isDeleted: false,
      isPaused: false,
      due: new Set(),
      outcomes: new Map(),
      files: this.filesNow,
      hasFired: false,
      isBlocked: false,
      queued: [],
      active: new Set(),
      stopped: new Set(),
      newestMs: 0,
    });
  }

  /** What is for it, and has not fired it by then, never does. */
  private onPaused(name: string): void {
    const known = this.known.get(name);
    if (known === undefined) return;
    known.isPaused = true;
    known.isBlocked = false;
    known.due.clear();
  }

  private onResumed(name: string, nowMs: number): void {
    const known = this.known.get(name);
    if (known === undefined) return;
    known.isPaused = false;
    known.sinceMs = nowMs;
    known.newestMs = 0;
  }

  private onBlock(name: string, isBlocked: boolean, nowMs: number): void {
    const known = this.known.get(name);
    if (known === undefined) return;
    const what = () => `${name} is ${isBlocked ? 'blocked' : 'no longer blocked'}`;
    this.must(known.isBlocked !== isBlocked, () => `${what()}, as before`);
    const isSo = this.isAway === isBlocked || nowMs - this.awayChangedMs < noticedMs;
    this.must(isSo, () => `${what()}, and its directory is ${this.isAway ? 'away' : 'there'}`);
    known.isBlocked = isBlocked;
  }

  /** Whoever deletes one by time has waited until it must have fired. */
  private onDeleted(name: string, nowMs: number): void {
    const known = this.known.get(name);
    if (known === undefined) return;
    known.isDeleted = true;
    if (known.file.on !== 'cron' || known.isPaused || !this.isTimeSteady()) return;
    const dueMs = Math.floor((epochMs + nowMs - carriedOutMs) / minuteMs) * minuteMs;
    const isDue = dueMs > epochMs + known.sinceMs;
    this.must(
      !isDue || known.newestMs >= dueMs,
      () => `${name} has not fired at ${new Date(dueMs).toISOString()}`,
    );
  }

  private onFired(name: string, data: StoredEvent['data'], nowMs: number): void {
    const known = this.known.get(name);
    if (known === undefined) return;
    const { cause, outcome, run, reason } = data as Readonly<Record<string, string>>;
    const what = () => `${name} was ${outcome} by ${cause} (${reason})`;
    if (cause === undefined || outcome === undefined) return;
    this.must(!known.isDeleted, () => `${what()}, and is deleted`);
    this.must(!known.isPaused, () => `${what()}, and is paused`);
    const before = known.outcomes.get(cause);
    const mayFollow = before === undefined || (before === 'queued' && outcome !== 'queued');
    this.must(mayFollow, () => `${what()}, and was ${before} by that`);
    known.outcomes.set(cause, outcome);
    if (before === undefined) this.onFirst(known, cause, what, nowMs);
    const [next] = known.queued;
    const wasQueued = known.queued.includes(cause);
    known.queued = known.queued.filter((each) => each !== cause);
    const { overlap } = known.file;
    const running = [...known.active];
    if (outcome === 'queued') {
      known.queued = [...known.queued, cause];
      this.must(
        overlap === 'queue' || overlap === 'stop_previous',
        () => `${what()}, with overlap ${overlap}`,
      );
      if (overlap === 'stop_previous')
        this.must(
          running.every((each) => known.stopped.has(each)),
          () => `${what()}, and ${running.join(', ')} was not stopped`,
        );
    } else if (outcome === 'skipped')
      this.must(
        overlap === 'stop_previous' || running.length > 0,
        () => `${what()}, and no run of it is left`,
      );
    else if (outcome === 'started') {
      this.must(
        overlap === 'allow' || running.length === 0,
        () => `${what()}, and ${running.join(', ')} has not ended`,
      );
      this.must(!wasQueued || next === cause, () => `${what()}, before ${next}`);
      known.active.add(String(run));
      const [, seq = ''] = /^event (\d+): /.exec(cause) ?? [];
      this.chains.set(String(run), [...this.chainOf(this.runOfEvent.get(Number(seq)) ?? ''), name]);
    }
  }

  private onFirst(known: Known, cause: string, what: () => string, nowMs: number): void {
    if (known.file.on === 'cron') {
      const dueMs = Date.parse(cause);
      this.must(dueMs % minuteMs === 0, () => `${what()}, which is no time of it`);
      this.must(dueMs <= epochMs + nowMs + followedMs, () => `${what()}, before that`);
      if (this.isTimeSteady()) {
        this.must(dueMs > epochMs + known.sinceMs - minuteMs, () => `${what()}, before it was set`);
        this.must(dueMs <= epochMs + nowMs, () => `${what()}, before that`);
        const isNext =
          known.newestMs === 0 || dueMs === known.newestMs + minuteMs || what().includes('missed');
        this.must(isNext, () => `${what()}, after ${new Date(known.newestMs).toISOString()}`);
      }
      known.newestMs = Math.max(known.newestMs, dueMs);
      return;
    }
    if (known.file.on === 'data') {
      const files = Number(/: (\d+) files?$/.exec(cause)?.[1]);
      const isNew = known.hasFired ? files > known.files : files >= known.files;
      this.must(isNew, () => `${what()}, which is not new`);
      const ageMs = nowMs - (this.cameMs.get(files) ?? nowMs);
      this.must(ageMs >= settledMs, () => `${what()}, which was there for ${ageMs} ms`);
      known.files = files;
      known.hasFired = true;
      return;
    }
    if (known.file.on === 'webhook') return;
    const [, seq = ''] = /^event (\d+): /.exec(cause) ?? [];
    this.must(known.due.delete(Number(seq)), () => `${what()}, which is not for it`);
  }

  private must(holds: boolean, what: () => string): void {
    this.verdict.require(holds, 'trigger', what);
  }
}
