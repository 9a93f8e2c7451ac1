import { resolve } from 'node:path';
import { MusterError } from '@muster/common/errors';
import type { SubmitResult } from '@muster/common/submitResult';
import type { PendingReason } from '@muster/common/views';
import { formatArraySummary } from '../arrays/arrayText.ts';
import { waitForArrayAndReport } from '../arrays/attendArray.ts';
import { showArray } from '../arrays/show.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type CliError, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { rememberStopRequests } from '../io.ts';
import { type Attendance, followAndReport, waitAndReport } from '../jobs/attend.ts';
import { jobIdOf } from '../jobs/reference.ts';
import { writeJson } from '../output/json.ts';
import { startProgress } from '../output/screen.ts';
import { printable, shellText, wrapText } from '../output/text.ts';
import { explainingSilence, type Session, submitPatienceMs, withSession } from '../session.ts';
import { exportChoice, exportFlag } from '../submit/exported.ts';
import {
  overridesOf,
  type PreparedSpec,
  specFromFile,
  specFromFlags,
  withSpecFlags,
} from '../submit/spec.ts';

interface SubmitFlags extends ConnectionFlags, OutputFlags {
  readonly image?: string;
  readonly array?: string;
  readonly file?: string;
  readonly requestId?: string;
  readonly resumeFrom?: string;
  readonly dryRun?: boolean;
  readonly schema?: boolean;
  readonly wait?: boolean;
  readonly follow?: boolean;
  readonly export?: string;
}

export const command: CommandModule = {
  define(sub) {
    sub
      // Taken only to be refused with better words than "too many arguments".
      .argument('[words...]')
      .passThroughOptions()
      .usage('[-f FILE] [flags] [-- COMMAND ...]')
      .option('-f, --file <file>', 'job file, YAML or JSON; - reads standard input')
      .option('--wait', 'wait until it has ended; exit code 0 if it succeeded, 1 if not')
      .option(
        '--follow',
        'stream its output until it ends; exit code as with --wait; with --array: as --wait',
      )
      .option(
        '--resume-from <job|path>',
        'continue from the newest verified checkpoint of this job, or from the checkpoint at this path',
      )
      .option(...exportFlag)
      .option(
        '--dry-run',
        'validate the job, and report where it would start now or why it would wait; submit nothing',
      )
      .option(
        '--request-id <id>',
        'id of this request: repeating it returns the same job, never a second one',
      )
      .option('--schema', 'print the JSON Schema of the job file, for editors');
    withConnection(withSpecFlags(withOutput(sub)));
    sub.addHelpText(
      'after',
      '\nPrints the id of the job (or of the array) on stdout; with --follow, its output instead.\n' +
        'With --array, --wait and --follow show how many jobs are in which state, and a line for each failure.',
    );
  },
  run: submit,
};

async function submit(
  context: Context,
  words: readonly string[],
  flags: SubmitFlags,
  commandLine: readonly string[] | null,
): Promise<ExitCode> {
  if (flags.schema === true) {
    const { jobSpecJsonSchema } = await import('@muster/common/spec/validate');
    await context.io.stdout.write(`${JSON.stringify(jobSpecJsonSchema(), null, 2)}\n`);
    return exitCodes.ok;
  }
  if (words.length > 0) throw misplaced(words, context.environment.programName);
  refuseContradictions(flags, commandLine);
  const overrides = overridesOf(flags, commandLine);
  const exports = exportChoice(flags.export);
  const spec = await (flags.file === undefined
    ? specFromFlags(overrides, context, exports)
    : specFromFile(flags.file, overrides, context, exports));
  for (const note of spec.notes) await context.io.stderr.write(`${printable(note)}\n`);
  return withSession(context, flags, async (session) => {
    const result = await send(session, spec, flags, context);
    const jobId = result.arrayId ?? result.jobIds[0];
    if (jobId === undefined || (flags.wait !== true && flags.follow !== true)) {
      await printResult(result, flags, context);
      return exitCodes.ok;
    }
    // Ctrl-C right after the id was printed leaves the job running, as it does later.
    const stops = rememberStopRequests(context.io);
    const staying = { ...context, io: stops.io };
    const { job, exitCode } = await printResult(result, flags, staying)
      .then(() => attend(staying, session, result, jobId, flags))
      .finally(stops.dispose);
    if (flags.output !== 'json' || exitCode === exitCodes.interrupted) return exitCode;
    if (job !== null) await writeJson(context.io.stdout, job);
    const array = result.arrayId === null ? null : await session.api.resolveJob(result.arrayId);
    if (array?.kind === 'array') await showArray(context, session.api, array, flags, formatArraySummary);
    return exitCode;
  });
}

function misplaced(words: readonly string[], programName: string): CliError {
  const [first = '', ...rest] = words;
  if (/\.(?:ya?ml|json)$/.test(first)) {
    return usageError(
      'name the job file with -f',
      `Try: ${programName} submit -f ${shellText([first, ...rest])}`,
    );
  }
  return usageError('put the command after `--`', `Try: ${programName} submit -- ${shellText(words)}`);
}

