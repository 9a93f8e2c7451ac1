/**
 * What a line says once the terminal and the launcher are taken off it. Colours stand between fields and would break any
 * pattern; a launcher's prefix stands in front of what the program wrote.
 */

/** Colours, cursor moves and erasures (ECMA-48 control sequences): nested progress bars move the cursor, too. */
const escape = '\u001B';
const controlSequences = new RegExp(String.raw`${escape}\[[0-?]{0,32}[ -/]{0,4}[@-~]`, 'g');

function withoutControls(text: string): string {
  return text.includes(escape) ? text.replace(controlSequences, '') : text;
}

/**
 * One pattern per launcher. At most one space belongs to a prefix: the others are the indentation of a traceback.
 *
 * - `[rank3]:` of PyTorch: a global rank, the only prefix that tells one.
 * - `[default3]:` of torchrun: a role and a LOCAL rank.
 * - `[node137:3]:`: a host and a local rank. A host has a letter and is no source file, so neither `[12:30]:` nor
 *   `[timer.py:260]:` is one.
 * - `3: ` and `3:` of `srun --label`: the number of a task. That is a rank if every GPU has a task, and a node if every node
 *   has one. Before a digit it is a time of day (`0:01:40`) and no label.
 * - `(TaskRunner pid=4711, ip=10.0.0.2) ` and `(raylet) ` of Ray, which shows what its processes print.
 */
const rankPrefix = /^\[rank(\d{1,6})\]: ?/;
const localPrefix =
  /^\[(?:default\d{1,4}|(?![\w.-]{1,255}\.(?:py|cpp|cc|cu|c|h|rs|go):)(?=[\w.-]{0,255}[A-Za-z])[\w.-]{1,255}:\d{1,3})\]: ?/;
const taskPrefix = /^ {0,5}\d{1,6}:(?: |(?=[^\d\s]))/;

const processPrefix = /^\((?:raylet|(?:[\w.]{1,100} )?pid=\d{1,10})(?:, ip=[\d.]{7,15})?\) ?/;

const prefixesMax = 3;
const bracket = 0x5b;
const parenthesis = 0x28;
const space = 0x20;
const zero = 0x30;
const nine = 0x39;

export interface PlainText {
  readonly text: string;
  /** Global rank, where a prefix tells. */
  readonly rank: number | null;
}

/** @param raw one line without its end */
export function plainText(raw: string): PlainText {
  let text = withoutControls(raw);
  let rank: number | null = null;
  // Prefixes stack: srun labels what PyTorch has labelled before.
  for (let taken = 0; taken < prefixesMax; taken += 1) {
    const first = text.charCodeAt(0);
    if (first === bracket) {
      const ranked = rankPrefix.exec(text);
      const prefix = ranked ?? localPrefix.exec(text);
      if (prefix === null) break;
      if (ranked !== null) rank = Number(ranked[1]);
      text = text.slice(prefix[0].length);
    } else if (first === space || (first >= zero && first <= nine)) {
      const prefix = taskPrefix.exec(text);
      if (prefix === null) break;
      text = text.slice(prefix[0].length);
    } else if (first === parenthesis) {
      const prefix = processPrefix.exec(text);
      if (prefix === null) break;
      text = text.slice(prefix[0].length);
    } else break;
  }
  return { text, rank };
}
