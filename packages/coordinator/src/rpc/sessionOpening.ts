/**
 * The beginning of an agent's session, up to its Welcome. An agent that keeps continuity tokens is offered the next one first,
 * and its Hello has no effect before that is on its disk: of two machines with one identity, at most one gets past this.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { AgentMessage__Output } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { Hello__Output } from '@muster/common/gen/muster/v1/Hello';
import type { TokenKept__Output } from '@muster/common/gen/muster/v1/TokenKept';
import type { TaskReport } from '@muster/common/views';
import { AgentSession } from '../agents/session.ts';
import { revoked } from '../auth/tokens.ts';
import type { AgentIdentity } from '../caller.ts';
import { keepSecret } from '../commands/credentials.ts';
import {
  judgePresented,
  offerNextToken,
  refuseOtherMachine,
  refuseUnproven,
  settleToken,
  type TokenJudgement,
  type TokenOffer,
} from '../commands/identity.ts';
import { hello } from '../commands/nodes.ts';
import { isSameMachine } from '../leases/sameMachine.ts';
import { doubtCondition } from '../leases/testimony.ts';
import type { Job, MachineOrigin, Node, Presented } from '../model.ts';
import { seenAs } from '../reconcilers/duplicates.ts';
import { learnOutcomes } from '../state/endedJobs.ts';
import { keptCheckpointsOf } from '../state/keptCheckpoints.ts';
import { Draft } from '../state/state.ts';
import { NoSpaceError } from '../store/noSpace.ts';
import type { AgentHubParts } from './agentHubParts.ts';
import {
  accountReported,
  conditionsReported,
  failureTimes,
  heldTasksFromWire,
  inventoryReported,
  reportsFromWire,
} from './agentReports.ts';
import { noteNodeClock } from './nodeClocks.ts';
import { applyCheckpoint, completeTraining } from './trainingMessages.ts';
import { refuseOtherVersions } from './versions.ts';
import { storesHello } from './withoutSpace.ts';

export type SessionCall = ServerDuplexStream<AgentMessage__Output, CoordinatorMessage>;

/** Keeps what is shown of tasks and not stored. */
type NoteTasks = (parts: AgentHubParts, session: AgentSession, reports: readonly TaskReport[]) => void;

/** Messages that may come before the Welcome. An agent repeats what is dropped. */
const earlyMax = 256;

export class SessionOpening {
  /** Resolves with the Welcome. */
  readonly session: Promise<AgentSession>;
  private readonly opened = Promise.withResolvers<AgentSession>();
  private readonly parts: AgentHubParts;
  private readonly call: SessionCall;
  private readonly caller: AgentIdentity;
  private readonly wire: Hello__Output;
  private readonly presented: Presented;
  private readonly noteTasks: NoteTasks;
  private offer: TokenOffer | null = null;
  private early: AgentMessage__Output[] | null;

  constructor(
    parts: AgentHubParts,
    call: SessionCall,
    caller: AgentIdentity,
    wire: Hello__Output,
    noteTasks: NoteTasks,
  ) {
    this.parts = parts;
    this.noteTasks = noteTasks;
    this.call = call;
    this.caller = caller;
    this.wire = wire;
    this.session = this.opened.promise;
    // Nobody may be waiting for it when the Hello is refused.
    this.session.catch(() => {});
    const { instanceId, bootId, continuity } = wire;
    const origin = continuity === null ? null : originFromWire(continuity, caller.peer);
    this.presented = { name: caller.node, instanceId, bootId, origin };
    this.early = origin === null ? null : [];
  }

