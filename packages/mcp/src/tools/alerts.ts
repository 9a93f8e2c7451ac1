/** Alerts: what people are notified of. */
import {
  type AlertScope,
  type AlertView,
  alertKinds,
  alertMessageLengthMax,
  alertNameForm,
  alertNamePattern,
  alertSeverities,
  conditionLengthMax,
} from '@muster/common/alerts';
import { MusterError } from '@muster/common/errors';
import * as z from 'zod';
import { cursor, dryRun, limitOf, nextCursor, workloadId } from '../parameters.ts';
import { brief, briefEntries, isoTime, pageFrom } from '../size.ts';
import { tool } from '../tool.ts';

const name = z.string().regex(alertNamePattern, `expected ${alertNameForm}`);

const alertRow = z.object({
  name: z.string(),
  severity: z.string(),
  condition: z.string(),
  message: z.string(),
  labels: z.record(z.string(), z.string()),
  forSeconds: z.number(),
  scope: z.string().describe('what it looks at'),
  owner: z.string().nullable().describe('null: it is built in'),
  silencedUntil: z.string().nullable(),
  firing: z.array(z.object({ subject: z.string(), message: z.string(), since: z.string() })),
  firingNotShown: z.number(),
});

const firingShownMax = 5;
const forSecondsMax = 30 * 86_400;

function alertRowOf(alert: AlertView): z.input<typeof alertRow> {
  const { firing, silence } = alert;
  return {
    name: alert.name,
    severity: alert.severity,
    condition: brief(alert.condition),
    message: brief(alert.message, 200),
    labels: briefEntries(alert.labels, 400),
    forSeconds: alert.forMs / 1000,
    scope: scopeText(alert.scope),
    owner: alert.owner,
    silencedUntil: silence === null ? null : isoTime(silence.untilMs),
    firing: firing.slice(0, firingShownMax).map((episode) => ({
      subject: brief(episode.subject, 128),
      message: brief(episode.message, 160),
      since: isoTime(episode.firedAtMs),
    })),
    firingNotShown: Math.max(0, firing.length - firingShownMax),
  };
}

function scopeText({ kind, jobId, project, labels, nodes }: AlertScope): string {
  if (jobId !== null) return jobId;
  const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  const narrowed = [...(project === null ? [] : [`project ${project}`]), ...pairs, ...nodes];
  const what = { job: 'every workload', node: 'every node', cluster: 'the cluster' }[kind];
  return brief(narrowed.length === 0 ? what : narrowed.join(', '), 200);
}

export const alertCreate = tool({
  name: 'alert_create',
  title: 'Create an alert',
  about:
    'Notifies people, through the sinks of the cluster, when a condition in CEL becomes true: ' +
    "workload_state == 'failed'; gpu_utilization < 20 && running_for > duration('10m'); checkpoint_age > duration('2h'). " +
    'A wrong condition is refused with the column and what was probably meant. Without a scope it looks at every workload that you may ' +
    'change.',
  verb: 'change',
  effect: 'change',
  idempotent: true,
  input: z.strictObject({
    name,
    condition: z.string().min(1).max(conditionLengthMax).describe('in CEL (docs/alerts.md)'),
    severity: z.enum(alertSeverities).optional().describe('default: warning'),
    message: z.string().max(alertMessageLengthMax).optional().describe('with names of values in braces'),
    labels: z
      .record(z.string(), z.string().max(200))
      .optional()
      .describe('for those who route notifications'),
    forSeconds: z
      .int()
      .min(0)
      .max(forSecondsMax)
      .optional()
      .describe('the condition must hold so long; default: 0'),
    repeatSeconds: z.int().min(60).max(forSecondsMax).optional().describe('notify again; default: once'),
    kind: z.enum(alertKinds).optional().describe('what it looks at; default: by the names in the condition'),
    workloadId: workloadId.optional().describe('only this workload'),
    workloadLabels: z
      .record(z.string(), z.string().max(200))
      .optional()
      .describe('only workloads with these'),
    project: z.string().max(64).optional(),
    nodes: z.array(z.string().max(128)).max(100).optional().describe('only these nodes'),
    dryRun,
  }),
  output: z.object({
    dryRun: z.boolean(),
    alert: alertRow.describe(
      'what was set, or would be; of a dry run it fires for what its condition holds for now',
    ),
    holdsFor: z
      .number()
      .nullable()
      .describe('of a dry run: for how many workloads or nodes the condition holds now'),
  }),
  async run(given, { api }) {
    const { severity, message, labels, forSeconds, repeatSeconds, dryRun: isTrial } = given;
    const scope = scopeOfAlert(given);
    const alert = await api.createAlert({
      name: given.name,
      condition: given.condition,
      ...(severity === undefined ? {} : { severity }),
      ...(message === undefined ? {} : { message }),
      ...(labels === undefined ? {} : { labels }),
      ...(forSeconds === undefined ? {} : { forMs: forSeconds * 1000 }),
      ...(repeatSeconds === undefined ? {} : { repeatMs: repeatSeconds * 1000 }),
      ...(scope === null ? {} : { scope }),
      dryRun: isTrial,
    });
    const holdsFor = isTrial ? alert.pending : null;
    const what = isTrial ? 'Dry run, nothing was set. It would look at' : `Alert ${alert.name} looks at`;
    const now = isTrial ? ` Its condition holds now for ${holdsFor === 0 ? 'nothing' : holdsFor}.` : '';
    return {
      data: { dryRun: isTrial, alert: alertRowOf(alert), holdsFor },
      text: `${what} ${scopeText(alert.scope)}.${now}`,
    };
  },
});

