/** The progress bar of PyTorch Lightning: it shows what the module logs with `prog_bar=True`, and nothing else does. */
import { type LineFormat, numberIn, type Values } from '../format.ts';

const bar =
  /(?:^|\s)Epoch (\d{1,9})(?:\/\d{1,9})?: {1,4}\d{1,3}%\|[^|]{0,400}\| {0,2}(\d{1,12})\/(\d{1,12}) \[([^\]]{1,4000})/;
/** Others have bars of epochs, too, and count `update/s` in them. */
const unit = /, {1,4}(?:[\d.]{1,20}|\?)(?:it\/s|s\/it)/;
const pair = /, ([^=,\]]{1,100})=([^,\]]{1,60})/g;

export const lightning: LineFormat = {
  framework: 'lightning',
  marks: ['Epoch '],
  read(text) {
    const found = bar.exec(text);
    if (found === null) return null;
    const [, epoch, batch, batches, inside = ''] = found;
    if (!unit.test(inside)) return null;
    const values: Record<string, Values[string]> = {
      epoch: Number(epoch),
      batch: Number(batch),
      batches: Number(batches),
    };
    let isTelling = false;
    for (let part = pair.exec(inside); part !== null; part = pair.exec(inside)) {
      const [, key = '', shown = ''] = part;
      const value = numberIn(shown.trim());
      if (value === undefined) continue;
      values[key] = value;
      // The number of the experiment is shown from the first moment on and measures nothing.
      isTelling ||= key !== 'v_num';
    }
    return isTelling ? values : null;
  },
};
