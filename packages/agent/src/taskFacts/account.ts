/** The account that a bare task runs as, where that is not the user of its agent. */
import { join } from 'node:path';

/** A setting of the node: the account that tasks of a user, of a project, or of everybody run as. */
export interface AccountRule {
  readonly of: 'user' | 'project' | 'all';
  /** Of the user or project; empty: of all. */
  readonly name: string;
  readonly account: string;
}

export interface TaskAccount {
  /** Of the node's user database. */
  readonly name: string;
  /** A rule of the node names it, so it may be any account. Otherwise it is the name of the job's user, and no account of the system. */
  readonly isRule: boolean;
}

/** Of an account, as the kernel counts. */
export interface AccountIds {
  readonly uid: number;
  readonly gid: number;
  /** All of them, `gid` among them. */
  readonly groups: readonly number[];
}

/**
 * Where a task with an account of its own can write beside its records: the records are the agent's.
 * @param directory of the task
 */
export function ownDirectory(directory: string): string {
  return join(directory, 'own');
}
