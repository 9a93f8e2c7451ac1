/**
 * Ids are random, so that no counter has to survive a crash for "ids are never reused" to hold; the store's unique
 * keys would refuse the one-in-2^60 repeat. The alphabet leaves out letters that people confuse (i, l, o, u).
 */

declare const brand: unique symbol;
type Branded<T extends string> = string & { readonly [brand]: T };

export type JobId = Branded<'JobId'>;
export type ArrayId = Branded<'ArrayId'>;
export type NodeName = Branded<'NodeName'>;
/** `<job id>.<attempt>.<node rank>`: one task, in directories, labels and messages. */
export type TaskKey = Branded<'TaskKey'>;

export interface TaskRef {
  readonly jobId: JobId;
  readonly attempt: number;
  readonly nodeRank: number;
}

/** Returns `size` random bytes; an argument wherever ids are made, so that tests and the simulator repeat. */
export type RandomBytes = (size: number) => Uint8Array;

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const idLength = 12;

function randomText(random: RandomBytes): string {
  return Array.from(random(idLength), (byte) => alphabet.charAt(byte % alphabet.length)).join('');
}

export function newJobId(random: RandomBytes): JobId {
  return `job_${randomText(random)}` as JobId;
}

export function newArrayId(random: RandomBytes): ArrayId {
  return `arr_${randomText(random)}` as ArrayId;
}

export function newSweepId(random: RandomBytes): string {
  return `swp_${randomText(random)}`;
}

export function newPipelineId(random: RandomBytes): string {
  return `pln_${randomText(random)}`;
}

/** For text that came over the wire or from the store; says whether it has the shape of a whole job id. */
export function isJobId(text: string): text is JobId {
  return /^job_[0-9a-hjkmnp-tv-z]{12}$/.test(text);
}

export function isArrayId(text: string): text is ArrayId {
  return /^arr_[0-9a-hjkmnp-tv-z]{12}$/.test(text);
}

/** DNS label: what works as host name, label, directory and NATS subject token alike. */
export function isNodeName(text: string): text is NodeName {
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
}

export function taskKey(task: TaskRef): TaskKey {
  return `${task.jobId}.${task.attempt}.${task.nodeRank}` as TaskKey;
}

/** The inverse of `taskKey`; null for text of another shape. */
export function parseTaskKey(key: string): TaskRef | null {
  const match = /^(job_[0-9a-z]{12})\.([1-9]\d{0,8})\.(0|[1-9]\d{0,4})$/.exec(key);
  const [, jobId, attempt, nodeRank] = match ?? [];
  if (jobId === undefined || !isJobId(jobId)) return null;
  return { jobId, attempt: Number(attempt), nodeRank: Number(nodeRank) };
}
