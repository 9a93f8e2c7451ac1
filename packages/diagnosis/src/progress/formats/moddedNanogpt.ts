/** modded-nanogpt: `step:0/1390 val_loss:10.8258 train_time:0ms step_avg:nanms`. */
import { type LineFormat, numberIn, secondsOf } from '../format.ts';

const head = /(?:^|\s)step:(\d{1,12})\/(\d{1,12}) (?=(?:train_loss|val_loss|train_time):)/;
const pair = /(?<![\w:])(train_loss|val_loss|train_time|step_avg):([-+.\d]{1,40}|nan|inf)(ms)?(?=\s|$)/g;

export const moddedNanogpt: LineFormat = {
  framework: 'modded_nanogpt',
  marks: ['step:'],
  read(text) {
    const found = head.exec(text);
    if (found === null) return null;
    const values: Record<string, number | null> = { step: Number(found[1]), total_steps: Number(found[2]) };
    for (const [, name = '', told = '', unit] of text.slice(found.index).matchAll(pair)) {
      const value = numberIn(told);
      if (value === undefined) continue;
      if (name === 'step_avg') values['step_time_s'] = secondsOf(told);
      else if (unit === undefined) values[name] = value;
      else values['train_time_s'] = secondsOf(told);
    }
    return values;
  },
};
