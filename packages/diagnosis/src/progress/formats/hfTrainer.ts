/**
 * The Trainer of transformers prints a Python dictionary: with numbers up to version 4, with strings of four digits from
 * version 5 on. TRL and axolotl add keys. It may follow a progress bar on the same line.
 */
import { type LineFormat, numberIn, type Values } from '../format.ts';

const entry = /'([^'\\]{1,100})': (?:'([^'\\]{0,100})'|([-+.\w]{1,40}))(?=[,}])/g;

/** What a dictionary of the Trainer has and one that a program prints for other reasons (its configuration) has not. */
const telling = /^(?:loss|train_loss|eval_(?:\w{1,80}_)?loss|eval_(?:\w{1,80}_)?runtime|train_runtime)$/;

export const hfTrainer: LineFormat = {
  framework: 'hf_trainer',
  marks: ["loss': ", "runtime': "],
  read(text) {
    const from = text.indexOf("{'");
    const to = text.indexOf('}', from);
    if (from === -1 || to === -1) return null;
    const values: Record<string, Values[string]> = {};
    let isTelling = false;
    const told = text.slice(from, to + 1);
    for (let found = entry.exec(told); found !== null; found = entry.exec(told)) {
      const [, key = '', quoted, bare] = found;
      const value = numberIn(quoted ?? bare ?? '');
      if (value !== undefined) {
        values[key] = value;
        isTelling ||= telling.test(key);
      } else if (quoted !== undefined) values[key] = quoted;
    }
    return isTelling ? values : null;
  },
};
