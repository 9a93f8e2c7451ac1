import { realPaths } from '../probes/realPaths.ts';
import type { AccountIds, TaskAccount } from '../taskFacts/account.ts';
import type { Lease, TaskLocation } from '../taskFacts/execution.ts';
import type { Fence } from './driver.ts';

/** A fence for tests that holds nothing back and remembers what it was asked: `renew job_….1.0 12000`. */
export class RecordingFence implements Fence {
  readonly calls: string[] = [];
  /** Of the last renewal of each task. */
  readonly groups = new Map<string, readonly string[]>();

  /** Of every account, beside its own. */
  moreGroups: readonly number[] = [];

  async renew({ key }: TaskLocation, lease: Lease | null, groups: readonly string[]): Promise<void> {
    this.calls.push(`renew ${key} ${lease?.deadlineBoottimeMs ?? 'never'}`);
    this.groups.set(key, groups);
  }

  async forget({ key }: TaskLocation): Promise<void> {
    this.calls.push(`forget ${key}`);
  }

  realPaths(paths: readonly string[]): Promise<readonly (string | null)[]> {
    return realPaths(paths);
  }

  /** As if the account's name were its uid. */
  async accountIds({ name }: TaskAccount): Promise<AccountIds> {
    return { uid: Number(name), gid: Number(name), groups: [Number(name), ...this.moreGroups] };
  }
}
