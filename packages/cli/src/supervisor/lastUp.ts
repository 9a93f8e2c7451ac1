import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '@muster/common/errors';
import { writeFileAtomically } from '@muster/common/files';
import type { ProgramEnvironment } from '../environment.ts';
import { fileErrorReason } from '../errors.ts';

/**
 * Notes where this `muster up` keeps its data, so that other calls of this user find its coordinator.
 * @returns null, or why it could not be noted: no reason to stop, as `--data` does the same
 */
export function rememberLastUp(dataDir: string, { lastUpPath }: ProgramEnvironment): string | null {
  try {
    mkdirSync(dirname(lastUpPath), { recursive: true, mode: 0o700 });
    writeFileAtomically(lastUpPath, `${JSON.stringify({ dataDir })}\n`, 0o600);
    return null;
  } catch (error) {
    return `cannot write ${lastUpPath}: ${fileErrorReason(error) ?? messageOf(error)}`;
  }
}
