import type { Colours } from '../output/colours.ts';

/** Lines under a title, for one answer after the other. @returns a function of both; without lines its text is empty */
export function listWith({
  bold,
}: Pick<Colours, 'bold'>): (title: string, lines: readonly string[]) => string {
  return (title, lines) =>
    lines.length === 0 ? '' : `\n${bold(title)}\n${lines.map((line) => `  ${line}\n`).join('')}`;
}
