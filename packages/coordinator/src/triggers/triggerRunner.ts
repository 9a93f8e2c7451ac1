/**
 * Fires triggers of pipelines: each pass looks at what is stored of them and at the time, and starts what is due. It keeps nothing that
 * a restart must find again: a run and that its trigger has fired are one commit, so none is started twice and none is lost.
 */
import { MusterError, messageOf } from '@muster/common/errors';
import type { RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { hasPipelineEnded } from '@muster/common/pipelines';
import type { TriggerKind } from '@muster/common/triggers';
import { completeValues } from '@muster/pipelines/parameters';
import { fillFromFire } from '@muster/pipelines/triggerValues';
import { coordinatorPart, type Identity, userOf } from '../caller.ts';
import {
  fireOnRequest,
  fireTrigger,
  noteBlock,
  noteTriggerSeq,
  type RequestedFire,
  startWaitingFire,
  type WantedRun,
} from '../commands/triggers.ts';
import type { Loop } from '../loop.ts';
import type { PipelineRunner } from '../pipelines/pipelineRunner.ts';
import { decodePipeline } from '../pipelines/sentPipeline.ts';
import { requireSteps, type StepCheckParts } from '../pipelines/stepChecks.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import type { RequestRecord } from '../store/store.ts';
import type { StoredTrigger } from '../store/triggers.ts';
import { DataWatch, type DataWatchParts } from './dataWatch.ts';
import { eventFacts } from './eventCondition.ts';
import { type TriggerEventParts, TriggerEvents } from './eventFollower.ts';
import { dueTime } from './schedule.ts';

/** What `${trigger.NAME}` may name, by the kind of the trigger. */
export const factNames: Readonly<Record<TriggerKind, readonly string[]>> = {
  cron: ['time'],
  event: ['event', 'time'],
  webhook: ['time', 'body', 'delivery'],
  data: ['time', 'directory', 'files'],
};

/** What `${trigger.NAME}` may name, and values of parameters. */
type FireFacts = Readonly<Record<string, unknown>>;

/** Of the secret of its project that deliveries are signed with. */
export function webhookSecretName(trigger: string): string {
  return `trigger.${trigger}`;
}

export interface TriggerRunnerParts extends StepCheckParts, DataWatchParts {
  readonly state: ClusterState;
  readonly store: TriggerEventParts['store'];
  readonly loop: Pick<Loop, 'run'>;
  readonly pipelines: Pick<PipelineRunner, 'begin'>;
  readonly random: RandomBytes;
  readonly wallMs: () => number;
  readonly log: Logger;
}

export class TriggerRunner {
  private readonly parts: TriggerRunnerParts;
  private readonly events: TriggerEvents;
  private readonly data: DataWatch;
  private work: Promise<void> | null = null;
  private isAskedAgain = false;

  constructor(parts: TriggerRunnerParts) {
    this.parts = parts;
    this.events = new TriggerEvents(parts);
    this.data = new DataWatch(parts, () => this.runNow());
  }

  /** One pass over all triggers; one that is asked for meanwhile follows it. */
  run(): Promise<void> {
    if (this.work !== null) this.isAskedAgain = true;
    this.work ??= this.passes().finally(() => {
      this.work = null;
    });
    return this.work;
  }

  /** A run that ends lets a fire begin that waits for it, and what happens may fire a trigger. */
  committed({ events }: Pick<Committed, 'events'>): void {
    const { triggers } = this.parts.state.pipelines;
    if (events.length === 0 || triggers.size === 0) return;
    const mayStart = events.some(({ kind }) => kind === 'pipeline.ended' || kind === 'trigger.resumed');
    if (!mayStart && ![...triggers.values()].some(({ source }) => source.kind === 'event')) return;
    this.runNow();
  }

  /** Resolves when the directories that are being listed have been. */
  listed(): Promise<void> {
    return this.data.listed();
  }

  private runNow(): void {
    this.run().catch((error: unknown) =>
      this.parts.log.warn({ error: messageOf(error) }, 'a pass over the triggers has failed'),
    );
  }

  /** What fails of one trigger keeps no other from its pass, and is thrown at the end. */
  private async passes(): Promise<void> {
    const failures: unknown[] = [];
    do {
      this.isAskedAgain = false;
      for (const trigger of Array.from(this.parts.state.pipelines.triggers.values()))
        await this.pass(trigger).catch((error: unknown) => failures.push(error));
      await this.fireByEvents().catch((error: unknown) => failures.push(error));
    } while (this.isAskedAgain);
    if (failures.length > 0) throw failures[0];
  }

  private async pass(trigger: StoredTrigger): Promise<void> {
    if (trigger.isPaused) return;
    if (trigger.waiting.length > 0 && !this.hasActiveRun(trigger)) await this.startWaiting(trigger);
    await this.fireByTime(trigger);
    await this.fireByData(trigger);
    await this.noteBlock(trigger);
  }

  private hasActiveRun({ name }: StoredTrigger): boolean {
    for (const { triggers, state } of this.parts.state.pipelines.runs.values())
      if (triggers.at(-1) === name && !hasPipelineEnded(state)) return true;
    return false;
  }

  private async startWaiting({ name, by, spec }: StoredTrigger): Promise<void> {
    const { loop, random, pipelines } = this.parts;
    const { length } = decodePipeline(spec).spec.steps;
    await loop.run(by, (draft, nowMs) => startWaitingFire(draft, name, length, random, nowMs), true);
    pipelines.begin();
  }

  private async fireByTime(trigger: StoredTrigger): Promise<void> {
    const due = dueTime(trigger, this.parts.wallMs());
    if (due === null || trigger.source.kind !== 'cron') return;
    const { dueAtMs, nextAtMs, missed, isLate } = due;
    const cause = new Date(dueAtMs).toISOString().replace('.000Z', 'Z');
    const count = missed === 1 ? 'one time' : `${missed >= 100 ? 'at least ' : ''}${missed} times`;
    const note = missed === 0 ? null : `${count} missed while the coordinator did not run`;
    const isDropped = isLate && trigger.source.missed === 'skip';
    const wanted: WantedRun = isDropped
      ? { kind: 'none', outcome: 'missed', reason: note ?? '' }
      : await this.wantedRun(trigger, { time: cause }, note);
    // The fire is that of the time for which it was due: once it is carried out, the trigger waits for another.
    const isDue = (now: StoredTrigger) => now.nextAtMs === trigger.nextAtMs;
    await this.fire(trigger, { isDue, moved: { nextAtMs }, cause, after: [], wanted });
  }

  private async fireByData(trigger: StoredTrigger): Promise<void> {
    const found = this.data.newData(trigger);
    if (found === null || trigger.source.kind !== 'data') return;
    const { directory } = trigger.source;
    const { digest, files } = found;
    const facts = { directory, files, time: new Date(this.parts.wallMs()).toISOString() };
    const wanted = await this.wantedRun(trigger, facts, null);
    // What lies there fires once: the trigger remembers it in the commit of the run.
    const isDue = (now: StoredTrigger) => now.dataDigest === trigger.dataDigest;
    const cause = `data in ${directory}: ${files} file${files === 1 ? '' : 's'}`;
    await this.fire(trigger, { isDue, moved: { dataDigest: digest }, cause, after: [], wanted });
  }

  /** Stored, so that its start, and that it was reported, are still known after a restart. */
  private async noteBlock(trigger: StoredTrigger): Promise<void> {
    const found = this.data.problem(trigger);
    const { blocked = null } = trigger;
    if (found === undefined || (found?.cause === blocked?.cause && found?.remedy === blocked?.remedy)) return;
    const by = coordinatorPart('triggers');
    await this.parts.loop.run(by, (draft, nowMs) => noteBlock(draft, trigger, found, nowMs));
  }

  private fireByEvents(): Promise<void> {
    return this.events.run({
      fire: async (trigger, event, job, after) => {
        const { seq, kind, subject, timeMs } = event;
        const facts = { event: eventFacts(event, job), time: new Date(timeMs).toISOString() };
        const wanted = await this.wantedRun(trigger, facts, null);
        const isDue = ({ eventSeq }: StoredTrigger) => (eventSeq ?? 0) < seq;
        const cause = `event ${seq}: ${kind} of ${job?.spec.name ?? subject}`;
        await this.fire(trigger, { isDue, moved: { eventSeq: seq }, cause, after, wanted });
      },
      note: (trigger, seq) =>
        this.parts.loop.run(coordinatorPart('triggers'), (draft) => noteTriggerSeq(draft, trigger, seq)),
    });
  }

  /** Carries out a delivery. The caller makes sure that each is carried out once. */
  async fireByWebhook(
    trigger: StoredTrigger,
    { cause, facts, request }: Pick<RequestedFire, 'cause' | 'request'> & { readonly facts: FireFacts },
  ): Promise<RequestRecord> {
    const { loop, random, pipelines } = this.parts;
    const fire = { trigger, cause, request, wanted: await this.wantedRun(trigger, facts, null) };
    const { record } = await loop.run(
      trigger.by,
      (draft, nowMs) => fireOnRequest(draft, fire, random, nowMs),
      true,
    );
    pipelines.begin();
    return record;
  }

  /**
   * As `fireByWebhook`, on the request of a user, who is recorded as its caller. The run still belongs to the trigger.
   * @param params replace those of the trigger
   */
  async fireByHand(
    caller: Identity,
    trigger: StoredTrigger,
    { params, request }: Pick<RequestedFire, 'request'> & { readonly params: FireFacts },
  ): Promise<ReturnType<typeof fireOnRequest>> {
    const { loop, random, pipelines, listData, wallMs } = this.parts;
    const { source } = trigger;
    const directory = source.kind === 'data' ? source.directory : null;
    const listed = directory === null ? {} : { directory, files: (await listData(directory)).files };
    const facts = { ...listed, time: new Date(wallMs()).toISOString() };
    const given = { ...trigger, params: { ...trigger.params, ...params } };
    const wanted = await this.wantedRun(given, facts, null);
    const fire = { trigger, cause: `by hand, ${userOf(caller)}`, request, wanted };
    const fired = await loop.run(caller, (draft, nowMs) => fireOnRequest(draft, fire, random, nowMs));
    pipelines.begin();
    return fired;
  }

  private async fire(
    trigger: StoredTrigger,
    fire: Omit<Parameters<typeof fireTrigger>[1], 'trigger'>,
  ): Promise<void> {
    const { loop, random, pipelines } = this.parts;
    // What the user may do now is looked at by the command: the token that the trigger was created with may have ended.
    await loop.run(
      trigger.by,
      (draft, nowMs) => fireTrigger(draft, { ...fire, trigger }, random, nowMs),
      true,
    );
    pipelines.begin();
  }

  /** Every job is checked as when a user starts the run. What cannot be started is a fire that has failed. */
  private async wantedRun(trigger: StoredTrigger, facts: FireFacts, note: string | null): Promise<WantedRun> {
    const failed = (reason: string) => ({ kind: 'none', outcome: 'failed', reason }) as const;
    try {
      const { spec } = decodePipeline(trigger.spec);
      const filled = fillFromFire(trigger.params, facts);
      const complete = filled.ok ? completeValues(spec.params, filled.values) : filled;
      if (!complete.ok) return failed(complete.problems.join('; '));
      await requireSteps(spec, complete.values, this.parts);
      return { kind: 'run', params: complete.values, stepCount: spec.steps.length, note };
    } catch (error) {
      if (!(error instanceof MusterError) || error.code === 'internal' || error.code === 'unavailable')
        throw error;
      return failed(error.message);
    }
  }
}
