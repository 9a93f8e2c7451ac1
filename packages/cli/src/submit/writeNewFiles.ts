/** Files that a command writes where the user says, beside what is there. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Context } from '../context.ts';
import { CliError, fileErrorReason, usageError } from '../errors.ts';
import { count } from '../output/text.ts';

/** @throws {CliError} one is there already, and none was written; or they cannot be written */
export async function writeNewFiles(
  dir: string,
  files: readonly { readonly name: string; readonly text: string }[],
  { io, environment }: Context,
): Promise<void> {
  const path = resolve(environment.workingDir, dir);
  const existing = files.map(({ name }) => name).filter((name) => existsSync(join(path, name)));
  if (existing.length > 0)
    throw new CliError(`${dir} already has ${existing.join(', ')}`, {
      code: 'already_exists',
      hints: ['Give another directory, or remove them.'],
    });
  try {
    mkdirSync(path, { recursive: true });
    for (const { name, text } of files) {
      // `wx`: whatever came there meanwhile is not overwritten either.
      writeFileSync(join(path, name), text, { flag: 'wx', mode: name.endsWith('.sh') ? 0o755 : 0o644 });
    }
  } catch (error) {
    const reason = fileErrorReason(error);
    if (reason === null) throw error;
    throw usageError(`cannot write into ${dir}: ${reason}`);
  }
  await io.stderr.write(`Wrote ${count(files.length, 'file')} into ${dir}.\n`);
}
