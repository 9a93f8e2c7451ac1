import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Vitest calls this before it starts processes: what they and the programs of tests load is compiled once in a run. `npm test` has
 * such a folder already. It is not kept for the next run, because Vitest gives each test file another address in each run, and
 * Node would keep all of them.
 */
export function setup(): void {
  if (process.env.NODE_COMPILE_CACHE !== undefined) return;
  const folder = mkdtempSync(join(tmpdir(), 'muster-compiled-'));
  process.env.NODE_COMPILE_CACHE = folder;
  // Not before: processes of tests write into it when they end.
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
}
