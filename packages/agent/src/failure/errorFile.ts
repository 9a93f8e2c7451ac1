/**
 * The error file of torchelastic: torchrun copies that of the worker which failed first to the path in its own
 * TORCHELASTIC_ERROR_FILE, when the program's entry point is decorated with `@record`.
 *
 * Format (torch/distributed/elastic/multiprocessing/errors): `{"message": {"message": "ValueError: …", "extraInfo":
 * {"py_callstack": "…", "timestamp": "1689298411"}}}`, or `message` as text; timestamps are whole seconds.
 */
import { isMapping } from '@muster/common/spec/path';
import { oneLine } from './oneLine.ts';

export interface RecordedError {
  readonly message: string;
  /** Wall clock of the node at the failure, in whole seconds; null: it does not say. */
  readonly atSeconds: number | null;
}

/** @returns null for text that is no such file, whole or not */
export function parseErrorFile(text: string): RecordedError | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const outer = isMapping(value) ? value['message'] : undefined;
  if (typeof outer === 'string') return outer === '' ? null : { message: oneLine(outer), atSeconds: null };
  if (!isMapping(outer) || typeof outer['message'] !== 'string' || outer['message'] === '') return null;
  const info = outer['extraInfo'];
  const seconds = Number(isMapping(info) ? info['timestamp'] : Number.NaN);
  return { message: oneLine(outer['message']), atSeconds: seconds > 0 ? seconds : null };
}
