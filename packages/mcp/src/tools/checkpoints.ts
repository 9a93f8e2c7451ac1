/** The checkpoints of a workload. */
import type { Checkpoint } from '@muster/common/checkpoints';
import * as z from 'zod';
import { cursor, limitOf, nextCursor, workloadId } from '../parameters.ts';
import { brief, isoTime, pageFrom } from '../size.ts';
import { tool } from '../tool.ts';

export const checkpointList = tool({
  name: 'checkpoint_list',
  title: 'List checkpoints',
  about:
    'Checkpoints of a workload, newest first, each with its step, whether it was verified, and the metrics around it.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({ workloadId, limit: limitOf(64, 20), cursor }),
  output: z.object({
    workloadId: z.string(),
    checkpoints: z.array(
      z.object({
        name: z.string(),
        step: z.number().nullable(),
        verdict: z.string().describe('verified, corrupt, unverified or gone'),
        problem: z.string().nullable(),
        usable: z.boolean().describe('a requeue would choose it'),
        bytes: z.number(),
        format: z.string(),
        savedAt: z.string(),
        attempt: z.number(),
        node: z.string(),
        metrics: z.record(z.string(), z.number()),
        evaluation: z
          .object({
            state: z.string().describe('waiting, running, complete or failed'),
            workloadId: z.string().nullable().describe('the job that evaluates it'),
            metrics: z.record(z.string(), z.number()),
            cause: z.string().nullable(),
            best: z.boolean().describe('the best of all evaluations of the workload'),
          })
          .nullable()
          .describe('what an evaluation of it has found out; null: it is not evaluated'),
      }),
    ),
    nextCursor,
  }),
  async run(given, { api }) {
    const job = await api.getJob(given.workloadId);
    const newestFirst = [...job.checkpoints].reverse().map((each) => ({
      name: brief(each.name, 150),
      step: each.step,
      verdict: each.verdict,
      problem: brief(each.problem, 150),
      usable: each.verdict === 'verified' && !each.suspect,
      bytes: each.bytes,
      format: each.format,
      savedAt: isoTime(each.savedAtMs),
      attempt: each.attempt,
      node: each.node,
      metrics: { ...each.metrics },
      evaluation: evaluationOf(each),
    }));
    const { page, nextCursor: next } = pageFrom(newestFirst, given);
    const usable = newestFirst.find((each) => each.usable);
    const text =
      usable === undefined
        ? `${job.id} has ${newestFirst.length} checkpoints, and none to resume from.`
        : `${job.id} has ${newestFirst.length} checkpoints; it would resume from ${usable.name}.`;
    return { data: { workloadId: job.id, checkpoints: [...page], nextCursor: next }, text };
  },
});

function evaluationOf({ evaluation }: Checkpoint) {
  if (evaluation === undefined) return null;
  const { state, jobId, metrics, cause, best } = evaluation;
  return { state, workloadId: jobId, metrics: { ...metrics }, cause, best };
}
