/** How programs say that they have done all they were asked to. */

const completions: readonly RegExp[] = [
  /\bProcess \d{1,10} exits successfully\.?$/,
  /`Trainer\.fit` stopped: `max_(?:epochs|steps|time)=/,
  /'train_runtime': /,
  /Training completed\. Do not forget to share your model/,
  /\[after training is done\]/,
  /\bdone training in [\d.]{1,20} seconds/,
  /^Training time: [\d.]{1,20} ?s/,
  // At the beginning, or behind what loggers put there: a comment says it in the middle of a sentence.
  /(?:^|[\]:|>-] {0,3})Training (?:is |has )?(?:completed?|finished|done)[.!]?\s{0,20}$/i,
];

export const completionHints = [
  'exits successfully',
  '`Trainer.fit` stopped',
  "'train_runtime'",
  'raining completed',
  'raining complete',
  'raining is ',
  'raining has ',
  'raining finished',
  'raining done',
  'done training',
  'Training time: ',
] as const;

/** One of these is in every such line; one search instead of eight. */
const likely = /exits successfully|`Trainer\.fit` stopped|'train_runtime'|training/i;

export function saysCompleted(text: string): boolean {
  return likely.test(text) && completions.some((pattern) => pattern.test(text));
}
