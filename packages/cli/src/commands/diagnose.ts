import type { Diagnosis } from '@muster/diagnosis/words';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { diagnoseFile, isFile } from '../diagnose/file.ts';
import { diagnoseJob } from '../diagnose/job.ts';
import { formatDiagnosis } from '../diagnose/text.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, wholeNumberFlag, withOutput } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';

interface DiagnoseFlags extends ConnectionFlags, OutputFlags {
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
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nA file is read on this machine and needs no coordinator. To diagnose a job with the name of a file, use its id.',
    );
  },
  run: diagnose,
};

async function diagnose(context: Context, what: string, flags: DiagnoseFlags): Promise<ExitCode> {
  if (!isFile(what, context)) {
    const { diagnosis, title } = await diagnoseJob(what, flags, context);
    return show(diagnosis, title, flags, context);
  }
  if (flags.attempt !== undefined) throw usageError('--attempt is for jobs; a file is one log');
  return show(await diagnoseFile(what, context), null, flags, context);
}

async function show(
  diagnosis: Diagnosis,
  title: string | null,
  { output }: DiagnoseFlags,
  { io, environment }: Context,
): Promise<ExitCode> {
  if (output === 'json') await writeJson(io.stdout, diagnosis);
  else await io.stdout.write(formatDiagnosis(diagnosis, title, coloursFor(io.stdout, environment)));
  return exitCodes.ok;
}
