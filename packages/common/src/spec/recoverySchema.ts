/** The part of the job file that is about failures, checkpoints and hangs. */
import * as z from 'zod';
import { verificationDepths } from '../checkpoints.ts';
import { trainingMetrics } from '../training.ts';
import { retryableCauses } from './causes.ts';
import { bestModes, hangActions } from './choices.ts';
import { jobSpecDefaults as defaults } from './defaults.ts';
import { formatDuration } from './duration.ts';
import { absolutePath, dayMs, duration, patterned, secondMs, wholeNumber } from './fields.ts';

const retryableCause = z.enum(retryableCauses, {
  error: ({ input }) => {
    if (input === 'cancelled') return 'to omit it: a cancelled job is not retried';
    if (input === 'preempted') return 'to omit it: a preempted job returns to the queue automatically';
    return `one of ${retryableCauses.join(', ')}`;
  },
});

export const backoffShape = {
  initial: duration(0, dayMs)
    .optional()
    .describe('Wait before the second attempt; doubles with each further one.')
    .meta({ default: formatDuration(defaults.backoffInitialMs) }),
  max: duration(0, dayMs)
    .optional()
    .describe('Longest wait between two attempts.')
    .meta({ default: formatDuration(defaults.backoffMaxMs) }),
};

const ratioForm = 'a number more than 0 and at most 1, such as 0.5';
const ratio = () => z.number({ error: ratioForm }).gt(0, { error: ratioForm }).max(1, { error: ratioForm });

export const breakerShape = {
  failures: wholeNumber(1, 100)
    .optional()
    .describe('Consecutive failures.')
    .meta({ default: defaults.breakerFailures }),
  pause: duration(0, dayMs)
    .optional()
    .describe('Pause before the next retry.')
    .meta({ default: formatDuration(defaults.breakerPauseMs) }),
};

export const retryShape = {
  max_attempts: wholeNumber(1, 100)
    .optional()
    .describe(
      'Attempts that may fail, the first included; 1 means no retry. A newer verified checkpoint resets the count.',
    )
    .meta({ default: defaults.maxAttempts }),
  max_preemptions: wholeNumber(0, 1_000)
    .optional()
    .describe('How often it can be preempted. Default: unlimited.'),
  batch_scale: ratio()
    .optional()
    .describe('Factor for MUSTER_BATCH_SCALE after each cuda_oom.')
    .meta({ default: defaults.batchScale }),
  lr_scale: ratio()
    .optional()
    .describe('Factor for MUSTER_LR_SCALE after each divergence.')
    .meta({ default: defaults.lrScale }),
  breaker: z
    .strictObject(breakerShape, { error: 'a mapping such as {failures: 3, pause: 120s}' })
    .optional()
    .describe(
      'After a number of consecutive failures without a newer checkpoint: a pause before each further retry.',
    ),
  backoff: z
    .strictObject(backoffShape, { error: 'a mapping such as {initial: 2s, max: 60s}' })
    .optional()
    .describe('How long to wait before the next attempt.'),
  on: z
    .array(retryableCause, { error: 'a list of causes, such as [node_lost, nccl_timeout]' })
    .optional()
    .describe(
      'Causes to retry on. Default: those outside the program, and those for which Muster has a treatment.',
    )
    .meta({ default: [...defaults.retryOn] }),
};

const checkpointPatternForm = 'a name without "/" such as run-{step}.bin or save_*';
const checkpointPattern = /^(?!\.{1,2}$)[^/\0]{1,255}$/;

export const keepBestShape = {
  metric: z
    .enum(Object.keys(trainingMetrics) as [keyof typeof trainingMetrics], {
      error: `one of ${Object.keys(trainingMetrics).join(', ')}`,
    })
    .describe('The metric to compare by.'),
  mode: z
    .enum(bestModes, { error: 'min or max' })
    .optional()
    .describe('Which is best.')
    .meta({ default: 'min' }),
};

export const checkpointShape = {
  dir: absolutePath('/checkpoints/llama')
    .optional()
    .describe(
      'Directory the job saves to, as the job sees it. Default: for a process one that its node keeps for the job, for a container none.',
    ),
  pattern: patterned(checkpointPattern, checkpointPatternForm)
    .optional()
    .describe(
      'Name pattern of the checkpoints, if it is not one of the usual ones; {step} is the step, * anything else.',
    ),
  verify: z
    .enum(verificationDepths, { error: 'quick or deep' })
    .optional()
    .describe('How each one is verified: headers, sizes and shards (quick), or every byte (deep).')
    .meta({ default: defaults.verify }),
  keep_last: wholeNumber(1, 1000)
    .optional()
    .describe('Keep only the newest COUNT. Default, with no other keep rule: all are kept.'),
  keep_every: wholeNumber(1, 1_000_000_000)
    .optional()
    .describe('Also keep one every N steps. Needs keep_last.'),
  keep_best: z
    .strictObject(keepBestShape, { error: 'a mapping such as {metric: eval_loss, mode: min}' })
    .optional()
    .describe('Also keep the best one by a metric. Needs keep_last.'),
};

export const hangForm = 'warn, restart, or a mapping such as {action: restart, times: 10, at_least: 5m}';
export const hangShape = {
  action: z.enum(hangActions, { error: 'warn or restart' }).describe('What to do about a hang.'),
  times: wholeNumber(2, 1_000)
    .optional()
    .describe('No activity for this many times the usual interval.')
    .meta({ default: defaults.hangTimes }),
  at_least: duration(secondMs, dayMs)
    .optional()
    .describe('And at least for this long.')
    .meta({ default: formatDuration(defaults.hangAtLeastMs) }),
};
