/**
 * The one writer. Commands from RPCs, agents and timers queue here; each turn runs what has queued on one draft, plans
 * on the result, commits events and rows in one transaction, and only then answers, publishes and talks to agents.
 */

import type { Clock } from '@muster/common/clock';
import { InvariantViolation, MusterError, messageOf } from '@muster/common/errors';
import type { JobId, NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { revoked } from './auth/tokens.ts';
import { type Caller, coordinatorPart } from './caller.ts';
import { preemptionText } from './explain/waiting.ts';
import { currentAttempt, type Job } from './model.ts';
import { PendingReasons } from './planning/pendingReasons.ts';
import { planningView } from './planning/planningView.ts';
import { SchedulerState, surveyOf } from './planning/schedulerState.ts';
import type { WaitTimes } from './planning/waitTimes.ts';
import { jobsAhead, queueOrder } from './scheduler/order.ts';
import { type Decision, plan } from './scheduler/plan.ts';
import type { WaitReason } from './scheduler/reasons.ts';
import type { SchedulerView } from './scheduler/view.ts';
import { applyJobEvent } from './state/applyJobEvent.ts';
import type { Committed } from './state/committed.ts';
import { type ClusterState, Draft } from './state/state.ts';
import { NoSpaceError } from './store/noSpace.ts';
import { type Store, StoreError } from './store/store.ts';
import { type Contained, StoppingError } from './work/contained.ts';
import { TurnPace } from './work/turnPace.ts';

/** Changes a draft and answers its caller; throws MusterError to refuse. Runs to the end without waiting. */
export type Command<T> = (draft: Draft, nowMs: number) => T;

export type CommitFollowers = Readonly<Record<string, (committed: Committed) => void>>;

interface Queued {
  readonly by: Caller;
  /** The caller has been promised that the command will be carried out. */
  readonly isPromised: boolean;
  readonly run: (draft: Draft, nowMs: number) => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

export interface LoopParts {
  readonly state: ClusterState;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly waitTimes: WaitTimes;
  /** Nodes that may get new work. */
  readonly onlineNodes: () => ReadonlySet<string>;
  /** Why nothing may be started now. null: it may. */
  readonly paused: () => string | null;
  /** Length of a lease where the job does not say. */
  readonly leaseMs: number;
  /** The boot of the machine whose tasks run without a lease where the job does not say. null: none does. */
  readonly leaseFreeBootId: string | null;
  /** The node has been away, and its paths to others have not been measured since. */
  readonly needsPreflight: (node: NodeName) => boolean;
  /** GPUs of a node that tasks hold which the store does not know. */
  readonly orphanGpus: (node: NodeName) => ReadonlySet<string>;
  /** An operation was refused that would have broken this guarantee. It is a number of docs/guarantees.md, such as `G2`. */
  readonly onViolation: (guarantee: string) => void;
  /** Told of each commit, in order, by name. What one throws reaches neither the others nor the answers: it is committed. */
  readonly followers: CommitFollowers;
  readonly contained: Pick<Contained, 'run'>;
  /** The store is in an unknown state: nothing may be acknowledged any longer. */
  readonly onFatal: (error: StoreError) => void;
}

const scheduler = coordinatorPart('scheduler');

/** Rows and events that a turn writes before it leaves the rest to the next: tens of milliseconds, so that heartbeats go between. */
const changesPerTurn = 200;

/** What a command would lead to, and how many queued jobs are ahead of the job that it adds. */
export type Rehearsal = { readonly job: Job; readonly ahead: number } & (
  | { readonly kind: 'start'; readonly nodes: readonly NodeName[] }
  | { readonly kind: 'wait'; readonly reason: WaitReason }
);

/** Delay of the next pass after a commit that found the disk full, milliseconds. */
const fullAgainMs = 1_000;

/** Each starts what one pass shows of the equal jobs of an array. */
const rehearsedPassesMax = 100;

export class Loop {
  private readonly parts: LoopParts;
  private queue: Queued[] = [];
  private scheduled = false;
  private stopped: MusterError | null = null;
  private turning: Promise<void> = Promise.resolve();
  private wakeTimer: NodeJS.Timeout | null = null;
  private readonly pace = new TurnPace();
  private readonly memory = new SchedulerState();
  /** Monotonic milliseconds: the next pass may find more, though nothing happens until then. null: it will not. */
  private nextLookMs: number | null = null;
  /** Jobs that the pass of this turn has asked to stop. */
  private preempting: JobId[] = [];
  readonly reasons = new PendingReasons();

  constructor(parts: LoopParts) {
    this.parts = parts;
  }

  /**
   * Queues a command; resolves after the commit that holds its change.
   * @param by on whose behalf: what the command emits names it
   * @param isPromised it is the rest of what has been acknowledged, and is done whatever has become of the caller since
   */
  run<T>(by: Caller, command: Command<T>, isPromised = false): Promise<T> {
    if (this.stopped !== null) return Promise.reject(this.stopped);
    return new Promise<T>((resolve, reject) => {
      this.queue.push({ by, isPromised, run: command, resolve: resolve, reject });
      this.wake();
    });
  }

  /** What a command returns, on a draft that is thrown away. @throws {MusterError} if it is refused */
  tryOut<T>(by: Caller, command: Command<T>): T {
    const draft = new Draft(this.parts.state);
    return draft.attempt(by, () => command(draft, this.parts.clock.wallMs()));
  }

  /**
   * Carries a command out, and plans behind it, on a draft that is thrown away.
   * @returns what would become of the first job that the command adds
   * @throws {MusterError} if the command is refused
   */
  rehearse(by: Caller, command: Command<unknown>): Rehearsal {
    const { state, clock } = this.parts;
    const [nowMs, monotonicMs] = [clock.wallMs(), clock.monotonicMs()];
    const draft = new Draft(state);
    draft.attempt(by, () => command(draft, nowMs));
    const added = [...draft.activeJobs()].filter(({ id }) => !state.jobs.has(id)).sort(queueOrder);
    const [job] = added;
    if (job === undefined) throw new Error('the command adds no job');
    const ahead = jobsAhead(draft.activeJobs(), job);
    const paused = this.parts.paused();
    if (paused !== null) return { kind: 'wait', job, ahead, reason: { kind: 'paused', why: paused } };
    for (let pass = 0; pass < rehearsedPassesMax; pass += 1) {
      const decisions = plan(this.view(draft, nowMs, monotonicMs), monotonicMs);
      for (const decision of decisions) {
        if (decision.kind === 'start' && decision.jobId === job.id)
          return { kind: 'start', job, ahead, nodes: decision.tasks.map(({ node }) => node) };
        if (decision.kind === 'wait' && decision.jobId === job.id)
          return { kind: 'wait', job, ahead, reason: decision.why() };
      }
      // The pass has ended before it came to this job, because another one is to follow those that start.
      for (const decision of decisions) if (decision.kind === 'start') this.start(decision, draft, nowMs);
    }
    throw new MusterError('unavailable', 'many jobs are about to start; try again');
  }

  /** Asks for a pass. Wake-ups coalesce: everything that queues until the pass shares its commit. */
  wake(): void {
    if (this.scheduled || this.stopped !== null) return;
    this.scheduled = true;
    const begin = () => {
      this.scheduled = false;
      this.turning = this.turning.then(() => this.turn());
    };
    const waitMs = this.pace.waitMs(this.parts.clock.monotonicMs());
    if (waitMs > 0) setTimeout(begin, waitMs);
    else setImmediate(begin);
  }

  /** Refuses new commands and those that wait, and lets the turn under way finish. */
  async stop(): Promise<void> {
    this.stopped ??= new StoppingError();
    if (this.wakeTimer !== null) clearTimeout(this.wakeTimer);
    await this.turning;
    for (const each of this.queue.splice(0)) each.reject(this.stopped);
  }

  private async turn(): Promise<void> {
    if (this.stopped !== null) return;
    const { state, clock, waitTimes } = this.parts;

    // 1. What has queued since the last turn, as far as one turn may take it.
    const commands: Queued[] = [];
    try {
      // 2. Commands change the draft; one that is refused changes nothing and hinders no other.
      const draft = new Draft(state);
      const nowMs = clock.wallMs();
      const answers: (() => void)[] = [];
      // What would make the turn long waits for the next one, with everything behind it.
      while (this.queue.length > 0 && draft.size < changesPerTurn) {
        const next = this.queue.splice(0, 1);
        commands.push(...next);
        for (const command of next) answers.push(this.attempt(command, draft, nowMs));
      }

      // 3. Plan on the result, and 4. put the decisions into the same draft.
      const monotonicMs = clock.monotonicMs();
      const needsAnother = this.schedule(draft, nowMs, monotonicMs);

      // 5. Commit. A failure is final: all callers get the error, and the process ends. A full disk is the exception.
      if (!draft.isEmpty()) await commitDraft(this.parts, draft);
      const committed = draft.apply();
      const doneMs = clock.monotonicMs();
      this.pace.took(commands.length, monotonicMs, doneMs);

      // 6. Answer, publish, talk to agents.
      for (const job of committed.jobs) waitTimes.follow(job, monotonicMs);
      for (const answer of answers) answer();
      const { events, jobs, endedCredentials } = committed;
      if (events.length + jobs.length + endedCredentials.length > 0) this.publish(committed);
      this.wakeForBackoff(monotonicMs);
      // A preempted attempt that had not begun has ended at once: its preemptor can start, and no report will wake the loop.
      if (needsAnother || this.queue.length > 0) this.wake();
    } catch (error) {
      const isFull = error instanceof StoreError && error.kind === 'full';
      const failure = isFull ? this.refuse(error) : this.fail(error);
      for (const command of commands) command.reject(failure);
    }
  }

  /** A full disk has written nothing at all: the commands of this turn are refused, the state stays, and reads are served. */
  private refuse(error: StoreError): MusterError {
    for (const victim of this.preempting) this.memory.takeBackPreempted(victim);
    if (this.wakeTimer !== null) clearTimeout(this.wakeTimer);
    this.wakeTimer = setTimeout(() => this.wake(), fullAgainMs);
    if (this.queue.length > 0) this.wake();
    return new NoSpaceError(error);
  }

  private publish(committed: Committed): void {
    const { followers, contained } = this.parts;
    for (const [name, follow] of Object.entries(followers)) void contained.run(name, () => follow(committed));
  }

  /** Runs one command and returns how to answer it once the commit is done. */
  private attempt(command: Queued, draft: Draft, nowMs: number): () => void {
    try {
      const value = draft.attempt(command.by, () => {
        if (!command.isPromised) requireStanding(draft, command.by);
        return command.run(draft, nowMs);
      }) as never;
      return () => command.resolve(value);
    } catch (error) {
      if (error instanceof InvariantViolation) this.logViolation(error);
      return () => command.reject(error);
    }
  }

  /**
   * A pass that fails starts nothing and hinders nothing: what running jobs report must still be recorded, and after a
   * restart the same state would only fail again.
   * @returns whether another pass is to follow at once
   */
  private schedule(draft: Draft, nowMs: number, monotonicMs: number): boolean {
    this.reasons.clear();
    this.nextLookMs = null;
    this.preempting = [];
    const paused = this.parts.paused();
    if (paused !== null) {
      this.reasons.setAll({ kind: 'paused', why: paused });
      return false;
    }
    try {
      return draft.attempt(scheduler, () => {
        const view = this.view(draft, nowMs, monotonicMs);
        this.nextLookMs = endOfWaits(view);
        return this.carryOut(plan(view, monotonicMs), view, draft, nowMs);
      });
    } catch (error) {
      if (error instanceof InvariantViolation) this.logViolation(error);
      else this.parts.log.error({ error: messageOf(error) }, 'a scheduling pass failed: nothing was started');
      return false;
    }
  }

  private view(draft: Draft, wallMs: number, monotonicMs: number): SchedulerView {
    const { waitTimes, leaseMs, orphanGpus, needsPreflight } = this.parts;
    const { memory } = this;
    const onlineNodes = this.parts.onlineNodes();
    const survey = surveyOf(draft);
    memory.look(survey, onlineNodes, { wallMs, monotonicMs });
    const around = { onlineNodes, waitTimes, memory, leaseMs, orphanGpus, needsPreflight };
    return planningView(draft, survey, around, monotonicMs);
  }

  private carryOut(
    decisions: readonly Decision[],
    view: SchedulerView,
    draft: Draft,
    nowMs: number,
  ): boolean {
    const lastIds = new Set(view.queue.flatMap(({ id, equals }) => (equals === null ? [] : [id])));
    let needsAnother = false;
    for (const decision of decisions) {
      switch (decision.kind) {
        case 'start':
          this.start(decision, draft, nowMs);
          break;
        case 'preempt': {
          const { id } = decision.victim;
          const before = draft.job(id);
          const attempt = currentAttempt(before)?.number ?? 0;
          const by = decision.by.id;
          const message = preemptionText(decision);
          applyJobEvent(draft, id, { kind: 'preempt', attempt, message, by }, nowMs);
          if (draft.job(id) !== before) {
            this.memory.preempted(id, attempt, by);
            this.preempting.push(id);
            needsAnother = true;
          }
          break;
        }
        case 'wait':
          this.reasons.set(decision.jobId, decision.why);
          if (lastIds.has(decision.jobId)) {
            const job = draft.job(decision.jobId);
            if (job !== undefined) this.reasons.setEquals(job, decision.why);
          }
          break;
        case 'again':
          needsAnother = true;
          break;
        case 'hold':
        case 'reserve':
          break;
        default: {
          const never: never = decision;
          throw new Error(`unknown decision ${JSON.stringify(never)}`);
        }
      }
    }
    return needsAnother;
  }

  private start(
    { jobId, tasks, resume, preflight }: Extract<Decision, { kind: 'start' }>,
    draft: Draft,
    nowMs: number,
  ): void {
    const job = draft.job(jobId);
    if (job === undefined) return;
    const { leaseFreeBootId, state } = this.parts;
    const { attemptFloor } = state;
    const isLeaseFree = tasks.every(({ node }) => draft.node(node)?.bootId === leaseFreeBootId);
    const leaseMs = isLeaseFree ? null : this.parts.leaseMs;
    const numberMin = job.submitSeq <= attemptFloor.submitSeqMax ? attemptFloor.number : 0;
    applyJobEvent(draft, jobId, { kind: 'allocate', tasks, leaseMs, preflight, resume, numberMin }, nowMs);
  }

  private logViolation(error: InvariantViolation): void {
    this.parts.log.error({ guarantee: error.guarantee }, error.message);
    this.parts.onViolation(error.guarantee);
  }

  private fail(error: unknown): MusterError {
    const fatal =
      error instanceof StoreError ? error : new StoreError('io', messageOf(error), { cause: error });
    const message = 'the coordinator lost its store and is restarting; try again';
    const answer = new MusterError('unavailable', message, { cause: fatal });
    this.stopped = answer;
    for (const each of this.queue.splice(0)) each.reject(answer);
    this.parts.onFatal(fatal);
    return answer;
  }

  /** Nothing happens when a backoff runs out, so someone has to look. */
  private wakeForBackoff(monotonicMs: number): void {
    if (this.wakeTimer !== null) clearTimeout(this.wakeTimer);
    this.wakeTimer = null;
    if (this.stopped !== null) return;
    const moments = [this.parts.waitTimes.nextAfter(monotonicMs), this.nextLookMs];
    const nextMs = moments.reduce((a, b) => (a === null ? b : b === null ? a : Math.min(a, b)));
    if (nextMs !== null) this.wakeTimer = setTimeout(() => this.wake(), Math.max(1, nextMs - monotonicMs));
  }
}

/** When the first wait for a silent node ends. null: none does. */
function endOfWaits({ queue, nodes }: SchedulerView): number | null {
  let end: number | null = null;
  const note = (untilMs: number | null) => {
    if (untilMs !== null && (end === null || untilMs < end)) end = untilMs;
  };
  for (const { pin } of queue) note(pin?.untilMs ?? null);
  for (const { awaitedUntilMs } of nodes) note(awaitedUntilMs);
  return end;
}

/**
 * A command may have waited while its caller was revoked; what a removed node says last must not bring it back.
 * @throws {MusterError} `unauthenticated`
 */
function requireStanding(draft: Draft, by: Caller): void {
  if (by.kind === 'coordinator' || by.kind === 'anonymous' || draft.credential(by.id) !== undefined) return;
  throw revoked(by.id);
}

/** Stores a draft. Nobody learns of what it contains before the commit has succeeded (G1 of docs/guarantees.md). */
export async function commitDraft({ store }: Pick<LoopParts, 'store'>, draft: Draft): Promise<void> {
  await store.commit(draft.toBatch());
}
