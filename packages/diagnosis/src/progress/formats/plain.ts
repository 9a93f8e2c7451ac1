/** What people print by hand: `epoch: 3451 loss: 0.123`, with commas, bars and a total or without. */
import { type LineFormat, numberIn } from '../format.ts';

const row =
  /^\s{0,8}\[?epoch[: ] {0,4}(\d{1,9})(?: ?\/ ?\d{1,9})?\]?[,;:|-]?\s{1,4}(?:train(?:ing)?[_ ])?loss ?[:=] ?([-+.\w]{1,40})(?=[\s,;|]|$)/i;

export const plain: LineFormat = {
  framework: 'plain',
  marks: ['loss:', 'loss =', 'loss=', 'Loss:', 'Loss =', 'Loss='],
  read(text) {
    const [, epoch, told = ''] = row.exec(text) ?? [];
    const loss = numberIn(told);
    return epoch === undefined || loss === undefined ? null : { epoch: Number(epoch), loss };
  },
};
