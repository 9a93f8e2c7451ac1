/** What an examination found, for a person. Pure. */
import type { DoctorCheck } from '@muster/agent/doctor/doctorReport';
import type { Colours, Style } from '../output/colours.ts';
import type { View } from '../output/table.ts';
import { count, printable, textWidth } from '../output/text.ts';

interface Mark {
  readonly unicode: string;
  readonly ascii: string;
  readonly style: Style;
}

const marks: Readonly<Record<DoctorCheck['state'], Mark>> = {
  ok: { unicode: '✓', ascii: 'ok', style: 'green' },
  absent: { unicode: '–', ascii: '-', style: 'dim' },
  warning: { unicode: '!', ascii: '!', style: 'yellow' },
  problem: { unicode: '✗', ascii: 'x', style: 'red' },
};

/** Grouped by area in the order in which the areas come; below what is wrong, what was read and what to do. */
export function formatDoctor(
  checks: readonly DoctorCheck[],
  options: Pick<View, 'colours' | 'unicode'>,
): string {
  const { colours } = options;
  const nameWidth = Math.max(0, ...checks.map(({ name }) => textWidth(printable(name))));
  const areas = Map.groupBy(checks, ({ area }) => area);
  const blocks = Array.from(areas, ([area, inArea]) => {
    const lines = inArea.map((check) => formatCheck(check, nameWidth, options));
    return `${colours.bold(printable(area))}\n${lines.join('')}`;
  });
  return [...blocks, verdictText(checks, colours)].join('\n');
}

function formatCheck(
  { name, state, chosen, message, evidence, remedy }: DoctorCheck,
  nameWidth: number,
  { colours, unicode }: Pick<View, 'colours' | 'unicode'>,
): string {
  const mark = marks[state];
  const sign = unicode ? mark.unicode : mark.ascii.padEnd(2);
  const label = printable(name);
  const padded = label + ' '.repeat(nameWidth - textWidth(label));
  const heading = `  ${colours[mark.style](sign)} ${padded}  ${printable(message)}${chosen ? colours.dim(' (used)') : ''}\n`;
  const indent = ' '.repeat(textWidth(sign) + nameWidth + 5);
  const isWrong = state === 'warning' || state === 'problem';
  const below = [
    isWrong && evidence !== null ? colours.dim(`Read: ${printable(evidence)}`) : null,
    remedy === null ? null : `${unicode ? '→' : '->'} ${printable(remedy)}`,
  ].filter((line) => line !== null);
  return heading + below.map((line) => `${indent}${line}\n`).join('');
}

function verdictText(checks: readonly DoctorCheck[], { red, yellow, green }: Colours): string {
  const problems = checks.filter(({ state }) => state === 'problem').length;
  const warnings = checks.filter(({ state }) => state === 'warning').length;
  if (problems + warnings === 0) return `${green('No problems found.')}\n`;
  const parts = [
    ...(problems === 0 ? [] : [red(count(problems, 'problem'))]),
    ...(warnings === 0 ? [] : [yellow(count(warnings, 'warning'))]),
  ];
  return `${parts.join(', ')}.\n`;
}
