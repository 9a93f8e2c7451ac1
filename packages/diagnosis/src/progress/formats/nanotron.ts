/** nanotron: `iteration: 10 / 15000 | consumed_tokens: 2.1M | … | lm_loss: 10.4 | lr: 5e-07 | grad_norm: 12.3`, K, M, G for thousands. */
import { type LineFormat, numberIn, type Values } from '../format.ts';

const head = /\biteration: (\d{1,12}) \/ (\d{1,12}) \| /;
const pair = /^([a-z][a-z_]{0,60}): ([-+.\w]{1,40})$/;
const human = /^([-+]?\d{1,15}(?:\.\d{0,15})?)([KMGBT])$/;
const factors: Readonly<Record<string, number>> = { K: 1e3, M: 1e6, G: 1e9, B: 1e9, T: 1e12 };

export const nanotron: LineFormat = {
  framework: 'nanotron',
  marks: ['iteration: '],
  read(text) {
    const found = head.exec(text);
    if (found === null) return null;
    const values: Record<string, Values[string]> = { step: Number(found[1]), total_steps: Number(found[2]) };
    for (const part of text.slice(found.index + found[0].length).split('|')) {
      const [, name, told = ''] = pair.exec(part.trim()) ?? [];
      if (name === undefined) continue;
      const value = numberOf(told);
      if (value === undefined) continue;
      if (name === 'elapsed_time_per_iteration_ms')
        values['step_time_s'] = value === null ? null : value / 1_000;
      else values[name === 'tokens_per_sec' ? 'tokens_per_s' : name] = value;
    }
    return 'lm_loss' in values ? values : null;
  },
};

function numberOf(told: string): number | null | undefined {
  const [, digits, unit] = human.exec(told) ?? [];
  return digits === undefined ? numberIn(told) : Number(digits) * (factors[unit ?? ''] ?? Number.NaN);
}
