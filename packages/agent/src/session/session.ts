/**
 * The connection to the coordinator: dials out, reports the complete state, keeps the heartbeat, and dials again when it
 * breaks. Messages become orders for the task manager; nothing is decided here.
 */
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { KeptCheckpoints } from '@muster/common/checkpoints';
import type { MusterError } from '@muster/common/errors';
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage__Output } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { HeartbeatAck__Output } from '@muster/common/gen/muster/v1/HeartbeatAck';
import type { NextToken__Output } from '@muster/common/gen/muster/v1/NextToken';
import type { NodeStatus as WireNodeStatus } from '@muster/common/gen/muster/v1/NodeStatus';
import type { Welcome__Output } from '@muster/common/gen/muster/v1/Welcome';
import type { TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { backoffMs, withJitter } from '@muster/common/retry';
import { musterVersion } from '@muster/common/version';
import {
  checkpointSeenToWire,
  conditionToWire,
  inventoryToWire,
  taskRefFromWire,
  taskRefToWire,
} from '@muster/common/wire/codec';
import { missedHeartbeatsMax, protocolVersion, protocolVersionMin } from '@muster/common/wire/protocol';
import { fromServiceError } from '@muster/common/wire/status';
import { type HighestTerm, isFollowed, isOfAnotherRun, type Term } from '../leases/highestTerm.ts';
import { Questions } from '../leases/questions.ts';
import type { NodeStatus } from '../node/nodeWatch.ts';
import type { TaskManager } from '../tasks/manager.ts';
import type { ContinuityTokens, MachineIdentity } from './continuity.ts';
import type { CredentialRenewal } from './credentialRenewal.ts';
import { deliver, desired, neverFenced } from './orders.ts';
import { continuityToWire, fittingHello, heartbeatTasks, helloTasks, termToWire } from './sessionMessages.ts';

type Stream = ClientDuplexStream<AgentMessage, CoordinatorMessage__Output>;

/** For the coordinator to record a Hello; the same holds for a peer that died before it could answer one. */
const welcomeTimeoutMs = 15_000;
/** Short at most: a coordinator that is back should not be waited for, and a thousand agents dialling a second do no harm. */
const reconnect = { initialMs: 100, maxMs: 1_000 };
/** For a coordinator that reports that this agent sends too much: its budget has to recover first. */
const reconnectExhausted = { initialMs: 5_000, maxMs: 30_000 };
/** By one that refuses us, until somebody has done something about it. */
const afterRefusal = { initialMs: 1_000, maxMs: 30_000 };
/** A refusal that persists is logged again after this time. */
const refusalLoggedMs = 600_000;

export interface SessionParts {
  readonly openStream: () => Stream;
  readonly manager: TaskManager;
  readonly instanceId: string;
  readonly bootId: string;
  readonly terms: HighestTerm;
  readonly continuity: ContinuityTokens;
  readonly machine: MachineIdentity;
  readonly renewal: Pick<CredentialRenewal, 'take' | 'welcomed' | 'refused' | 'explain'>;
  /** Why there is no connection, for the log. */
  readonly whyUnconnected: (error: unknown) => string;
  /** The node as it is now. */
  readonly status: () => Promise<NodeStatus>;
  /** Until this machine is switched off; null: nothing is known of that. */
  readonly leavingInMs: () => number | null;
  /** How far this node's wall clock is ahead of the coordinator's. */
  readonly onClockSkew: (skewMs: number) => void;
  readonly wallMs: () => number;
  /** A user confirms that a condition is dealt with. */
  readonly onClearCondition: (kind: string, gpuUuid: string | null) => void;
  /** Which checkpoints of a task evaluations need. */
  readonly onKeepCheckpoints: (task: TaskRef, kept: KeptCheckpoints) => void;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  readonly monotonicMs: () => number;
  /** Uniform in [0, 1). */
  readonly chance: () => number;
  readonly log: Logger;
  /** Another agent has this one's name: one of the two is a mistake that only a person can end. */
  readonly onRefused: (error: MusterError) => void;
  /** A coordinator that the agent follows has answered: what the last connection may have lost must be sent again. */
  readonly onWelcome?: () => void;
}

export class CoordinatorSession {
  private readonly parts: SessionParts;
  private stream: Stream | null = null;
  private heartbeat: NodeJS.Timeout | null = null;
  private redial: NodeJS.Timeout | null = null;
  private failures = 0;
  /** Sends a heartbeat out of turn. Null before the Welcome. */
  private beatNow: (() => void) | null = null;
  private heartbeatSeq = 0;
  private answeredSeq = 0;
  private readonly questions = new Questions();
  /** The coordinator of this connection is one to be followed. */
  private isWelcome = false;
  /** Logged once, not at every dialling. */
  private refusedTerm: number | null = null;
  /** Monotonic moments of the last heartbeat sent and of the last one answered. */
  private sentAtMs = 0;
  private answeredAtMs: number | null = null;
  /** The version of the next Hello: a coordinator that is one version behind refuses ours, and takes its own. */
  private protocol = protocolVersion;
  private refusals = 0;
  /** The refusal that was logged last, and when by the monotonic clock. */
  private loggedRefusal: { readonly message: string; readonly atMs: number } | null = null;
  private closed = false;

  constructor(parts: SessionParts) {
    this.parts = parts;
  }

  start(): void {
    this.dial().catch((error: unknown) => this.lost(error));
  }

  /** Sent now, or not at all: the Hello of the next connection repeats it. */
  send(message: AgentMessage): void {
    this.stream?.write(message);
  }

  /** Since the coordinator last answered a heartbeat; null: it never has. */
  heartbeatAgeMs(): number | null {
    return this.answeredAtMs === null ? null : this.parts.monotonicMs() - this.answeredAtMs;
  }

  get isConnected(): boolean {
    return this.stream !== null;
  }

  /** The node has changed. While there is no connection nothing is sent: the next Hello has it all. */
  async sendStatus(): Promise<void> {
    if (this.stream === null) return;
    const status = await this.parts.status();
    this.send({ status: { ...statusToWire(status), ...this.leaving() } });
  }

  close(): void {
    this.closed = true;
    this.stopHeartbeat();
    if (this.redial !== null) clearTimeout(this.redial);
    this.stream?.end();
    this.stream = null;
  }

  private async dial(): Promise<void> {
    const { parts } = this;
    const status = await parts.status();
    if (this.closed) return;
    const stream = parts.openStream();
    this.stream = stream;
    this.isWelcome = false;
    parts.manager.connected();
    stream.on('data', (message: CoordinatorMessage__Output) => {
      if (this.stream === stream) this.onMessage(message);
    });
    stream.on('error', (error: Error) => {
      if (this.stream === stream) this.lost(error);
    });
    stream.on('end', () => {
      if (this.stream === stream) this.lost(new Error('the coordinator closed the session'));
    });
    // Before it is sent: what is granted for it counts from here, and rather ends too early than too late.
    const sentBoottimeMs = parts.boottimeMs();
    this.questions.helloSent(sentBoottimeMs);
    stream.write(
      fittingHello({
        protocolVersion: this.protocol,
        agentVersion: musterVersion,
        instanceId: parts.instanceId,
        bootId: parts.bootId,
        ...statusToWire(status),
        ...this.leaving(),
        observed: helloTasks(parts.manager.reports(), parts.manager.running()),
        checkpoints: parts.manager.checkpoints().map(checkpointSeenToWire),
        proofs: parts.manager.proofs().map(({ task, proof }) => ({ task: taskRefToWire(task), proof })),
        ...termToWire(parts.terms.highest),
        continuity: continuityToWire(parts.continuity.tokens, parts.machine),
        sentBoottimeMs,
        sentWallMs: parts.wallMs(),
        marksRowEnds: true,
      }),
    );
    this.heartbeat = awaitWelcome((error) => this.lost(error));
  }

  private leaving(): { readonly leavingInMs?: number } {
    const leavingInMs = this.parts.leavingInMs();
    return leavingInMs === null ? {} : { leavingInMs };
  }

  private lost(error: unknown): void {
    this.stopHeartbeat();
    const { stream } = this;
    this.stream = null;
    stream?.cancel();
    if (this.closed) return;
    const known = error instanceof Error && 'code' in error ? fromServiceError(error as never) : null;
    if (known?.code === 'already_exists') {
      this.parts.onRefused(known);
      return;
    }
    const hasOtherCredential = known?.code === 'unauthenticated' && this.parts.renewal.refused();
    if (known !== null && refusals.has(known.code) && !hasOtherCredential) {
      this.refused(known);
      return;
    }
    this.protocol = protocolVersion;
    this.failures += 1;
    if (this.failures === 1) {
      this.parts.log.warn(
        { error: this.parts.whyUnconnected(error) },
        'no connection to the coordinator; tasks keep running, reconnecting',
      );
    }
    const pace = known?.code === 'resource_exhausted' ? reconnectExhausted : reconnect;
    const waitMs = withJitter(backoffMs(pace, this.failures), this.parts.chance());
    this.redial = setTimeout(() => this.start(), waitMs);
  }

  /**
   * The agent stays: its tasks run until their leases end, and are there again when the coordinator takes it back, as after
   * an upgrade of it or another restore of its store.
   */
  private refused(refusal: MusterError): void {
    const error = this.parts.renewal.explain(refusal, this.parts.wallMs());
    this.refusals += 1;
    if (error.code === 'failed_precondition')
      this.protocol = this.protocol === protocolVersion ? protocolVersionMin : protocolVersion;
    const nowMs = this.parts.monotonicMs();
    const logged = this.loggedRefusal;
    const isFirstAnswer = error.code === 'failed_precondition' && this.refusals === 1;
    const isChange =
      logged === null || logged.message !== error.message || nowMs - logged.atMs >= refusalLoggedMs;
    if (isChange && !isFirstAnswer) {
      this.loggedRefusal = { message: error.message, atMs: nowMs };
      this.parts.log.error(
        { error: error.message, code: error.code },
        'the coordinator refuses this agent; its tasks run until their leases expire, and it keeps retrying',
      );
    }
    const waitMs = withJitter(backoffMs(afterRefusal, this.refusals), this.parts.chance());
    this.redial = setTimeout(() => this.start(), waitMs);
  }

  private onMessage(message: CoordinatorMessage__Output): void {
    if (message.nextToken != null) this.onNextToken(message.nextToken);
    if (message.welcome != null) this.onWelcome(message.welcome);
    // A coordinator of a lower term is ignored, and so is one that has not shown its term.
    if (!this.isWelcome) return;
    deliver(message, this.parts.manager, this.questions.lastAnsweredMs);
    if (message.clearCondition != null) {
      const { kind, gpuUuid } = message.clearCondition;
      this.parts.onClearCondition(kind, gpuUuid ?? null);
    }
    const kept = taskRefFromWire(message.keepCheckpoints?.task ?? null);
    if (kept !== null && message.keepCheckpoints != null) {
      const { held, decidedSavedAtMs } = message.keepCheckpoints;
      this.parts.onKeepCheckpoints(kept, { held, decidedSavedAtMs });
    }
    const { stream } = this;
    this.parts.renewal.take(message, (answer) => {
      if (this.stream === stream) this.send(answer);
    });
    if (message.heartbeatAck != null) this.onHeartbeatAck(message.heartbeatAck);
    if (message.beat != null) this.beatNow?.();
  }

  /** On disk before it is confirmed: from then on the coordinator takes no earlier token. */
  private onNextToken({ token, current, term, termProof: proof, clusterId }: NextToken__Output): void {
    const { terms, continuity } = this.parts;
    if (!isFollowed({ term, proof, clusterId }, terms.highest)) {
      this.refuse({ term, proof, clusterId });
      return;
    }
    this.send({
      tokenKept: { token, failed: !continuity.keep([token, ...(current === undefined ? [] : [current])]) },
    });
  }

  private onWelcome(welcome: Welcome__Output): void {
    const { terms, log, manager } = this.parts;
    const { term, termProof: proof, clusterId } = welcome;
    if (!terms.admit({ term, proof, clusterId })) {
      this.refuse({ term, proof, clusterId });
      return;
    }
    this.isWelcome = true;
    this.parts.renewal.welcomed();
    if (this.failures > 0) log.info({ failures: this.failures }, 'connected to the coordinator again');
    this.failures = 0;
    this.refusals = 0;
    this.loggedRefusal = null;
    const askedMs = this.questions.helloAnswered();
    manager.setDesired(desired(welcome.desired, askedMs));
    this.startHeartbeat(welcome.heartbeatIntervalMs);
    this.parts.onWelcome?.();
  }

  /** It lost its memory, or another one has taken its place. Tasks run on until their leases end. */
  private refuse(welcomed: Term): void {
    const { log, terms } = this.parts;
    const { term } = welcomed;
    if (term !== this.refusedTerm) {
      const fields = { term, highestTerm: terms.highest.term };
      log.error(
        fields,
        isOfAnotherRun(welcomed, terms.highest)
          ? 'two coordinators run on copies of one data directory, and this agent follows the other one: stop one of them'
          : 'the coordinator is of an earlier term than one this agent has followed; if its store was restored: muster store advance',
      );
    }
    this.refusedTerm = term;
    this.lost(
      new Error(`the coordinator is of term ${term}, and this agent has followed term ${terms.highest.term}`),
    );
  }

  private onHeartbeatAck(ack: HeartbeatAck__Output): void {
    const { manager } = this.parts;
    const nowMs = this.parts.monotonicMs();
    this.answeredAtMs = nowMs;
    if (ack.wallMs !== 0 && ack.seq === this.heartbeatSeq) {
      // The coordinator looked at its clock somewhere in between; half-way is off by half of that at most.
      const halfRoundTripMs = (nowMs - this.sentAtMs) / 2;
      this.parts.onClockSkew(Math.round(this.parts.wallMs() - halfRoundTripMs - ack.wallMs));
    }
    const askedMs = this.questions.heartbeatAnswered(ack.seq);
    this.answeredSeq = Math.max(this.answeredSeq, ack.seq);
    for (const { task: wire, verdict, leaseMs } of ack.verdicts) {
      const task = taskRefFromWire(wire);
      if (task === null) continue;
      const givesLease = verdict === 'VERDICT_RUN' || verdict === 'VERDICT_STOP';
      if (givesLease && askedMs !== null) manager.grant(task, { askedMs, leaseMs: leaseMs ?? neverFenced });
      // Starts and stops arrive as separate orders, with what is needed to carry them out.
      if (verdict === 'VERDICT_FORGET') manager.setOrder({ task, order: { kind: 'forget' }, lease: null });
    }
  }

  private startHeartbeat(intervalMs: number): void {
    this.stopHeartbeat();
    // Numbers continue: an answer that is still on its way must not pass for one to a later heartbeat.
    this.answeredSeq = this.heartbeatSeq;
    const beat = () => {
      if (this.heartbeatSeq - this.answeredSeq >= missedHeartbeatsMax) {
        this.lost(new Error(`${missedHeartbeatsMax} heartbeats went unanswered`));
        return;
      }
      this.heartbeatSeq += 1;
      this.sentAtMs = this.parts.monotonicMs();
      const sentBoottimeMs = this.parts.boottimeMs();
      this.questions.heartbeatSent(this.heartbeatSeq, sentBoottimeMs);
      this.send({
        heartbeat: {
          seq: this.heartbeatSeq,
          sentBoottimeMs,
          sentWallMs: this.parts.wallMs(),
          observed: heartbeatTasks(this.parts.manager.reports()),
        },
      });
      // A little chance, so that a thousand agents that started together do not answer together.
      if (this.heartbeat !== null) clearTimeout(this.heartbeat);
      this.heartbeat = setTimeout(beat, intervalMs * (0.9 + 0.2 * this.parts.chance()));
    };
    this.beatNow = beat;
    beat();
  }

  private stopHeartbeat(): void {
    this.beatNow = null;
    if (this.heartbeat !== null) clearTimeout(this.heartbeat);
    this.heartbeat = null;
  }
}

function statusToWire({ inventory, conditions }: NodeStatus): WireNodeStatus {
  return { inventory: inventoryToWire(inventory), conditions: conditions.map(conditionToWire) };
}

/** Somebody has to do something before dialling again can help: upgrade, restore another backup, let the node join again. */
const refusals: ReadonlySet<string> = new Set([
  'unauthenticated',
  'permission_denied',
  'failed_precondition',
]);

/** An agent that gets no Welcome in time connects again. @returns the timer, to be cleared when the Welcome is received */
export function awaitWelcome(giveUp: (error: Error) => void): NodeJS.Timeout {
  const error = new Error(`no Welcome within ${welcomeTimeoutMs} ms`);
  return setTimeout(() => giveUp(error), welcomeTimeoutMs);
}
