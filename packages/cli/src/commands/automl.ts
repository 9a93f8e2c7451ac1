import { join } from 'node:path';
import { automlPipeline, automlPlan } from '@muster/advice/automl/automlPlan';
import { automlRunId } from '@muster/advice/file/automlRunId';
import { readAutomlContext, withAutomlFlags } from '../automl/automlContext.ts';
import { automlAnswer, automlEndText, planText, profileText } from '../automl/automlText.ts';
import { type AutomlRun, driveAutoml } from '../automl/drive.ts';
import { automlProgram } from '../automl/program.ts';
import { type ConnectionFlags, withConnectionElsewhere } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { abortOnStopRequest } from '../io.ts';
import { startProgress } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import { print } from '../query.ts';
import { withSession } from '../session.ts';
import { exportChoice, exportFlag } from '../submit/exported.ts';
import { writeNewFiles } from '../submit/writeNewFiles.ts';

interface AutomlFlags extends Omit<ConnectionFlags, 'data'>, OutputFlags {
  /** The table; not the directory of a coordinator. */
  readonly data?: string;
  readonly file?: string;
  readonly dryRun?: boolean;
  readonly write?: string;
  readonly export?: string;
}

export const command: CommandModule = {
  define(sub) {
    sub
      .option('-f, --file <file>', 'a task in YAML or JSON; -: standard input')
      .option('--dry-run', 'show what would be done, and start nothing')
      .option(
        '--write <dir>',
        'with --dry-run: write the jobs, the sweep and the pipeline there; existing files are never overwritten',
      )
      .option(...exportFlag);
    withAutomlFlags(sub);
    withConnectionElsewhere(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nTrials are jobs of an ordinary sweep. Ctrl-C leaves it running; the same command continues. docs/automl.md.',
    );
  },
  run: automl,
};

async function automl(context: Context, flags: AutomlFlags): Promise<ExitCode> {
  const task = await readAutomlContext(flags.file ?? null, { ...flags }, context);
  const run: AutomlRun = {
    id: automlRunId(task),
    task,
    program: automlProgram(context.environment.programDir),
    exports: exportChoice(flags.export),
  };
  const plan = automlPlan(task, { ...run, facts: null });
  const { stderr } = context.io;
  if (flags.dryRun === true || flags.write !== undefined) {
    if (flags.write !== undefined) {
      const text = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
      const files = [
        { name: 'profile.json', text: text(plan.profile) },
        { name: 'sweep.json', text: text(plan.sweep) },
        { name: 'finish.json', text: text(plan.finish) },
        { name: 'pipeline.json', text: text(automlPipeline(plan)) },
      ];
      await writeNewFiles(flags.write, files, context);
    }
    return print(context, flags, plan, planText);
  }
  for (const note of plan.notes) await stderr.write(`${note}\n`);
  const { data: _table, ...connection } = flags;
  return withSession(context, connection, async (session) => {
    const stop = abortOnStopRequest(context.io);
    const progress = startProgress(stderr, context.clock);
    try {
      const end = await driveAutoml(
        { context, session, run, progress, abort: stop.signal },
        async (profile) => {
          progress.clear();
          await stderr.write(printable(profileText(profile), { keepLines: true }));
        },
      );
      progress.end();
      if (end !== null) return await print(context, flags, automlAnswer(end), automlEndText);
      const where = join(plan.dir, 'report.html');
      await stderr.write(
        `Detached. What was started keeps running. The same command continues until ${where} is written.\n`,
      );
      return exitCodes.interrupted;
    } finally {
      progress.end();
      stop.dispose();
    }
  });
}
