import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { PipelineRunView } from '@muster/common/pipelines';
import type { MusterApi } from '@muster/common/wire/client';
import { type ExportTarget, exportTargets, unmappedLine } from '@muster/pipelines/export/unmapped';
import { Option } from 'commander';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { CliError, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { collect } from '../flags.ts';
import { whyText } from '../jobs/summary.ts';
import { printable } from '../output/text.ts';
import { patiently } from '../patiently.ts';
import { pipelineDetail, pipelineTable } from '../pipelines/pipelineText.ts';
import { ask, print, type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';
import { exportChoice, exportFlag } from '../submit/exported.ts';

interface RunFlags extends QueryFlags {
  readonly file?: string;
  readonly param?: readonly string[];
  readonly dryRun?: boolean;
  /** commander makes it of `--no-cache`. */
  readonly cache?: boolean;
  readonly export?: string;
}

interface ListFlags extends QueryFlags {
  readonly active?: boolean;
}

interface StopFlags extends QueryFlags {
  readonly reason?: string;
}

interface RerunFlags extends QueryFlags {
  readonly from?: string;
  readonly cache?: boolean;
}

interface ExportFlags {
  readonly file?: string;
  readonly to: ExportTarget;
  readonly image?: string;
  readonly output?: string;
  readonly json?: boolean;
}

const named = [
  '<run>',
  'id of the run, the beginning of it, the name of its pipeline (its newest run), or `latest`',
] as const;

const run: Subcommand = {
  name: 'run',
  summary: 'start a run of a pipeline',
  define(sub) {
    sub
      .option('-f, --file <file>', 'pipeline file, YAML or JSON; - reads standard input')
      .option('--param <name=value>', 'value of a parameter; repeatable', collect)
      .option('--dry-run', 'check the pipeline, and start nothing')
      .option('--no-cache', 'take no step from an earlier run')
      .option(...exportFlag);
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nPrints the id of the run. Each step is a job with the labels muster.pipeline and muster.step. The file: docs/pipelines.md.',
    );
  },
  async run(context: Context, flags: RunFlags): Promise<ExitCode> {
    if (flags.file === undefined)
      throw usageError(
        'give the pipeline file with -f',
        `Try: ${context.environment.programName} pipeline run -f pipeline.yaml`,
      );
    const { pipelineFromFile } = await import('../submit/pipeline.ts');
    const prepared = await pipelineFromFile(
      flags.file,
      flags.param ?? [],
      context,
      exportChoice(flags.export),
    );
    for (const note of prepared.notes) await context.io.stderr.write(`${printable(note)}\n`);
    const request = {
      specJson: prepared.json,
      paramsJson: prepared.paramsJson,
      requestId: context.newRequestId(),
      dryRun: flags.dryRun === true,
      noCache: flags.cache === false,
    };
    return withSession(context, flags, async (session) => {
      const started = await patiently(session, context, (api) => api.runPipeline(request)).catch(
        (error: unknown) => {
          throw prepared.explainRefusal(error);
        },
      );
      const text = ({ id, steps }: PipelineRunView) =>
        request.dryRun ? `The pipeline is valid: ${steps.length} steps.\n` : `${id}\n`;
      return print(context, flags, started, text);
    });
  },
};

const list: Subcommand = {
  name: 'list',
  summary: 'list runs of pipelines, newest first',
  define: defineList,
  run: listRuns,
};

const show: Subcommand = {
  name: 'show',
  summary: 'show a run of a pipeline and its steps',
  define(sub) {
    sub.argument(...named);
    withQuery(sub);
  },
  async run(context: Context, reference: string, flags: QueryFlags): Promise<ExitCode> {
    const [answer, waits] = await withSession(context, flags, async ({ api }) => {
      const found = await api.getPipeline(reference);
      return [found, flags.output === 'json' ? new Map() : await waitsOf(api, found)] as const;
    });
    return print(context, flags, answer, (found, view) => pipelineDetail(found, view, waits));
  },
};

/** Why jobs of its steps are in the queue, by job: the step runs, and only its job tells that it waits, perhaps for ever. */
async function waitsOf(api: MusterApi, { id, steps }: PipelineRunView): Promise<ReadonlyMap<string, string>> {
  if (!steps.some(({ state, jobId }) => state === 'running' && jobId !== null)) return new Map();
  const { pipelineLabel } = await import('@muster/pipelines/file/stepJob');
  const { jobs } = await api.listJobs({ label: `${pipelineLabel}=${id}`, states: ['queued'], brief: true });
  return new Map(jobs.map((job) => [job.id, `in the queue: ${whyText(job)}`]));
}

const stop: Subcommand = {
  name: 'stop',
  summary: 'stop a run and its steps, with their time to save',
  define(sub) {
    sub.argument(...named).option('--reason <text>', 'shown with the run');
    withQuery(sub);
  },
  run: (context: Context, reference: string, flags: StopFlags) =>
    ask(
      context,
      flags,
      (api) => api.stopPipeline(reference, flags.reason ?? ''),
      ({ id }) => `${id} starts no more steps; those under finally still run.\n`,
    ),
};

const rerun: Subcommand = {
  name: 'rerun',
  summary: 'repeat what has not succeeded of a run that has ended, or all from a step on',
  define(sub) {
    sub
      .argument(...named)
      .option('--from <step>', 'this step and those that wait for it run again, too')
      .option('--no-cache', 'take no step from an earlier run but those that are kept');
    withQuery(sub);
  },
  run(context: Context, reference: string, flags: RerunFlags): Promise<ExitCode> {
    const request = {
      run: reference,
      fromStep: flags.from ?? '',
      requestId: context.newRequestId(),
      noCache: flags.cache === false,
    };
    return withSession(context, flags, async (session) => {
      const started = await patiently(session, context, (api) => api.rerunPipeline(request));
      return print(context, flags, started, ({ id }) => `${id}\n`);
    });
  },
};

const exportFile: Subcommand = {
  name: 'export',
  summary: 'write a pipeline as a file of Kubeflow Pipelines v2 or Airflow 3',
  define(sub) {
    sub
      .option('-f, --file <file>', 'pipeline file, YAML or JSON; - reads standard input')
      .addOption(new Option('--to <program>', 'which program').choices(exportTargets).makeOptionMandatory())
      .option('--image <image>', 'container image of steps that have none; for Kubeflow')
      .option('-o, --output <file>', 'file to write; default: stdout')
      .option('--json', 'print the text of the file, and what does not map, as JSON');
    sub.addHelpText(
      'after',
      '\nWhat does not map is named in the file and on stderr. No coordinator is asked.',
    );
  },
  async run(context: Context, { file, to, image, output, json }: ExportFlags): Promise<ExitCode> {
    if (file === undefined)
      throw usageError(
        'give the pipeline file with -f',
        `Try: ${context.environment.programName} pipeline export -f pipeline.yaml --to ${to}`,
      );
    const [{ checkedPipelineFile }, { exportedPipeline }] = await Promise.all([
      import('../submit/pipeline.ts'),
      import('../pipelines/exportedPipeline.ts'),
    ]);
    const { spec } = await checkedPipelineFile(file, context);
    const { text, unmapped } = exportedPipeline(spec, to, image ?? null);
    if (output !== undefined)
      try {
        writeFileSync(resolve(context.environment.workingDir, output), text);
      } catch (error) {
        throw new CliError(`cannot write ${output}: ${messageOf(error)}`, { code: 'invalid', cause: error });
      }
    if (json === true) await context.io.stdout.write(`${JSON.stringify({ text, unmapped }, null, 2)}\n`);
    else {
      if (output === undefined) await context.io.stdout.write(text);
      for (const each of unmapped)
        await context.io.stderr.write(`does not map: ${printable(unmappedLine(each))}\n`);
    }
    return exitCodes.ok;
  },
};

export const command: CommandModule = {
  define(sub) {
    defineList(sub);
    sub.addHelpText('after', '\nThe file and what steps find in their environment: docs/pipelines.md.');
  },
  run: listRuns,
  subcommands: [run, list, show, stop, rerun, exportFile],
};

function defineList(sub: Parameters<CommandModule['define']>[0]): void {
  sub.option('--active', 'only those that have not ended');
  withQuery(sub);
}

function listRuns(context: Context, flags: ListFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    (api) => api.listPipelines({ active: flags.active === true }),
    ({ runs }, view) => pipelineTable(runs, view),
    ({ more }) => (more ? 'There are older runs, which are not shown.\n' : ''),
  );
}
