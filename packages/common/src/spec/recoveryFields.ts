/** The settings about failures and checkpoints: a part of the table in `fields.ts`. */
import { verificationDepths } from '../checkpoints.ts';
import { trainingMetricNames } from '../training.ts';
import { defaultRetryCauses } from './causes.ts';
import { absolutePath } from './forms.ts';
import {
  choice,
  dayMs,
  duration,
  field,
  mapping,
  number,
  optional,
  required,
  section,
  text,
  wholeNumber,
} from './kinds.ts';
import { backoff, retryCauses } from './structures.ts';

const scale = number([0, 1], 'a number more than 0 and at most 1, such as 0.5', { isAboveMin: true });

/** After this number of consecutive failures without progress: a pause before each further retry. */
const breakerFields = {
  failures: field('failures', wholeNumber(1, 100), { default: 3, about: 'Consecutive failures.' }),
  pauseMs: field('pause', duration(0, dayMs), { default: 120_000, about: 'Pause before the next retry.' }),
};

export const retryFields = {
  /** Failures since the last progress, which is a newer verified checkpoint. */
  maxAttempts: field('max_attempts', wholeNumber(1, 100), {
    default: 5,
    isAlwaysWritten: true,
    about:
      'Attempts that may fail, the first included; 1 means no retry. A newer verified checkpoint resets the count.',
    flag: '--max-attempts <count>',
    help: 'failures without a newer checkpoint; 1: no retry',
    aliases: ['retries'],
  }),
  /** After them it can no longer be preempted. null: any number of times. */
  maxPreemptions: optional('max_preemptions', wholeNumber(0, 1_000), {
    about: 'How often it can be preempted. Default: unlimited.',
    flag: '--max-preemptions <count>',
  }),
  batchScale: field('batch_scale', scale, {
    default: 0.5,
    about: 'Factor for MUSTER_BATCH_SCALE after each cuda_oom.',
  }),
  /** null: 1. */
  batchMin: optional('batch_min', wholeNumber(1, 1_000_000_000), {
    about:
      'The least batch size, as {batch_size} in the command, that a retry after cuda_oom may have. The job fails where the next would be smaller. Default: 1.',
  }),
  lrScale: field('lr_scale', scale, {
    default: 0.1,
    about: 'Factor for MUSTER_LR_SCALE after each divergence.',
  }),
  breaker: section('breaker', breakerFields, 'a mapping such as {failures: 3, pause: 120s}', {
    about:
      'After a number of consecutive failures without a newer checkpoint: a pause before each further retry.',
  }),
  backoff: field('backoff', backoff, {
    default: backoff.read({}, {}),
    isAlwaysWritten: true,
    about: 'How long to wait before the next attempt.',
  }),
  on: field('on', retryCauses, {
    default: defaultRetryCauses,
    isAlwaysWritten: true,
    about:
      'Causes to retry on. Default: those outside the program, artifact_store and container_engine included, and those for which Muster has a treatment.',
  }),
};

const keepBestFields = {
  metric: required(
    'metric',
    choice(trainingMetricNames, { form: `one of ${trainingMetricNames.join(', ')}` }),
    {
      about: 'The metric to compare by.',
    },
  ),
  mode: field('mode', choice(['min', 'max']), {
    default: 'min',
    isAlwaysWritten: true,
    about: 'Which is best.',
  }),
};

export const checkpointFields = {
  /** Absolute. null: the node's own for a process, none for a container. */
  dir: optional('dir', absolutePath('/checkpoints/llama'), {
    about:
      'Directory the job saves to, as the job sees it. Default: for a process one that its node keeps for the job, for a container none.',
    flag: '--checkpoint-dir <dir>',
    help: 'directory the job saves to',
  }),
  /** null: one of the usual ones. */
  pattern: optional(
    'pattern',
    text(/^(?!\.{1,2}$)[^/\0]{1,255}$/, 'a name without "/" such as run-{step}.bin or save_*'),
    {
      about:
        'Name pattern of the checkpoints, if it is not one of the usual ones; {step} is the step, * anything else.',
      flag: '--checkpoint-pattern <pattern>',
      help: 'name pattern of its checkpoints, such as run-{step}.bin',
    },
  ),
  verify: field('verify', choice(verificationDepths), {
    default: 'quick',
    about: 'How each one is verified: headers, sizes and shards (quick), or every byte (deep).',
  }),
  /** How many of the newest to keep. null, with no other rule: all are kept. */
  keepLast: optional('keep_last', wholeNumber(1, 1000), {
    about: 'Keep only the newest COUNT. Default, with no other keep rule: all are kept.',
    flag: '--keep-last <count>',
    help: 'keep only the newest COUNT checkpoints',
  }),
  keepEvery: optional('keep_every', wholeNumber(1, 1_000_000_000), {
    about: 'Also keep one every N steps. Needs keep_last.',
  }),
  keepBest: optional(
    'keep_best',
    mapping(keepBestFields, 'a mapping such as {metric: eval_loss, mode: min}'),
    {
      about: 'Also keep the best one by a metric. Needs keep_last.',
    },
  ),
};
