import { type LineFormat, numberIn, numberOrNull, secondsOf, type Values } from '../format.ts';

const iteration =
  /\biter (\d{1,15}): loss ([-+.\w]{1,40}), time ([-+.\w]{1,40})ms(?:, mfu ([-+.\w]{1,40})%)?/;
const evaluation = /\bstep (\d{1,15}): train loss ([-+.\w]{1,40}), val loss ([-+.\w]{1,40})/;

export const nanogpt: LineFormat = {
  framework: 'nanogpt',
  marks: [': loss ', ': train loss '],
  read: (text) => iterationOf(text) ?? evaluationOf(text),
};

function iterationOf(text: string): Values | null {
  const found = iteration.exec(text);
  const loss = numberIn(found?.[2] ?? '');
  if (found === null || loss === undefined) return null;
  const mfu = numberOrNull(found[4]);
  return {
    step: Number(found[1]),
    loss,
    step_time_s: secondsOf(found[3]),
    // -100 stands for "not known yet".
    mfu_percent: mfu !== null && mfu < 0 ? null : mfu,
  };
}

function evaluationOf(text: string): Values | null {
  const found = evaluation.exec(text);
  const loss = numberIn(found?.[2] ?? '');
  if (found === null || loss === undefined) return null;
  return { step: Number(found[1]), train_loss_eval: loss, val_loss: numberOrNull(found[3]) };
}
