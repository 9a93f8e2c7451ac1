import { type LineFormat, numberIn, numberOrNull, secondsOf, type Values } from '../format.ts';

/** `step` counts steps of the optimizer, `iter` micro batches: several of these make one of those. */
const iteration =
  /\bEpoch (\d{1,9}) \| iter (\d{1,15}) step (\d{1,15}) \| loss train: ([-+.\w]{1,40}), val: ([-+./\w]{1,40}) \| iter time: ([-+.\w]{1,40}) ms/;
const validation = /\biter (\d{1,15}): val loss ([-+.\w]{1,40}), val time: ([-+.\w]{1,40}) ms/;

export const litgpt: LineFormat = {
  framework: 'litgpt',
  marks: ['loss train: ', ': val loss '],
  read: (text) => iterationOf(text) ?? validationOf(text),
};

function iterationOf(text: string): Values | null {
  const found = iteration.exec(text);
  const loss = numberIn(found?.[4] ?? '');
  if (found === null || loss === undefined) return null;
  return {
    epoch: Number(found[1]),
    iter: Number(found[2]),
    step: Number(found[3]),
    loss,
    val_loss: numberOrNull(found[5]),
    step_time_s: secondsOf(found[6]),
  };
}

function validationOf(text: string): Values | null {
  const found = validation.exec(text);
  const loss = numberIn(found?.[2] ?? '');
  if (found === null || loss === undefined) return null;
  return { iter: Number(found[1]), val_loss: loss, val_time_s: secondsOf(found[3]) };
}
