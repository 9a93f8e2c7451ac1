/**
 * How much the specs of queued jobs take: in the store, and in memory for planning. Each call is bounded, and so must be all of them
 * together: a queue that does not fit into the coordinator's memory would end it at each start.
 */
import { MusterError } from '@muster/common/errors';
import type { ArrayId, JobId } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job } from '../model.ts';
import { specSizes } from '../spec/ownSpec.ts';

/** Limits for all users together, bytes. One user may have half of each. */
export interface QueueLimits {
  /** Of specs in the store. */
  readonly storedBytes: number;
  /** Of what planning keeps in memory. */
  readonly memoryBytes: number;
}

const mebibyte = 1024 * 1024;
export const queueLimitsDefault: QueueLimits = { storedBytes: 1024 * mebibyte, memoryBytes: 256 * mebibyte };

/** Bytes of a job in memory besides its spec, roughly. */
const jobBytes = 1_024;

interface Sizes {
  readonly stored: number;
  readonly memory: number;
}

interface Counted extends Sizes {
  readonly user: string;
  readonly arrayId: ArrayId | null;
}

const none: Sizes = { stored: 0, memory: 0 };

export class QueuedSize {
  limits: QueueLimits = queueLimitsDefault;
  private readonly jobs = new Map<JobId, Counted>();
  /** Array id → number of its queued jobs, which share one spec. */
  private readonly members = new Map<ArrayId, number>();
  private readonly users = new Map<string, Sizes>();
  private all: Sizes = none;

  /** @param bytes of specs in the store, of all users together */
  limitStored(bytes: number): void {
    this.limits = { ...this.limits, storedBytes: bytes };
  }

  /** Records a job as it is now. */
  note({ id, user, array, spec, state }: Job): void {
    const before = this.jobs.get(id);
    const isQueued = state.kind === 'queued';
    if (isQueued === (before !== undefined)) return;
    if (before !== undefined) {
      this.jobs.delete(id);
      this.add(before, -1);
      return;
    }
    const counted = { user, arrayId: array?.id ?? null, ...sizesOf(spec) };
    this.jobs.set(id, counted);
    this.add(counted, 1);
  }

  /**
   * @param spec of a job that is about to be queued
   * @throws {MusterError} `resource_exhausted` with the limit
   */
  requireRoom(user: string, spec: JobSpec): void {
    const more = sizesOf(spec);
    const own = this.users.get(user) ?? none;
    const { storedBytes, memoryBytes } = this.limits;
    const problem =
      overLimit('of all users', this.all, more, storedBytes, memoryBytes) ??
      overLimit(`of ${user}`, own, more, storedBytes / 2, memoryBytes / 2);
    if (problem !== null) throw new MusterError('resource_exhausted', problem);
  }

  private add({ user, arrayId, stored, memory }: Counted, sign: 1 | -1): void {
    let change: Sizes = { stored: sign * stored, memory: sign * (memory + jobBytes) };
    if (arrayId !== null) {
      const count = (this.members.get(arrayId) ?? 0) + sign;
      if (count === 0) this.members.delete(arrayId);
      else this.members.set(arrayId, count);
      // Only the first and the last of an array bring its spec, or take it away.
      if (count > (sign === 1 ? 1 : 0)) change = { stored: 0, memory: sign * jobBytes };
    }
    const sum = (sizes: Sizes): Sizes => ({
      stored: sizes.stored + change.stored,
      memory: sizes.memory + change.memory,
    });
    this.all = sum(this.all);
    const ofUser = sum(this.users.get(user) ?? none);
    if (ofUser.memory === 0) this.users.delete(user);
    else this.users.set(user, ofUser);
  }
}

function sizesOf(spec: JobSpec): Sizes {
  const { size, sizeInMemory } = specSizes(spec);
  return { stored: size, memory: sizeInMemory };
}

function overLimit(
  whose: string,
  now: Sizes,
  more: Sizes,
  storedMax: number,
  memoryMax: number,
): string | null {
  const say = (used: number, needed: number, max: number, what: string) =>
    `the queued jobs ${whose} take ${used} bytes ${what}, and this one would take ${needed} more: the limit is ${max} bytes; wait ` +
    'until jobs have started, or stop some (muster stop)';
  if (now.stored + more.stored > storedMax) return say(now.stored, more.stored, storedMax, 'of the store');
  const memory = more.memory + jobBytes;
  if (now.memory + memory > memoryMax) return say(now.memory, memory, memoryMax, 'of memory');
  return null;
}
