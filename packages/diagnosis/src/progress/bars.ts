/** Progress bars of tqdm: some programs print their step and the number of steps only there. */

export interface Bar {
  readonly label: string;
  readonly done: number;
  readonly total: number;
  /** As the bar estimates it. null: it does not know yet. */
  readonly secondsPerStep: number | null;
}

/** `575/1725 [3:03:39<6:06:20, 19.11s/it`. What follows may be cut off or somebody else's. */
const counted = /(\d{1,12})\/(\d{1,12}) \[[\d:]{1,12}<[\d:?]{1,12}, {1,6}([\d.]{1,20}|\?)(s\/it|it\/s)/g;
/** The bar itself is as wide as a terminal; looked for further back, many bars in one line would take its square. */
const headLengthMax = 500;
/** Bars of data sets and downloads have labels, too. */
const trainingLabel = /^(?:|train(?:ing)?|steps?|iterations?)$/i;

/** @returns the last bar of a line that counts steps of training; null: there is none */
export function barIn(text: string): Bar | null {
  let newest: Bar | null = null;
  counted.lastIndex = 0;
  for (let found = counted.exec(text); found !== null; found = counted.exec(text)) {
    const [, done, total, rate, unit] = found;
    const label = labelBefore(text.slice(Math.max(0, found.index - headLengthMax), found.index));
    if (!trainingLabel.test(label)) continue;
    const perUnit = Number(rate);
    const isKnown = Number.isFinite(perUnit) && perUnit > 0;
    newest = {
      label,
      done: Number(done),
      total: Number(total),
      secondsPerStep: isKnown ? (unit === 's/it' ? perUnit : 1 / perUnit) : null,
    };
  }
  return newest;
}

/** What stands in front of the percentage: `Training` in `Training:  33%|###   | `. @param head of the bar */
function labelBefore(head: string): string {
  const percentage = head.lastIndexOf('%|');
  if (percentage === -1) return '';
  const from = Math.max(head.lastIndexOf('|', percentage - 1), head.lastIndexOf(']', percentage)) + 1;
  return head
    .slice(from, percentage)
    .replace(/:? {0,4}\d{0,3}$/, '')
    .trim();
}
