/** What workloads there are, and what is known of one. */
import * as z from 'zod';
import { cursor, limitOf, nextCursor, timeText, workloadId } from '../parameters.ts';
import { cursorPosition, firstFitting } from '../size.ts';
import { momentOf } from '../times.ts';
import { tool } from '../tool.ts';
import {
  detailOf,
  workloadDetail,
  workloadRow,
  workloadRowOf,
  workloadSentence,
  workloadState,
} from '../workloads.ts';

export const workloadGet = tool({
  name: 'workload_get',
  title: 'Show a workload',
  about:
    'State of a workload, why it waits or has ended, its newest attempt, progress of the training and newest checkpoint.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({ workloadId }),
  output: workloadDetail,
  async run(given, { api, nowMs }) {
    const job = await api.getJob(given.workloadId);
    return { data: detailOf(job, nowMs()), text: workloadSentence(job) };
  },
});

export const workloadList = tool({
  name: 'workload_list',
  title: 'List workloads',
  about: 'Workloads that you may see, newest first. Narrow it by state, label, project, user or name.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    states: z.array(workloadState).max(7).default([]).describe('only these states; default: all'),
    name: z.string().max(64).optional(),
    label: z.string().max(200).optional().describe('NAME or NAME=VALUE'),
    project: z.string().max(64).optional(),
    user: z.string().max(64).optional(),
    since: timeText.optional().describe('only those submitted since: -2h, or an ISO 8601 moment'),
    limit: limitOf(50, 20),
    cursor,
  }),
  output: z.object({ workloads: z.array(workloadRow), nextCursor }),
  async run(given, { api, nowMs }) {
    const { states, name, label, project, user, since, limit } = given;
    const before = cursorPosition(given.cursor);
    const { jobs, more } = await api.listJobs({
      states,
      limit,
      brief: true,
      ...(name === undefined ? {} : { name }),
      ...(label === undefined ? {} : { label }),
      ...(project === undefined ? {} : { project }),
      ...(user === undefined ? {} : { user }),
      ...(since === undefined ? {} : { sinceMs: Math.max(0, Math.floor(momentOf('since', since, nowMs()))) }),
      ...(before === 0 ? {} : { beforeSubmitSeq: before }),
    });
    const workloads = firstFitting(jobs.map(workloadRowOf));
    const last = jobs[workloads.length - 1];
    const hasMore = more || workloads.length < jobs.length;
    const data = {
      workloads: [...workloads],
      nextCursor: hasMore && last !== undefined ? String(last.submitSeq) : null,
    };
    return {
      data,
      text: `${workloads.length} workloads${hasMore ? ', and there are more: pass nextCursor' : ''}.`,
    };
  },
});
