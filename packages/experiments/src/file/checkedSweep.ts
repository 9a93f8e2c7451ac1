import { MusterError } from '@muster/common/errors';
import { readSweep, type SweepSpec } from './sweepFile.ts';

/** A sweep file that was checked when its sweep was created. @throws {MusterError} `internal`: it is of another version */
export function checkedSweep(value: unknown): SweepSpec {
  const read = readSweep(value);
  if (!read.ok) throw new MusterError('internal', 'the sweep of the coordinator cannot be read');
  return read.sweep;
}
