import { expect, test } from 'vitest';
import { makeColours } from './colours.ts';
import { type Column, formatTable } from './table.ts';
import { textWidth, wrapText } from './text.ts';

interface Row {
  readonly id: string;
  readonly count: number;
  readonly why: string;
}

const columns: readonly Column<Row>[] = [
  { header: 'ID', cell: (row) => row.id },
  { header: 'COUNT', cell: (row) => String(row.count), align: 'right', narrow: 'drop' },
  { header: 'WHY', cell: (row) => row.why, narrow: { cutTo: 10 } },
];
const rows: readonly Row[] = [
  { id: 'a', count: 7, why: 'no GPUs are free on any node' },
  { id: 'long-id', count: 1234, why: '' },
];
const plain = makeColours(false);

test('columns are as wide as their content, without trailing spaces', () => {
  expect(formatTable(rows, columns, { width: null, colours: plain })).toBe(
    ['ID       COUNT  WHY', 'a            7  no GPUs are free on any node', 'long-id   1234', ''].join('\n'),
  );
});

test('a narrow terminal cuts what may be cut, and only then leaves columns out', () => {
  const at = (width: number) => formatTable(rows, columns, { width, colours: plain });
  expect(at(28)).toBe(
    ['ID       COUNT  WHY', 'a            7  no GPUs are…', 'long-id   1234', ''].join('\n'),
  );
  expect(at(20)).toBe(['ID       WHY', 'a        no GPUs ar…', 'long-id', ''].join('\n'));
  for (const width of [20, 24, 28, 40, 80]) {
    const widths = at(width).split('\n').map(textWidth);
    expect(Math.max(...widths), `${width} columns`).toBeLessThanOrEqual(width);
  }
});

test('wide characters keep the columns aligned', () => {
  const text = formatTable(
    [
      { id: '日本', count: 1, why: 'x' },
      { id: 'abcd', count: 2, why: 'y' },
    ],
    columns,
    {
      width: null,
      colours: plain,
    },
  );
  expect(text).toBe(['ID    COUNT  WHY', '日本      1  x', 'abcd      2  y', ''].join('\n'));
});

test('words from elsewhere cannot move the cursor', () => {
  const text = formatTable([{ id: 'a', count: 1, why: 'bad\x1b[2Jthing\nnext' }], columns, {
    width: null,
    colours: plain,
  });
  expect(text).toContain('bad\\u001b[2Jthing next');
});

test('colour is around the text and not around the padding', () => {
  const coloured = columns.map((column) => ({ ...column, style: () => 'red' as const }));
  const text = formatTable(rows, coloured, { width: null, colours: makeColours(true) });
  expect(text).toContain('\x1b[31ma\x1b[39m            \x1b[31m7\x1b[39m');
});

test('text breaks at spaces, under its own indentation, and words stay whole', () => {
  expect(wrapText('  one two three four', 10, 2)).toBe('  one two\n    three\n    four');
  expect(wrapText('see /a/path/that/is/too/long now', 12)).toBe('see\n/a/path/that/is/too/long\nnow');
  expect(wrapText('short\n\nline', 12)).toBe('short\n\nline');
  expect(wrapText('one two three', null)).toBe('one two three');
});
