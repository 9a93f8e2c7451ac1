/** Triggers of pipelines as text for people. */
import type { TriggerFireView, TriggerView } from '@muster/common/triggers';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { printable } from '../output/text.ts';
import { agoText, clockText } from '../output/times.ts';

const outcomeStyles: Readonly<Record<TriggerFireView['outcome'], Style | null>> = {
  started: null,
  queued: null,
  skipped: 'yellow',
  missed: 'yellow',
  failed: 'red',
};

export function triggerTable(triggers: readonly TriggerView[], view: View): string {
  const columns: readonly Column<TriggerView>[] = [
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'PIPELINE', cell: ({ pipeline }) => pipeline, narrow: { cutTo: 10 } },
    { header: 'WHEN', cell: whenText, narrow: { cutTo: 20 } },
    {
      header: 'NEXT',
      cell: nextText,
      style: ({ blocked }) => (blocked === null ? null : 'red'),
    },
    {
      header: 'LAST',
      cell: ({ fires: [last] }) =>
        last === undefined ? '-' : `${last.outcome} ${agoText(last.atMs, view.nowMs)}`,
      style: ({ fires: [last] }) => (last === undefined ? null : outcomeStyles[last.outcome]),
    },
    { header: 'USER', cell: ({ user }) => user, narrow: 'drop' },
  ];
  return formatTable(triggers, columns, view);
}

/** Of those that are blocked; may be empty. */
export function blockedNote(triggers: readonly TriggerView[]): string {
  return triggers
    .flatMap(({ name, blocked }) => {
      if (blocked === null) return [];
      const { cause, sinceMs, remedy } = blocked;
      return `${name} is blocked since ${clockText(sinceMs)}: ${printable(cause)}; ${printable(remedy)}\n`;
    })
    .join('');
}

export function triggerDetail(trigger: TriggerView, view: View): string {
  const { name, pipeline, overlap, missed, user, project, params, running, queued, fires, blocked } = trigger;
  const values = Object.entries(params).map(([key, value]) => `${key}=${String(value)}`);
  const lines = [
    ['Trigger', name],
    ['Pipeline', pipeline],
    ['When', whenText(trigger)],
    ['Next', nextText(trigger)],
    ...(blocked === null
      ? []
      : [
          ['Blocked', `${blocked.cause}, since ${clockText(blocked.sinceMs)}`],
          ['Remedy', blocked.remedy],
        ]),
    ...(values.length === 0 ? [] : [['Params', values.join(' ')]]),
    ['Overlap', overlap],
    ...(missed === null ? [] : [['Missed', missed]]),
    ['User', `${user}, project ${project}`],
    ['Running', running.length === 0 ? '-' : running.join(' ')],
    ...(queued === 0 ? [] : [['Queued', String(queued)]]),
  ].map(([label = '', value = '']) => `${`${label}:`.padEnd(10)}${printable(value)}\n`);
  const fired = fires.length === 0 ? 'It has not fired yet.\n' : fireTable(fires, view);
  return `${lines.join('')}\n${fired}`;
}

function fireTable(fires: readonly TriggerFireView[], view: View): string {
  const columns: readonly Column<TriggerFireView>[] = [
    { header: 'FIRED', cell: ({ atMs }) => agoText(atMs, view.nowMs) },
    { header: 'CAUSE', cell: ({ cause }) => printable(cause), narrow: { cutTo: 20 } },
    { header: 'OUTCOME', cell: ({ outcome }) => outcome, style: ({ outcome }) => outcomeStyles[outcome] },
    { header: 'RUN', cell: ({ run }) => run ?? '-' },
    { header: 'REASON', cell: ({ reason }) => printable(reason ?? '-'), narrow: 'drop' },
  ];
  return formatTable(fires, columns, view);
}

export function whenText({ kind, cron, timeZone, condition, directory }: TriggerView): string {
  if (kind === 'webhook') return 'webhook';
  if (kind === 'event') return condition ?? '-';
  if (kind === 'data') return `data in ${directory ?? '-'}`;
  return `${cron ?? '-'} (${timeZone ?? 'UTC'})`;
}

function nextText({ kind, paused, nextAtMs, blocked }: TriggerView): string {
  if (paused) return 'paused';
  if (blocked !== null) return 'blocked';
  if (kind !== 'cron') return '-';
  return nextAtMs === null ? 'never' : clockText(nextAtMs);
}
