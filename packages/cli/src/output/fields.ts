import type { Colours } from './colours.ts';
import { printable, wrapText } from './text.ts';

/** A value is not squeezed into less. */
const narrowest = 20;

export type Field = readonly [name: string, value: string | null];

/**
 * `Name   value` lines; fields without a value are left out, further lines of a value are aligned.
 * @param columns of the terminal, which longer values are wrapped for; null: they are not
 */
export function formatFields(
  fields: readonly Field[],
  colours: Colours,
  columns: number | null = null,
): string {
  const shown = fields.filter((field): field is readonly [string, string] => Boolean(field[1]));
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown
    .map(([name, value]) => {
      const text = printable(value, { keepLines: true });
      const room = columns === null ? null : Math.max(narrowest, columns - width - 2);
      const [first = '', ...more] = wrapText(text, room).split('\n');
      const continued = more.map((line) => `${' '.repeat(width + 2)}${line}\n`);
      return `${colours.dim(name.padEnd(width))}  ${first}\n${continued.join('')}`;
    })
    .join('');
}
