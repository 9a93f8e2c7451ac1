/** The worker of AutoML as it is sent with the first job of a run: Python, which this program never runs itself. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';

/** @param programDir the folder of the bundles, or of the sources of the command line */
export function automlProgram(programDir: string): string {
  const dir = programDir.endsWith('/src')
    ? join(programDir, '../../advice/muster_automl')
    : join(programDir, 'muster_automl');
  const names = readdirSync(dir).filter((name) => name.endsWith('.py'));
  const files = Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(dir, name), 'utf8')]));
  return deflateSync(JSON.stringify(files), { level: 9 }).toString('base64');
}