  /** Deals with the Hello: offers a token, or welcomes an agent that keeps none. @throws {MusterError} of a refusal */
  async begin(): Promise<void> {
    const { parts, caller, presented } = this;
    const { node } = caller;
    refuseOtherVersions(node, this.wire);
    if (presented.origin === null) {
      this.refuse(new Draft(parts.state));
      await this.welcome(() => {});
      return;
    }
    const judged = judgePresented(parts.state.nodes.get(node), presented, this.tokens, parts.proofs);
    // Before the newer token is stored as ours: after that nothing would show how old the store was.
    if (judged.verdict === 'newer') parts.noteNewerToken(node, judged);
    const offer = await this.storeOffer();
    if (offer === null) {
      this.refuse(new Draft(parts.state));
      await this.welcome(() => {});
      return;
    }
    this.offer = offer;
    const { term, termProof } = parts.term(node);
    const { clusterId } = parts.state;
    const { current } = offer.chain;
    const nextToken = { token: offer.token, term, termProof, clusterId };
    this.call.write({ nextToken: current === null ? nextToken : { ...nextToken, current } });
  }

  /** Returns null if the disk has no room for an offer: then the token that the agent has stays the current one. */
  private async storeOffer(): Promise<TokenOffer | null> {
    const { parts, presented, tokens } = this;
    try {
      return await parts.loop.run(this.caller, (draft) => {
        this.refuse(draft);
        return offerNextToken(draft, presented, tokens, parts.random, parts.proofs);
      });
    } catch (error) {
      if (error instanceof NoSpaceError) return null;
      throw error;
    }
  }

  /** The agent has answered the offer. @throws {MusterError} when another connection has been answered since */
  async tokenKept(answer: TokenKept__Output): Promise<void> {
    const { offer } = this;
    // Any message may come twice.
    if (offer === null) return;
    this.offer = null;
    await this.welcome((draft) => {
      const { node: name } = this.caller;
      const chain = settleToken(draft, name, offer, answer);
      return () => {
        const node = draft.node(name);
        if (node !== undefined && node.tokens === null) draft.putNode({ ...node, tokens: chain });
      };
    });
  }

  /** Keeps a message for after the Welcome. @returns false when it needs no keeping */
  keepEarly(message: AgentMessage__Output): boolean {
    if (this.early === null) return false;
    if (this.early.length < earlyMax) this.early.push(message);
    return true;
  }

  /** Takes what has come before the Welcome. */
  takeEarly(): readonly AgentMessage__Output[] {
    const early = this.early ?? [];
    this.early = null;
    return early;
  }

  /** The tokens that the agent presents, newest first. */
  private get tokens(): readonly string[] {
    const { token, previousToken } = this.wire.continuity ?? {};
    return [token, previousToken].filter((each) => each !== undefined);
  }

  /**
   * Refuses a machine that is not the one of its node, and notes that it was there.
   * @throws {MusterError}
   */
  private refuse(draft: Draft): void {
    const { parts, presented } = this;
    const { name, bootId, origin } = presented;
    const node = draft.node(name);
    const judged = judgePresented(node, presented, this.tokens, parts.proofs);
    try {
      refuseUnproven(name, judged);
      parts.agents.refuseSecond(presented);
      refuseOtherMachine(draft, presented);
    } catch (error) {
      const seen = seenAs(origin, bootId);
      if (mayBeReboot(node, presented, judged)) parts.duplicates.suspect(name, seen);
      // A machine with a new join is no copy: the tasks of its predecessor only have to be fenced first.
      else if (judged.verdict !== 'holder' || node?.tokens != null || parts.agents.isOnline(name))
        parts.duplicates.refused(name, seen, isLikeWelcomed(node, presented));
      throw error;
    }
  }

  /** @param first runs in the commit of the Hello, before it has any effect; what it returns runs at the end of it */
  private async welcome(first: (draft: Draft) => (() => void) | void): Promise<void> {
    try {
      this.opened.resolve(await this.openSession(first));
    } catch (error) {
      this.opened.reject(error);
      throw error;
    }
  }

