/** Conditions in words. Pure. */
import type { Condition, ConditionAction, ConditionEnd, ConditionSeverity } from '@muster/common/conditions';
import { cardUuid, type Gpu } from '@muster/common/hardware';
import type { NodeView } from '@muster/common/views';
import type { Colours, Style } from '../output/colours.ts';
import { printable, shellText } from '../output/text.ts';
import { agoText, clockText } from '../output/times.ts';

const severityStyles: Readonly<Record<ConditionSeverity, Style>> = {
  critical: 'red',
  warning: 'yellow',
  info: 'dim',
};

/** From the worst. */
const severities: readonly ConditionSeverity[] = ['critical', 'warning', 'info'];
const actions: readonly ConditionAction[] = [
  'drain_node',
  'drain_gpu',
  'reset_when_idle',
  'blame_job',
  'note',
];

/** Worst first: severity, action, the older first, kind, GPU. */
export function worstFirst(conditions: readonly Condition[]): readonly Condition[] {
  return conditions.toSorted(
    (a, b) =>
      severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
      actions.indexOf(a.action) - actions.indexOf(b.action) ||
      a.sinceMs - b.sinceMs ||
      compareText(a.kind, b.kind) ||
      compareText(a.gpuUuid ?? '', b.gpuUuid ?? ''),
  );
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export function drains({ action }: Condition): boolean {
  return action === 'drain_gpu' || action === 'drain_node';
}

/** Kinds named in a cell of a table; more are counted. */
const kindsShown = 2;

/** `xid_79 (drained), disk_full`, worst first; empty without conditions. */
export function conditionsInShort(conditions: readonly Condition[]): string {
  const kinds = Map.groupBy(worstFirst(conditions), ({ kind }) => kind);
  const shown = Array.from(kinds, ([kind, same]) => {
    const times = same.length === 1 ? '' : ` ×${same.length}`;
    return `${kind}${times}${same.some(drains) ? ' (drained)' : ''}`;
  });
  const more = shown.length - kindsShown;
  return [...shown.slice(0, kindsShown), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** Of the worst one; null without conditions. */
export function conditionStyle(conditions: readonly Condition[]): Style | null {
  const [worst] = worstFirst(conditions);
  return worst === undefined ? null : severityStyles[worst.severity];
}

/** `GPU 3`; the UUID where the driver gives no number, or no longer. */
export function cardText(uuid: string, gpus: readonly Gpu[]): string {
  const index = gpus.find((gpu) => cardUuid(gpu) === uuid)?.index ?? null;
  return index === null ? uuid : `GPU ${index}`;
}

/** A block for each condition: what, where, since when, what was read, what follows and how it ends. */
export function formatConditions(
  node: NodeView,
  options: { readonly colours: Colours; readonly nowMs: number; readonly programName: string },
): string {
  const { bold } = options.colours;
  if (node.conditions.length === 0) return '';
  const blocks = worstFirst(node.conditions).map((condition) => formatCondition(condition, node, options));
  return `${bold('Conditions')}\n${blocks.join('')}`;
}

function formatCondition(
  condition: Condition,
  node: NodeView,
  {
    colours,
    nowMs,
    programName,
  }: { readonly colours: Colours; readonly nowMs: number; readonly programName: string },
): string {
  const { kind, severity, gpuUuid, sinceMs, count, evidence, task } = condition;
  const where = gpuUuid === null ? 'the node' : cardText(gpuUuid, node.inventory.gpus);
  const often = count > 1 ? `, seen ${count} times, last ${agoText(condition.lastSeenAtMs, nowMs)}` : '';
  const since = `since ${clockText(sinceMs)} (${agoText(sinceMs, nowMs)})${often}`;
  const clearing = clearCommand(condition, node, programName);
  const lines = [
    condition.message,
    evidence === '' ? null : `Read: ${evidence}`,
    task === null
      ? null
      : `Running there then: ${task.jobId}, attempt ${task.attempt}, rank ${task.nodeRank}`,
    `${actionTexts[condition.action]} ${endTexts[condition.clears]}${clearing === null ? '.' : `: ${clearing}`}`,
  ].filter((line) => line !== null);
  const heading = `${colours[severityStyles[severity]](severity)}  ${colours.bold(printable(kind))}  ${printable(where)}`;
  return `${heading}  ${colours.dim(since)}\n${lines.map((line) => `  ${printable(line)}\n`).join('')}`;
}

const actionTexts: Readonly<Record<ConditionAction, string>> = {
  note: 'For information; work continues.',
  blame_job: 'The job that ran there is at fault, not the hardware.',
  reset_when_idle: 'Works for now; reset the GPU when nothing runs on it.',
  drain_gpu: 'No new work on this GPU.',
  drain_node: 'No new work on this node.',
};

const endTexts: Readonly<Record<ConditionEnd, string>> = {
  when_gone: 'Ends automatically once the readings are normal',
  when_quiet: 'Ends automatically when it has not been seen for a while',
  by_reboot: 'Ends after a reboot of the machine or a reset of the GPU',
  by_hand: 'Cleared by hand, once fixed',
};

/** What a person types to end it; null for those that end by themselves. */
export function clearCommand(
  { clears, kind, gpuUuid }: Condition,
  node: NodeView,
  programName: string,
): string | null {
  if (clears !== 'by_hand') return null;
  const index = node.inventory.gpus.find((gpu) => cardUuid(gpu) === gpuUuid)?.index ?? null;
  const gpu = gpuUuid === null ? [] : ['--gpu', index === null ? gpuUuid : String(index)];
  return `${programName} ${shellText(['node', 'clear', node.name, kind, ...gpu])}`;
}
