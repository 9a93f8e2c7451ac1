/** The state of the node's health on disk, so that a restart of the agent forgets no condition and no GPU. */
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import type { Logger } from '@muster/common/log';
import type { HealthState } from './state.ts';
import { decodeHealthState, encodeHealthState } from './stateCodec.ts';

export interface StoredHealth {
  readonly state: HealthState;
  /** Of the newest record of the kernel log that the state knows of, in its boot; null: none. */
  readonly kernelSequence: number | null;
}

export class ConditionStore {
  private readonly path: string;
  private readonly log: Logger;
  private failing = false;

  /** @param dataDir absolute, exists */
  constructor(dataDir: string, log: Logger) {
    this.path = join(dataDir, 'conditions.json');
    this.log = log;
  }

  /** @returns null when there is none. One that is damaged is put aside: conditions are read again, jobs are not at stake. */
  load(): StoredHealth | null {
    const { path } = this;
    try {
      return decodeHealthState(readFileSync(path, 'utf8'));
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      this.log.warn(
        { path, err: messageOf(error) },
        `the stored conditions in ${path} cannot be read; starting without them, the file is kept as ${path}.damaged`,
      );
      this.putAside();
      return null;
    }
  }

  /** @returns whether it is on disk; a full disk is said once, and is no reason to stop */
  save(health: StoredHealth): boolean {
    try {
      writeFileDurably(this.path, encodeHealthState(health), 0o600);
      this.failing = false;
      return true;
    } catch (error) {
      const fields = { path: this.path, err: messageOf(error) };
      const message = `conditions cannot be stored in ${this.path}; a restart of the agent would forget them until they are seen again`;
      if (!this.failing) this.log.warn(fields, message);
      this.failing = true;
      return false;
    }
  }

  private putAside(): void {
    try {
      renameSync(this.path, `${this.path}.damaged`);
    } catch {
      // It is overwritten by the next save then.
    }
  }
}
