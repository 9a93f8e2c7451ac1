/** Advice on a search for good parameters, for people. Pure. */
import type { AnswerOf } from '@muster/advice/file/answerSchemas';
import { type Column, formatFields, formatTable, type View } from '../output/table.ts';
import { amountText, hoursText, rangeText } from './adviceText.ts';
import { listWith } from './section.ts';

type TuningAnswer = AnswerOf<'tune_hyperparameters'>;
type Tuned = TuningAnswer['parameters'][number];

export function tuningText(advice: TuningAnswer, view: View): string {
  const { trials, sampler, parallel, trialHours, earlyStopping, cost_estimate: cost, costRangeUsd } = advice;
  const { colours, width } = view;
  const fields = formatFields(
    [
      ['Trials', `${trials}, ${sampler}`],
      ['At once', parallel === null ? 'as many as there is room for' : String(parallel)],
      [
        'Early stopping',
        earlyStopping === null ? 'none' : `${earlyStopping.rule} from step ${earlyStopping.min_steps}`,
      ],
      ['A trial', trialHours === null ? 'not known' : `about ${hoursText(trialHours)} to its end`],
      [
        'Cost',
        cost === null || costRangeUsd === null
          ? 'not known'
          : `about ${amountText(cost.total_cost_usd)} USD, ${rangeText([...costRangeUsd], 'USD')}, prices of ${advice.pricesAsOf}`,
      ],
      ['Why', advice.reasons.join('\n')],
    ],
    colours,
    width,
  );
  const list = listWith(colours);
  return [
    fields,
    `\n${colours.bold('Search space')}\n`,
    formatTable(advice.parameters, parameterColumns, view),
    list(
      'Files',
      advice.files.map(({ name, about }) => `${name}: ${about}`),
    ),
    list('Assumed', advice.assumptions),
    list('Sources', advice.sources),
  ].join('');
}

const parameterColumns: readonly Column<Tuned>[] = [
  { header: 'PARAMETER', cell: ({ name }) => name },
  { header: 'RANGE', cell: ({ range }) => spaceText(range) },
  { header: 'WHY', cell: ({ why }) => why },
];

/** @param range as a sweep file has it */
export function spaceText(range: Tuned['range']): string {
  if (Array.isArray(range)) return range.join(', ');
  const { min, max, log, step, values } = range;
  if (Array.isArray(values)) return values.join(', ');
  const scale = log === true ? ', log' : step === undefined ? '' : `, step ${JSON.stringify(step)}`;
  return `${JSON.stringify(min)} to ${JSON.stringify(max)}${scale}`;
}
