/** The checkpoints of a workload. */
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
