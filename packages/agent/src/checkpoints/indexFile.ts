/**
 * `checkpoints_index.json` beside the checkpoints: what is known of each, for people, other programs, and the next agent
 * that looks at them, on this node or, on shared storage, on another. The job can write there too: what is read is
 * checked like anything from outside, and believed only for a checkpoint that is still the same.
 */
import { open } from 'node:fs/promises';
import { Directory, errorCode, withDirectory } from '@muster/checkpoints/directories';
import {
  type CheckpointFacts,
  type CheckpointVersion,
  checkpointVerdicts,
  verificationDepths,
} from '@muster/common/checkpoints';
import {
  asListOf,
  asMapOf,
  asNullable,
  asNumber,
  asObject,
  asOneOf,
  asText,
  type Decoder,
  isTrue,
  orNull,
} from '@muster/common/decoders';
import { isMapping } from '@muster/common/spec/path';
import type { StoodBefore } from './belonging.ts';

export const indexName = 'checkpoints_index.json';
const temporaryName = `.${indexName}.tmp`;

/** Those beyond it are the oldest: on disk they are anyway. */
export const indexedMax = 1_000;
/** Far above what so many take. */
const bytesMax = 8 * 1024 * 1024;
/** Maximum checkpoints in the list of what stood there before. Those beyond it have the lowest steps. */
export const beforeMax = 20_000;

export interface IndexedCheckpoint extends CheckpointFacts {
  /** The job whose attempt saved it. null: an older agent has not noted it, or it was found on disk. */
  readonly by: string | null;
  /** Of one that was found on disk: the last attempt that can have saved it. */
  readonly attempt: number;
  readonly node: string;
  /** As `Fingerprint.ends`. Absent: an older agent has verified it. */
  readonly ends?: readonly string[];
  /** Saved again under its name, its files began differently and ended alike: their ends do not show whether one is complete. */
  readonly endsStay?: boolean;
}

/** A corrupt one that was set aside. */
export interface QuarantinedCheckpoint {
  readonly name: string;
  readonly was: string;
  readonly problem: string | null;
}

/** `training_complete.marker` as an attempt has found it. */
export interface MarkerBefore {
  readonly job: string;
  readonly attempt: number;
  /** Another one as soon as the file is written again. null: it was not there. */
  readonly identity: string | null;
}

export interface CheckpointIndex {
  readonly version: 1;
  /** The job that these checkpoints belong to: it began to save here, and requeued jobs resume from them. */
  readonly job: string;
  /** The job that wrote this last: the newest of those that share the checkpoints. null: an older agent wrote it. */
  readonly by: string | null;
  /** Wall clock: the beginning of the chain. Agents of earlier releases take what was saved before for another job's. */
  readonly sinceMs: number;
  /** What stood here when the chain began, and is not of it. null: an agent of an earlier release wrote this, and times decide once. */
  readonly before: readonly StoodBefore[] | null;
  /** What was here when the current attempt began, of attempts before it that no index names. */
  readonly found: readonly CheckpointVersion[];
  /** The marker of a complete training that stood here when the current attempt began. null: an agent of an earlier release wrote this. */
  readonly marker: MarkerBefore | null;
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
 * @param isDurable wait until it is on disk: what it says cannot be found out again
 * @throws {Error} with the kernel's code
 */
export async function writeIndex(root: string, index: CheckpointIndex, isDurable = false): Promise<void> {
  await withDirectory(await Directory.open(root), async (directory) => {
    await directory.unlink(temporaryName).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT') throw error;
    });
    const file = await open(directory.path(temporaryName), 'wx', 0o644);
    try {
      // Whatever the umask of the agent is: it is for users too. Not every file system has modes.
      await file.chmod(0o644).catch(() => {});
      await file.writeFile(`${JSON.stringify(index, null, 2)}\n`);
      if (isDurable) await file.datasync();
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

const textLengthMax = 4_096;
const asShortText: Decoder<string> = (value) => {
  const text = asText(value);
  return text !== undefined && text.length <= textLengthMax ? text : undefined;
};

const asMetrics: Decoder<Readonly<Record<string, number>>> = (value) =>
  isMapping(value) ? Object.fromEntries(asMapOf(asNumber)(value)) : undefined;

const asVerified = asObject<Omit<IndexedCheckpoint, 'fingerprint' | 'ends' | 'endsStay'>>({
  name: asShortText,
  version: asShortText,
  step: asNullable(asNumber),
  format: asShortText,
  bytes: asNumber,
  files: asNumber,
  savedAtMs: asNumber,
  saveDurationMs: asNullable(asNumber),
  metrics: asMetrics,
  digest: asNullable(asShortText),
  verdict: asOneOf(checkpointVerdicts),
  depth: asNullable(asOneOf(verificationDepths)),
  problem: asNullable(asShortText),
  reread: isTrue,
  by: orNull(asShortText),
  attempt: asNumber,
  node: asShortText,
});

/** Members that older agents do not write. */
const asIndexed: Decoder<IndexedCheckpoint> = (value) => {
  const verified = asVerified(value);
  if (verified === undefined || !isMapping(value)) return undefined;
  const fingerprint = asShortText(value['fingerprint']);
  const ends = asListOf(asShortText)(value['ends']).slice(0, endsMax);
  return {
    ...verified,
    ...(fingerprint === undefined ? {} : { fingerprint: fingerprint.slice(0, fingerprintLengthMax) }),
    ...(ends.length === 0 ? {} : { ends }),
    ...(isTrue(value['endsStay']) === true ? { endsStay: true } : {}),
  };
};
const fingerprintLengthMax = 64;
const endsMax = 64;

const asQuarantined = asObject<QuarantinedCheckpoint>({
  name: asShortText,
  was: asShortText,
  problem: asNullable(asShortText),
});

const asVersion = asObject<CheckpointVersion>({ name: asShortText, version: asShortText });
const asStoodBefore = asObject<StoodBefore>({
  name: asShortText,
  version: asShortText,
  job: orNull(asShortText),
});
const asMarker = asObject<MarkerBefore>({
  job: asShortText,
  attempt: asNumber,
  identity: asNullable(asShortText),
});

function indexFrom(json: unknown): CheckpointIndex | null {
  if (!isMapping(json) || json['version'] !== 1) return null;
  const { by, checkpoints, quarantined, before, found, marker } = json;
  const job = asText(json['job']);
  const sinceMs = asNumber(json['sinceMs']);
  if (job === undefined || sinceMs === undefined || !Array.isArray(checkpoints)) return null;
  return {
    version: 1,
    job,
    by: orNull(asShortText)(by),
    sinceMs,
    before: Array.isArray(before) ? asListOf(asStoodBefore)(before.slice(0, beforeMax)) : null,
    found: asListOf(asVersion)(found).slice(0, indexedMax),
    marker: orNull(asMarker)(marker),
    checkpoints: asListOf(asIndexed)(checkpoints.slice(0, indexedMax)),
    quarantined: asListOf(asQuarantined)(quarantined).slice(0, indexedMax),
  };
}
