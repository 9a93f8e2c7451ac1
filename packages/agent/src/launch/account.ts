/** The account that a job's tasks run as on this node: that of a rule, else the one with the name of the job's user. */
import { MusterError } from '@muster/common/errors';
import type { AccountRule, TaskAccount } from '../taskFacts/account.ts';
import { DriverError } from '../taskFacts/errors.ts';

export interface AccountPolicy {
  /** Rules for a user come before those for a project, and those before a rule for all. */
  readonly rules: readonly AccountRule[];
  /** A job without a rule. `agent`: its tasks run as their agent does. `user`: as the account of the job's user, or not at all. */
  readonly others: 'agent' | 'user';
}

/**
 * @param uid of the agent. Only root can start tasks as somebody else.
 * @param rootTasks as root, bare tasks can read what the agent keeps, leave their control group, command the guard, and rewrite the
 *   machine, so the owner of the node has to allow it
 * @throws {MusterError} when there are rules that this agent cannot follow
 */
export function accountPolicy(
  rules: readonly AccountRule[],
  rootTasks: 'allow' | 'refuse',
  uid: number,
): AccountPolicy {
  if (uid !== 0) {
    if (rules.length === 0) return { rules, others: 'agent' };
    throw new MusterError(
      'failed_precondition',
      `--account needs an agent that runs as root, and this one runs as uid ${uid}`,
    );
  }
  return { rules, others: rootTasks === 'allow' ? 'agent' : 'user' };
}

/**
 * @param user of the job; empty: an older coordinator does not name it
 * @returns null: as the agent
 * @throws {DriverError} when the job's tasks may not run here
 */
export function accountOf(
  { rules, others }: AccountPolicy,
  { user, project }: { readonly user: string; readonly project: string },
): TaskAccount | null {
  const names = { user, project, all: '' } as const;
  for (const kind of ['user', 'project', 'all'] as const) {
    const rule = rules.find((each) => each.of === kind && each.name === names[kind]);
    if (rule !== undefined) return { name: rule.account, isRule: true };
  }
  if (others === 'agent') return null;
  if (user !== '') return { name: user, isRule: false };
  throw new DriverError(
    'unknown',
    'the coordinator does not name the user of this job, and this node runs jobs as the accounts of their users: ' +
      'upgrade the coordinator',
  );
}
