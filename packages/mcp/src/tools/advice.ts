/** Advice on a training before it runs: the schemas of what is asked and answered are those of the command line and the API. */

import type { TrainingAction } from '@muster/advice/actionShape';
import { type AnswerOf, answerSchemas } from '@muster/advice/file/answerSchemas';
import { automlSchema } from '@muster/advice/file/readAutoml';
import { contextSchema } from '@muster/advice/file/readContext';
import { MusterError } from '@muster/common/errors';
import type { MusterApi } from '@muster/common/wire/client';
import * as z from 'zod';
import { brief, firstFitting } from '../size.ts';
import { tool } from '../tool.ts';

const trainingContext = contextSchema.shape['training_context'] ?? z.never();

const automlTask = automlSchema.shape['training_context'] ?? z.never();

const fileRow = z.object({ name: z.string(), about: z.string(), fits: z.boolean() });

async function answerTo<Task extends TrainingAction>(
  task: Task,
  context: unknown,
  api: MusterApi,
): Promise<AnswerOf<Task>> {
  const answer = await api.advise(JSON.stringify({ task_type: task, training_context: context }));
  return answerSchemas[task].parse(answer, { jitless: true }) as AnswerOf<Task>;
}

/** The text of the file that was asked for. null: none was. @throws {MusterError} `not_found` */
function textOf(
  files: readonly { readonly name: string; readonly text: string }[],
  asked: string | undefined,
): string | null {
  if (asked === undefined) return null;
  const found = files.find(({ name }) => name === asked);
  if (found !== undefined) return found.text;
  throw new MusterError(
    'not_found',
    `file: there is no "${brief(asked, 60)}"; there are ${files.map(({ name }) => name).join(', ')}`,
  );
}

const file = z.string().max(100).optional().describe('the file of the answer whose text is wanted');

const {
  design_pipeline: pipelineAnswer,
  configure_distributed: distributedAnswer,
  tune_hyperparameters: tuningAnswer,
  manage_compute: computeAnswer,
  setup_automl: automlAnswer,
} = answerSchemas;

export const distributedConfigure = tool({
  name: 'configure_distributed',
  title: 'Configure a distributed training',
  about:
    'How to distribute a training over GPUs: strategy, degrees, memory of each GPU with its arithmetic, tips, and the names of launch ' +
    'scripts and settings for torchrun, FSDP, DeepSpeed, Accelerate, Megatron-LM, Horovod and Muster. Needs model.parameters, gpu_type and ' +
    'gpu_count. Call again with file for the text of one. Changes nothing.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({ taskType: z.literal('configure_distributed').optional(), trainingContext, file }),
  output: distributedAnswer.omit({ considered: true, files: true, sources: true }).extend({
    files: z.array(fileRow),
    fileText: z.string().nullable().describe('null: no file was asked for'),
  }),
  async run(given, { api }) {
    const answer = await answerTo('configure_distributed', given.trainingContext, api);
    const { considered: _, sources: _sources, files, reasons, ...rest } = answer;
    const data = {
      ...rest,
      reasons: [...firstFitting(reasons, 1_500)],
      files: files.map(({ name, about, fits }) => ({ name, about, fits })),
      fileText: textOf(files, given.file),
    };
    return { data, text: reasons.at(-1) ?? '' };
  },
});

export const computeManage = tool({
  name: 'manage_compute',
  title: 'Choose GPUs, and estimate time and cost',
  about:
    'Which GPUs a training needs, how long it takes and what it costs, on demand and spot, with ranges, assumptions and a scaling policy. ' +
    'Needs model.parameters, and data_size_gb of text or training_config.target_tokens; budget limits it. Changes nothing.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({ taskType: z.literal('manage_compute').optional(), trainingContext }),
  output: computeAnswer.omit({ sources: true }),
  async run(given, { api }) {
    const { sources: _, ...data } = await answerTo('manage_compute', given.trainingContext, api);
    const { recommended, reasons } = data;
    const text =
      recommended === null
        ? reasons.join(' ')
        : `${recommended.gpuCount} × ${recommended.gpu}: about ${recommended.estimated_duration_hours.toFixed(1)} h, ` +
          `${recommended.total_cost_usd.toFixed(0)} USD. ${reasons.join(' ')}`;
    return { data, text };
  },
});

