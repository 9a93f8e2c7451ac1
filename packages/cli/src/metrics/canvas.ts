/** A rectangle of characters to draw curves on: braille patterns of 2 by 4 dots each, or one mark a character. Pure. */

export interface Ink {
  /** Of a character without braille: one column wide. */
  readonly mark: string;
  readonly paint: (text: string) => string;
}

/** Bits of the dots of a braille pattern, by row and column. */
const dotBits = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const brailleBlank = 0x2800;

interface Cell {
  bits: number;
  ink: Ink;
}

export class Canvas {
  readonly columns: number;
  readonly rows: number;
  /** Dots of one character. */
  private readonly across: number;
  private readonly down: number;
  private readonly cells: (Cell | null)[];

  constructor(columns: number, rows: number, braille: boolean) {
    this.columns = columns;
    this.rows = rows;
    this.across = braille ? 2 : 1;
    this.down = braille ? 4 : 1;
    this.cells = Array.from({ length: columns * rows }, () => null);
  }

  /** Dots across. */
  get width(): number {
    return this.columns * this.across;
  }

  /** Dots down. */
  get height(): number {
    return this.rows * this.down;
  }

  /** @param x from the left, @param y from the bottom; what is outside is not drawn */
  dot(x: number, y: number, ink: Ink): void {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return;
    const fromTop = this.height - 1 - y;
    const index = Math.floor(fromTop / this.down) * this.columns + Math.floor(x / this.across);
    const bits = dotBits[fromTop % this.down]?.[x % this.across] ?? 0;
    this.cells[index] = { bits: (this.cells[index]?.bits ?? 0) | bits, ink };
  }

  /** Draws all dots between two ends, whose coordinates are integers. */
  line(fromX: number, fromY: number, toX: number, toY: number, ink: Ink): void {
    const length = Math.max(Math.abs(toX - fromX), Math.abs(toY - fromY), 1);
    for (let index = 0; index <= length; index += 1) {
      const share = index / length;
      this.dot(Math.round(fromX + (toX - fromX) * share), Math.round(fromY + (toY - fromY) * share), ink);
    }
  }

  /** From the top; without trailing blanks. */
  lines(): readonly string[] {
    return Array.from({ length: this.rows }, (_, row) => {
      const cells = this.cells.slice(row * this.columns, (row + 1) * this.columns);
      return painted(
        cells.slice(0, cells.findLastIndex((cell) => cell !== null) + 1).map((cell) => ({
          text: this.textOf(cell),
          paint: cell?.ink.paint ?? null,
        })),
      );
    });
  }

  private textOf(cell: Cell | null): string {
    if (cell === null) return ' ';
    return this.down === 4 ? String.fromCharCode(brailleBlank + cell.bits) : cell.ink.mark;
  }
}

/** null: as it is. */
type Paint = ((text: string) => string) | null;

/** What stands side by side in one colour is painted in one go. */
export function painted(parts: readonly { readonly text: string; readonly paint: Paint }[]): string {
  let line = '';
  let run = '';
  for (const [index, { text, paint }] of parts.entries()) {
    run += text;
    if (parts[index + 1]?.paint === paint) continue;
    line += paint === null ? run : paint(run);
    run = '';
  }
  return line;
}
