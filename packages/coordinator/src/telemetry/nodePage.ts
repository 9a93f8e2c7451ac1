/**
 * What is handed on of a node's Prometheus page: only one that an agent could have written. Whoever holds the credential of a
 * node may send any text, and a time series database pays for each series, each label and each name for as long as it keeps
 * them.
 */

/** Of one page: a node of 16 GPUs in 7 parts each has some 6,000. */
export const pageSamplesMax = 20_000;
/** Of one sample. */
export const pageLabelsMax = 32;
/** Of the name of a series or of a label, in characters. */
export const pageNameMax = 128;
/** Of the value of a label as it is written: an agent writes 256 characters, of which each may take a backslash. */
export const pageLabelValueMax = 512;
/** Of one line: as many labels as are taken, in names and values of an ordinary length. */
const lineCharactersMax = 8 * 1024;

/**
 * What the coordinator says itself, on its own page: a node that says it too would be counted in sums over all targets. What
 * agents say begins with `DCGM_FI_`, `muster_agent_`, `muster_host_`, `muster_gpu_` or `process_`.
 */
const ofCoordinator =
  /^(?:muster_(?!agent_|host_|gpu_)|(?:muster_gpu_seconds_total|learning_rate)$|training_|checkpoint_|nodejs_)/;

const about = /^# (?:HELP|TYPE) ([a-zA-Z_:][\w:]*) /;
const seriesName = /[a-zA-Z_:][\w:]*/y;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\[\\"n])*)"([,}])/y;
const valueAndTime = / (?:[-+]?(?:\d[-+.\deE]{0,30}|\.\d[-+\deE]{0,30}|Inf)|NaN)(?: -?\d{1,19})?$/y;

/**
 * @returns what of it is not as it should be, with the number of the line; null: it may be handed on. Nothing of its text is
 *   repeated, because whoever sent it chose the words.
 */
export function problemOfPage(text: string): string | null {
  let samples = 0;
  let number = 0;
  for (let from = 0; from < text.length; ) {
    number += 1;
    const end = text.indexOf('\n', from);
    if (end === -1) return `its last line, ${number}, has no end`;
    if (end - from > lineCharactersMax) return `line ${number} has more than ${lineCharactersMax} characters`;
    const line = text.slice(from, end);
    from = end + 1;
    if (line === '') continue;
    const isSample = !line.startsWith('#');
    const problem = isSample ? problemOfSample(line) : problemOfComment(line);
    if (problem !== null) return `line ${number} ${problem}`;
    if (isSample) samples += 1;
    if (samples > pageSamplesMax) return `it has more than ${pageSamplesMax} samples`;
  }
  return null;
}

const noLine = 'is not a line of the Prometheus text format';

function problemOfComment(line: string): string | null {
  const found = about.exec(line);
  return found === null ? noLine : problemOfName(found[1] ?? '');
}

function problemOfSample(line: string): string | null {
  seriesName.lastIndex = 0;
  const name = seriesName.exec(line)?.[0];
  if (name === undefined) return noLine;
  let at = name.length;
  if (line[at] === '{') {
    at += 1;
    for (let count = 1, isLast = line[at] === '}'; !isLast; count += 1) {
      if (count > pageLabelsMax) return `has more than ${pageLabelsMax} labels`;
      label.lastIndex = at;
      const found = label.exec(line);
      if (found === null) return noLine;
      const [whole, key = '', value = '', mark] = found;
      if (key.length > pageNameMax) return `has a label name of more than ${pageNameMax} characters`;
      if (value.length > pageLabelValueMax)
        return `has a label value of more than ${pageLabelValueMax} characters`;
      isLast = mark === '}';
      at += whole.length - Number(isLast);
    }
    at += 1;
  }
  valueAndTime.lastIndex = at;
  return valueAndTime.test(line) ? problemOfName(name) : noLine;
}

function problemOfName(name: string): string | null {
  if (name.length > pageNameMax) return `names a series with more than ${pageNameMax} characters`;
  return ofCoordinator.test(name) ? "names a series that is the coordinator's own" : null;
}
