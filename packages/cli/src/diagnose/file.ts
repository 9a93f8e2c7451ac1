/** The diagnosis of a log on this machine, of any size. */
import { createReadStream, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { LogDiagnosis } from '@muster/diagnosis/diagnose';
import type { Diagnosis } from '@muster/diagnosis/words';
import type { Context } from '../context.ts';
import { fileErrorReason, usageError } from '../errors.ts';
import { bytesText } from '../output/times.ts';

/** What is piped in is held whole before it is read. */
const stdinBytesMax = 512 * 1024 * 1024;
const chunkBytes = 256 * 1024;

/** Does this name a file, there or not, and no job? Jobs have no slash in their names, and hardly an extension. */
export function isFile(what: string, { environment }: Context): boolean {
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
export async function diagnoseFile(file: string, context: Context): Promise<Diagnosis> {
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
