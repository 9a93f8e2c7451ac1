import type { CommandModule, Context } from '../context.ts';
import { diagnoseFile, isFile } from '../diagnose/file.ts';
import { diagnoseJob } from '../diagnose/job.ts';
import { formatDiagnosis } from '../diagnose/text.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { wholeNumberFlag } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { print, type QueryFlags, withQuery } from '../query.ts';

interface DiagnoseFlags extends QueryFlags {
  readonly attempt?: number;
}

export const command: CommandModule = {
  define(sub) {
    sub
      .argument(
        '<log>',
        `a log file of any training run, - for standard input, or a job: ${jobReferenceHelp}`,
      )
      .option(
        '--attempt <number>',
        'attempt of a job; default: the newest',
        wholeNumberFlag('--attempt', 1, 1_000_000),
      );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nA file is read on this machine and needs no coordinator. To diagnose a job with the name of a file, use its id.',
    );
  },
  run: diagnose,
};

async function diagnose(context: Context, what: string, flags: DiagnoseFlags): Promise<ExitCode> {
  const isLog = isFile(what, context);
  if (isLog && flags.attempt !== undefined) throw usageError('--attempt is for jobs; a file is one log');
  const { diagnosis, title } = isLog
    ? { diagnosis: await diagnoseFile(what, context), title: null }
    : await diagnoseJob(what, flags, context);
  return print(context, flags, diagnosis, (answer, { colours }) => formatDiagnosis(answer, title, colours));
}
