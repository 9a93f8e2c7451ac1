/** Text as a terminal shows it. Words from elsewhere (causes, labels, events) must not move the cursor or change colours. */

/** Nearly every text is plain, and each further look at it takes several times as long as this one. */
const plain = /^[\x20-\x7e]*$/;

/** Replaces control and direction characters by visible escapes. */
export function printable(text: string, { keepLines = false } = {}): string {
  if (plain.test(text)) return text;
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (character) => {
    if (character === '\n') return keepLines ? character : ' ';
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const zeroWidth = /\p{M}|\u200d/u;

function characterWidth(character: string): number {
  if (zeroWidth.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Terminal columns that text without escape sequences takes. */
export function textWidth(text: string): number {
  if (plain.test(text)) return text.length;
  return Array.from(text, characterWidth).reduce((sum, width) => sum + width, 0);
}

/** The text cut to a number of columns ≥ 1, with `…` in place of what is omitted. */
export function fitText(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** `1 node`, `2 nodes`. */
export function count(amount: number, noun: string, plural = `${noun}s`): string {
  return `${amount} ${amount === 1 ? noun : plural}`;
}

/** `0-3,6,9-11`. @param numbers whole ones, in any order */
export function rangesText(numbers: readonly number[]): string {
  const ranges: { from: number; to: number }[] = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last.to + 1) last.to = number;
    else ranges.push({ from: number, to: number });
  }
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join(',');
}

/** An argv as one could type it into a shell. */
export function shellText(argv: readonly string[]): string {
  return argv
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

/**
 * Breaks the lines of a text at spaces, so that none is wider than `columns`. What follows a break is indented like its
 * line, plus `hang` spaces. A word that alone is wider stays as it is: a path or command must stay one piece to be copied.
 * @param columns null: nothing is broken
 */
export function wrapText(text: string, columns: number | null, hang = 0): string {
  if (columns === null) return text;
  return text
    .split('\n')
    .map((line) => wrapLine(line, columns, hang))
    .join('\n');
}

function wrapLine(line: string, columns: number, hang: number): string {
  if (textWidth(line) <= columns) return line;
  const start = line.length - line.trimStart().length;
  const indent = ' '.repeat(start + hang);
  const lines: string[] = [];
  let current = line.slice(0, start);
  let isFirst = true;
  for (const word of line.slice(start).split(' ')) {
    if (!isFirst && textWidth(current) + 1 + textWidth(word) > columns) {
      lines.push(current);
      current = indent + word;
    } else {
      current = isFirst ? current + word : `${current} ${word}`;
    }
    isFirst = false;
  }
  return [...lines, current].join('\n');
}
