import type { Colours, Style } from './colours.ts';
import { fitText, printable, textWidth, wrapText } from './text.ts';

/** What every text for a person needs to know. */
export interface TextOptions {
  /** Of the terminal, in columns. null: there is none, and nothing is cut. */
  readonly width: number | null;
  readonly colours: Colours;
}

/** What the text of a whole answer depends on. */
export interface View extends TextOptions {
  /** Wall clock. */
  readonly nowMs: number;
  /** The terminal shows more than ASCII. */
  readonly unicode: boolean;
  /** For commands that the reader can type. */
  readonly programName: string;
}

export interface Column<Row> {
  readonly header: string;
  cell(row: Row): string;
  /** Colour of the cell; null: none. */
  style?(row: Row): Style | null;
  readonly align?: 'right';
  /**
   * What happens to the column when the terminal is narrow. `drop`: it is dropped. `cutTo`: it is shortened to no less than this
   * width, and dropped where that is not enough and `drop` is set. Default: it stays as it is.
   */
  readonly narrow?: 'drop' | { readonly cutTo: number; readonly drop?: true };
}

const gap = '  ';

/**
 * @param width columns of the terminal; null: as wide as the content
 * @returns lines that each end in a newline, without trailing spaces
 */
export function formatTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { width, colours }: TextOptions,
): string {
  const measured = columns.map((column) => {
    const cells = rows.map((row) => printable(column.cell(row)));
    return { column, cells, width: Math.max(...[column.header, ...cells].map(textWidth)) };
  });
  const fitted = width === null ? measured : fitColumns(measured, width);
  const header = fitted.map(({ column, width: size }) =>
    pad(fitText(column.header, size), size, column.align),
  );
  const lines = [
    colours.dim(joinCells(header)),
    ...rows.map((row, index) =>
      joinCells(
        fitted.map(({ column, cells, width: size }) => {
          const text = pad(fitText(cells[index] ?? '', size), size, column.align);
          const style = column.style?.(row) ?? null;
          return style === null ? text : paintText(text, colours[style]);
        }),
      ),
    ),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

interface Measured<Row> {
  readonly column: Column<Row>;
  readonly cells: readonly string[];
  readonly width: number;
}

/** Shortens columns that may be shortened. Only where that is not enough it drops columns, the last one first. */
function fitColumns<Row>(columns: readonly Measured<Row>[], width: number): readonly Measured<Row>[] {
  const droppable = columns.findLast(({ column }) => mayDrop(column));
  const smallest = columns.map((column) => ({ ...column, width: cutWidth(column) }));
  if (totalWidth(smallest) > width && droppable !== undefined) {
    const rest = columns.filter((column) => column !== droppable);
    return fitColumns(rest, width);
  }
  let excess = totalWidth(columns) - width;
  // The widest is shortened first: it loses the smallest part of its content.
  const cuts = new Map<Measured<Row>, number>();
  for (const column of columns.toSorted((a, b) => b.width - a.width)) {
    const cut = Math.min(Math.max(0, excess), column.width - cutWidth(column));
    cuts.set(column, cut);
    excess -= cut;
  }
  return columns.map((column) => ({ ...column, width: column.width - (cuts.get(column) ?? 0) }));
}

function mayDrop({ narrow }: Column<never>): boolean {
  return narrow === 'drop' || (typeof narrow === 'object' && narrow.drop === true);
}

function cutWidth({ column, width }: Measured<never>): number {
  return typeof column.narrow === 'object' ? Math.min(width, column.narrow.cutTo) : width;
}

function totalWidth(columns: readonly Measured<never>[]): number {
  return columns.reduce((sum, { width }) => sum + width, gap.length * (columns.length - 1));
}

function pad(text: string, width: number, align: 'right' | undefined): string {
  const spaces = ' '.repeat(Math.max(0, width - textWidth(text)));
  return align === 'right' ? spaces + text : text + spaces;
}

/** Colours only the text, not the padding, so that trailing spaces can be trimmed. */
function paintText(padded: string, paint: (text: string) => string): string {
  const text = padded.trim();
  return text === '' ? padded : padded.replace(text, () => paint(text));
}

function joinCells(cells: readonly string[]): string {
  return cells.join(gap).trimEnd();
}

/** A value is not squeezed into less. */
const narrowest = 20;

export type Field = readonly [name: string, value: string | null];

/**
 * `Name   value` lines; fields without a value are omitted, further lines of a value are aligned.
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
