import { realPaths } from '../probes/realPaths.ts';
import type { Lease, TaskLocation } from '../taskFacts/execution.ts';
import type { Fence } from './driver.ts';

/** A fence for tests that holds nothing back and remembers what it was asked: `renew job_….1.0 12000`. */
export class RecordingFence implements Fence {
  readonly calls: string[] = [];
  /** Of the last renewal of each task. */
  readonly groups = new Map<string, readonly string[]>();

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
}
