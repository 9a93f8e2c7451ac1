/**
 * Megatron-LM and Megatron-DeepSpeed, printed by the LAST rank: `name: value` between bars, whose names, units and order
 * differ between versions. A time stamp may stand in front or not.
 */
import { type LineFormat, numberIn, secondsOf, type Values } from '../format.ts';

const iteration = /(?:^|[\s\]])iteration {1,12}(\d{1,12}) {0,12}\/ {0,12}(\d{1,12}) \|/;
const shown = /\|([^|:]{1,80}):\s{0,12}([^|:\s]{1,80})\s{0,12}(?=\||$)/g;
const validation = /\bvalidation loss at iteration (\d{1,12})\b[^|]{0,100}\| lm loss value: ([-+.\w]{1,40})/;

interface Field {
  readonly key: string;
  readonly isMilliseconds?: true;
}

/** What they print => what it is called here. What is not listed repeats the configuration or another field. */
const fields: ReadonlyMap<string, Field> = new Map(
  Object.entries({
    'consumed samples': { key: 'samples' },
    'elapsed time per iteration (ms)': { key: 'step_time_s', isMilliseconds: true },
    'elapsed time per iteration (s)': { key: 'step_time_s' },
    'throughput per GPU (TFLOP/s/GPU)': { key: 'tflops_per_gpu' },
    TFLOPs: { key: 'tflops_per_gpu' },
    'learning rate': { key: 'learning_rate' },
    'lm loss': { key: 'loss' },
    // GPT-NeoX
    lm_loss: { key: 'loss' },
    'loss scale': { key: 'loss_scale' },
    'grad norm': { key: 'grad_norm' },
    'number of skipped iterations': { key: 'skipped_iterations' },
    'number of nan iterations': { key: 'nan_iterations' },
    'samples per second': { key: 'samples_per_s' },
  }),
);

export const megatron: LineFormat = {
  framework: 'megatron',
  marks: ['iteration '],
  read(text) {
    const found = iteration.exec(text);
    if (found === null) return validationOf(text);
    const values: Record<string, Values[string]> = { step: Number(found[1]), total_steps: Number(found[2]) };
    // The bar that ends the iteration begins the first of the others.
    shown.lastIndex = found.index + found[0].length - 1;
    for (let part = shown.exec(text); part !== null; part = shown.exec(text)) {
      const [, name = '', printed = ''] = part;
      const field = fields.get(name.trim());
      if (field === undefined) continue;
      const value = numberIn(printed);
      if (value !== undefined) values[field.key] = field.isMilliseconds === true ? secondsOf(printed) : value;
    }
    // Only the number of the iteration: somebody else's line that looks alike.
    return Object.keys(values).length > 2 ? values : null;
  },
};

function validationOf(text: string): Values | null {
  const found = validation.exec(text);
  if (found === null) return null;
  const loss = numberIn(found[2] ?? '');
  return loss === undefined ? null : { step: Number(found[1]), val_loss: loss };
}
