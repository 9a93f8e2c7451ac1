/**
 * Decides whether a value that was read from the metrics of attempts is final. Pure.
 *
 * The metrics of an attempt that a later one did again do not count. An attempt that was lost is therefore no hole in the curve once
 * its metrics are here up to the checkpoint from which the next one resumed.
 */
import type { Attempt } from '../model.ts';
import type { RowSender } from './outputEnds.ts';
import type { LossKind } from './sender.ts';

/** An attempt as the source of metrics. */
export interface AttemptRows {
  readonly number: number;
  readonly resume: Attempt['resume'];
  /** By rank. */
  readonly senders: readonly RowSender[];
}

/** Where a value was read. */
export interface ValueOrigin {
  /** Index of its attempt. */
  readonly index: number;
  /** The lowest one that shows the metric: what higher ones show does not count. */
  readonly nodeRank: number;
}

export type ValueEnd =
  | { readonly kind: 'final' }
  /** Some of what it could be read from was lost. */
  | { readonly kind: 'incomplete'; readonly reason: string }
  /** More may arrive. */
  | { readonly kind: 'awaited'; readonly reason: string };

const lossWords: Readonly<Record<LossKind, (node: string) => string>> = {
  node_removed: (node) => `${node} was removed before it had sent them`,
  node_lost: (node) => `${node} was lost before it had sent them`,
  dropped: (node) => `${node} no longer has them`,
  unreadable: (node) => `${node} could not read them`,
};

/** What is lost of the metrics of a task, in words. */
export function lossText(why: LossKind, what: string, attempt: number, node: string): string {
  return `${what} of attempt ${attempt} are lost: ${lossWords[why](node)}`;
}

/** What is awaited of a task, in words. */
export function awaitedText(what: string, attempt: number, node: string, isSilent: boolean): string {
  const silent = isSilent ? `, which does not respond; without it: muster node remove ${node}` : '';
  return `${what} of attempt ${attempt} from ${node}${silent}`;
}

/**
 * @param attempts that have run and that the value could be from, oldest first
 * @param origin null: none of them shows the metric
 * @param needs `newest`: what an attempt shows replaces what those before it showed. `all`: each row counts
 */
export function valueEnd(
  attempts: readonly AttemptRows[],
  origin: ValueOrigin | null,
  needs: 'newest' | 'all',
): ValueEnd {
  let loss: string | null = null;
  for (const [index, { number, senders }] of attempts.entries()) {
    if (needs === 'newest' && origin !== null && index < origin.index) continue;
    // What an attempt shows last is final only with all that it has shown.
    const mustBeWhole = needs === 'newest' && index === origin?.index;
    for (const { nodeRank, node, state, step } of senders) {
      if (state.kind === 'complete' || (origin !== null && nodeRank > origin.nodeRank)) continue;
      if (!mustBeWhole && isCovered(attempts[index + 1], step)) continue;
      if (state.kind === 'awaited')
        return { kind: 'awaited', reason: awaitedText('the last metrics', number, node, state.isSilent) };
      loss ??= lossText(state.why, 'metrics', number, node);
    }
  }
  return loss === null ? { kind: 'final' } : { kind: 'incomplete', reason: loss };
}

/** Whether the next attempt did again all that may be missing behind the step. */
function isCovered(next: AttemptRows | undefined, step: number | null): boolean {
  if (next === undefined) return false;
  // It began from scratch.
  if (next.resume === null) return true;
  return step !== null && next.resume.step !== null && step >= next.resume.step;
}
