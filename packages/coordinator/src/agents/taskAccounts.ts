/**
 * Which tasks each node still has. An agent names every task in its Hello and in each heartbeat until it has handed over all of the
 * task's output and is told to forget it. A task that it no longer names can therefore send nothing more.
 *
 * Kept in memory only, because agents say it again on every connection.
 */
import { type NodeName, type TaskKey, taskKey } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import { observedMax } from '@muster/common/wire/agentLimits';
import type { Committed } from '../state/committed.ts';

type ReportedTask = Pick<TaskReport, 'task'>;

/** What an agent said last of the tasks that it has. */
interface Account {
  /** Grows with each account of any node, so that an account can be told to be later than a look. */
  readonly number: number;
  readonly tasks: ReadonlySet<TaskKey>;
  /** False if the account may have left some tasks out. */
  readonly isWhole: boolean;
  /** The agent marks where the rows of its tasks end before it drops them. */
  readonly marksRowEnds: boolean;
}

/**
 * - `held`: the agent has it
 * - `dropped`: the agent no longer has it, and has marked where its rows end before
 * - `dropped_unmarked`: the same of an agent of an earlier version, which marks nothing
 * - `unknown`: the agent has given no account since the look
 */
export type TaskHold = 'held' | 'dropped' | 'dropped_unmarked' | 'unknown';

export class TaskAccounts {
  private readonly accounts = new Map<NodeName, Account>();
  private accountsTaken = 0;

  /** Number of the newest account of all nodes, to ask `holdOf` about later ones. */
  get now(): number {
    return this.accountsTaken;
  }

  /** A Hello. */
  connected(node: NodeName, reports: readonly ReportedTask[], marksRowEnds: boolean): void {
    this.take(node, reports, marksRowEnds);
  }

  /** A heartbeat. */
  reported(node: NodeName, reports: readonly ReportedTask[]): void {
    this.take(node, reports, this.accounts.get(node)?.marksRowEnds ?? false);
  }

  /** @param since `now` at a moment when the agent was known to have had the task */
  holdOf(node: NodeName, task: TaskKey, since: number): TaskHold {
    const account = this.accounts.get(node);
    if (account?.tasks.has(task) === true) return 'held';
    if (account === undefined || !account.isWhole || account.number <= since) return 'unknown';
    return account.marksRowEnds ? 'dropped' : 'dropped_unmarked';
  }

  committed({ removedNodes }: Pick<Committed, 'removedNodes'>): void {
    for (const node of removedNodes) this.accounts.delete(node);
  }

  private take(node: NodeName, reports: readonly ReportedTask[], marksRowEnds: boolean): void {
    this.accountsTaken += 1;
    const isWhole = reports.length < observedMax;
    const tasks = new Set(reports.map(({ task }) => taskKey(task)));
    this.accounts.set(node, { number: this.accountsTaken, tasks, isWhole, marksRowEnds });
  }
}
