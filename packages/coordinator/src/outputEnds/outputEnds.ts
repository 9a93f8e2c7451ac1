/** Looks at what is here of the metrics and the output of tasks, and at who could still send more. */
import { type JobId, type NodeName, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { AgentRegistry } from '../agents/registry.ts';
import type { TaskAccounts } from '../agents/taskAccounts.ts';
import type { LogStore } from '../logs/logStore.ts';
import type { Attempt, Task } from '../model.ts';
import type { RowStore } from '../rows/rowStore.ts';
import type { ClusterState } from '../state/state.ts';
import { logState, rowsState, type SenderNode, type SenderState } from './sender.ts';

export interface OutputEndsParts {
  readonly state: Pick<ClusterState, 'nodes'>;
  readonly agents: Pick<AgentRegistry, 'isSilent'>;
  readonly taskAccounts: Pick<TaskAccounts, 'now' | 'holdOf'>;
  readonly rows: Pick<RowStore, 'here'>;
  readonly logs: Pick<LogStore, 'size'>;
}

/** A task as the source of metrics. */
export interface RowSender {
  readonly nodeRank: number;
  readonly node: NodeName;
  readonly state: SenderState;
  /** Highest step in its rows. null: they have none. */
  readonly step: number | null;
}

/** Looks that are remembered. Of more, those asked for longest ago look for the first time again. */
const looksMax = 65_536;

export class OutputEnds {
  private readonly parts: OutputEndsParts;
  /** The newest account of any agent at the first look at each task, longest ago first. */
  private readonly firstLooks = new Map<TaskKey, number>();

  constructor(parts: OutputEndsParts) {
    this.parts = parts;
  }

  /** @returns the tasks of an attempt, by rank, with what is known of the rest of their metrics */
  async rowSenders(jobId: JobId, { number, tasks }: Attempt): Promise<readonly RowSender[]> {
    const senders: RowSender[] = [];
    for (const { nodeRank, node, exit } of tasks) {
      const ref = { jobId, attempt: number, nodeRank };
      // Before the rows: what the agent had dropped by now was acknowledged, and is here.
      const sender = this.nodeOf(node, ref);
      const here = await this.parts.rows.here(ref);
      senders.push({ nodeRank, node, state: rowsState(exit, here, sender), step: here.step });
    }
    return senders;
  }

  /** Whether all of the output of a task is here. */
  async logSender(jobId: JobId, { number }: Pick<Attempt, 'number'>, task: Task): Promise<SenderState> {
    const ref = { jobId, attempt: number, nodeRank: task.nodeRank };
    const sender = this.nodeOf(task.node, ref);
    return logState(task.exit, await this.parts.logs.size(ref), sender);
  }

  private nodeOf(node: NodeName, task: TaskRef): SenderNode {
    const { state, agents, taskAccounts } = this.parts;
    const key = taskKey(task);
    return {
      isMember: state.nodes.has(node),
      isSilent: agents.isSilent(node),
      hold: taskAccounts.holdOf(node, key, this.firstLookAt(key)),
    };
  }

  private firstLookAt(key: TaskKey): number {
    const seen = this.firstLooks.get(key) ?? this.parts.taskAccounts.now;
    this.firstLooks.delete(key);
    this.firstLooks.set(key, seen);
    for (const oldest of this.firstLooks.keys()) {
      if (this.firstLooks.size <= looksMax) break;
      this.firstLooks.delete(oldest);
    }
    return seen;
  }
}
