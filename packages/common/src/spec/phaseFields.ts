/** The settings about the phases of a curriculum: a part of the table in `fields.ts`. */
import { conditionLengthMax } from '../alerts.ts';
import { parameterPairs } from './forms.ts';
import { choice, field, mapping, optional, required, type SpecOf, text, wholeNumber } from './kinds.ts';

/** Far above any training, and far below where numbers are no longer exact. */
const targetMax = 1_000_000_000_000_000;
const extensionsMax = 1_000;

const extensionFields = {
  steps: optional('steps', wholeNumber(1, targetMax), { about: 'Steps that each extension adds.' }),
  tokens: optional('tokens', wholeNumber(1, targetMax), { about: 'Tokens that each extension adds.' }),
  max: field('max', wholeNumber(1, extensionsMax), {
    default: 1,
    about: 'The largest number of extensions of the phase.',
  }),
  finally: field('finally', choice(['continue', 'stop']), {
    default: 'stop',
    about: 'What follows when the last extension has not met the criterion either.',
  }),
};

const conditionForm = `a condition in CEL of at most ${conditionLengthMax} characters, such as eval_loss < 2.9`;

export const phaseFields = {
  name: required(
    'name',
    text(
      /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
      'a name of 1 to 63 letters, digits, ".", "_" or "-"',
    ),
    { about: 'Name of the phase, shown everywhere. MUSTER_PHASE and {phase} in the command.' },
  ),
  steps: optional('steps', wholeNumber(1, targetMax), {
    about: 'How many steps the phase has, counted from its beginning. Either this or tokens.',
  }),
  tokens: optional('tokens', wholeNumber(1, targetMax), {
    about: 'How many tokens the phase has, counted from its beginning. Either this or steps.',
  }),
  params: field('params', parameterPairs, {
    default: {},
    about:
      'Values of {name} in command and args while the phase runs, such as the data mix and the learning rate. They override params.',
  }),
  success: optional(
    'success',
    text(/\S/, conditionForm, { lengthMax: [conditionLengthMax, conditionForm] }),
    {
      about:
        'Condition in CEL on the newest metrics of the phase, such as eval_loss < 2.9; on evaluate.metric as measured at its end. ' +
        'What is unknown never meets it.',
    },
  ),
  unmet: field(
    'unmet',
    choice(['extend', 'continue', 'stop'], {
      meant: {
        extend: ['repeat', 'retry', 'more'],
        continue: ['next', 'goon', 'ignore'],
        stop: ['fail', 'end'],
      },
    }),
    {
      default: ({ extend }) => (extend === undefined ? 'stop' : 'extend'),
      about:
        'What follows when success is not met: extend the phase, continue with the next, or stop: the job fails with phase_unmet.',
    },
  ),
  extend: optional('extend', mapping(extensionFields, 'a mapping such as {steps: 200, max: 3}'), {
    about: 'By how much the phase is extended, and how often. Default for unmet is then extend.',
  }),
};

export type PhaseSpec = SpecOf<typeof phaseFields>;

/** How many phases a job can have. */
export const phasesMax = 64;
