/** Stops workloads, runs them again, and gives them more time. */

import type { ResumeChoice } from '@muster/common/checkpoints';
import { MusterError } from '@muster/common/errors';
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import * as z from 'zod';
import { dryRun, idsMax, requestId, workloadId } from '../parameters.ts';
import { firstFitting } from '../size.ts';
import { tool } from '../tool.ts';
import { settingsOf, workloadRow, workloadRowOf } from '../workloads.ts';

export const workloadStop = tool({
  name: 'workload_stop',
  title: 'Stop workloads',
  about:
    'Stops workloads for good, each with its stop_grace to save a checkpoint. What has ended stays as it is. workload_requeue runs one again.',
  verb: 'change',
  effect: 'destroy',
  idempotent: true,
  input: z.strictObject({
    workloadIds: z
      .array(workloadId)
      .min(1)
      .max(idsMax)
      .optional()
      .describe('several of them; else workloadId'),
    workloadId: workloadId.optional(),
    reason: z.string().max(1_000).default('').describe('shown with the workload'),
    dryRun,
  }),
  output: z.object({
    dryRun: z.boolean(),
    workloads: z.array(workloadRow),
    total: z.number().describe('how many were told to stop, or would be'),
  }),
  async run(given, { api }) {
    const ids = idsOf(given);
    if (given.dryRun) {
      const jobs = await Promise.all(ids.map((id) => api.getJob(id)));
      const active = jobs.filter(({ state }) => !isTerminal(state));
      const data = {
        dryRun: true,
        workloads: [...firstFitting(active.map(workloadRowOf))],
        total: active.length,
      };
      return { data, text: `Dry run, nothing was stopped. ${active.length} of ${ids.length} would be.` };
    }
    const { jobs, total } = await api.stopJobs(ids, given.reason, true);
    const data = { dryRun: false, workloads: [...firstFitting(jobs.map(workloadRowOf))], total };
    return { data, text: `${total} told to stop. Each is stopping until its processes have ended.` };
  },
});

function idsOf(given: {
  readonly workloadId?: string | undefined;
  readonly workloadIds?: readonly string[] | undefined;
}): readonly string[] {
  const ids = [...(given.workloadIds ?? []), ...(given.workloadId === undefined ? [] : [given.workloadId])];
  if (ids.length > 0) return ids;
  throw new MusterError('invalid', 'workloadId: missing; name a workload, or several in workloadIds');
}

export const workloadRequeue = tool({
  name: 'workload_requeue',
  title: 'Run a workload again',
  about:
    'Puts a workload back into the queue: it continues from its newest verified checkpoint, from the one of fromStep, or from scratch. ' +
    'One that has ended runs as a new workload. One that runs is stopped first, which needs force.',
  verb: 'change',
  effect: 'destroy',
  idempotent: false,
  input: z.strictObject({
    workloadId,
    fromStep: z
      .int()
      .min(0)
      .optional()
      .describe('continue from the newest checkpoint at or before this step'),
    fromStart: z.boolean().default(false).describe('begin from scratch'),
    force: z.boolean().default(false).describe('also if it runs: its attempt is stopped, with time to save'),
    requestId,
    dryRun,
  }),
  output: z.object({
    dryRun: z.boolean(),
    workloadId: z.string().describe('the workload that runs now; another one if this one had ended'),
    newWorkload: z.boolean(),
    resumesFrom: z.string().nullable().describe('checkpoint known now; null: from scratch'),
  }),
  async run(given, { api, newRequestId }) {
    if (given.fromStart && given.fromStep !== undefined)
      throw new MusterError('invalid', 'fromStart excludes fromStep: give one of them');
    const job = await api.getJob(given.workloadId);
    const from = choiceOf(given);
    const resumesFrom = checkpointFor(job, from);
    if (given.dryRun) {
      const isActive = job.state === 'running' || job.state === 'starting';
      if (isActive && !given.force)
        throw new MusterError(
          'failed_precondition',
          `${job.id} is ${job.state}; requeueing it stops its attempt: add force`,
        );
      const data = { dryRun: true, workloadId: job.id, newWorkload: isTerminal(job.state), resumesFrom };
      return {
        data,
        text: `Dry run, nothing was changed. It would continue from ${resumesFrom ?? 'scratch'}.`,
      };
    }
    const requested = given.requestId ?? newRequestId();
    const { jobId, newJob } = await api.requeueJob(job.id, requested, from, null, given.force);
    const data = { dryRun: false, workloadId: jobId, newWorkload: newJob, resumesFrom };
    const which = newJob ? `${jobId} is queued in place of ${job.id}` : `${jobId} is queued again`;
    return { data, text: `${which}; it continues from ${resumesFrom ?? 'scratch'}.` };
  },
});

function choiceOf(given: {
  readonly fromStep?: number | undefined;
  readonly fromStart: boolean;
}): ResumeChoice {
  if (given.fromStep !== undefined) return { kind: 'step', step: given.fromStep };
  return { kind: given.fromStart ? 'start' : 'newest' };
}

/** As far as is known now: the coordinator chooses when it places the next attempt. */
function checkpointFor(job: JobView, from: ResumeChoice): string | null {
  if (from.kind === 'start') return null;
  const good = job.checkpoints.filter(
    ({ verdict, suspect, step }) =>
      verdict === 'verified' && !suspect && (from.kind !== 'step' || (step !== null && step <= from.step)),
  );
  return good.at(-1)?.name ?? null;
}

export const workloadExtend = tool({
  name: 'workload_extend',
  title: 'Give a workload more time',
  about:
    'Adds to the maxRuntimeSeconds of a workload, for its running attempt and later ones. With a requestId a repeated call adds once.',
  verb: 'change',
  effect: 'change',
  idempotent: false,
  input: z.strictObject({
    workloadId,
    seconds: z
      .int()
      .min(1)
      .max(365 * 86_400)
      .describe('how much longer'),
    requestId,
    dryRun,
  }),
  output: z.object({
    dryRun: z.boolean(),
    workloadId: z.string(),
    maxRuntimeSeconds: z.number().describe('of each attempt, with the extension'),
  }),
  async run(given, { api, newRequestId }) {
    const before = await api.getJob(given.workloadId);
    const requested = given.requestId ?? newRequestId();
    const job = given.dryRun ? before : await api.extendJob(before.id, given.seconds * 1000, requested);
    const { maxRuntimeMs } = settingsOf(job);
    if (maxRuntimeMs === null || (given.dryRun && isTerminal(job.state)))
      throw new MusterError(
        'failed_precondition',
        `${job.id} ${maxRuntimeMs === null ? 'has no limit of its runtime' : `has ${job.state}`}: there is nothing to extend`,
      );
    const addedMs = given.dryRun ? given.seconds * 1000 : 0;
    const seconds = (maxRuntimeMs + job.extraRuntimeMs + addedMs) / 1000;
    const data = { dryRun: given.dryRun, workloadId: job.id, maxRuntimeSeconds: seconds };
    const dry = given.dryRun ? 'Dry run, nothing was changed. ' : '';
    return { data, text: `${dry}Each attempt of ${job.id} may run for ${seconds} s.` };
  },
});
