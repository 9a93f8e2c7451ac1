/** Where the program is that reads checkpoints: the build puts it beside the bundle; in the source tree it is a package's. */
import { join } from 'node:path';

export const verifierProgram = import.meta.filename.endsWith('.ts')
  ? join(import.meta.dirname, '../../../checkpoints/src/verifier/main.ts')
  : join(import.meta.dirname, 'checkpoint-verifier.mjs');
