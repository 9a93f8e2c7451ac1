import type { Colours } from './colours.ts';
import { printable } from './text.ts';

export type Field = readonly [name: string, value: string | null];

/** `Name   value` lines; fields without a value are left out, further lines of a value are aligned. */
export function formatFields(fields: readonly Field[], colours: Colours): string {
  const shown = fields.filter((field): field is readonly [string, string] => Boolean(field[1]));
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown
    .map(([name, value]) => {
      const [first = '', ...more] = printable(value, { keepLines: true }).split('\n');
      const continued = more.map((line) => `${' '.repeat(width + 2)}${line}\n`);
      return `${colours.dim(name.padEnd(width))}  ${first}\n${continued.join('')}`;
    })
    .join('');
}
