/** Captured outputs of real drivers, where a checkout has them beside it; a clone alone is tested by its own fixtures. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../../../../../../shared/fixtures/nvidia', import.meta.url));

export const hasCaptures = existsSync(folder);

export function capture(...path: readonly string[]): string {
  return readFileSync(join(folder, ...path), 'utf8');
}

export function captureJson(...path: readonly string[]): unknown {
  return JSON.parse(capture(...path));
}
