/** What a job has saved, for a person. Pure. */
import type { Checkpoint } from '@muster/common/checkpoints';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { agoText, bytesText, durationText } from '../output/times.ts';

/** Newest first. */
export function formatCheckpoints(checkpoints: readonly Checkpoint[], options: View): string {
  return formatTable(checkpoints.toReversed(), columnsOf(checkpoints, options.nowMs), options);
}

function columnsOf(checkpoints: readonly Checkpoint[], nowMs: number): readonly Column<Checkpoint>[] {
  const hasMetrics = checkpoints.some(({ metrics }) => Object.keys(metrics).length > 0);
  return [
    { header: 'STEP', cell: ({ step }) => (step === null ? '-' : String(step)), align: 'right' },
    { header: 'NAME', cell: ({ name }) => name, narrow: { cutTo: 16 } },
    { header: 'VERDICT', cell: verdictText, style: verdictStyle, narrow: { cutTo: 20 } },
    { header: 'SIZE', cell: ({ bytes }) => bytesText(bytes), align: 'right' },
    { header: 'SAVED', cell: ({ savedAtMs }) => agoText(savedAtMs, nowMs) },
    ...(hasMetrics
      ? [{ header: 'METRICS', cell: metricsText, narrow: { cutTo: 14, drop: true } } as const]
      : []),
    {
      header: 'TOOK',
      cell: ({ saveDurationMs }) => (saveDurationMs === null ? '' : durationText(saveDurationMs)),
      align: 'right',
      narrow: 'drop',
    },
    { header: 'ATTEMPT', cell: ({ attempt }) => String(attempt), align: 'right', narrow: 'drop' },
    {
      header: 'NODE',
      cell: ({ node, shared }) => (shared ? `${node} (shared)` : node),
      narrow: 'drop',
    },
  ];
}

/** `verified`, `verified, deep`, `verified, suspect`, `verified, after divergence`, `corrupt: …`. */
export function verdictText({ verdict, depth, suspect, diverged, problem }: Checkpoint): string {
  const words = [
    verdict,
    depth === 'deep' ? 'deep' : null,
    suspect ? 'suspect' : null,
    diverged === true ? 'after divergence' : null,
  ];
  const text = words.filter((word) => word !== null).join(', ');
  return problem === null ? text : `${text}: ${problem}`;
}

function verdictStyle({ verdict, suspect, diverged }: Checkpoint): Style | null {
  if (verdict === 'corrupt') return 'red';
  if (verdict === 'gone') return 'dim';
  return verdict === 'unverified' || suspect || diverged === true ? 'yellow' : 'green';
}

function metricsText({ metrics }: Checkpoint): string {
  return Object.entries(metrics)
    .filter(([name]) => name !== 'step')
    .map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`)
    .join(', ');
}