  private async openSession(first: (draft: Draft) => (() => void) | void): Promise<AgentSession> {
    const { parts, call, caller, wire, presented } = this;
    const { node } = caller;
    const { instanceId, bootId, agentVersion } = wire;
    parts.agents.refuseSecond(presented);
    refuseOtherMachine(new Draft(parts.state), presented);
    noteNodeClock(parts, node, bootId, wire);
    const silentForMs = parts.agents.silentForMs(node);
    parts.agents.admit(presented);
    parts.duplicates.welcomed(node);
    const observed = reportsFromWire(parts.taskStatus, node, wire.observed);
    await learnOutcomes(
      parts.state,
      parts.store,
      observed.map(({ task }) => task.jobId),
    );
    parts.orphans.replace(node, heldTasksFromWire(wire.observed));
    const claim = parts.checkAccount({ node, ...accountReported(parts.state, wire), observed });
    const doubt = claim === null ? null : doubtCondition(claim, parts.wallMs());
    const command = {
      ...presented,
      agentVersion,
      inventory: inventoryReported(wire.inventory),
      conditions: conditionsReported(wire.conditions, doubt, parts.duplicates.conditionOf(node)),
      observed,
      leavingInMs: wire.leavingInMs ?? null,
      failedAtMs: failureTimes(parts.taskStatus, node, bootId),
      lastContactMs: silentForMs === null ? null : parts.wallMs() - silentForMs,
    };
    const hasStored = await storesHello(parts, command, caller, (draft, nowMs) => {
      const last = first(draft);
      if (caller.renewed) keepSecret(draft, caller.id, parts.credentialLifetimeMs, nowMs);
      // Before the ends: by them it is chosen what the next attempts begin from.
      const checkpoints = parts.pacer.take(node, 'training', wire.checkpoints.length) ? wire.checkpoints : [];
      for (const each of checkpoints) applyCheckpoint(draft, node, each, nowMs);
      completeTraining(draft, node, observed, nowMs);
      hello(draft, command, nowMs, parts.pacer);
      last?.();
    });
    // Removed in the same commit, it is no longer one of ours.
    if (!parts.state.nodes.has(node)) throw revoked(caller.id);
    const stream = {
      write: (message: CoordinatorMessage) => void call.write(message),
      end: () => call.end(),
    };
    const identity = { caller, instanceId, bootId };
    const keptOf = (job: Job) => keptCheckpointsOf(job, parts.state.evaluations);
    const session = new AgentSession(identity, stream, parts.leases, doubt, parts.isSampled, keptOf);
    session.hasMissed = !hasStored;
    this.noteTasks(parts, session, observed);
    parts.taskAccounts.connected(node, observed, wire.marksRowEnds);
    const { jobs } = parts.state;
    session.welcome(
      {
        heartbeatIntervalMs: parts.heartbeatIntervalMs,
        leaseMs: parts.leaseMs,
        ...parts.term(node),
        clusterId: parts.state.clusterId,
      },
      jobs.values(),
      observed.map((each) => each.task),
      (id) => jobs.get(id),
      (id) => jobs.has(id) || parts.state.outcomes.has(id),
    );
    parts.agents.add(session);
    parts.log.info({ node, bootId, tasks: observed.length }, 'agent connected');
    parts.loop.wake();
    return session;
  }
}

/** True for the holder of the current token after another boot, unless its machine is certainly another one. */
function mayBeReboot(node: Node | undefined, presented: Presented, { verdict }: TokenJudgement): boolean {
  if (verdict !== 'holder' || node === undefined || node.instanceId !== presented.instanceId) return false;
  return (
    node.origin === null ||
    presented.origin === null ||
    isSameMachine(node.origin, presented.origin) !== false
  );
}

/** True if nothing but its token tells this agent from the one that was welcomed last. */
function isLikeWelcomed(node: Node | undefined, { instanceId, bootId }: Presented): boolean {
  return node?.instanceId === instanceId && node.bootId === bootId;
}

/** @param peer the address of the connection; null: unknown */
function originFromWire(wire: NonNullable<Hello__Output['continuity']>, peer: string | null): MachineOrigin {
  const { hostName, firmwareUuid = null, cardAddresses } = wire;
  return { hostName, firmwareUuid, cardAddresses: [...cardAddresses].sort(), peer };
}
