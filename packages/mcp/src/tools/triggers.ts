/** Triggers: what starts runs of a pipeline by itself. */

import { MusterError } from '@muster/common/errors';
import {
  fireOutcomes,
  missedPolicies,
  overlapPolicies,
  type TriggerFireView,
  type TriggerView,
  triggerKinds,
  triggerNameForm,
  triggerNamePattern,
} from '@muster/common/triggers';
import * as z from 'zod';
import { cursor, dryRun, limitOf, nextCursor, requestId } from '../parameters.ts';
import { brief, isoTime, pageFrom } from '../size.ts';
import { tool } from '../tool.ts';
import { pipelineFile, pipelineParams } from './pipelines.ts';

const name = z.string().regex(triggerNamePattern, `expected ${triggerNameForm}`);

const fireRow = z.object({
  at: z.string(),
  cause: z.string(),
  outcome: z.enum(fireOutcomes),
  runId: z.string().nullable(),
  reason: z.string().nullable(),
});

function fireRowOf({ atMs, cause, outcome, run, reason }: TriggerFireView): z.input<typeof fireRow> {
  return { at: isoTime(atMs), cause: brief(cause, 200), outcome, runId: run, reason: brief(reason, 200) };
}

const triggerRow = z.object({
  name: z.string(),
  kind: z.enum(triggerKinds),
  pipeline: z.string(),
  when: z.string().describe('the times, the condition or the directory'),
  overlap: z.enum(overlapPolicies),
  paused: z.boolean(),
  blocked: z
    .object({ cause: z.string(), remedy: z.string(), since: z.string() })
    .nullable()
    .describe('why its directory cannot be listed, so that new data starts no run'),
  nextAt: z.string().nullable().describe('of one by times; null: never again, or of another kind'),
  running: z.array(z.string()).describe('ids of its runs that have not ended, newest first, as many as 5'),
  queued: z.number().describe('fires that wait for them'),
  fires: z.array(fireRow).describe('what has become of the newest 3, newest first'),
  project: z.string(),
  user: z.string(),
});

const runsShownMax = 5;
const firesShownMax = 3;

function triggerRowOf(trigger: TriggerView): z.input<typeof triggerRow> {
  const { kind, pipeline, overlap, paused, blocked, nextAtMs, running, queued, fires, project, user } =
    trigger;
  return {
    name: trigger.name,
    kind,
    pipeline,
    when: whenOf(trigger),
    overlap,
    paused,
    blocked:
      blocked === null
        ? null
        : {
            cause: brief(blocked.cause, 400),
            remedy: brief(blocked.remedy, 400),
            since: isoTime(blocked.sinceMs),
          },
    nextAt: isoTime(nextAtMs),
    running: running.slice(0, runsShownMax),
    queued,
    fires: fires.slice(0, firesShownMax).map(fireRowOf),
    project,
    user,
  };
}

function whenOf({ cron, timeZone, condition, directory }: TriggerView): string {
  const words = cron === null ? (condition ?? directory ?? 'deliveries') : `${cron} (${timeZone})`;
  return brief(words, 400);
}

export const triggerCreate = tool({
  name: 'trigger_create',
  title: 'Create a trigger of a pipeline',
  about:
    'Starts runs of a pipeline by itself, as you: at times (cron), after events (condition), by deliveries of others (webhook), or when the ' +
    'files of a directory have changed. Give one of the four. It keeps the file as it is now: to change it, delete and create it again. ' +
    'Created again with the same definition, it changes nothing.',
  verb: 'submit',
  effect: 'change',
  idempotent: true,
  input: z.strictObject({
    name,
    pipeline: pipelineFile,
    parameters: pipelineParams.describe(
      'values for each run; $' +
        '{trigger.time} and other values of the fire may stand in them (docs/pipelines.md)',
    ),
    cron: z.string().max(200).optional().describe('five fields: "0 3 * * 1-5"'),
    timeZone: z.string().max(64).optional().describe('of the IANA database; default: UTC'),
    missed: z
      .enum(missedPolicies)
      .optional()
      .describe('what becomes of times at which the coordinator did not run; default: run_once'),
    condition: z
      .string()
      .max(2_000)
      .optional()
      .describe("in CEL, over events: kind == 'job.succeeded' && job == 'train'"),
    webhook: z
      .boolean()
      .optional()
      .describe('deliveries are signed with the secret of the answer, shown once'),
    directory: z.string().max(4_096).optional().describe("on the coordinator's machine; absolute"),
    overlap: z
      .enum(overlapPolicies)
      .optional()
      .describe('while a run of it has not ended; default: skip, and queue of a directory'),
    noCache: z.boolean().default(false).describe('its runs take no step from an earlier run'),
    dryRun,
  }),
  output: z.object({
    dryRun: z.boolean(),
    trigger: triggerRow,
    secret: z.string().nullable().describe('of a webhook, once. Keep it out of files and output'),
  }),
  async run({ pipeline, parameters, ...given }, { api }) {
    const wish = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    const trigger = await api.createTrigger({
      ...wish,
      name: given.name,
      specJson: JSON.stringify(pipeline),
      paramsJson: JSON.stringify(parameters),
    });
    const row = triggerRowOf(trigger);
    const next = row.nextAt === null ? '' : ` It fires next at ${row.nextAt}.`;
    const what = given.dryRun ? 'Dry run, nothing was set.' : `Trigger ${trigger.name} is set.`;
    return { data: { dryRun: given.dryRun, trigger: row, secret: trigger.secret }, text: `${what}${next}` };
  },
});

