import type { Account, Accounts } from './account.ts';
import { openAccounts } from './asAccount.ts';
import type { AccountLaunch, GuardLaunch } from './protocol.ts';
import { giveDirectories } from './taskDirectories.ts';

/** A launch with all that the start of a process needs. */
export interface TaskStart extends GuardLaunch {
  /** null: as this process. */
  readonly as: Account | null;
}

export interface AccountStart extends TaskStart {
  readonly as: Account;
  readonly umask: number;
}

/**
 * Completes a launch with what a login of the account has. What the launch contains already counts.
 * @throws {DriverError} when this node has no such account, or no task may run as it
 */
export async function startAs(launch: AccountLaunch, accounts: Accounts): Promise<AccountStart> {
  await openAccounts();
  const account = await accounts.find(launch.account);
  const { name, home, shell } = account;
  return {
    ...launch,
    as: account,
    workdir: launch.workdir ?? home,
    umask: launch.umask ?? account.umask,
    env: { HOME: home, USER: name, LOGNAME: name, SHELL: shell, ...launch.env },
  };
}

/** @throws {DriverError} when the task cannot run as its account */
export async function taskStart(launch: GuardLaunch | AccountLaunch, accounts: Accounts): Promise<TaskStart> {
  if (!('account' in launch)) return { ...launch, as: null };
  const start = await startAs(launch, accounts);
  giveDirectories(start.as, launch);
  return start;
}
