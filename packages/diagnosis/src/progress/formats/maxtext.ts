/** MaxText: `completed step: 18, seconds: 5.12, TFLOP/s/device: 123.4, Tokens/s/device: 1600.2, total_weights: 65536, loss: 9.8`. */
import { type LineFormat, numberIn, numberOrNull } from '../format.ts';

const head = /\bcompleted step: (\d{1,15}), seconds: ([-+.\w]{1,40}),/;
const printed =
  /, (loss|TFLOP\/s\/device|Tokens\/s\/device|perplexity|moe_lb_loss): ([-+.\w]{1,40})(?=,|\s|$)/g;

const keys: Readonly<Record<string, string>> = {
  'TFLOP/s/device': 'tflops_per_gpu',
  // Of one device, while others tell of all.
  'Tokens/s/device': 'tokens_per_s_per_device',
};

export const maxtext: LineFormat = {
  framework: 'maxtext',
  marks: ['completed step: '],
  read(text) {
    const found = head.exec(text);
    if (found === null) return null;
    const values: Record<string, number | null> = {
      step: Number(found[1]),
      step_time_s: numberOrNull(found[2]),
    };
    for (const [, name = '', told = ''] of text.slice(found.index).matchAll(printed)) {
      const value = numberIn(told);
      if (value !== undefined) values[keys[name] ?? name] = value;
    }
    return 'loss' in values ? values : null;
  },
};
