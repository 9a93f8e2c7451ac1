/** The settings about the evaluation of checkpoints: a part of the table in `fields.ts`. */
import { betterValues, isTrainingMetricName, trainingMetricNames } from '../training.ts';
import { variablePairs } from './forms.ts';
import {
  choice,
  dayMs,
  duration,
  field,
  hourMs,
  mapping,
  optional,
  required,
  secondMs,
  textList,
  wholeNumber,
} from './kinds.ts';
import { resources } from './resourceFields.ts';
import { commandLine } from './structures.ts';

const metricFields = {
  name: required('name', choice(trainingMetricNames, { form: `one of ${trainingMetricNames.join(', ')}` }), {
    about: 'The metric that the best checkpoint is found by.',
  }),
  goal: field('goal', choice(['min', 'max']), {
    default: ({ name }) =>
      typeof name === 'string' && isTrainingMetricName(name) && betterValues[name] === 'high' ? 'max' : 'min',
    isAlwaysWritten: true,
    about: 'Which of its values are better. Default: max for speeds, else min.',
  }),
};

// The settings within are those of the job itself, with the same names and without flags.
const { fields: _shown, ...ownResources } = resources;

const everyMax = 1_000;

export const evaluationFields = {
  command: required('command', commandLine, {
    about:
      'The command of each evaluation. {checkpoint} and MUSTER_CHECKPOINT are the path of the checkpoint.',
  }),
  args: field('args', textList('a list such as [--split=test]'), {
    default: [],
    about: 'Added to the command of each evaluation.',
  }),
  env: field('env', variablePairs, {
    default: {},
    about: 'Environment variables of each evaluation, beside those of the job.',
  }),
  every: optional('every', wholeNumber(1, everyMax), {
    about: 'Evaluate every COUNT-th verified checkpoint. Either this or on.',
  }),
  on: optional('on', choice(['best', 'final']), {
    about:
      'Evaluate each checkpoint that is the best so far by checkpoint.keep_best, or the last one once the job has succeeded.',
  }),
  resources: field('resources', ownResources, {
    default: resources.read({}, {}),
    about: 'Resources of each evaluation, as those of a job. Default: one node, no GPU.',
  }),
  priority: optional('priority', wholeNumber(0, 99), {
    about: 'Priority of each evaluation, lower than that of the job. Default: 10 less than that of the job.',
  }),
  timeoutMs: field('timeout', duration(secondMs, 30 * dayMs), {
    default: hourMs,
    about: 'Longest time one evaluation may run.',
  }),
  metric: optional('metric', mapping(metricFields, 'a mapping such as {name: eval_loss, goal: min}'), {
    about: 'What each evaluation must print. The best checkpoint by it is never deleted by keep_last.',
  }),
};
