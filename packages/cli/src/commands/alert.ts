import type { AlertKind, AlertScope, AlertSeverity, AlertView } from '@muster/common/alerts';
import { alertSeverities } from '@muster/common/alerts';
import { formatDuration } from '@muster/common/spec/duration';
import type { AlertRequest } from '@muster/common/wire/alertClient';
import { alertDetail, alertTable, triedAlert } from '../alerts/alertText.ts';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { collect, durationMs } from '../flags.ts';
import { ask, type QueryFlags, withQuery } from '../query.ts';

interface CreateFlags extends QueryFlags {
  readonly if: string;
  readonly severity?: AlertSeverity;
  readonly message?: string;
  readonly label?: readonly string[];
  readonly for?: number;
  readonly repeat?: number;
  readonly job?: string;
  readonly jobLabel?: readonly string[];
  readonly project?: string;
  readonly node?: readonly string[];
  readonly nodes?: boolean;
  readonly cluster?: boolean;
  readonly dryRun?: boolean;
}

interface ListFlags extends QueryFlags {
  readonly firing?: boolean;
}

interface SilenceFlags extends QueryFlags {
  readonly for?: number;
  readonly reason?: string;
  readonly off?: boolean;
}

interface AckFlags extends QueryFlags {
  readonly of?: string;
}

const dayMs = 24 * 60 * 60_000;
const monthMs = 30 * dayMs;
const minuteMs = 60_000;

const create: Subcommand = {
  name: 'create',
  summary: 'set an alert: a condition, and the jobs or nodes that it looks at',
  define(sub) {
    sub
      .argument('<name>', 'unique in the cluster, such as train-failed')
      .requiredOption('--if <condition>', "in CEL, such as workload_state == 'failed'")
      .addOption(
        sub
          .createOption('--severity <severity>', 'info, warning or critical; default: warning')
          .choices([...alertSeverities]),
      )
      .option('--message <text>', 'with values in braces, such as {workload_name}; default: the condition')
      .option('--label <name=value>', 'for those who are notified; may be repeated', collect)
      .option(
        '--for <duration>',
        'how long the condition must hold before it fires; default: not at all',
        durationMs('--for', 0, monthMs),
      )
      .option(
        '--repeat <duration>',
        'how often to notify again while it fires; default: once',
        durationMs('--repeat', minuteMs, monthMs),
      )
      .option('--job <job>', 'look at this job only: id or name')
      .option('--job-label <name=value>', 'look at jobs with this label; may be repeated', collect)
      .option('--project <project>', 'look at jobs of this project')
      .option('--node <node>', 'look at this node; may be repeated', collect)
      .option('--nodes', 'look at every node')
      .option('--cluster', 'look at the cluster as a whole')
      .option('--dry-run', 'check only, and show what would be set and what it would fire for now');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nExample: muster alert create idle --if "gpu_utilization < 20 && running_for > duration(\'10m\')" --for 5m --project vision\n' +
        'Without a scope it looks at every job that you may change. The names for conditions: docs/alerts.md.',
    );
  },
  run: (context: Context, name: string, flags: CreateFlags) =>
    ask(
      context,
      flags,
      (api) => api.createAlert(requestOf(name, flags)),
      (alert) =>
        flags.dryRun === true
          ? triedAlert(alert, scopeWords(alert.scope))
          : `${alert.name} is set: ${alert.severity}, looks at ${scopeWords(alert.scope)}.\n`,
    ),
};

const list: Subcommand = {
  name: 'list',
  summary: 'list alerts, and what fires',
  define: defineList,
  run: listAlerts,
};

const show: Subcommand = {
  name: 'show',
  summary: 'show one alert, and everything that fires by it',
  define(sub) {
    sub.argument('<name>', 'name of the alert');
    withQuery(sub);
  },
  run: (context: Context, name: string, flags: QueryFlags) =>
    ask(
      context,
      flags,
      async (api) => {
        const [alert] = await api.listAlerts({ name });
        return alert as AlertView;
      },
      alertDetail,
    ),
};

const remove: Subcommand = {
  name: 'delete',
  summary: 'delete an alert; what fires by it is resolved',
  define(sub) {
    sub.argument('<name>', 'name of the alert');
    withQuery(sub);
  },
  run: (context: Context, name: string, flags: QueryFlags) =>
    ask(
      context,
      flags,
      (api) => api.deleteAlert(name),
      (alert) => `${alert.name} is deleted.\n`,
    ),
};

