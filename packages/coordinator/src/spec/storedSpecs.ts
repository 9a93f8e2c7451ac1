/**
 * Specs of active jobs in memory, without what planning never reads. A queued job may have 256 KB of command, arguments and environment,
 * and thousands of jobs may wait: these fields stay in the store, and are read when somebody asks for them.
 */
import type { ArrayId, JobId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job } from '../model.ts';
import { noteSpecSize, noteStoredSpec, specText } from './ownSpec.ts';

/** Fields that stay in the store. Neither scheduling nor the life of a job depends on them. */
const storedFields = ['command', 'args', 'env'] as const;
/** Specs up to this many characters stay in memory as they are. */
const smallMax = 4_096;
/** Characters of specs that were read last and are kept. */
const keptMax = 4 * 1024 * 1024;

/** Reads the text of a stored spec: of a job, or of an array if its jobs share it. @throws {StoreError} if it is not there */
export type ReadSpecText = (id: JobId, arrayId: ArrayId | null) => string;

export class StoredSpecs {
  private readonly read: ReadSpecText;
  /** Least recently read first. */
  private readonly kept = new Map<string, { readonly spec: JobSpec; readonly size: number }>();
  private keptSize = 0;
  /** One object for all jobs of an array, as long as any of them is active. */
  private readonly shared = new Map<ArrayId, WeakRef<JobSpec>>();
  /** Spec in memory → the job or array whose text it reads. */
  private readonly owners = new WeakMap<JobSpec, string>();

  constructor(read: ReadSpecText) {
    this.read = read;
  }

  /**
   * @param stored the text of the job's own spec, if the caller has it
   * @returns the job as memory keeps it. The job must be stored before its command, arguments or environment are read.
   */
  inMemory(job: Job, stored = ''): Job {
    const { id, array, spec } = job;
    const arrayId = array?.id ?? null;
    const shared = arrayId === null ? undefined : this.shared.get(arrayId)?.deref();
    if (shared !== undefined) return shared === spec ? job : { ...job, spec: shared };
    const key = arrayId ?? id;
    if (this.owners.get(spec) === key) return job;
    const text = stored === '' ? specText(spec) : stored;
    noteSpecSize(spec, text.length);
    if (text.length <= smallMax) return job;
    const slim = this.slimmed(spec, text, key, () => this.read(id, arrayId));
    if (arrayId !== null) this.shared.set(arrayId, new WeakRef(slim));
    return { ...job, spec: slim };
  }

  private slimmed(spec: JobSpec, text: string, key: string, read: () => string): JobSpec {
    const slim = { ...spec };
    let storedSize = 0;
    for (const field of storedFields) {
      storedSize += JSON.stringify(spec[field]).length;
      const get = () => this.fullSpec(key, read)[field];
      Object.defineProperty(slim, field, { get, enumerable: true, configurable: true });
    }
    this.owners.set(slim, key);
    noteStoredSpec(slim, { read, size: text.length, sizeInMemory: Math.max(0, text.length - storedSize) });
    return slim;
  }

  private fullSpec(key: string, read: () => string): JobSpec {
    const known = this.kept.get(key);
    if (known !== undefined) return known.spec;
    const text = read();
    const spec = decodeJobSpec(text);
    this.kept.set(key, { spec, size: text.length });
    this.keptSize += text.length;
    for (const [oldest, { size }] of this.kept) {
      if (this.keptSize <= keptMax || oldest === key) break;
      this.kept.delete(oldest);
      this.keptSize -= size;
    }
    return spec;
  }
}
