/** Where programs say how many steps there will be. */

/** Without this a line tells no total. */
export const totalMark = /max_iters|(?:total|optimization) steps|Num Epochs|epochs:/;

export interface ToldTotals {
  readonly steps?: number;
  readonly epochs?: number;
}

const steps = [
  // nanoGPT prints its configuration file, and what the command line overrides in it.
  /^(?:Overriding: )?max_iters = (\d{1,12})\b/,
  // Trainer
  /\bTotal optimization steps = ([\d,]{1,15})/,
  // torchtitan
  /\bTraining starts at step \d{1,12}\b.{0,400}\btotal steps (\d{1,12})\b/,
];
const epochs = [/\bNum Epochs = ([\d,]{1,15})/, /^epochs: (\d{1,9})$/];

export function totalsIn(text: string): ToldTotals | null {
  const toldSteps = firstNumber(steps, text);
  if (toldSteps !== null) return { steps: toldSteps };
  const toldEpochs = firstNumber(epochs, text);
  return toldEpochs === null ? null : { epochs: toldEpochs };
}

function firstNumber(patterns: readonly RegExp[], text: string): number | null {
  for (const pattern of patterns) {
    const found = pattern.exec(text);
    if (found !== null) return Number((found[1] ?? '').replaceAll(',', ''));
  }
  return null;
}