const silence: Subcommand = {
  name: 'silence',
  summary: 'notify nobody of an alert for a while',
  define(sub) {
    sub
      .argument('<name>', 'name of the alert')
      .option('--for <duration>', 'from now on; default: 1h', durationMs('--for', minuteMs, monthMs))
      .option('--reason <text>', 'shown to those who wonder')
      .option('--off', 'end the silence');
    withQuery(sub);
    sub.addHelpText('after', '\nWhat still fires when the silence is over is notified then.');
  },
  run(context: Context, name: string, flags: SilenceFlags): Promise<ExitCode> {
    if (flags.off === true && flags.for !== undefined) throw usageError('give either --for or --off');
    const forMs = flags.off === true ? 0 : (flags.for ?? 60 * minuteMs);
    return ask(
      context,
      flags,
      (api) => api.silenceAlert(name, forMs, flags.reason ?? ''),
      (alert) =>
        forMs === 0
          ? `${alert.name} is no longer silenced.\n`
          : `${alert.name} notifies nobody for ${formatDuration(forMs)}.\n`,
    );
  },
};

const ack: Subcommand = {
  name: 'ack',
  summary: 'acknowledge what fires: it is not repeated',
  define(sub) {
    sub
      .argument('<name>', 'name of the alert')
      .option('--of <subject>', "a job's id, a node's name, or cluster; default: whatever fires");
    withQuery(sub);
    sub.addHelpText('after', '\nWhat fires for a job that has ended is resolved by that.');
  },
  run: (context: Context, name: string, flags: AckFlags) =>
    ask(
      context,
      flags,
      (api) => api.acknowledgeAlert(name, flags.of ?? null),
      (alert) => `${alert.name} is acknowledged.\n`,
    ),
};

export const command: CommandModule = {
  define(sub) {
    defineList(sub);
    sub.addHelpText('after', '\nWithout a subcommand it lists alerts, and what fires.');
  },
  run: listAlerts,
  subcommands: [create, list, show, remove, silence, ack],
};

function defineList(sub: Parameters<Subcommand['define']>[0]): void {
  sub.option('--firing', 'only those that fire');
  withQuery(sub);
}

function listAlerts(context: Context, flags: ListFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    async (api) => ({ alerts: await api.listAlerts({ firing: flags.firing === true }) }),
    ({ alerts }, view) => alertTable(alerts, view),
  );
}

/** @throws {CliError} for scopes that exclude one another, and labels that are none */
function requestOf(name: string, flags: CreateFlags): AlertRequest {
  const { severity, message, repeat } = flags;
  const scope = scopeFrom(flags);
  return {
    name,
    condition: flags.if,
    labels: labelsFrom('--label', flags.label),
    forMs: flags.for ?? 0,
    ...(severity === undefined ? {} : { severity }),
    ...(message === undefined ? {} : { message }),
    ...(repeat === undefined ? {} : { repeatMs: repeat }),
    ...(scope === null ? {} : { scope }),
    ...(flags.dryRun === true ? { dryRun: true } : {}),
  };
}

/** @returns null: none was given */
function scopeFrom(flags: CreateFlags): AlertScope | null {
  const { job, jobLabel, project, node, nodes, cluster } = flags;
  const kinds = new Set<AlertKind>();
  if (job !== undefined || jobLabel !== undefined || project !== undefined) kinds.add('job');
  if (node !== undefined || nodes === true) kinds.add('node');
  if (cluster === true) kinds.add('cluster');
  const [kind, another] = kinds;
  if (kind === undefined) return null;
  if (another !== undefined)
    throw usageError('an alert looks at jobs, at nodes, or at the cluster: give flags of one of them');
  return {
    kind,
    jobId: job ?? null,
    labels: labelsFrom('--job-label', jobLabel),
    project: project ?? null,
    nodes: node ?? [],
  };
}

function labelsFrom(flag: string, typed: readonly string[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(
    typed.map((each) => {
      const equals = each.indexOf('=');
      if (equals < 1) throw usageError(`${flag} takes NAME=VALUE, such as team=vision; got "${each}"`);
      return [each.slice(0, equals), each.slice(equals + 1)];
    }),
  );
}

function scopeWords({ kind, jobId, project, labels, nodes }: AlertScope): string {
  if (kind === 'cluster') return 'the cluster';
  if (kind === 'node') return nodes.length === 0 ? 'every node' : nodes.join(', ');
  if (jobId !== null) return jobId;
  const parts = [
    ...(project === null ? [] : [`of project ${project}`]),
    ...Object.entries(labels).map(([name, value]) => `with ${name}=${value}`),
  ];
  return parts.length === 0 ? 'every job that its owner may change' : `jobs ${parts.join(' and ')}`;
}
