/** Commands that keep one machine per node: tokens that are offered and kept, and machines that are refused. */
import type { Condition } from '@muster/common/conditions';
import { MusterError } from '@muster/common/errors';
import type { NodeName, RandomBytes } from '@muster/common/ids';
import {
  judgeToken,
  keepToken,
  newChain,
  newestNumber,
  offerToken,
  withdrawToken,
} from '../leases/continuity.ts';
import type { Proofs } from '../leases/proofs.ts';
import { isSameMachine } from '../leases/sameMachine.ts';
import type { Node, Presented, TokenChain } from '../model.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { Draft } from '../state/state.ts';
import { acceptConditions, conditionEvents } from './conditions.ts';

/** One of two machines with the same identity, as it is shown. */
export interface Seen {
  readonly hostName: string | null;
  readonly address: string | null;
  readonly bootId: string;
}

export const duplicateKind = 'duplicate_identity';

/**
 * True if the tasks that the node has may run on another machine than this one. A new boot of the same machine has ended them.
 * An agent of an earlier release tells nothing of its machine, and is believed as before.
 */
function isOtherMachine(before: Node, { instanceId, bootId, origin }: Presented): boolean {
  if (before.instanceId !== instanceId) return true;
  if (before.bootId === bootId || origin === null || before.origin === null) return false;
  return isSameMachine(before.origin, origin) !== true;
}

/**
 * Is asked of every Hello before it counts as a sign of life.
 * @throws {MusterError} `permission_denied`, after which an agent tries again, for another machine by the name of one that may
 *   be running tasks: neither its boot nor its being there would prove anything about them
 */
export function refuseOtherMachine(draft: Draft, presented: Presented): void {
  const { name } = presented;
  const before = draft.node(name);
  if (before === undefined || !isOtherMachine(before, presented) || !heldTasks(draft.activeJobs()).has(name))
    return;
  throw new MusterError(
    'permission_denied',
    `the machine that joined as ${name} has tasks that have not ended, and this is another one: give this agent ` +
      'a name and a join token of its own; the same machine after a reinstall is admitted once those tasks are fenced, or ' +
      `at once after: muster node confirm-dead ${name}`,
  );
}

/** What a presented token means for its node. */
export interface TokenJudgement {
  readonly verdict: ReturnType<typeof judgeToken> | 'old_agent';
  /** Number of the presented token; 0: none. */
  readonly presented: number;
  /** Number of the newest token that this store knows of. */
  readonly newest: number;
}

/** @param tokens those that the agent presents, newest first */
export function judgePresented(
  node: Node | undefined,
  presented: Presented,
  tokens: readonly string[],
  proofs: Pick<Proofs, 'isOfContinuity'>,
): TokenJudgement {
  const chain = node?.tokens ?? null;
  if (node === undefined || chain === null) return { verdict: 'holder', presented: 0, newest: 0 };
  const numbers = { presented: newestNumber(chain, tokens), newest: chain.issued };
  if (presented.origin === null) {
    // An upgrade that is taken back leaves the machine running; an older agent after another boot may be anybody's.
    const isTakenBack = chain.current === null || node.bootId === presented.bootId;
    return { verdict: isTakenBack ? 'old_agent' : 'none', ...numbers };
  }
  return { verdict: judgeToken(chain, tokens, presented.name, proofs), ...numbers };
}

/** What an agent is offered before it is welcomed. */
export interface TokenOffer {
  readonly chain: TokenChain;
  readonly token: string;
}

/**
 * Stores the next token of a node, for the agent to keep. A node that has never been here gets its row with its Hello, so its
 * chain is returned only.
 * @throws {MusterError} as `refuseUnproven`
 */
export function offerNextToken(
  draft: Draft,
  presented: Presented,
  tokens: readonly string[],
  random: RandomBytes,
  proofs: Proofs,
): TokenOffer {
  const { name } = presented;
  const node = draft.node(name);
  refuseUnproven(name, judgePresented(node, presented, tokens, proofs));
  const chain = offerToken(node?.tokens ?? newChain(random), tokens, name, random, proofs);
  if (node !== undefined) draft.putNode({ ...node, tokens: chain });
  return { chain, token: chain.pending };
}

