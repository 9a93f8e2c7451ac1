/**
 * Triggers of pipelines: each thing that a trigger is for fires it once, whatever is killed in between, and none is missed; what has led
 * to an event does not fire again by it; and a fire is carried out as the overlap policy says.
 */
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import { concernsJob, type TriggerFile } from '../pipelineFiles.ts';
import type { Verdict } from './verdict.ts';

const minuteMs = 60_000;
/** Wall clock at the start of the world. */
const epochMs = 1_700_000_000_000;
/** A pass of the coordinator, with time to start again. */
const carriedOutMs = 20_000;

interface Known {
  readonly file: TriggerFile;
  readonly createdAtMs: number;
  isDeleted: boolean;
  /** Numbers of events that have not fired it yet. */
  readonly due: Set<number>;
  /** What has become of each fire, by its cause. */
  readonly outcomes: Map<string, string>;
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
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event, nowMs);
  }

  /** Nothing is left that would still fire, and nothing waits. */
  isAtRest(): boolean {
    return [...this.known.values()].every(
      (each) => each.isDeleted || (each.due.size === 0 && each.queued.length === 0),
    );
  }

  requireSettled(): void {
    for (const [name, { isDeleted, due, queued }] of this.known) {
      if (isDeleted) continue;
      this.must(due.size === 0, () => `${name} was never fired by the events ${[...due].join(', ')}`);
      this.must(queued.length === 0, () => `${name} has never started what waits: ${queued.join('; ')}`);
    }
  }

  private onEvent(event: StoredEvent, nowMs: number): void {
    const { kind, subject, data, seq } = event;
    const name = String(data['trigger']);
    if (kind === 'job.submitted') this.jobNames.set(subject, String(data['name']));
    else if (kind === 'trigger.created') this.onCreated(name, nowMs);
    else if (kind === 'trigger.deleted') this.onDeleted(name, nowMs);
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

  private concerns(name: string, { file, isDeleted }: Known, { kind, subject, data }: StoredEvent): boolean {
    if (isDeleted) return false;
    if (file.on === 'jobs') return kind === 'job.failed' && concernsJob(this.jobNames.get(subject) ?? '');
    if (file.on !== 'pipelines' || kind !== 'pipeline.ended' || data['state'] !== 'failed') return false;
    return !this.chainOf(String(data['pipeline'])).includes(name);
  }

  private chainOf(run: string): readonly string[] {
    return this.chains.get(run) ?? [];
  }

  private onCreated(name: string, nowMs: number): void {
    const file = this.files.get(name);
    if (file === undefined) return;
    this.known.set(name, {
      file,
      createdAtMs: nowMs,
      isDeleted: false,
      due: new Set(),
      outcomes: new Map(),
      queued: [],
      active: new Set(),
      stopped: new Set(),
      newestMs: 0,
    });
  }

  /** Whoever deletes one by time has waited until it must have fired. */
  private onDeleted(name: string, nowMs: number): void {
    const known = this.known.get(name);
    if (known === undefined) return;
    known.isDeleted = true;
    if (known.file.on !== 'cron' || !this.isTimeSteady()) return;
    const dueMs = Math.floor((epochMs + nowMs - carriedOutMs) / minuteMs) * minuteMs;
    const isDue = dueMs > epochMs + known.createdAtMs;
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
      if (this.isTimeSteady()) {
        this.must(dueMs > epochMs + known.createdAtMs - minuteMs, () => `${what()}, before it was created`);
        this.must(dueMs <= epochMs + nowMs, () => `${what()}, before that`);
        const isNext =
          known.newestMs === 0 || dueMs === known.newestMs + minuteMs || what().includes('missed');
        this.must(isNext, () => `${what()}, after ${new Date(known.newestMs).toISOString()}`);
      }
      known.newestMs = Math.max(known.newestMs, dueMs);
      return;
    }
    const [, seq = ''] = /^event (\d+): /.exec(cause) ?? [];
    this.must(known.due.delete(Number(seq)), () => `${what()}, which is not for it`);
  }

  private must(holds: boolean, what: () => string): void {
    this.verdict.require(holds, 'trigger', what);
  }
}
