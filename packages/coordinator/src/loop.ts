/**
 * The one writer. Commands from RPCs, agents and timers queue here; each turn runs what has queued on one draft, plans
 * on the result, commits events and rows in one transaction, and only then answers, publishes and talks to agents.
 */
import type { Clock } from '@muster/common/clock';
import { InvariantViolation, MusterError, messageOf } from '@muster/common/errors';
import type { JobId, NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { PendingReason } from '@muster/common/views';
import { applyJobEvent } from './commands/jobs.ts';
import { buildView } from './planning.ts';
import { type Decision, plan } from './scheduler/plan.ts';
import { type ClusterState, type Committed, Draft } from './state.ts';
import { type Store, StoreError } from './store/store.ts';
import type { WaitTimes } from './waitTimes.ts';

/** Changes a draft and answers its caller; throws MusterError to refuse. Runs to the end without waiting. */
export type Command<T> = (draft: Draft, nowMs: number) => T;

interface Queued {
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
  /** The node has been away, and its paths to others have not been measured since. */
  readonly needsPreflight: (node: NodeName) => boolean;
  /** A guarantee would have been broken, and was kept by refusing what would have broken it. */
  readonly onViolation: (guarantee: string) => void;
  /** After each commit, in order. */
  readonly onCommitted: (committed: Committed) => void;
  /** Gives back space kept for this moment; false when there is none left. */
  readonly freeBallast: () => boolean;
  /** The store is in an unknown state: nothing may be acknowledged any more. */
  readonly onFatal: (error: StoreError) => void;
}

/** A disk that stalls for seconds must not make the coordinator wait for seconds more. */
const coalesceMsMax = 20;

export class Loop {
  private readonly parts: LoopParts;
  private queue: Queued[] = [];
  private scheduled = false;
  private stopped: MusterError | null = null;
  private turning: Promise<void> = Promise.resolve();
  private wakeTimer: NodeJS.Timeout | null = null;
  /** Monotonic milliseconds: the next turn waits until then. */
  private notBeforeMs = 0;
  /** Why each queued job waits, by the last pass. Derived: never stored. */
  readonly reasons = new Map<JobId, PendingReason>();

  constructor(parts: LoopParts) {
    this.parts = parts;
  }

  /** Queues a command; resolves after the commit that holds its change. */
  run<T>(command: Command<T>): Promise<T> {
    if (this.stopped !== null) return Promise.reject(this.stopped);
    return new Promise<T>((resolve, reject) => {
      this.queue.push({ run: command, resolve: resolve, reject });
      this.wake();
    });
  }

  /**
   * Asks for a pass. Wake-ups coalesce: everything that queues until the pass shares its commit. On an idle cluster
   * that is the same round of the event loop; under load it is as long as the last commit took, so that waiting for the
   * disk never takes more than half of the time and slower disks get larger batches.
   */
  wake(): void {
    if (this.scheduled || this.stopped !== null) return;
    this.scheduled = true;
    const begin = () => {
      this.scheduled = false;
      this.turning = this.turning.then(() => this.turn());
    };
    const waitMs = this.notBeforeMs - this.parts.clock.monotonicMs();
    if (waitMs > 0) setTimeout(begin, waitMs);
    else setImmediate(begin);
  }

  /** Refuses new commands and those that wait, and lets the turn under way finish. */
  async stop(): Promise<void> {
    this.stopped ??= new MusterError('unavailable', 'the coordinator is shutting down; try again');
    if (this.wakeTimer !== null) clearTimeout(this.wakeTimer);
    await this.turning;
    for (const each of this.queue.splice(0)) each.reject(this.stopped);
  }

  private async turn(): Promise<void> {
    if (this.stopped !== null) return;
    const { state, clock, waitTimes } = this.parts;

    // 1. What has queued since the last turn.
    const commands = this.queue;
    this.queue = [];
    try {
      // 2. Commands change the draft; one that is refused changes nothing and hinders no other.
      const draft = new Draft(state);
      const nowMs = clock.wallMs();
      const answers = commands.map((command) => this.attempt(command, draft, nowMs));

      // 3. Plan on the result, and 4. put the decisions into the same draft.
      const monotonicMs = clock.monotonicMs();
      this.schedule(draft, nowMs, monotonicMs);

      // 5. Commit. A failure is final: who waits hears so, and the process ends.
      if (!draft.isEmpty()) await this.commit(draft);
      const committed = draft.apply();
      const doneMs = clock.monotonicMs();
      this.notBeforeMs = doneMs + Math.min(coalesceMsMax, doneMs - monotonicMs);

      // 6. Answer, publish, talk to agents.
      for (const job of committed.jobs) waitTimes.follow(job, monotonicMs);
      for (const answer of answers) answer();
      if (committed.events.length > 0 || committed.jobs.length > 0) this.parts.onCommitted(committed);
      this.wakeForBackoff(monotonicMs);
    } catch (error) {
      const failure = this.fail(error);
      for (const command of commands) command.reject(failure);
    }
  }

  /** Runs one command and returns how to answer it once the commit is done. */
  private attempt(command: Queued, draft: Draft, nowMs: number): () => void {
    try {
      const value = draft.attempt(() => command.run(draft, nowMs)) as never;
      return () => command.resolve(value);
    } catch (error) {
      if (error instanceof InvariantViolation) this.logViolation(error);
      return () => command.reject(error);
    }
  }

  /**
   * A pass that fails starts nothing and hinders nothing: what running jobs report must still be recorded, and after a
   * restart the same state would only fail again.
   */
  private schedule(draft: Draft, nowMs: number, monotonicMs: number): void {
    this.reasons.clear();
    const paused = this.parts.paused();
    if (paused !== null) {
      const reason = { kind: 'paused', message: paused, remedy: null } as const;
      for (const job of draft.activeJobs()) if (job.state.kind === 'queued') this.reasons.set(job.id, reason);
      return;
    }
    try {
      draft.attempt(() => {
        const view = buildView(draft, this.parts.onlineNodes(), this.parts.waitTimes, monotonicMs);
        this.carryOut(plan(view, monotonicMs), draft, nowMs);
      });
    } catch (error) {
      if (error instanceof InvariantViolation) this.logViolation(error);
      else this.parts.log.error({ error: messageOf(error) }, 'a scheduling pass failed: nothing was started');
    }
  }

  private carryOut(decisions: readonly Decision[], draft: Draft, nowMs: number): void {
    for (const decision of decisions) {
      switch (decision.kind) {
        case 'start': {
          const { tasks } = decision;
          const preflight = tasks.some(({ node }) => this.parts.needsPreflight(node));
          const event = { kind: 'allocate', tasks, leaseMs: this.parts.leaseMs, preflight } as const;
          applyJobEvent(draft, decision.jobId, event, nowMs);
          break;
        }
        case 'wait':
          this.reasons.set(decision.jobId, decision.reason);
          break;
        case 'reserve':
          break;
        default: {
          const never: never = decision;
          throw new Error(`unknown decision ${JSON.stringify(never)}`);
        }
      }
    }
  }

  private logViolation(error: InvariantViolation): void {
    this.parts.log.error({ guarantee: error.guarantee }, error.message);
    this.parts.onViolation(error.guarantee);
  }

  private async commit(draft: Draft): Promise<void> {
    const batch = draft.toBatch();
    try {
      await this.parts.store.commit(batch);
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'full' || !this.parts.freeBallast()) throw error;
      // A full disk wrote nothing at all, so this is the one failure that may be tried again.
      await this.parts.store.commit(batch);
    }
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
    const nextMs = this.parts.waitTimes.nextAfter(monotonicMs);
    if (nextMs !== null) this.wakeTimer = setTimeout(() => this.wake(), Math.max(1, nextMs - monotonicMs));
  }
}
