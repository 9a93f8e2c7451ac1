/** Active jobs by the checkpoint directory that they name, so that two that share one are found without looking at all. */
import type { JobId } from '@muster/common/ids';
import { namedCheckpointDir } from '@muster/common/spec/checkpointDir';
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';
import { ownSpec } from '../spec/ownSpec.ts';

/** As nodes see it. null: it names none. */
export function directoryOf(job: Pick<Job, 'spec' | 'array'>): string | null {
  return namedCheckpointDir(ownSpec(job));
}

export class JobDirectories {
  private readonly jobs = new Map<string, Set<JobId>>();

  /** Takes note of a job as it is now. */
  note(job: Job): void {
    const directory = directoryOf(job);
    if (directory === null) return;
    const saving = this.jobs.get(directory) ?? new Set();
    if (isTerminal(job.state.kind)) saving.delete(job.id);
    else saving.add(job.id);
    if (saving.size === 0) this.jobs.delete(directory);
    else this.jobs.set(directory, saving);
  }

  savingIn(directory: string): Iterable<JobId> {
    return this.jobs.get(directory) ?? [];
  }

  get isEmpty(): boolean {
    return this.jobs.size === 0;
  }
}
