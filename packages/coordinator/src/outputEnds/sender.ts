/**
 * Says of a task that has ended whether all of its metrics, or all of its output, are here. Pure.
 *
 * Complete is what the sender says: the report of the end names where the rows and the bytes end, or a mark follows the last row. Without
 * that it is lost once the sender can no longer come: its node was removed, is lost, or no longer has the task. Until one of the two is
 * known it is awaited, however long that takes: no clock is asked.
 */
import type { TaskEnd } from '@muster/common/views';
import type { TaskHold } from '../agents/taskAccounts.ts';
import type { Attempt } from '../model.ts';
import type { RowsHere } from '../rows/knownRows.ts';

/**
 * Why what a task printed can no longer arrive.
 * - `node_removed`: its node is no longer one of the cluster
 * - `node_lost`: the attempt ended without its node, and the node does not respond
 * - `dropped`: the node no longer has the task
 * - `unreadable`: the node has it and cannot read it
 */
export type LossKind = 'node_removed' | 'node_lost' | 'dropped' | 'unreadable';

export type SenderState =
  | { readonly kind: 'complete' }
  | { readonly kind: 'lost'; readonly why: LossKind }
  /** Silent: its node does not respond. */
  | { readonly kind: 'awaited'; readonly isSilent: boolean };

/** The node of a task, as the coordinator sees it. */
export interface SenderNode {
  readonly isMember: boolean;
  readonly isSilent: boolean;
  readonly hold: TaskHold;
}

const complete: SenderState = { kind: 'complete' };

/** @param exit how the task ended. null: it runs @param rows what is here of its rows */
export function rowsState(exit: TaskEnd | null, rows: RowsHere, node: SenderNode): SenderState {
  if (exit !== null && !hasRun(exit)) return complete;
  if (rows.mark === 'complete') return complete;
  const rowsEnd = exit?.rowsEnd;
  if (rowsEnd !== undefined && rows.position >= rowsEnd) return complete;
  if (rows.mark === 'lost') return { kind: 'lost', why: 'unreadable' };
  // An agent of an earlier version sends no mark where there are no rows, and drops a task when all that there are have arrived.
  const isOlder = rowsEnd === undefined && exit !== null && !isVerdict(exit);
  if (isOlder && node.isMember && node.hold === 'dropped_unmarked') return complete;
  return withoutMark(exit, node);
}

/** @param bytes of its output that are here, up to the newest, those included that were removed here */
export function logState(exit: TaskEnd | null, bytes: number, node: SenderNode): SenderState {
  if (exit !== null && !hasRun(exit)) return complete;
  if (exit !== null && !isVerdict(exit) && bytes >= exit.logBytes) return complete;
  return withoutMark(exit, node);
}

function withoutMark(exit: TaskEnd | null, { isMember, isSilent, hold }: SenderNode): SenderState {
  if (!isMember) return { kind: 'lost', why: 'node_removed' };
  if (hold === 'dropped' || hold === 'dropped_unmarked') return { kind: 'lost', why: 'dropped' };
  if (exit !== null && isVerdict(exit) && isSilent) return { kind: 'lost', why: 'node_lost' };
  return { kind: 'awaited', isSilent };
}

/**
 * False for an attempt whose tasks can have printed nothing that counts. One that was lost before any of its nodes reported that it runs
 * has not left a checkpoint either: the next one begins where it began, and prints the same again.
 */
export function mayHavePrinted({ runningAtMs, tasks }: Pick<Attempt, 'runningAtMs' | 'tasks'>): boolean {
  return runningAtMs !== null || tasks.some(({ exit }) => exit !== null && hasRun(exit) && !isVerdict(exit));
}

/** False for a task no process of which was started. */
function hasRun({ exitCode, signal, statusLost }: TaskEnd): boolean {
  return exitCode !== null || signal !== null || statusLost;
}

/** The coordinator has ended the task without its agent. */
function isVerdict({ statusLost, startError }: TaskEnd): boolean {
  return statusLost && startError !== null;
}