/** Programs are longer than an answer may be. */
const fileCharactersMax = 4_000;

export const pipelineDesign = tool({
  name: 'design_pipeline',
  title: 'Design a pipeline',
  about:
    'Steps from the data to a registered model (check, preprocess, train, evaluate, register) for a framework and a kind of data, with a ' +
    'pipeline file and the Python programs that it runs. Needs data.path. Call again with file, and offset where it is long, for the text ' +
    'of one. Changes nothing.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    taskType: z.literal('design_pipeline').optional(),
    trainingContext,
    file,
    offset: z.int().min(0).max(1_000_000).default(0).describe('nextOffset of the answer before'),
  }),
  output: pipelineAnswer.omit({ files: true, pipeline_config: true }).extend({
    pipeline_config: pipelineAnswer.shape.pipeline_config.nullable().describe('null: a file was asked for'),
    files: z.array(fileRow),
    fileText: z.string().nullable().describe('null: no file was asked for'),
    nextOffset: z.number().nullable().describe('null: the text ends here'),
  }),
  async run(given, { api }) {
    const answer = await answerTo('design_pipeline', given.trainingContext, api);
    const { files, pipeline_config: config, ...rest } = answer;
    const text = textOf(files, given.file);
    const end = given.offset + fileCharactersMax;
    const data = {
      ...rest,
      pipeline_config: text === null ? config : null,
      files: files.map(({ name, about, fits }) => ({ name, about, fits })),
      fileText: text?.slice(given.offset, end) ?? null,
      nextOffset: text === null || end >= text.length ? null : end,
    };
    return { data, text: `Steps: ${config.steps.map(({ name }) => name).join(', ')}.` };
  },
});

/** Of a search space that is given; the usual ones have seven parameters. */
const parametersBytesMax = 3_000;

export const hyperparametersTune = tool({
  name: 'tune_hyperparameters',
  title: 'Choose a search for hyperparameters',
  about:
    'What to search for a model and framework, with the reason of each range, sampler, early stopping, how many trials the budget allows, ' +
    'and what they cost; with a sweep file for `muster sweep -f`. Starts nothing.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({ taskType: z.literal('tune_hyperparameters').optional(), trainingContext }),
  output: tuningAnswer.omit({ files: true, sources: true }).extend({
    parametersNotShown: z.number(),
    sweepFile: z.string().nullable().describe('null: it is too long, `muster advise tuning` writes it'),
  }),
  async run(given, { api }) {
    const answer = await answerTo('tune_hyperparameters', given.trainingContext, api);
    const { files, sources: _, parameters, ...rest } = answer;
    const shown = firstFitting(parameters, parametersBytesMax);
    const sweepFile = files[0]?.text ?? null;
    const data = {
      ...rest,
      parameters: [...shown],
      parametersNotShown: parameters.length - shown.length,
      sweepFile: sweepFile !== null && sweepFile.length > parametersBytesMax ? null : sweepFile,
    };
    return { data, text: answer.reasons.join(' ') };
  },
});

export const automlSetup = tool({
  name: 'setup_automl',
  title: 'Set up AutoML for a table',
  about:
    'Which models and settings an AutoML run would try for a table, compared by which metric, in which steps, with early stopping and, ' +
    'where constraints have time and parallel, the most that it costs; with a task file for `muster automl -f`. Needs data.path and ' +
    'data.target. Starts nothing.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    taskType: z.literal('setup_automl').optional(),
    trainingContext: automlTask,
  }),
  output: automlAnswer.omit({ files: true, sources: true }).extend({
    taskFile: z.string().nullable().describe('null: it is too long, `muster advise automl` writes it'),
  }),
  async run(given, { api }) {
    const answer = await answerTo('setup_automl', given.trainingContext, api);
    const { files, sources: _, ...rest } = answer;
    const taskFile = files[0]?.text ?? null;
    const data = {
      ...rest,
      taskFile: taskFile !== null && taskFile.length > parametersBytesMax ? null : taskFile,
    };
    return { data, text: answer.reasons.join(' ') };
  },
});
