import { describe, expect, test } from 'vitest';
import type { AccountRule } from '../taskFacts/account.ts';
import { accountOf, accountPolicy } from './account.ts';

const rules: readonly AccountRule[] = [
  { of: 'all', name: '', account: 'jobs' },
  { of: 'project', name: 'llama', account: 'llama-team' },
  { of: 'user', name: 'alice', account: 'alice2' },
];
const alice = { user: 'alice', project: 'llama' };
const bob = { user: 'bob', project: 'llama' };
const carol = { user: 'carol', project: 'other' };

describe('whom a task runs as', () => {
  test('a rule for its user comes first, then one for its project, then the one for all', () => {
    const policy = accountPolicy(rules, 'refuse', 0);
    expect(accountOf(policy, alice)).toEqual({ name: 'alice2', isRule: true });
    expect(accountOf(policy, bob)).toEqual({ name: 'llama-team', isRule: true });
    expect(accountOf(policy, carol)).toEqual({ name: 'jobs', isRule: true });
  });

  test('without a rule it is the account of its user, and root only where the node allows that', () => {
    const own = { name: 'carol', isRule: false };
    expect(accountOf(accountPolicy([], 'refuse', 0), carol)).toEqual(own);
    expect(accountOf(accountPolicy(rules.slice(1), 'refuse', 0), carol)).toEqual(own);
    expect(accountOf(accountPolicy(rules.slice(1), 'allow', 0), carol)).toBeNull();
    expect(accountOf(accountPolicy([], 'allow', 0), carol)).toBeNull();
  });

  test('a job whose user is not known gets the account of nobody else', () => {
    const refuse = accountPolicy([], 'refuse', 0);
    expect(() => accountOf(refuse, { user: '', project: 'x' })).toThrow(/does not name the user/);
  });

  test('an agent that is not root runs every task as itself, and refuses rules', () => {
    expect(accountOf(accountPolicy([], 'refuse', 1000), alice)).toBeNull();
    expect(() => accountPolicy(rules, 'refuse', 1000)).toThrow(/runs as uid 1000/);
  });
});
