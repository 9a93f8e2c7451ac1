/** A row of small bars. Pure. */

const unicodeBars = '▁▂▃▄▅▆▇█';
const asciiBars = '_.-:=+*#';

/**
 * One character a value: the lowest bar for `max / 8` and less, the highest for `max`. What is null is left blank, so that
 * a gap in the readings does not look like idleness.
 */
export function sparkline(values: readonly (number | null)[], max: number, unicode: boolean): string {
  const bars = unicode ? unicodeBars : asciiBars;
  return values
    .map((value) => {
      if (value === null) return ' ';
      const share = max > 0 ? value / max : 0;
      return bars.charAt(Math.min(bars.length - 1, Math.max(0, Math.ceil(share * bars.length) - 1)));
    })
    .join('');
}

/** `███▌      `, `#####-----`: how full something is, in `columns` columns. */
export function fullness(share: number, columns: number, unicode: boolean): string {
  const filled = Math.min(1, Math.max(0, share)) * columns;
  if (!unicode) {
    const whole = Math.round(filled);
    return '#'.repeat(whole) + '-'.repeat(columns - whole);
  }
  const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
  const whole = Math.floor(filled);
  const rest = whole < columns ? (eighths[Math.floor((filled - whole) * 8)] ?? '') : '';
  return ('█'.repeat(whole) + rest).padEnd(columns, '░');
}
