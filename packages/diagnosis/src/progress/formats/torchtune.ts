/** torchtune tells the same step twice: in its progress bar, and in the file of its disk logger. */
import { type LineFormat, numberIn, type Values } from '../format.ts';

const bar = /(?:^|\s)(\d{1,9})\|(\d{1,12})\|Loss: ([-+.\w]{1,40})(?=:|$)/;
const logged = /^Step (\d{1,12}) \| (\S.{0,4000})$/;
const pair = /(?<![\w./-])([\w./-]{1,80}):([-+.\w]{1,40})(?= |$)/g;

export const torchtune: LineFormat = {
  framework: 'torchtune',
  marks: ['|Loss: ', 'Step '],
  read(text) {
    const shown = bar.exec(text);
    const loss = numberIn(shown?.[3] ?? '');
    if (shown !== null && loss !== undefined) {
      return { epoch: Number(shown[1]), step: Number(shown[2]), loss, from: 'bar' };
    }
    const found = logged.exec(text);
    if (found === null) return null;
    const values: Record<string, Values[string]> = { step: Number(found[1]) };
    const [, , told = ''] = found;
    for (let part = pair.exec(told); part !== null; part = pair.exec(told)) {
      const [, key = '', printed = ''] = part;
      const value = numberIn(printed);
      if (value !== undefined) values[key] = value;
    }
    return Object.keys(values).length > 1 ? values : null;
  },
};