/** null: the coordinator chooses. */
function scopeOfAlert(given: {
  readonly kind?: AlertScope['kind'] | undefined;
  readonly workloadId?: string | undefined;
  readonly workloadLabels?: Readonly<Record<string, string>> | undefined;
  readonly project?: string | undefined;
  readonly nodes?: readonly string[] | undefined;
}): AlertScope | null {
  const { kind, workloadId: jobId, workloadLabels, project, nodes } = given;
  const isGiven = [kind, jobId, workloadLabels, project, nodes].some((each) => each !== undefined);
  if (!isGiven) return null;
  return {
    kind: kind ?? (nodes === undefined ? 'job' : 'node'),
    jobId: jobId ?? null,
    labels: workloadLabels ?? {},
    project: project ?? null,
    nodes: nodes ?? [],
  };
}

export const alertList = tool({
  name: 'alert_list',
  title: 'List alerts',
  about: 'Your alerts and those that are built in, each with what fires by it now.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    firing: z.boolean().default(false).describe('only alerts that fire now'),
    limit: limitOf(50, 20),
    cursor,
  }),
  output: z.object({ alerts: z.array(alertRow), nextCursor }),
  async run(given, { api }) {
    const alerts = await api.listAlerts({ firing: given.firing });
    const { page, nextCursor: next } = pageFrom(alerts.map(alertRowOf), given);
    const firing = alerts.filter((alert) => alert.firing.length > 0).length;
    return {
      data: { alerts: [...page], nextCursor: next },
      text: `${alerts.length} alerts; ${firing} of them fire now.`,
    };
  },
});

export const alertDelete = tool({
  name: 'alert_delete',
  title: 'Delete an alert',
  about: 'Deletes an alert that a user has created; what fires by it ends.',
  verb: 'change',
  effect: 'destroy',
  idempotent: true,
  input: z.strictObject({ name, dryRun }),
  output: z.object({ dryRun: z.boolean(), alert: alertRow.describe('what was deleted, or would be') }),
  async run(given, { api }) {
    if (!given.dryRun) {
      const deleted = await api.deleteAlert(given.name);
      return {
        data: { dryRun: false, alert: alertRowOf(deleted) },
        text: `Alert ${deleted.name} is deleted.`,
      };
    }
    const [alert] = await api.listAlerts({ name: given.name });
    if (alert === undefined)
      throw new MusterError('not_found', `there is no alert ${given.name}; alert_list lists them`);
    if (alert.builtIn)
      throw new MusterError('failed_precondition', `${alert.name} is built in: nobody deletes it`);
    return { data: { dryRun: true, alert: alertRowOf(alert) }, text: 'Dry run, nothing was deleted.' };
  },
});
