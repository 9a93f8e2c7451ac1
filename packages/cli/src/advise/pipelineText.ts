/** A designed pipeline, for people. Pure. */
import type { AnswerOf } from '@muster/advice/file/answerSchemas';
import { type Column, formatTable, type View } from '../output/table.ts';
import { listWith } from './section.ts';

type PipelineAnswer = AnswerOf<'design_pipeline'>;
type Step = PipelineAnswer['pipeline_config']['steps'][number];

export function pipelineText(advice: PipelineAnswer, view: View): string {
  const { pipeline_config: config, reasons, files, assumptions } = advice;
  const list = listWith(view.colours);
  return [
    formatTable(config.steps, stepColumns, view),
    list('Why', reasons),
    list(
      'Files',
      files.map(({ name, about }) => `${name}: ${about}`),
    ),
    list('Assumed', assumptions),
  ].join('');
}

const stepColumns: readonly Column<Step>[] = [
  { header: 'STEP', cell: ({ name }) => name },
  { header: 'NEEDS', cell: ({ needs }) => needs.join(', ') },
  { header: 'OUTPUTS', cell: ({ outputs }) => outputs.join(', ') },
  { header: 'RUNS', cell: ({ command }) => command.slice(0, 2).join(' ') },
];
