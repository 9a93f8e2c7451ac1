/** Alerts as text for people. */
import type { AlertSeverity, AlertView } from '@muster/common/alerts';
import { formatDuration } from '@muster/common/spec/duration';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { printable } from '../output/text.ts';
import { agoText, validityText } from '../output/times.ts';

const styles: Readonly<Record<AlertSeverity, Style | null>> = {
  critical: 'red',
  warning: 'yellow',
  info: null,
};

export function alertTable(alerts: readonly AlertView[], view: View): string {
  const columns: readonly Column<AlertView>[] = [
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'SEVERITY', cell: ({ severity }) => severity, style: ({ severity }) => styles[severity] },
    { header: 'STATE', cell: stateText, style: ({ firing }) => (firing.length > 0 ? 'bold' : null) },
    { header: 'OWNER', cell: ({ owner }) => owner ?? 'built in', narrow: 'drop' },
    { header: 'CONDITION', cell: ({ condition }) => condition, narrow: { cutTo: 20, drop: true } },
  ];
  return formatTable(alerts, columns, view);
}

/** More are counted: a condition that fits every job needs to be narrowed, not read. */
const wouldFireMax = 10;

/**
 * What a dry run found.
 * @param alert as it would be, with what its condition holds for now, and how many that are as `pending`
 * @param looksAt what it would look at
 */
export function triedAlert({ name, severity, forMs, firing, pending }: AlertView, looksAt: string): string {
  const shown = firing.slice(0, wouldFireMax);
  const lines = shown.map(({ subject, subjectName, message }) => {
    const named = subjectName === subject ? subject : `${subject} (${subjectName})`;
    return `  ${printable(named)}: ${printable(message)}\n`;
  });
  const more = pending > shown.length ? `  … and ${pending - shown.length} more\n` : '';
  const later = forMs === 0 ? 'would fire now' : `would fire if that is still so in ${formatDuration(forMs)}`;
  const found =
    pending === 0
      ? 'The condition holds for nothing now.\n'
      : `The condition holds for ${pending} now, and ${later}:\n`;
  return `Dry run, nothing was set. ${name} would be: ${severity}, looks at ${looksAt}.\n${found}${lines.join('')}${more}`;
}

function stateText({ firing, pending, silence }: AlertView): string {
  const state =
    firing.length > 0 ? `firing (${firing.length})` : pending > 0 ? `pending (${pending})` : 'inactive';
  return silence === null ? state : `${state}, silenced`;
}

export function alertDetail(alert: AlertView, view: View): string {
  const { name, severity, condition, message, labels, forMs, repeatMs, owner, silence, firing } = alert;
  const lines = [
    ['Alert', name],
    ['Severity', severity],
    ['Condition', condition],
    ['Message', message],
    ['Looks at', JSON.stringify(alert.scope)],
    ['Owner', owner ?? 'built in'],
    ...(Object.keys(labels).length === 0
      ? []
      : [
          [
            'Labels',
            Object.entries(labels)
              .map(([key, value]) => `${key}=${value}`)
              .join(' '),
          ],
        ]),
    ...(forMs === 0 ? [] : [['For', formatDuration(forMs)]]),
    ...(repeatMs === null ? [] : [['Repeat', formatDuration(repeatMs)]]),
    ['State', stateText(alert)],
    ...(silence === null
      ? []
      : [
          [
            'Silenced',
            `by ${silence.by} for ${validityText(silence.untilMs, view.nowMs)}${silence.reason === '' ? '' : `: ${silence.reason}`}`,
          ],
        ]),
  ].map(([label = '', value = '']) => `${`${label}:`.padEnd(12)}${value}\n`);
  if (firing.length === 0) return lines.join('');
  const table = formatTable(
    firing,
    [
      { header: 'FIRES FOR', cell: ({ subject }) => subject },
      { header: 'SINCE', cell: ({ firedAtMs }) => agoText(firedAtMs, view.nowMs) },
      { header: 'ACKNOWLEDGED', cell: ({ acknowledgedBy }) => acknowledgedBy ?? '-', narrow: 'drop' },
      { header: 'MESSAGE', cell: (episode) => episode.message, narrow: { cutTo: 20 } },
    ],
    view,
  );
  return `${lines.join('')}\n${table}`;
}
