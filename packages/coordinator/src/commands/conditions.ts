/** Conditions as agents report them: within limits, in one order, and compared with those known before. */

import {
  type Condition,
  conditionActions,
  conditionKey,
  conditionSeverities,
} from '@muster/common/conditions';
import type { EventKind, NewEvent } from '@muster/common/eventKinds';
import type { NodeName, TaskRef } from '@muster/common/ids';
import type { GpuFault } from '../lifecycle/event.ts';

/** Of one node. A machine with more wrong than this does not need more words. */
export const conditionsMax = 256;
const evidenceLengthMax = 1_000;
const messageLengthMax = 500;
/** Longer ones name no GPU. */
const gpuUuidLengthMax = 128;
const kindPattern = /^[a-z0-9_]{1,64}$/;

/**
 * What is kept of a report: one condition of each kind and place, critical ones first. Of too many, those that keep work
 * away are kept: work on a broken GPU is lost, and an unknown note is only a note.
 */
export function acceptConditions(reported: readonly Condition[]): readonly Condition[] {
  const accepted = new Map<string, Condition>();
  for (const each of reported) {
    if (!kindPattern.test(each.kind) || (each.gpuUuid?.length ?? 0) > gpuUuidLengthMax) continue;
    const evidence = each.evidence.slice(0, evidenceLengthMax).toWellFormed();
    const message = each.message.slice(0, messageLengthMax).toWellFormed();
    accepted.set(conditionKey(each), { ...each, evidence, message });
  }
  return [...accepted.values()].sort(strongestFirst).slice(0, conditionsMax).sort(criticalFirst);
}

/** As much of a line as a cause keeps. */
const faultTextLengthMax = 500;

/**
 * What broke under a task, by the conditions of its node that name it: what keeps new work from the GPU or the node was
 * no fault of the program, whatever that printed as it died.
 * @param conditions critical ones first
 */
export function gpuFaultOf(conditions: readonly Condition[], task: TaskRef): GpuFault | null {
  const condition = conditions.find(
    ({ severity, action, task: named }) =>
      severity === 'critical' &&
      (action === 'drain_gpu' || action === 'drain_node') &&
      named?.jobId === task.jobId &&
      named.attempt === task.attempt &&
      named.nodeRank === task.nodeRank,
  );
  if (condition === undefined) return null;
  const { evidence, message, gpuUuid } = condition;
  return { text: (evidence || message).slice(0, faultTextLengthMax).toWellFormed(), gpuUuid };
}

function strength({ action }: Condition): number {
  return conditionActions.indexOf(action);
}

function weight({ severity }: Condition): number {
  return conditionSeverities.indexOf(severity);
}

function byKey(a: Condition, b: Condition): number {
  return conditionKey(a) < conditionKey(b) ? -1 : 1;
}

function strongestFirst(a: Condition, b: Condition): number {
  return strength(b) - strength(a) || weight(b) - weight(a) || byKey(a, b);
}

function criticalFirst(a: Condition, b: Condition): number {
  return weight(b) - weight(a) || strength(b) - strength(a) || byKey(a, b);
}

type ConditionEventKind = Extract<EventKind, `condition.${string}`>;

/** That something was seen once more is no event. */
export function conditionEvents(
  node: NodeName,
  before: readonly Condition[],
  after: readonly Condition[],
): readonly NewEvent[] {
  const known = new Map(before.map((each) => [conditionKey(each), each]));
  const holding = new Set(after.map(conditionKey));
  const changed = after.flatMap((each) => {
    const earlier = known.get(conditionKey(each));
    if (earlier === undefined) return conditionEvent('condition.raised', node, each);
    return isEqualCondition(earlier, each) ? [] : conditionEvent('condition.changed', node, each);
  });
  const cleared = before.filter((each) => !holding.has(conditionKey(each)));
  return [...changed, ...cleared.map((each) => conditionEvent('condition.cleared', node, each))];
}

function isEqualCondition(a: Condition, b: Condition): boolean {
  return a.severity === b.severity && a.action === b.action && a.message === b.message;
}

function conditionEvent(kind: ConditionEventKind, node: NodeName, condition: Condition): NewEvent {
  const { gpuUuid, severity, action, message, evidence, task } = condition;
  return {
    kind,
    subject: node,
    data: { kind: condition.kind, gpuUuid, severity, action, message, evidence, task },
  };
}
