import type { Lease, TaskLocation } from '../taskFacts/execution.ts';

/** The fence that holds without the agent, for tasks that something else than the guard has started. `GuardClient` is one. */
export interface Fence {
  /**
   * At the lease's deadline what is in these control groups is frozen or killed, also what comes into them later. Of two
   * leases the later one counts.
   * @param lease null: never fenced
   * @param groups absolute paths; they need not exist yet
   */
  renew(task: TaskLocation, lease: Lease | null, groups: readonly string[]): Promise<void>;

  /** The task has ended, or will never begin. One that is not known is not an error. */
  forget(task: TaskLocation): Promise<void>;

  /**
   * Where each of these absolute paths leads, every link followed; null: it is not on the node. An agent in a sandbox does
   * not see all of the node; what holds the fence does, or it could not.
   */
  realPaths(paths: readonly string[]): Promise<readonly (string | null)[]>;
}
