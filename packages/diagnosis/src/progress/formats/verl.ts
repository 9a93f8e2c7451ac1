/** The console of verl: `step:3 - actor/pg_loss:0.012 - actor/lr:1e-06 - timing_s/step:41.2`, numbers of NumPy with their type. */
import { type LineFormat, numberIn, type Values } from '../format.ts';

const head = /(?:^|\s)step:(\d{1,12}) - /;
const pair = /^([A-Za-z_][\w./()@-]{0,120}):(?:np\.\w{1,12}\()?([-+.\w]{1,40})\)?$/;

export const verl: LineFormat = {
  framework: 'verl',
  marks: ['step:'],
  read(text) {
    const found = head.exec(text);
    if (found === null) return null;
    const values: Record<string, Values[string]> = { step: Number(found[1]) };
    for (const part of text.slice(found.index + found[0].length).split(' - ')) {
      const [, name, told = ''] = pair.exec(part.trim()) ?? [];
      const value = name === undefined ? undefined : numberIn(told);
      if (name?.includes('/') === true && value !== undefined) values[name] = value;
    }
    return Object.keys(values).length > 1 ? values : null;
  },
};
