/** How programs say that they have done all they were asked to. */

const completions: readonly RegExp[] = [
  /\bProcess \d+ exits successfully\b/,
  /`Trainer\.fit` stopped: `max_(?:epochs|steps|time)=/,
  /'train_runtime': /,
  /Training completed\. Do not forget to share your model/,
  /\[after training is done\]/,
  /\bdone training in [\d.]+ seconds/,
  /^Training time: [\d.]+ ?s/,
  /\bTraining (?:is |has )?(?:completed?|finished|done)[.!]?\s*$/i,
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
