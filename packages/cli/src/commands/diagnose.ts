import { createReadStream, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { LogDiagnosis } from '@muster/diagnosis/diagnose';
import type { Diagnosis, MetricRow, RetryAdvice } from '@muster/diagnosis/model';
import type { CommandModule, Context } from '../context.ts';
import { diagnoseJob } from '../diagnose/job.ts';
import { fileErrorReason, usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { wholeNumberFlag } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import type { Colours } from '../output/colours.ts';
import { formatFields } from '../output/table.ts';
import { count } from '../output/text.ts';
import { bytesText } from '../output/times.ts';
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

/** What is piped in is held whole before it is read. */
const stdinBytesMax = 512 * 1024 * 1024;
const chunkBytes = 256 * 1024;

/** Does this name a file, there or not, and no job? Jobs have no slash in their names, and hardly an extension. */
function isFile(what: string, { environment }: Context): boolean {
  return (
    what === '-' ||
    what.includes('/') ||
    /\.[a-z]{2,5}$/i.test(what) ||
    existsSync(resolve(environment.workingDir, what))
  );
}

/**
 * @param file `-` is standard input
 * @throws {CliError} naming the file and what is wrong with it
 */
async function diagnoseFile(file: string, context: Context): Promise<Diagnosis> {
  const log = new LogDiagnosis();
  if (file === '-') log.feed(await readStdin(context));
  else await feedFile(log, file, context);
  log.end();
  return log.result();
}

async function feedFile(log: LogDiagnosis, file: string, { environment }: Context): Promise<void> {
  const stream = createReadStream(resolve(environment.workingDir, file), { highWaterMark: chunkBytes });
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) log.feed(chunk);
  } catch (error) {
    const reason = fileErrorReason(error);
    if (reason === null) throw error;
    throw usageError(
      `cannot read the log ${file}: ${reason}`,
      'Give a log file, - for standard input, or a job.',
    );
  }
}

async function readStdin({ io }: Context): Promise<Buffer> {
  if (io.stdin.isTerminal)
    await io.stderr.write('Reading the log from the terminal; Ctrl-D ends the input.\n');
  const bytes = await io.stdin.readAll(stdinBytesMax);
  if (bytes !== null) return bytes;
  throw usageError(
    `the log on standard input is larger than ${bytesText(stdinBytesMax)}`,
    'Put it into a file and name that: files may have any size.',
  );
}

/** A diagnosis for people. Pure. */

const retryTexts: Readonly<Record<RetryAdvice, string>> = {
  no: 'no: it would fail in the same way',
  after_change: 'after a change',
  same_node: 'yes, on the same node too',
  other_node: 'on another node',
  previous_checkpoint: 'from the checkpoint before',
  rollback: 'from a checkpoint before the trouble began',
  resume: 'from its newest checkpoint',
  none: 'not needed',
};

/** @param title null: none */
function formatDiagnosis(diagnosis: Diagnosis, title: string | null, colours: Colours): string {
  const { state, cause, blame, evidence, retry, advice, framework, metrics } = diagnosis;
  const fields = formatFields(
    [
      ['State', state],
      ['Cause', cause ?? 'none: no sign of a failure found'],
      ['Blame', blame],
      ['Evidence', evidenceLine(evidence)],
      ['Retry', retry === null ? null : retryTexts[retry]],
      ['Advice', advice],
      ['Framework', framework],
      ['Metrics', metrics.rows === 0 ? null : count(metrics.rows, 'line')],
      ['First', metrics.first === null ? null : valuesText(metrics.first)],
      ['Last', metrics.last === null ? null : valuesText(metrics.last)],
    ],
    colours,
  );
  return title === null ? fields : `${colours.bold(title)}\n\n${fields}`;
}

function evidenceLine(evidence: Diagnosis['evidence']): string | null {
  if (evidence === null) return null;
  const { line, rank, text } = evidence;
  const where = [line === null ? null : `line ${line}`, rank === null ? null : `rank ${rank}`].filter(
    (part) => part !== null,
  );
  return where.length === 0 ? text : `${where.join(', ')}: ${text}`;
}

function valuesText(values: MetricRow['values']): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${value ?? 'unknown'}`)
    .join('  ');
}
