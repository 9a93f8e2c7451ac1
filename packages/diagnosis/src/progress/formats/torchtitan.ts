import { type LineFormat, numberIn, type Values } from '../format.ts';

const head = /\bstep: {1,6}(\d{1,12}) {2,6}loss: {1,10}([-+.\w]{1,40})(?= |$)/;
/** In front of the step. */
const validation = 'validate ';
const rest = / {2}(grad_norm|memory|tps|wps|tflops|mfu): {1,10}([-+.,/\w]{1,40})/g;

const keys: Readonly<Record<string, string>> = {
  grad_norm: 'grad_norm',
  memory: 'memory_gib',
  tps: 'tokens_per_s',
  // Before there was `tps`.
  wps: 'tokens_per_s',
  tflops: 'tflops',
  mfu: 'mfu_percent',
};

export const torchtitan: LineFormat = {
  framework: 'torchtitan',
  marks: ['step: '],
  read(text) {
    const found = head.exec(text);
    if (found === null) return null;
    const [, step, printedLoss = ''] = found;
    const loss = numberIn(printedLoss);
    if (loss === undefined) return null;
    const values: Record<string, Values[string]> = { step: Number(step) };
    const isValidation = text.startsWith(validation, found.index - validation.length);
    values[isValidation ? 'val_loss' : 'loss'] = loss;
    rest.lastIndex = found.index + found[0].length;
    for (let field = rest.exec(text); field !== null; field = rest.exec(text)) {
      const [, name = '', printed = ''] = field;
      const value = numberIn(printed.endsWith('GiB') ? printed.slice(0, -3) : printed);
      const key = keys[name];
      if (key !== undefined && value !== undefined) values[key] = value;
    }
    return values;
  },
};
