/** Nodes that are to be left: by a person's word, or because their machine is going to be switched off. */

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
  /** Its tasks have to be gone in so long, 0 to 7 days. null: they may take their time. */
  readonly deadlineMs: number | null;
}

const deadlineMsMax = 7 * 24 * 3_600_000;
const reasonLengthMax = 500;

/**
 * What a machine says of itself. It is known by this very reason that nobody has to take the drain back: a machine that is
 * up again has been switched off.
 */
export const leavingReason = 'its machine is shutting down';

/** Deadlines that differ by less are one that was sent twice. */
const sameDeadlineMs = 1_000;

/**
 * No new work for a node, and, with a deadline, an end in time for what runs there. Said again, it changes reason and
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
 * What is left of a drain when an agent connects. One whose machine goes says so each time: where it does not, the machine is
 * up again, or its shutdown was called off and the agent started anew.
 */
export function drainOnHello(before: Node | undefined, leavingInMs: number | null): Drain | null {
  if (before === undefined) return null;
  return before.drain?.reason === leavingReason && leavingInMs === null ? null : before.drain;
}

/**
 * A drain as it is after a machine has reported that it will be switched off. A person's request stays, and is due by then. It
 * says so again and again, so only a moment that is sooner counts.
 * @param leavingInMs null: it has reported nothing, which takes nothing back
 */
export function leavingDrain(drain: Drain | null, leavingInMs: number | null, nowMs: number): Drain | null {
  if (leavingInMs === null) return drain;
  const deadlineMs = nowMs + leavingInMs;
  if (drain === null) return { reason: leavingReason, sinceMs: nowMs, deadlineMs };
  if (drain.deadlineMs !== null && drain.deadlineMs <= deadlineMs + sameDeadlineMs) return drain;
  return { ...drain, deadlineMs };
}
