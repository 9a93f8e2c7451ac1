/** Drains of nodes: requested by a user, or because the machine will be switched off. */

import { MusterError } from '@muster/common/errors';
import type { NewEvent } from '@muster/common/eventKinds';
import type { NodeName } from '@muster/common/ids';
import type { Drain } from '@muster/common/views';
import type { Node } from '../model.ts';
import type { Draft } from '../state/state.ts';

export interface DrainCommand {
  readonly node: NodeName;
  /** May be empty. */
  readonly reason: string;
  /** Its tasks must have ended within this many milliseconds, 0 to 7 days. null: there is no deadline. */
  readonly deadlineMs: number | null;
}

const deadlineMsMax = 7 * 24 * 3_600_000;
const reasonLengthMax = 500;

/**
 * The reason of a drain that the machine itself has reported. A drain with this reason ends without a user: a machine that is
 * up again has been switched off.
 */
export const leavingReason = 'its machine is shutting down';

/** Deadlines that differ by less count as one that was sent twice. */
const sameDeadlineMs = 1_000;

/**
 * The node gets no new work, and, with a deadline, what runs there ends in time. A repeated call changes the reason and the
 * deadline.
 * @throws {MusterError} `not_found`, or `invalid` for a deadline or a reason out of range
 */
export function drainNode(
  draft: Draft,
  { node: name, reason, deadlineMs }: DrainCommand,
  nowMs: number,
): void {
  if (reason.length > reasonLengthMax) {
    throw new MusterError(
      'invalid',
      `the reason has ${reason.length} characters; at most ${reasonLengthMax}`,
    );
  }
  if (deadlineMs !== null && !(deadlineMs >= 0 && deadlineMs <= deadlineMsMax)) {
    throw new MusterError('invalid', `invalid deadline of ${deadlineMs} ms; expected 0 s to 7 days`);
  }
  const before = nodeOf(draft, name);
  const sinceMs = before.drain?.sinceMs ?? nowMs;
  putDrain(
    draft,
    before,
    { reason, sinceMs, deadlineMs: deadlineMs === null ? null : nowMs + deadlineMs },
    nowMs,
  );
}

/**
 * It gets work again as far as its conditions let it.
 * @throws {MusterError} `not_found`
 */
export function undrainNode(draft: Draft, name: NodeName, nowMs: number): void {
  const before = nodeOf(draft, name);
  if (before.drain !== null) putDrain(draft, before, null, nowMs);
}

function nodeOf(draft: Draft, name: NodeName): Node {
  const node = draft.node(name);
  if (node !== undefined) return node;
  throw new MusterError('not_found', `there is no node ${name}; \`muster nodes\` lists them`);
}

function putDrain(draft: Draft, before: Node, drain: Drain | null, nowMs: number): void {
  const after = { ...before, drain };
  draft.putNode(after);
  for (const event of drainEvents(before, after)) draft.emit(event, nowMs);
}

export function drainEvents(before: Node, { name, drain }: Node): readonly NewEvent[] {
  if (drain === before.drain) return [];
  if (drain === null) return [{ kind: 'node.undrained', subject: name, data: {} }];
  const { reason, deadlineMs } = drain;
  return [{ kind: 'node.drained', subject: name, data: { reason, deadlineMs } }];
}

/**
 * What is left of a drain when an agent connects. An agent whose machine will be switched off reports that in each Hello. Without
 * that report, the machine is up again, or its shutdown was cancelled and the agent has restarted.
 */
export function drainOnHello(before: Node | undefined, leavingInMs: number | null): Drain | null {
  if (before === undefined) return null;
  return before.drain?.reason === leavingReason && leavingInMs === null ? null : before.drain;
}

/**
 * A drain as it is after a machine has reported that it will be switched off. A drain that a user has requested stays, and is due
 * by then. The machine repeats its report, so only an earlier deadline changes the drain.
 * @param leavingInMs null: it has reported nothing, which leaves the drain as it is
 */
export function leavingDrain(drain: Drain | null, leavingInMs: number | null, nowMs: number): Drain | null {
  if (leavingInMs === null) return drain;
  const deadlineMs = nowMs + leavingInMs;
  if (drain === null) return { reason: leavingReason, sinceMs: nowMs, deadlineMs };
  if (drain.deadlineMs !== null && drain.deadlineMs <= deadlineMs + sameDeadlineMs) return drain;
  return { ...drain, deadlineMs };
}
