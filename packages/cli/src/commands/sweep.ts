import { writeFileSync } from 'node:fs';
import { MusterError, messageOf } from '@muster/common/errors';
import type { SweepView, TrialView } from '@muster/common/sweeps';
import type { MusterApi } from '@muster/common/wire/client';
import { Option } from 'commander';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { CliError, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { wholeNumberFlag } from '../flags.ts';
import { printable } from '../output/text.ts';
import { patiently } from '../patiently.ts';
import { ask, print, type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';
import { exportChoice, exportFlag } from '../submit/exported.ts';
import { type PlotName, plotNames } from '../sweeps/plots/names.ts';
import { sweepDetail, sweepTable, trialCsv, trialTable } from '../sweeps/sweepText.ts';

interface CreateFlags extends QueryFlags {
  readonly file?: string;
  readonly dryRun?: boolean;
  readonly export?: string;
}

interface ListFlags extends QueryFlags {
  readonly active?: boolean;
}

interface TrialsFlags extends QueryFlags {
  readonly csv?: boolean;
}

interface BestFlags extends QueryFlags {
  readonly jobFile?: boolean;
  readonly trial?: number;
}

interface PlotFlags extends ConnectionFlags {
  readonly output?: string;
  readonly plot?: PlotName;
}

interface StopFlags extends QueryFlags {
  readonly reason?: string;
}

const named = ['<sweep>', 'id of the sweep, the beginning of it, its name, or `latest`'] as const;

const list: Subcommand = {
  name: 'list',
  summary: 'list sweeps, newest first',
  define(sub) {
    sub.option('--active', 'only those that have not ended');
    withQuery(sub);
  },
  run: (context: Context, flags: ListFlags) =>
    ask(
      context,
      flags,
      (api) => api.listSweeps({ active: flags.active === true }),
      ({ sweeps }, view) => sweepTable(sweeps, view),
      ({ more }) => (more ? 'There are older sweeps, which are not shown.\n' : ''),
    ),
};

const show: Subcommand = {
  name: 'show',
  summary: 'show a sweep: its progress and its best trial',
  define(sub) {
    sub.argument(...named);
    withQuery(sub);
  },
  async run(context: Context, sweep: string, flags: QueryFlags): Promise<ExitCode> {
    if (flags.output === 'json')
      return ask(
        context,
        flags,
        (api) => api.getSweep(sweep),
        ({ id }) => id,
      );
    const { view, trials: all } = await sweepWithTrials(context, flags, sweep);
    const { importanceInShort, importanceOfSweep } = await import('../sweeps/importance.ts');
    const matters = importanceInShort(importanceOfSweep(view, all));
    return print(context, flags, view, (each, shown) => sweepDetail(each, matters, shown));
  },
};

const importance: Subcommand = {
  name: 'importance',
  summary: 'show how much each parameter of a sweep matters',
  define(sub) {
    sub.argument(...named);
    withQuery(sub);
  },
  async run(context: Context, sweep: string, flags: QueryFlags): Promise<ExitCode> {
    const { view, trials: all } = await sweepWithTrials(context, flags, sweep);
    const { importanceOfSweep, importanceTable } = await import('../sweeps/importance.ts');
    return print(context, flags, importanceOfSweep(view, all), importanceTable);
  },
};

const plot: Subcommand = {
  name: 'plot',
  summary: 'draw a sweep: parallel coordinates, learning curves, best value over trials, importance',
  define(sub) {
    sub
      .argument(...named)
      .option(
        '-o, --output <file>',
        'file to write: .html for all plots, .svg for one; default: HTML to stdout',
      )
      .addOption(new Option('--plot <name>', 'only this plot, as SVG').choices(plotNames));
    withConnection(sub);
  },
  async run(context: Context, sweep: string, flags: PlotFlags): Promise<ExitCode> {
    const { output: file, plot: only = null } = flags;
    const isSvg = file === undefined ? only !== null : file.endsWith('.svg');
    if (isSvg !== (only !== null))
      throw usageError(
        only === null ? `${file ?? ''} has room for one plot` : `--plot writes SVG, and not ${file ?? ''}`,
        only === null ? `Add --plot, with one of ${plotNames.join(', ')}` : 'Give a file that ends in .svg',
      );
    const [{ plotDataOf }, { plotPage, plotSvg }] = await Promise.all([
      import('../sweeps/plots/plotData.ts'),
      import('../sweeps/plots/page.ts'),
    ]);
    const needsCurves = only === null || only === 'curves';
    const drawn = await withSession(context, flags, ({ api }) => plotDataOf(api, sweep, needsCurves));
    const text = only === null ? plotPage(drawn.sweep, drawn.data) : plotSvg(only, drawn.data);
    if (file === undefined) await context.io.stdout.write(text);
    else
      try {
        writeFileSync(file, text);
      } catch (error) {
        throw new CliError(`cannot write ${file}: ${messageOf(error)}`, { code: 'invalid', cause: error });
      }
    return exitCodes.ok;
  },
};

function sweepWithTrials(context: Context, flags: QueryFlags, sweep: string) {
  return withSession(context, flags, async ({ api }) => {
    const view = await api.getSweep(sweep);
    return { view, trials: await api.listTrials(view.id) };
  });
}

const trials: Subcommand = {
  name: 'trials',
  summary: 'list the trials of a sweep with their parameters and values',
  define(sub) {
    sub.argument(...named).option('--csv', 'as CSV, with a column for each parameter');
    withQuery(sub);
  },
  async run(context: Context, sweep: string, flags: TrialsFlags): Promise<ExitCode> {
    if (flags.csv === true && flags.output === 'json') throw usageError('give either --csv or -o json');
    const answer = async (api: MusterApi) => ({ trials: await api.listTrials(sweep) });
    return ask(context, flags, answer, ({ trials: all }, view) =>
      flags.csv === true ? trialCsv(all) : trialTable(all, view),
    );
  },
};

const best: Subcommand = {
  name: 'best',
  summary: 'show the best trial of a sweep, or its job file',
  define(sub) {
    sub
      .argument(...named)
      .option('--job-file', 'its job as a job file, to be submitted with muster submit -f')
      .option('--trial <number>', 'another trial than the best', wholeNumberFlag('trial', 0, 10_000));
    withQuery(sub);
  },
  async run(context: Context, sweep: string, flags: BestFlags): Promise<ExitCode> {
    const isFront = flags.trial === undefined && flags.jobFile !== true;
    const view = await withSession(context, flags, ({ api }) => api.getSweep(sweep));
    const { id } = view;
    if (isFront && hasSeveralObjectives(view)) return printFront(context, flags, sweep);
    if (flags.trial === undefined && hasSeveralObjectives(view))
      throw usageError(
        `${id} has several objectives, and no single best trial`,
        `Choose one of ${context.environment.programName} sweep best ${id} with --trial`,
      );
    const trial = flags.trial === undefined ? view.best : await trialOf(context, flags, view, flags.trial);
    if (trial === null)
      throw new CliError(`no trial of ${id} has a value yet`, {
        code: 'not_found',
        hints: [`${context.environment.programName} sweep trials ${id}`],
      });
    if (flags.jobFile !== true)
      return print(context, flags, trial, (each, shown) => trialTable([each], shown));
    const { jobFileOf } = await import('../submit/sweep.ts');
    await context.io.stdout.write(`${JSON.stringify(jobFileOf(view.spec, trial), null, 2)}\n`);
    return exitCodes.ok;
  },
};

function hasSeveralObjectives({ spec }: SweepView): boolean {
  return Array.isArray(spec['objectives']) && spec['objectives'].length > 1;
}

async function printFront(context: Context, flags: QueryFlags, sweep: string): Promise<ExitCode> {
  const { view, trials: all } = await sweepWithTrials(context, flags, sweep);
  const [{ checkedSweep }, { paretoFront }] = await Promise.all([
    import('@muster/experiments/file/checkedSweep'),
    import('@muster/experiments/objective'),
  ]);
  const { objective, furtherObjectives } = checkedSweep(view.spec);
  const front = { trials: paretoFront([objective, ...furtherObjectives], all) };
  return print(context, flags, front, ({ trials: shown }, options) => trialTable(shown, options));
}

/** @throws {CliError} */
async function trialOf(
  context: Context,
  flags: QueryFlags,
  { id }: SweepView,
  number: number,
): Promise<TrialView> {
  const all = await withSession(context, flags, ({ api }) => api.listTrials(id));
  const trial = all[number];
  if (trial !== undefined) return trial;
  throw new CliError(`${id} has no trial ${number}`, {
    code: 'not_found',
    hints: [`${context.environment.programName} sweep trials ${id}`],
  });
}

const stop: Subcommand = {
  name: 'stop',
  summary: 'stop a sweep and its trials, with their time to save',
  define(sub) {
    sub.argument(...named).option('--reason <text>', 'shown with the sweep');
    withQuery(sub);
  },
  run: (context: Context, sweep: string, flags: StopFlags) =>
    ask(
      context,
      flags,
      (api) => api.stopSweep(sweep, flags.reason ?? ''),
      ({ id, running }) => `${id} starts no more trials; ${running} of them still end.\n`,
    ),
};

const extend: Subcommand = {
  name: 'extend',
  summary: 'give a sweep more trials; one that has ended continues',
  define(sub) {
    sub.argument(...named).argument('<trials>', 'how many more', wholeNumberFlag('trials', 1, 10_000));
    withQuery(sub);
  },
  run(context: Context, sweep: string, more: number, flags: QueryFlags): Promise<ExitCode> {
    const requestId = context.newRequestId();
    return withSession(context, flags, async (session) => {
      const extended = await patiently(session, context, (api) => api.extendSweep(sweep, more, requestId));
      return print(context, flags, extended, ({ id, trials: all }) => `${id} will have ${all} trials.\n`);
    });
  },
};

export const command: CommandModule = {
  define(sub) {
    sub
      .option('-f, --file <file>', 'sweep file, YAML or JSON; - reads standard input')
      .option('--dry-run', 'check the sweep, and start nothing')
      .option(...exportFlag);
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nPrints the id of the sweep. Each trial is a job with the label muster.sweep. The file: docs/sweeps.md.',
    );
  },
  run: create,
  subcommands: [list, show, trials, best, importance, plot, stop, extend],
};

async function create(context: Context, flags: CreateFlags): Promise<ExitCode> {
  if (flags.file === undefined)
    throw usageError(
      'give the sweep file with -f',
      `Try: ${context.environment.programName} sweep -f sweep.yaml`,
    );
  const { sweepFromFile } = await import('../submit/sweep.ts');
  const prepared = await sweepFromFile(flags.file, context, exportChoice(flags.export));
  for (const note of prepared.notes) await context.io.stderr.write(`${printable(note)}\n`);
  const request = {
    specJson: prepared.json,
    requestId: context.newRequestId(),
    dryRun: flags.dryRun === true,
  };
  return withSession(context, flags, async (session) => {
    const sweep = await patiently(session, context, (api) => api.createSweep(request)).catch(
      (error: unknown) => {
        throw error instanceof MusterError ? prepared.explainRefusal(error) : error;
      },
    );
    const text = ({ id, trials: all }: SweepView) =>
      request.dryRun ? `The sweep is valid: ${all} trials.\n` : `${id}\n`;
    return print(context, flags, sweep, text);
  });
}
