/** Transactions of the opened store: each is all or nothing, followed by the witness, and finds its space on a full disk. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { messageOf } from '@muster/common/errors';
import { StoreError } from '../store.ts';
import { damaged } from './inspection.ts';
import { asStoreError, type OpenedDatabase } from './open.ts';
import { OwnSpace } from './ownSpace.ts';
import type { StoreFiles } from './storeFiles.ts';

/** Numbers of the newest event and the newest job in a transaction. 0: it has none. */
export interface NewestNumbers {
  readonly eventSeq: number;
  readonly submitSeq: number;
}

export class Transactions {
  private readonly database: DatabaseSync;
  private readonly files: StoreFiles;
  private readonly changes: StatementSync;
  private space: OwnSpace | null = null;

  constructor({ database, files }: Pick<OpenedDatabase, 'database' | 'files'>) {
    this.database = database;
    this.files = files;
    this.changes = database.prepare('select total_changes() as count');
  }

  /** Makes the space that commits find when other programs have filled the disk. */
  keepOwnSpace(fillers: number): OwnSpace {
    // Statements that change many rows keep the old ones aside, and a full disk has no room for a file of these.
    this.database.exec('pragma temp_store = memory');
    this.files.keepsLog = true;
    const { database, files } = this;
    this.space = new OwnSpace({ database, files, fillers, commit: (write) => this.commit(write) });
    return this.space;
  }

  /**
   * Runs `write` in a transaction. All of it is written and durable when this resolves, or nothing.
   * @throws {StoreError} `full`: nothing was written, and the transaction may be repeated once there is space
   */
  async run(write: () => void, newest?: NewestNumbers): Promise<void> {
    const tryOnce = () => {
      this.space?.prepareCommit();
      this.commit(write, newest);
    };
    try {
      tryOnce();
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'full') throw error;
      // The log has grown behind a backup that is being taken.
      if (!this.files.makeRoomInLog()) throw this.space?.usedUp(error) ?? error;
      tryOnce();
    }
    this.space?.afterCommit();
  }

  /** Marks the store as damaged, so that the next start refuses it. @returns why it can no longer be served */
  recordDamage(damage: string): StoreError {
    this.files.recordDamage(damage);
    return damaged(this.files.paths, damage);
  }

  private commit(write: () => void, newest?: NewestNumbers): void {
    const changes = this.changeCount();
    try {
      this.database.exec('begin immediate');
      write();
      this.database.exec('commit');
    } catch (error) {
      if (this.database.isTransaction) this.database.exec('rollback');
      const failure = asStoreError(error);
      throw failure.kind === 'damaged' ? this.recordDamage(messageOf(failure.cause)) : failure;
    }
    // It has appended nothing to the log. What lies behind the log's end is of a commit that failed, and is none.
    if (this.changeCount() === changes) return;
    this.files.follow(newest);
    this.files.acknowledge();
  }

  /** Rows that were written since the store was opened. */
  private changeCount(): number {
    return Number(this.changes.get()?.['count'] ?? 0);
  }
}
