import { realpath } from 'node:fs/promises';

/** Where each of these absolute paths leads, as this process sees the node; null: it does not see it. */
export function realPaths(paths: readonly string[]): Promise<readonly (string | null)[]> {
  return Promise.all(paths.map((path) => realpath(path).catch(() => null)));
}
