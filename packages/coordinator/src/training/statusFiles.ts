/**
 * Keeps `training_status.md` of every job that has begun beside its output. It is a convenience: nothing waits for it, a disk that
 * takes no more hinders nothing, and what is asked of the API never comes from it.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import { writeFileAtomically } from '@muster/common/files';
import type { JobId } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import type { JobRecord, Store } from '../store/store.ts';
import { nextRound } from '../work/inOrder.ts';

export const statusFileName = 'training_status.md';

/** The interval while only the reports of agents change. */
const refreshMs = 10_000;
/** Of one pass: a thousand jobs that end at once must not keep the coordinator from its work. */
const filesPerPass = 50;

export interface StatusFilesParts {
  readonly state: Pick<ClusterState, 'jobs'>;
  readonly store: Pick<Store, 'readJob'>;
  readonly directoryOf: (jobId: JobId) => string;
  readonly statusOf: (record: JobRecord) => string;
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

export class StatusFiles {
  private readonly parts: StatusFilesParts;
  /** To be written, longest waiting first. */
  private readonly changed = new Set<JobId>();
  /** Monotonic, of jobs that have not ended. */
  private readonly writtenAtMs = new Map<JobId, number>();
  private writing: Promise<void> | null = null;
  private isFailing = false;
  private isClosed = false;

  constructor(parts: StatusFilesParts) {
    this.parts = parts;
  }

  /** Called for every commit. A job that has never had an attempt has no output that a file could lie beside. */
  committed({ jobs }: Pick<Committed, 'jobs'>): void {
    for (const job of jobs) {
      if (job.lastAttempt > 0) this.changed.add(job.id);
      if (isTerminal(job.state.kind)) this.writtenAtMs.delete(job.id);
    }
  }

  /** Begins to write what is due, unless that is in progress. Resolves when it is done; never rejects. */
  run(): Promise<void> {
    if (this.isClosed) return Promise.resolve();
    this.writing ??= this.writeDue().finally(() => {
      this.writing = null;
    });
    return this.writing;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.writing;
  }

  private async writeDue(): Promise<void> {
    for (const job of this.parts.state.jobs.values()) if (this.isOld(job)) this.changed.add(job.id);
    for (const jobId of [...this.changed].slice(0, filesPerPass)) {
      if (this.isClosed) return;
      this.changed.delete(jobId);
      if (this.parts.state.jobs.has(jobId)) this.writtenAtMs.set(jobId, this.parts.monotonicMs());
      await this.write(jobId);
      await nextRound();
    }
  }

  private isOld({ id, state }: Job): boolean {
    if (state.kind !== 'running' && state.kind !== 'stopping') return false;
    const writtenAtMs = this.writtenAtMs.get(id);
    return writtenAtMs === undefined || this.parts.monotonicMs() - writtenAtMs >= refreshMs;
  }

  /**
   * Accesses the file system synchronously. The store on the same disk is written in the same way, and to hand each of these
   * small steps to a thread would take three times the CPU time of the steps.
   */
  private async write(jobId: JobId): Promise<void> {
    const { store, directoryOf, statusOf, log } = this.parts;
    const directory = directoryOf(jobId);
    const path = join(directory, statusFileName);
    try {
      const record = await store.readJob(jobId);
      if (record === null) return;
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      writeFileAtomically(path, statusOf(record), 0o600);
      this.isFailing = false;
    } catch (error) {
      // Half of a page on a full disk is of no use, and its blocks may be of use to others.
      removeQuietly(`${path}.tmp`);
      if (!this.isFailing) log.warn({ jobId, error: messageOf(error) }, 'a training status was not written');
      this.isFailing = true;
    }
  }
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The next write begins with the same removal.
  }
}
