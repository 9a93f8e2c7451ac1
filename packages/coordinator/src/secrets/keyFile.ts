/**
 * The keys that secrets are encrypted with, in a file of their own beside the store: anyone who has only the store, or a backup of it,
 * has no secret. A key a line, the newest first.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';

export interface SecretKeys {
  /** The newest first. Empty: there is none yet. @throws {MusterError} when the file is damaged */
  read(): readonly Uint8Array[];
  /** Durable when it returns. @throws {Error} with the kernel's code */
  write(keys: readonly Uint8Array[]): void;
}

export class SecretKeyFile implements SecretKeys {
  private readonly path: string;

  constructor(dataDir: string) {
    this.path = join(dataDir, 'secrets.key');
  }

  read(): readonly Uint8Array[] {
    let text: string;
    try {
      text = readFileSync(this.path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
    const keys = text.split('\n').filter((line) => line !== '');
    if (keys.length === 0 || keys.some((line) => !/^[0-9a-f]{64}$/.test(line)))
      throw new MusterError(
        'failed_precondition',
        `${this.path} is damaged: restore it from a copy; without one, remove it, and set every secret again`,
      );
    return keys.map((line) => Buffer.from(line, 'hex'));
  }

  write(keys: readonly Uint8Array[]): void {
    const lines = keys.map((key) => `${Buffer.from(key).toString('hex')}\n`);
    writeFileDurably(this.path, lines.join(''), 0o600);
  }
}
