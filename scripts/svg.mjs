// Draws what a terminal shows as an SVG.

/** @typedef {{ text: string, style: string }} Span */

const styles = /** @type {Readonly<Record<string, string>>} */ ({
  1: 'bold',
  2: 'dim',
  31: 'red',
  32: 'green',
  33: 'yellow',
  34: 'blue',
  35: 'magenta',
  36: 'cyan',
});

/** A control sequence of a terminal, or one character. */
const controlOrCharacter = new RegExp(String.raw`${'\u001b'}\[[\d;?]*[A-Za-z]|[\s\S]`, 'gu');

/**
 * What a terminal shows after all of it was printed. Knows colours, carriage returns and erased lines, which is what Muster
 * prints without a full screen.
 * @param {string} printed with control sequences
 * @returns {Span[][]} a line each, of any length
 */
export function screenOf(printed) {
  /** @type {{ char: string, style: string }[][]} */
  const rows = [[]];
  let column = 0;
  let style = '';
  for (const [part] of printed.matchAll(controlOrCharacter)) {
    const row = /** @type {{ char: string, style: string }[]} */ (rows.at(-1));
    if (part === '\n') rows.push([]);
    if (part === '\n' || part === '\r') column = 0;
    else if (part.endsWith('K') && part.startsWith('\x1b')) row.length = column;
    else if (part.endsWith('m') && part.startsWith('\x1b')) style = styles[part.slice(2, -1)] ?? '';
    else if (!part.startsWith('\x1b') && part >= ' ') {
      while (row.length < column) row.push({ char: ' ', style: '' });
      row[column] = { char: part, style };
      column += 1;
    }
  }
  if (rows.at(-1)?.length === 0) rows.pop();
  return rows.map((row) =>
    row
      .map(({ char, style: own }) => ({ text: char, style: own }))
      .reduce(joined, /** @type {Span[]} */ ([])),
  );
}

/** @param {Span[]} line @param {number} columns @returns {Span[][]} the line as a terminal of that width breaks it */
export function wrapped(line, columns) {
  const cells = line.flatMap(({ text, style }) => Array.from(text, (char) => ({ text: char, style })));
  const rows = Math.max(1, Math.ceil(cells.length / columns));
  return Array.from({ length: rows }, (_, row) =>
    cells.slice(row * columns, (row + 1) * columns).reduce(joined, /** @type {Span[]} */ ([])),
  );
}

/** @param {Span[]} spans @param {Span} next @returns {Span[]} */
function joined(spans, next) {
  const last = spans.at(-1);
  if (last?.style !== next.style) return [...spans, next];
  return [...spans.slice(0, -1), { text: last.text + next.text, style: next.style }];
}

/** @param {Span[][]} lines @param {number} columns of the terminal @returns {string} */
export function svgOf(lines, columns) {
  const cell = { width: 8, height: 18 };
  const margin = 16;
  const width = columns * cell.width + 2 * margin;
  const height = lines.length * cell.height + 2 * margin;
  const texts = lines.flatMap((spans, row) => {
    let column = 0;
    return spans.map(({ text, style }) => {
      const x = margin + column * cell.width;
      const { length } = Array.from(text);
      column += length;
      if (text.trim() === '') return '';
      const kind = style === '' ? '' : ` class="${style}"`;
      const y = margin + (row + 0.75) * cell.height;
      return `<text x="${x}" y="${y}" textLength="${length * cell.width}"${kind}>${escaped(text)}</text>\n`;
    });
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<style>
rect { fill: #15191f }
text { fill: #d6dbe2; font: 13px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre }
.bold { font-weight: bold; fill: #ffffff } .dim { fill: #7f8a99 } .prompt { fill: #7f8a99 }
.red { fill: #ff7b72 } .green { fill: #7ee787 } .yellow { fill: #e3b341 } .blue { fill: #79c0ff }
.magenta { fill: #d2a8ff } .cyan { fill: #76e3ea }
</style>
<rect width="100%" height="100%" rx="8"/>
${texts.join('')}</svg>
`;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
