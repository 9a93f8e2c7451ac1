import type { TriggerView } from '@muster/common/triggers';
import { missedPolicies, overlapPolicies } from '@muster/common/triggers';
import type { MusterApi } from '@muster/common/wire/client';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { CliError, usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { collect } from '../flags.ts';
import { printable } from '../output/text.ts';
import { clockText } from '../output/times.ts';
import { patiently } from '../patiently.ts';
import { blockedNote, triggerDetail, triggerTable } from '../pipelines/triggerText.ts';
import { ask, print, type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';
import { exportChoice, exportFlag } from '../submit/exported.ts';

interface CreateFlags extends QueryFlags {
  readonly file?: string;
  readonly param?: readonly string[];
  readonly cron?: string;
  readonly timezone?: string;
  readonly missed?: string;
  readonly on?: string;
  readonly directory?: string;
  readonly webhook?: boolean;
  readonly overlap?: string;
  /** commander makes it of `--no-cache`. */
  readonly cache?: boolean;
  readonly export?: string;
  readonly dryRun?: boolean;
}

const create: Subcommand = {
  name: 'create',
  summary: 'set what starts runs of a pipeline: times, events, new data, or deliveries over HTTP',
  define(sub) {
    sub
      .argument('<name>', 'unique in the cluster, such as nightly')
      .option('-f, --file <file>', 'pipeline file, YAML or JSON; - reads standard input')
      .option('--cron <fields>', 'minute, hour, day of the month, month, day of the week: "0 3 * * 1-5"')
      .option('--timezone <zone>', 'of the times, such as Europe/Berlin; default: UTC')
      .addOption(
        sub
          .createOption(
            '--missed <policy>',
            'of times at which the coordinator did not run: run_once or skip; default: run_once',
          )
          .choices([...missedPolicies]),
      )
      .option('--on <condition>', "in CEL over events, such as kind == 'job.succeeded' && job == 'train'")
      .option('--directory <dir>', "when files in this directory of the coordinator's machine have changed")
      .option('--webhook', 'start a run for each signed delivery over HTTP; prints the secret')
      .addOption(
        sub
          .createOption(
            '--overlap <policy>',
            'while a run of it has not ended: skip, queue, stop_previous or allow; default: skip, with --directory queue',
          )
          .choices([...overlapPolicies]),
      )
      .option('--param <name=value>', 'value of a parameter for each run; repeatable', collect)
      .option('--no-cache', 'take no step from an earlier run')
      .option(...exportFlag)
      .option('--dry-run', 'check everything, and set nothing');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nExample: muster trigger create nightly -f pipeline.yaml --cron "0 3 * * *" --timezone Europe/Berlin --param day=\'${trigger.time}\'\n' +
        'The trigger keeps the file as it is now: to change it, delete the trigger and create it again. All about triggers: docs/pipelines.md.',
    );
  },
  async run(context: Context, name: string, flags: CreateFlags): Promise<ExitCode> {
    if (flags.file === undefined)
      throw usageError(
        'give the pipeline file with -f',
        `Try: ${context.environment.programName} trigger create ${name} -f pipeline.yaml --cron "0 3 * * *"`,
      );
    const { pipelineFromFile } = await import('../submit/pipeline.ts');
    const { json, paramsJson, notes, explainRefusal } = await pipelineFromFile(
      flags.file,
      flags.param ?? [],
      context,
      exportChoice(flags.export),
      true,
    );
    for (const note of notes) await context.io.stderr.write(`${printable(note)}\n`);
    const { cron, timezone: timeZone, missed, overlap, webhook, on, directory } = flags;
    const request = {
      name,
      specJson: json,
      paramsJson,
      noCache: flags.cache === false,
      dryRun: flags.dryRun === true,
      ...(webhook === true ? { webhook } : {}),
      ...(on === undefined ? {} : { condition: on }),
      ...(directory === undefined ? {} : { directory }),
      ...(cron === undefined ? {} : { cron }),
      ...(timeZone === undefined ? {} : { timeZone }),
      ...(missed === undefined ? {} : { missed }),
      ...(overlap === undefined ? {} : { overlap }),
    };
    return ask(
      context,
      flags,
      (api) =>
        api.createTrigger(request).catch((error: unknown) => {
          throw explainRefusal(error);
        }),
      (trigger) =>
        request.dryRun ? `Dry run, nothing was set. ${firstRun(trigger)}\n` : createdText(trigger),
      ({ secret }) =>
        secret === null
          ? ''
          : `Deliveries go to /api/v1/triggers/${name}/deliveries, signed with this secret, which is not shown again.\n`,
    );
  },
};

const list: Subcommand = {
  name: 'list',
  summary: 'list triggers, with when they fire next',
  define: withQuery,
  run: listTriggers,
};

const show = ofOne('show', 'show a trigger, and what has become of its last fires', {
  call: (api, name) => api.getTrigger(name),
  text: triggerDetail,
});

const pause = ofOne('pause', 'let a trigger start nothing until it is resumed', {
  call: (api, name) => api.pauseTrigger(name),
  text: ({ name }) => `${name} starts nothing until it is resumed. Its runs continue.\n`,
});

const resume = ofOne('resume', 'let a trigger start runs again', {
  call: (api, name) => api.resumeTrigger(name),
  text: ({ name, nextAtMs }) =>
    nextAtMs === null ? `${name} is no longer paused.\n` : `${name} fires next at ${clockText(nextAtMs)}.\n`,
});

interface RunFlags extends QueryFlags {
  readonly param?: readonly string[];
}

const fire: Subcommand = {
  name: 'run',
  summary: 'fire a trigger now, whatever it waits for; prints the id of the run',
  define(sub) {
    sub
      .argument('<name>', 'name of the trigger')
      .option(
        '--param <name=value>',
        'value in the place of the one that the trigger has; repeatable',
        collect,
      );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nWhile a run of it has not ended, its overlap policy says what happens. The run belongs to the user of the trigger.',
    );
  },
  async run(context: Context, name: string, flags: RunFlags): Promise<ExitCode> {
    const requestId = context.newRequestId();
    return withSession(context, flags, async (session) => {
      const { spec } = await session.api.getTrigger(name);
      const { valuesForPipeline } = await import('../submit/pipeline.ts');
      const paramsJson = JSON.stringify(valuesForPipeline(spec, flags.param ?? []));
      const request = { name, paramsJson, requestId };
      const fired = await patiently(session, context, (api) => api.runTrigger(request));
      const { outcome, run, reason } = fired;
      if (outcome !== 'started' && outcome !== 'queued')
        throw new CliError(`${name} has started no run: ${outcome}: ${reason ?? 'no cause is known'}`, {
          hints: [
            outcome === 'failed'
              ? `With a value of its own: ${context.environment.programName} trigger run ${name} --param NAME=VALUE`
              : `See: ${context.environment.programName} trigger show ${name}`,
          ],
        });
      return print(
        context,
        flags,
        fired,
        () => (run === null ? '' : `${run}\n`),
        () => (run === null ? `${name} starts a run once others have ended: ${reason ?? ''}\n` : ''),
      );
    });
  },
};

