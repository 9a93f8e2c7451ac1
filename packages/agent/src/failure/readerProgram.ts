/** Where the program is that reads failures: the build puts it beside the bundle. */
import { join } from 'node:path';

export const failureReaderProgram = import.meta.filename.endsWith('.ts')
  ? join(import.meta.dirname, 'reader/main.ts')
  : join(import.meta.dirname, 'failure-reader.mjs');
