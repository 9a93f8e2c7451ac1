/** What an AutoML run would do, for people. Pure. */
import type { AnswerOf } from '@muster/advice/file/answerSchemas';
import { type Column, formatFields, formatTable, type View } from '../output/table.ts';
import { amountText } from './adviceText.ts';
import { listWith } from './section.ts';
import { spaceText } from './tuningText.ts';

type AutomlAdvice = AnswerOf<'setup_automl'>;
type Searched = AutomlAdvice['parameters'][number];

export function automlAdviceText(advice: AutomlAdvice, view: View): string {
  const { colours, width } = view;
  const { trials, parallel, metric, earlyStopping, cost_estimate: cost } = advice;
  const fields = formatFields(
    [
      ['Models', advice.models.join(', ')],
      ['Metric', metric ?? 'log_loss or rmse, by the target'],
      [
        'Trials',
        `${trials}, ${parallel === null ? 'as many at once as there is room for' : `${parallel} at once`}`,
      ],
      [
        'Early stopping',
        `${earlyStopping.rule} from step ${earlyStopping.min_steps}, % of the training rows`,
      ],
      [
        'Cost',
        cost === null
          ? 'not known'
          : `at most ${amountText(cost.total_cost_usd)} USD, prices of ${advice.pricesAsOf}`,
      ],
      ['Steps', advice.pipeline_config.steps.map(({ name }) => name).join(', ')],
      ['Directory', advice.dir],
      ['Reports', advice.reports.join('\n')],
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

const parameterColumns: readonly Column<Searched>[] = [
  { header: 'PARAMETER', cell: ({ name }) => name },
  { header: 'RANGE', cell: ({ range }) => spaceText(range) },
  { header: 'FOR', cell: ({ range }) => modelsText(range) },
];

/** The models that have the parameter. */
function modelsText(range: Searched['range']): string {
  if (Array.isArray(range)) return '';
  const { when } = range as { readonly when?: { readonly model: readonly string[] } };
  return when?.model.join(', ') ?? '';
}
