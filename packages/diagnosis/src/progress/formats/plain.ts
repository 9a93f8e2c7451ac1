/**
 * What people print by hand: `step 10/250 | loss 2.31 | lr 3e-4`, `Step: 10, Loss: 2.31`, `epoch: 3451 loss: 0.123`. The line
 * begins with a step or an epoch, and has a loss.
 */
import { type LineFormat, numberIn, type Values } from '../format.ts';

const head = /^\s{0,8}\[?(?:global[_ ]step|step|iteration|iter|epoch)[:= ]/i;
const pair = new RegExp(
  [
    String.raw`(?:^|[\s,;|([])`,
    String.raw`(global[_ ]step|step|iteration|iter|epoch|lr|learning[_ ]rate|grad[_ ]norm|gnorm`,
    String.raw`|(?:(?:train|training|val|valid|validation|eval)[_ /])?loss)`,
    String.raw`\s{0,2}[:= ]\s{0,4}([-+.\w]{1,40})(?:\s?\/\s?(\d{1,9}))?(?=[\s,;:|)\]]|$)`,
  ].join(''),
  'gi',
);
/** A sentence about the run, such as `Epoch 1/1 with loss 0.66`: no column is called so. */
const prose = /\s(?:and|at|had|has|is|of|the|was|with)\s/i;
/** A bar shows what it likes beside the loss, and is read as a bar. */
const barMark = '%|';
const textLengthMax = 500;
const counts: ReadonlySet<string> = new Set(['global_step', 'step', 'iteration', 'iter']);

export const plain: LineFormat = {
  framework: 'plain',
  marks: ['loss:', 'loss ', 'loss=', 'Loss:', 'Loss ', 'Loss='],
  read(text) {
    if (text.length > textLengthMax || !head.test(text) || text.includes(barMark) || prose.test(text))
      return null;
    const values: Record<string, Values[string]> = {};
    let hasLoss = false;
    for (const [, told = '', printed = '', total] of text.matchAll(pair)) {
      const name = told.toLowerCase().replace(/[ /]/g, '_');
      const value = numberIn(printed);
      if (value === undefined || name in values) continue;
      values[name] = value;
      hasLoss ||= name.endsWith('loss');
      if (total !== undefined && counts.has(name)) values['total_steps'] = Number(total);
    }
    return hasLoss ? values : null;
  },
};