const remove = ofOne('delete', 'delete a trigger; its runs continue', {
  call: (api, name) => api.deleteTrigger(name),
  text: ({ name }) => `${name} is deleted. Its runs continue.\n`,
});

export const command: CommandModule = {
  define(sub) {
    withQuery(sub);
    sub.addHelpText('after', '\nWithout a subcommand it lists triggers. All about them: docs/pipelines.md.');
  },
  run: listTriggers,
  subcommands: [create, list, show, fire, pause, resume, remove],
};

/** Of a webhook the secret alone, so that a script can keep it. */
function createdText(trigger: TriggerView): string {
  const { name, secret } = trigger;
  return secret === null ? `${name} is set. ${firstRun(trigger)}\n` : `${secret}\n`;
}

function firstRun({ name, pipeline, kind, nextAtMs, directory }: TriggerView): string {
  if (kind === 'cron') return `The first run of ${pipeline} starts at ${clockText(nextAtMs ?? 0)}.`;
  const each = {
    event: 'Each event for which its condition holds',
    webhook: `Each delivery to ${name}`,
    data: `Each change of the files in ${directory ?? '-'}`,
  };
  return `${each[kind]} starts a run of ${pipeline}.`;
}

function ofOne(
  name: string,
  summary: string,
  {
    call,
    text,
  }: {
    readonly call: (api: MusterApi, name: string) => Promise<TriggerView>;
    readonly text: typeof triggerDetail;
  },
): Subcommand {
  return {
    name,
    summary,
    define(sub) {
      sub.argument('<name>', 'name of the trigger');
      withQuery(sub);
    },
    run: (context: Context, trigger: string, flags: QueryFlags) =>
      ask(context, flags, (api) => call(api, trigger), text),
  };
}

function listTriggers(context: Context, flags: QueryFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    async (api) => ({ triggers: await api.listTriggers() }),
    ({ triggers }, view) => triggerTable(triggers, view),
    ({ triggers }) => blockedNote(triggers),
  );
}