/** @throws {MusterError} `permission_denied`, after which an agent tries again: `muster node rejoin` lets it in */
export function refuseUnproven(name: NodeName, { verdict, presented, newest }: TokenJudgement): void {
  if (verdict !== 'spent' && verdict !== 'none') return;
  const shown = presented === 0 ? 'no token' : `token ${presented}`;
  throw new MusterError(
    'permission_denied',
    `duplicate_identity: another agent has been welcomed as ${name} since (this one shows ${shown}, the newest is ${newest}), so ` +
      'this data directory is a copy or an earlier state. It gets no work. If this machine should be ' +
      `${name}: muster node rejoin ${name}; otherwise give it a name, a join token and an empty data directory of its own`,
  );
}

/**
 * The agent has answered an offer: the token before it is spent, or stays if the agent could not store the new one.
 * Called in the commit of the Hello.
 * @returns the chain, for a node that gets its row now
 * @throws {MusterError} `unavailable`, after which an agent connects again, when another Hello has been answered since
 */
export function settleToken(
  draft: Draft,
  name: NodeName,
  offer: TokenOffer,
  answer: { readonly token: string; readonly failed: boolean },
): TokenChain {
  const node = draft.node(name);
  const settle = answer.failed ? withdrawToken : keepToken;
  const chain = answer.token === offer.token ? settle(node?.tokens ?? offer.chain, answer.token) : null;
  if (chain === null)
    throw new MusterError('unavailable', `another connection as ${name} was answered later: connect again`);
  if (node !== undefined) draft.putNode({ ...node, tokens: chain });
  return chain;
}

/** The next agent with the credential of the node is the first of a new chain. */
export function forgetTokens(draft: Draft, name: NodeName): void {
  const node = draft.node(name);
  if (node !== undefined && node.tokens !== null) draft.putNode({ ...node, tokens: null });
}

/**
 * Lets the next machine with the credential of a node be that node. Tasks of the machine before end by their leases, unless
 * it is the same boot.
 * @throws {MusterError} `failed_precondition` while the node answers, `not_found`
 */
export function rejoinNode(draft: Draft, name: NodeName, isOnline: boolean, nowMs: number): void {
  const node = draft.node(name);
  if (node === undefined)
    throw new MusterError('not_found', `there is no node ${name}; \`muster nodes\` lists them`);
  if (isOnline) {
    const { origin, bootId } = node;
    const holder = { hostName: origin?.hostName ?? null, address: origin?.peer ?? null, bootId };
    throw new MusterError(
      'failed_precondition',
      `${name} answers and keeps its tasks: it is ${inWords(holder)}. ` +
        'To make another machine a node, empty its data directory and give it a name of its own: muster token create NAME; ' +
        `if it should be ${name}, stop the agent of this one first`,
    );
  }
  forgetTokens(draft, name);
  draft.emit({ kind: 'node.rejoin_allowed', subject: name, data: {} }, nowMs);
}

/** A condition of the node for a machine that is refused under its name. */
export function duplicateCondition(
  name: NodeName,
  holder: Seen,
  refused: Seen,
  times: Pick<Condition, 'sinceMs' | 'lastSeenAtMs' | 'count'>,
): Condition {
  return {
    kind: duplicateKind,
    gpuUuid: null,
    severity: 'critical',
    action: 'note',
    message:
      `Another machine uses the identity of ${name} and is refused. Stop its agent, or give it a name of its own; if it should ` +
      `be ${name}: muster node rejoin ${name}. Refused: ${inWords(refused)}. Welcomed last: ${inWords(holder)}`,
    evidence: `refused: ${inWords(refused)}; welcomed last: ${inWords(holder)}`,
    ...times,
    clears: 'when_quiet',
    task: null,
  };
}

function inWords({ hostName, address, bootId }: Seen): string {
  return `${hostName || 'a machine of unknown name'} (address ${address ?? 'unknown'}, boot id ${bootId})`;
}

/** Replaces the condition of a node for refused machines. @param condition null: no machine has been refused for a while */
export function noteDuplicate(
  draft: Draft,
  name: NodeName,
  condition: Condition | null,
  nowMs: number,
): void {
  const before = draft.node(name);
  if (before === undefined) return;
  const others = before.conditions.filter(({ kind }) => kind !== duplicateKind);
  const conditions = acceptConditions(condition === null ? others : [condition, ...others]);
  draft.putNode({ ...before, conditions });
  for (const event of conditionEvents(name, before.conditions, conditions)) draft.emit(event, nowMs);
}

/** A machine was refused under the name of a node for the first time. */
export function emitDuplicate(
  draft: Draft,
  name: NodeName,
  pair: { readonly holder: Seen; readonly refused: Seen },
  nowMs: number,
): void {
  draft.emit({ kind: 'node.duplicate_identity', subject: name, data: pair }, nowMs);
}
