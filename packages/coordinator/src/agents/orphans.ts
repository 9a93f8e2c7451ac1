/**
 * Orphans: tasks that run on nodes and are not in the store, for example after a restore from a backup. They are kept in
 * memory only, because agents report them in every Hello. Their GPUs count as used, and only an administrator ends them.
 */
import { type NodeName, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { OrphanTask, TaskReport } from '@muster/common/views';
import { observedMax } from '@muster/common/wire/agentLimits';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';

export class OrphanTasks {
  private readonly state: Pick<ClusterState, 'jobs' | 'outcomes'>;
  /** What each node has that may be an orphan: whether it is one depends on what the store knows by then. */
  private readonly candidates = new Map<NodeName, ReadonlyMap<TaskKey, OrphanTask>>();
  private readonly condemned = new Map<NodeName, Set<TaskKey>>();

  constructor(state: Pick<ClusterState, 'jobs' | 'outcomes'>) {
    this.state = state;
  }

  /** A Hello: everything that runs there. */
  replace(node: NodeName, tasks: readonly OrphanTask[]): void {
    const unknown = tasks.filter(({ task }) => this.isUnknown(task));
    if (unknown.length === 0) this.candidates.delete(node);
    else this.candidates.set(node, new Map(unknown.map((each) => [taskKey(each.task), each])));
  }

  /** A heartbeat. @returns whether one of them has ended: its GPUs are free */
  reported(node: NodeName, reports: readonly TaskReport[]): boolean {
    const before = this.candidates.get(node);
    if (before === undefined) return false;
    const byKey = new Map(reports.map((report) => [taskKey(report.task), report]));
    const isComplete = reports.length < observedMax;
    const left = [...before].flatMap(([key, orphan]): [TaskKey, OrphanTask][] => {
      const report = byKey.get(key);
      if (report === undefined) return isComplete ? [] : [[key, orphan]];
      return report.state === 'ended' ? [] : [[key, { ...orphan, frozen: report.frozen }]];
    });
    if (left.length === 0) this.candidates.delete(node);
    else this.candidates.set(node, new Map(left));
    return left.length < before.size;
  }

  of(node: NodeName): readonly OrphanTask[] {
    return [...(this.candidates.get(node)?.values() ?? [])].filter(({ task }) => this.isUnknown(task));
  }

  /** GPUs of a node that its orphans hold. */
  gpusOf(node: NodeName): ReadonlySet<string> {
    return new Set(this.of(node).flatMap(({ gpuUuids }) => gpuUuids));
  }

  /** An administrator has confirmed it: the node kills its orphans. @returns which */
  condemn(node: NodeName): readonly OrphanTask[] {
    const orphans = this.of(node);
    const keys = this.condemned.get(node) ?? new Set();
    for (const { task } of orphans) keys.add(taskKey(task));
    this.condemned.set(node, keys);
    return orphans;
  }

  isCondemned(node: NodeName, task: TaskRef): boolean {
    return this.condemned.get(node)?.has(taskKey(task)) === true && this.isUnknown(task);
  }

  /** Nobody expects anything of a node that was removed. */
  committed({ removedNodes }: Pick<Committed, 'removedNodes'>): void {
    for (const node of removedNodes) {
      this.candidates.delete(node);
      this.condemned.delete(node);
    }
  }

  private isUnknown({ jobId, attempt }: TaskRef): boolean {
    const job = this.state.jobs.get(jobId);
    if (job === undefined) return !this.state.outcomes.has(jobId);
    return attempt > job.lastAttempt;
  }
}