export const triggerList = tool({
  name: 'trigger_list',
  title: 'List triggers of pipelines',
  about:
    'Triggers that you may see, by name: when they fire next, and what has become of their newest fires.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({ limit: limitOf(50, 20), cursor }),
  output: z.object({ triggers: z.array(triggerRow), nextCursor }),
  async run(given, { api }) {
    const triggers = await api.listTriggers();
    const { page, nextCursor: next } = pageFrom(triggers.map(triggerRowOf), given);
    return {
      data: { triggers: [...page], nextCursor: next },
      text: `${page.length} of ${triggers.length} triggers${next === null ? '' : '; pass nextCursor for more'}.`,
    };
  },
});

export const triggerRun = tool({
  name: 'trigger_run',
  title: 'Fire a trigger now',
  about:
    'Starts a run as the trigger would, whatever it waits for. While a run of it has not ended, its overlap policy decides: the answer says ' +
    'whether the run has started, waits, or was skipped. With a requestId a repeated call fires once. Follow the run with pipeline_get.',
  verb: 'submit',
  effect: 'change',
  idempotent: false,
  input: z.strictObject({
    name,
    parameters: pipelineParams.describe(
      'in the place of those that the trigger has, such as what only a delivery or an event has',
    ),
    requestId,
    dryRun,
  }),
  output: z.object({
    dryRun: z.boolean(),
    fire: fireRow.nullable().describe('null: a dry run'),
    running: z.array(z.string()).describe('of a dry run: ids of its runs that have not ended, as many as 5'),
  }),
  async run(given, { api, newRequestId }) {
    if (given.dryRun) {
      const { pipeline, overlap, paused, running } = await api.getTrigger(given.name);
      if (paused)
        throw new MusterError(
          'failed_precondition',
          `${given.name} is paused; resume it, then it can be fired`,
        );
      const first = running.length === 0 ? '' : ` ${running.length} of them have not ended: ${overlap}.`;
      return {
        data: { dryRun: true, fire: null, running: running.slice(0, runsShownMax) },
        text: `Dry run, nothing was fired. It starts runs of ${pipeline}.${first}`,
      };
    }
    const fire = await api.runTrigger({
      name: given.name,
      paramsJson: JSON.stringify(given.parameters),
      requestId: given.requestId ?? newRequestId(),
    });
    const { outcome, run } = fire;
    const why = fire.reason === null ? '' : `: ${brief(fire.reason, 200)}`;
    const text = run === null ? `No run has started, ${outcome}${why}.` : `Started ${run}.`;
    return { data: { dryRun: false, fire: fireRowOf(fire), running: [] }, text };
  },
});

export const triggerDelete = tool({
  name: 'trigger_delete',
  title: 'Delete a trigger of a pipeline',
  about: 'It starts nothing more, and what waits is not started; its runs continue.',
  verb: 'change',
  effect: 'destroy',
  idempotent: true,
  input: z.strictObject({ name, dryRun }),
  output: z.object({ dryRun: z.boolean(), trigger: triggerRow.describe('what was deleted, or would be') }),
  async run(given, { api }) {
    const trigger = await (given.dryRun ? api.getTrigger(given.name) : api.deleteTrigger(given.name));
    const text = given.dryRun ? 'Dry run, nothing was deleted.' : `Trigger ${trigger.name} is deleted.`;
    return { data: { dryRun: given.dryRun, trigger: triggerRowOf(trigger) }, text };
  },
});