function refuseContradictions(flags: SubmitFlags, commandLine: readonly string[] | null): void {
  if (commandLine?.length === 0) throw usageError('no command after `--`');
  if (flags.file === undefined && commandLine === null && flags.image === undefined) {
    throw usageError('nothing to run', 'Give a command after `--`, or a job file with -f.');
  }
  if (flags.follow === true && flags.output === 'json') {
    throw usageError(
      '--follow shows the output of the job; with -o json, use --wait',
      'For the output as JSON: submit it, then `logs -f -o json` with its id.',
    );
  }
  if (flags.resumeFrom !== undefined && flags.array !== undefined) {
    throw usageError(
      '--resume-from is for one job; the jobs of an array cannot all continue from one checkpoint',
    );
  }
  if (flags.dryRun === true && (flags.wait === true || flags.follow === true)) {
    throw usageError('--dry-run submits nothing, so there is nothing to wait for');
  }
  if (flags.requestId !== undefined && !/^[\x21-\x7e]{1,128}$/.test(flags.requestId)) {
    throw usageError('--request-id takes 1 to 128 printable characters without spaces');
  }
}

/** Tried again while the coordinator is away: the request id keeps that from making a second job. */
async function send(
  session: Session,
  spec: PreparedSpec,
  flags: SubmitFlags,
  context: Context,
): Promise<SubmitResult> {
  const requestId = flags.requestId ?? context.newRequestId();
  const progress = startProgress(context.io.stderr, context.clock);
  const request = {
    specJson: spec.json,
    requestId,
    ...(flags.dryRun === true ? { dryRun: true } : {}),
    ...(await resumeOf(session, flags.resumeFrom, context)),
  };
  try {
    return await explainingSilence(`jobs --all --request ${requestId}`, context, () =>
      session.retrying((api) => api.submit(request), {
        patienceMs: submitPatienceMs,
        onAway: ({ message }) => progress.show(`${message}; reconnecting`),
      }),
    );
  } catch (error) {
    throw error instanceof MusterError && error.code === 'invalid' ? await spec.explainRefusal(error) : error;
  } finally {
    progress.end();
  }
}

/** What has a slash in it is a path; no job has. */
async function resumeOf(session: Session, from: string | undefined, { environment }: Context) {
  if (from === undefined) return {};
  if (from.includes('/') || from.startsWith('.'))
    return { resumeFromPath: resolve(environment.workingDir, from) };
  return { resumeFromJob: await jobIdOf(session.api, from) };
}

async function printResult(result: SubmitResult, flags: SubmitFlags, { io }: Context): Promise<void> {
  if (result.repeatedRequest)
    await io.stderr.write('This request had been accepted before; nothing new was submitted.\n');
  if (flags.output === 'json') return writeJson(io.stdout, result);
  if (flags.dryRun === true) {
    const { wouldWait, wouldStartOn, jobsAhead } = result;
    const remedy = wouldWait?.remedy ? `\n${printable(wouldWait.remedy)}` : '';
    const where =
      wouldStartOn.length === 0 ? '' : ` on ${wouldStartOn.map((node) => printable(node)).join(', ')}`;
    const behind = jobsAhead === 0 ? '' : ` behind ${jobsAhead} queued ${jobsAhead === 1 ? 'job' : 'jobs'}`;
    const verdict =
      wouldWait === null
        ? `would start now${where}`
        : `would wait${behind}: ${printable(wouldWait.message)}${remedy}`;
    return io.stdout.write(`valid; ${verdict}\n`);
  }
  const id = result.arrayId ?? result.jobIds[0] ?? '';
  // With --follow stdout holds the output of the job, to the byte.
  const isOutput = flags.follow === true && result.arrayId === null;
  await (isOutput ? io.stderr : io.stdout).write(`${id}\n`);
  // A caller that stays with it sees as long as it waits.
  if (result.waits !== null && flags.follow !== true && flags.wait !== true)
    await io.stderr.write(waitingText(result.waits, io.stderr.columns()));
}

/** `queued: no node has 5 GPUs (largest has 2)` and what would help. */
function waitingText({ kind, message, remedy }: PendingReason, columns: number | null): string {
  const what = kind === 'never_fits' ? 'queued, and cannot start' : 'queued';
  const lines = [`${what}: ${printable(message)}`, ...(remedy === null ? [] : [printable(remedy)])];
  return `${wrapText(lines.join('\n'), columns)}\n`;
}

function attend(
  context: Context,
  session: Session,
  result: SubmitResult,
  jobId: string,
  flags: SubmitFlags,
): Promise<Attendance> {
  if (result.arrayId !== null) {
    // A coordinator of an earlier version lists all jobs, and gives no number of them.
    const size = result.arraySize || result.jobIds.length;
    return waitForArrayAndReport(context, session, { id: result.arrayId, size });
  }
  return flags.follow === true
    ? followAndReport(context, session, jobId)
    : waitAndReport(context, session, jobId);
}
