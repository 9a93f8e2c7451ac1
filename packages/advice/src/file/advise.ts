/** From a training context as it was written to the answer of its question: the one way in for the command line, the API and tools. */
import { isMapping } from '@muster/common/spec/path';
import type { Finding } from '@muster/common/spec/problems';
import { readSweep } from '@muster/experiments/file/sweepFile';
import { readPipeline } from '@muster/pipelines/file/pipelineFile';
import { type AdviceTask, type TrainingAction, trainingActions } from '../actionShape.ts';
import type { AutomlContext } from '../automl/automlFields.ts';
import { setupAutoml } from '../automl/setupAutoml.ts';
import { manageCompute } from '../compute.ts';
import type { TrainingContext } from '../contextFields.ts';
import { configureDistributed } from '../distributed.ts';
import type { GpuModel } from '../gpus.ts';
import { designPipeline } from '../pipeline/designPipeline.ts';
import { type SweepValue, tuneHyperparameters } from '../tuning.ts';
import { type AdviceAnswer, type AnswerOf, answerSchemas } from './answerSchemas.ts';
import { automlRunId } from './automlRunId.ts';
import { readAutoml } from './readAutoml.ts';
import { readContext } from './readContext.ts';

export type AdviceOutcome<Answer = AdviceAnswer> =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** The results of an answer, of which each question gives some. */
const noResults = {
  pipeline_config: null,
  distributed_config: null,
  tuning_results: null,
  cost_estimate: null,
};

/**
 * @param value `training_context`, and `task_type`, which says the question
 * @param gpus with the prices that count
 * @throws {Error} a bug: the answer is not what its schema says
 */
export function adviseOn(value: unknown, gpus: readonly GpuModel[]): AdviceOutcome {
  if (isMapping(value) && value['task_type'] === 'setup_automl') {
    const read = readAutoml(value);
    return read.ok ? { ok: true, answer: adviseOnAutoml(read.context) } : read;
  }
  const read = readContext(value, null, gpus);
  if (read.ok) return answerTo(read.task, read.context, gpus);
  const findings = read.findings.map((finding) =>
    finding.path.join('.') === 'task_type' ? { ...finding, expected: trainingActions.join(', ') } : finding,
  );
  return { ok: false, findings };
}

/** @param context has passed the checks of `readAutoml` @throws {Error} as above */
export function adviseOnAutoml(context: AutomlContext): AnswerOf<'setup_automl'> {
  return checked('setup_automl', setupAutoml(context, automlRunId(context)));
}

/** @param task that of the value must be the same, or missing @throws {Error} as above */
export function adviseAs<Task extends AdviceTask>(
  task: Task,
  value: unknown,
  gpus: readonly GpuModel[],
): AdviceOutcome<AnswerOf<Task>> {
  const read = readContext(value, task, gpus);
  return read.ok ? answerTo(task, read.context, gpus) : read;
}

function answerTo<Task extends AdviceTask>(
  task: Task,
  context: TrainingContext,
  gpus: readonly GpuModel[],
): AdviceOutcome<AnswerOf<Task>> {
  const result = answers[task](context, gpus);
  if (!result.ok) return result;
  return { ok: true, answer: checked(task, result.advice) };
}

/** Whatever gives an answer outside of its schema is a bug, which must not reach who asked. */
function checked<Task extends TrainingAction>(task: Task, advice: object): AnswerOf<Task> {
  const answer: unknown = { task_type: task, ...noResults, ...advice };
  return answerSchemas[task].parse(answer, { jitless: true }) as AnswerOf<Task>;
}

type Answering = (
  context: TrainingContext,
  gpus: readonly GpuModel[],
) =>
  | { readonly ok: true; readonly advice: object }
  | { readonly ok: false; readonly findings: readonly Finding[] };

const answers: Readonly<Record<AdviceTask, Answering>> = {
  configure_distributed: configureDistributed,
  design_pipeline: (context) => {
    const { advice, pipeline } = designPipeline(context);
    const read = readPipeline(pipeline);
    return read.ok ? { ok: true, advice } : { ok: false, findings: read.findings };
  },
  tune_hyperparameters: (context, gpus) => {
    const { advice, sweep } = tuneHyperparameters(context, gpus);
    const findings = sweepProblems(sweep);
    return findings.length > 0 ? { ok: false, findings } : { ok: true, advice };
  },
  manage_compute: (context, gpus) => ({ ok: true, advice: manageCompute(context, gpus) }),
};

/** Whatever is wrong with the sweep file comes from the search space, which alone is written by a user. */
function sweepProblems(sweep: SweepValue): readonly Finding[] {
  const read = readSweep(sweep);
  if (read.ok) return [];
  const place = ['training_context', 'tuning', 'search_space'];
  return read.findings.map((finding) => ({
    ...finding,
    path: finding.path[0] === 'parameters' ? [...place, ...finding.path.slice(1)] : place,
  }));
}
