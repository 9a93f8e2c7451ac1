/**
 * `checkpoints_index.json` beside the checkpoints: what is known of each, for people, other programs, and the next agent
 * that looks at them, on this node or, on shared storage, on another. The job can write there too: what is read is
 * checked like anything from outside, and believed only for a checkpoint that is still the same.
 */
import { open } from 'node:fs/promises';
import { Directory, errorCode, withDirectory } from '@muster/checkpoints/directories';
import { type CheckpointFacts, checkpointVerdicts, verificationDepths } from '@muster/common/checkpoints';

export const indexName = 'checkpoints_index.json';
const temporaryName = `.${indexName}.tmp`;

/** Those beyond it are the oldest: on disk they are all the same. */
export const indexedMax = 1_000;
/** Far above what so many take. */
const bytesMax = 8 * 1024 * 1024;

export interface IndexedCheckpoint extends CheckpointFacts {
  readonly attempt: number;
  readonly node: string;
}

/** A corrupt one that was set aside. */
export interface QuarantinedCheckpoint {
  readonly name: string;
  readonly was: string;
  readonly problem: string | null;
}

export interface CheckpointIndex {
  readonly version: 1;
  /** Whose checkpoints these are: the job that began to save here, which requeued ones go on with. */
  readonly job: string;
  /** The job that wrote this last: the newest of those that go on with the same checkpoints. null: an older agent. */
  readonly by: string | null;
  /** Wall clock: what was saved before is somebody else's. */
  readonly sinceMs: number;
  /** By name. */
  readonly checkpoints: readonly IndexedCheckpoint[];
  readonly quarantined: readonly QuarantinedCheckpoint[];
}

/** @returns null: there is none, or none that can be made sense of */
export async function readIndex(root: string): Promise<CheckpointIndex | null> {
  try {
    return await withDirectory(await Directory.open(root), async (directory) => {
      const { handle, stat } = await directory.openFile(indexName);
      try {
        return stat.size > bytesMax ? null : indexFrom(JSON.parse(await handle.readFile('utf8')));
      } finally {
        await handle.close();
      }
    });
  } catch {
    return null;
  }
}

/**
 * Whole or not at all. What somebody may have put in its place, a link for one, is replaced and never followed.
 * @throws {Error} with the kernel's code
 */
export async function writeIndex(root: string, index: CheckpointIndex): Promise<void> {
  await withDirectory(await Directory.open(root), async (directory) => {
    await directory.unlink(temporaryName).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT') throw error;
    });
    const file = await open(directory.path(temporaryName), 'wx', 0o644);
    try {
      await file.writeFile(`${JSON.stringify(index, null, 2)}\n`);
    } catch (error) {
      // Of a full disk not even the rest of it should be taken.
      await directory.unlink(temporaryName).catch(() => {});
      throw error;
    } finally {
      await file.close();
    }
    await directory.rename(temporaryName, indexName);
  });
}

function indexFrom(json: unknown): CheckpointIndex | null {
  if (!isRecord(json) || json['version'] !== 1) return null;
  const { job, by, sinceMs, checkpoints, quarantined } = json;
  if (typeof job !== 'string' || !isNumber(sinceMs) || !Array.isArray(checkpoints)) return null;
  return {
    version: 1,
    job,
    by: isText(by) ? by : null,
    sinceMs,
    checkpoints: checkpoints.slice(0, indexedMax).flatMap((each: unknown) => checkpointFrom(each) ?? []),
    quarantined: Array.isArray(quarantined)
      ? quarantined.slice(0, indexedMax).flatMap((each: unknown) => quarantinedFrom(each) ?? [])
      : [],
  };
}

function checkpointFrom(json: unknown): IndexedCheckpoint | null {
  if (!isRecord(json)) return null;
  const { name, version, step, format, bytes, files, savedAtMs, saveDurationMs } = json;
  const { metrics, digest, verdict, depth, problem, attempt, node, reread } = json;
  const knownVerdict = checkpointVerdicts.find((each) => each === verdict);
  const knownDepth = depth === null ? null : verificationDepths.find((each) => each === depth);
  if (knownVerdict === undefined || knownDepth === undefined || !isRecord(metrics)) return null;
  if (!isText(name) || !isText(version) || !isText(format) || !isText(node)) return null;
  if (!isNumber(bytes) || !isNumber(files) || !isNumber(savedAtMs) || !isNumber(attempt)) return null;
  if (!isNumberOrNull(step) || !isNumberOrNull(saveDurationMs)) return null;
  if (!isTextOrNull(digest) || !isTextOrNull(problem)) return null;
  const values = Object.entries(metrics).filter((entry): entry is [string, number] => isNumber(entry[1]));
  return {
    name,
    version,
    step,
    format,
    bytes,
    files,
    savedAtMs,
    saveDurationMs,
    digest,
    problem,
    attempt,
    node,

    metrics: Object.fromEntries(values),
    verdict: knownVerdict,
    depth: knownDepth,
    reread: reread === true,
  };
}

function quarantinedFrom(json: unknown): QuarantinedCheckpoint | null {
  if (!isRecord(json)) return null;
  const { name, was, problem } = json;
  return isText(name) && isText(was) && isTextOrNull(problem) ? { name, was, problem } : null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 4_096;
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || isText(value);
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isNumberOrNull(value: unknown): value is number | null {
  return value === null || isNumber(value);
}
