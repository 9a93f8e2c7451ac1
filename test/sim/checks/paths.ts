/**
 * Checks G3 of docs/guarantees.md before a gang runs. A gang is released when each of its nodes has reached those that it
 * has to, at the ports that these hold now, and when no pair that was measured is slower than the job allows.
 */
import { type JobId, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { Verdict } from './verdict.ts';

export class PathsCheck {
  /** `<from> <to>` of paths whose last try was good. */
  private readonly good = new Set<string>();
  private readonly measuredMbps = new Map<string, number>();
  private readonly gangSizes = new Map<string, number>();
  private readonly bad = new Set<JobId>();
  private readonly verdict: Verdict;
  private readonly fileOf: (jobName: string) => JobSpecFile | undefined;

  constructor(verdict: Verdict, fileOf: PathsCheck['fileOf']) {
    this.verdict = verdict;
    this.fileOf = fileOf;
  }

  /** Some node of it could not reach another one, or the bandwidth between two of them was measured, which may be too low. */
  wereBad(jobId: JobId): boolean {
    return this.bad.has(jobId);
  }

  see(fact: Fact): void {
    if (fact.kind === 'pathTried') {
      const key = pathKey(fact.task, fact.toRank);
      if (fact.error === null) this.good.add(key);
      else this.good.delete(key);
      if (fact.error !== null) this.bad.add(fact.task.jobId);
    } else if (fact.kind === 'pathMeasured') {
      this.measuredMbps.set(pathKey(fact.task, fact.toRank), fact.mbps);
      this.bad.add(fact.task.jobId);
    } else if (fact.kind === 'committed') {
      for (const event of fact.events) this.onEvent(event);
    }
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    const ref = { jobId: subject as JobId, attempt: Number(data['attempt']) };
    const attempt = `${ref.jobId}.${ref.attempt}`;
    if (kind === 'attempt.allocated') this.gangSizes.set(attempt, (data['tasks'] as unknown[]).length);
    if (kind !== 'attempt.released') return;
    const size = this.gangSizes.get(attempt) ?? 1;
    const wanted = this.fileOf(String(data['name']))?.preflight;
    const floorMbps = typeof wanted === 'object' ? (wanted.min_bandwidth_mbps ?? 0) : 0;
    for (let nodeRank = 0; nodeRank < size; nodeRank += 1) {
      for (const toRank of new Set([0, (nodeRank + 1) % size])) {
        if (toRank === nodeRank) continue;
        const key = pathKey({ ...ref, nodeRank }, toRank);
        const must = (holds: boolean, what: string) =>
          this.verdict.require(holds, 'G3', () => `${attempt} was released, and ${key} ${what}`);
        must(this.good.has(key), 'had not been found good');
        const isMeasured = wanted === undefined || wanted === false || this.measuredMbps.has(key);
        must(isMeasured, 'had not been measured');
        must((this.measuredMbps.get(key) ?? floorMbps) >= floorMbps, 'is too slow for it');
      }
    }
  }
}

function pathKey(from: TaskRef, toRank: number): `${TaskKey} ${TaskKey}` {
  return `${taskKey(from)} ${taskKey({ ...from, nodeRank: toRank })}`;
}
