/**
 * One JSON object per line, by whatever program: a step (or an epoch) and something that training measures make it a line
 * of metrics. Structured logs of servers have neither.
 */
import { type LineFormat, type Values } from '../format.ts';
import { objectIn, valueIn } from '../jsonObject.ts';

const counts =
  /^(?:global_|train_|trainer\/global_)?(?:step|steps|iteration|iter|num_updates|update|epoch)$/i;
const measures =
  /(?:^|[_/.\s-])(?:loss|lr|learning_rate|grad_norm|gnorm|perplexity|ppl|tokens_per_s(?:ec(?:ond)?)?|samples_per_s(?:ec(?:ond)?)?)$/i;

/** One of these is in every such name; parsing costs much more. */
const likelyMeasures = /(?:loss|lr|rate|norm|perplexity|ppl|_per_s\w{0,5})":/i;

const blanks = /^\s{0,8}$/;

export const jsonLines: LineFormat = {
  framework: 'json_lines',
  marks: ['":'],
  read(text) {
    const from = text.indexOf('{"');
    // A logger may have put its own words in front, never behind.
    if (from === -1 || !endsObject(text) || !likelyMeasures.test(text)) return null;
    const object = objectIn(text.slice(from));
    if (object === null) return null;
    const values: Record<string, Values[string]> = {};
    let hasCount = false;
    let hasMeasure = false;
    for (const key in object) {
      const value = valueIn(object[key]);
      if (value === undefined) continue;
      values[key] = value;
      if (typeof value === 'string') continue;
      hasCount ||= value !== null && counts.test(key);
      hasMeasure ||= measures.test(key);
    }
    return hasCount && hasMeasure ? values : null;
  },
};

/** The brace stands at the end, but for a few blanks: found from behind, since a search from the front tries every brace. */
function endsObject(text: string): boolean {
  const brace = text.lastIndexOf('}');
  return brace !== -1 && blanks.test(text.slice(brace + 1));
}
