/** A checkpoint directory of a test: what is in it is written in one line. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Contents by path. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** @returns its path; it is gone after the test */
export function checkpointDir(files: Files = {}): string {
  const root = mkdtempSync(join(tmpdir(), 'muster-checkpoints-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  writeFiles(root, files);
  return root;
}

export function writeFiles(root: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}
