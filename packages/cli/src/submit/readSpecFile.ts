import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { specBytesMax } from '@muster/common/spec/limits';
import type { Context } from '../context.ts';
import { fileErrorReason, usageError } from '../errors.ts';
import { bytesText } from '../output/times.ts';

/**
 * The text of a job file; `-` is standard input. Anything too large to be one is refused before it is read.
 * @throws {CliError} naming the file and what is wrong with it
 */
export async function readSpecFile(file: string, { io, environment }: Context): Promise<string> {
  if (file === '-') {
    if (io.stdin.isTerminal)
      await io.stderr.write('Reading the job spec from the terminal; Ctrl-D ends the input.\n');
    const bytes = await io.stdin.readAll(specBytesMax);
    if (bytes === null) throw tooLarge('the job spec on standard input', null);
    return bytes.toString('utf8');
  }
  let descriptor: number | null = null;
  try {
    descriptor = openSync(resolve(environment.workingDir, file), 'r');
    const stat = fstatSync(descriptor);
    if (stat.size > specBytesMax) throw tooLarge(file, stat.size);
    return readBounded(descriptor, file).toString('utf8');
  } catch (error) {
    const reason = fileErrorReason(error);
    if (reason === null) throw error;
    throw usageError(`cannot read the job file ${file}: ${reason}`);
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

/** A pipe or a device has no size to look at beforehand. */
function readBounded(descriptor: number, file: string): Buffer {
  const buffer = Buffer.alloc(specBytesMax + 1);
  let bytes = 0;
  for (;;) {
    const read = readSync(descriptor, buffer, bytes, buffer.length - bytes, null);
    if (read === 0) return buffer.subarray(0, bytes);
    bytes += read;
    if (bytes > specBytesMax) throw tooLarge(file, null);
  }
}

function tooLarge(what: string, bytes: number | null): Error {
  const size = bytes === null ? 'too large' : bytesText(bytes);
  return usageError(
    `${what} is ${size}; a job spec has at most ${bytesText(specBytesMax)}`,
    'Put data into files that the job reads.',
  );
}
