import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cCompiler } from '../services.ts';

const source = fileURLToPath(new URL('fakeSmi.c', import.meta.url));

/** @returns argv of a program that reads every card of this library once, as nvidia-smi does at each start */
export async function buildFakeSmi(dir: string, libraryPath: string): Promise<readonly [string, string]> {
  const path = join(dir, 'fake-smi');
  await promisify(execFile)(cCompiler(), ['-O1', '-Wall', '-Wextra', '-Werror', '-o', path, source, '-ldl']);
  return [path, libraryPath];
}
