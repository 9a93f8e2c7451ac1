/**
 * The look at what is really in the directory of a job, before an attempt starts: is what the coordinator wants to resume from still
 * the version that was verified, and has the chain of attempts saved a newer one that the coordinator was not told of? Nothing of the
 * job runs meanwhile. The coordinator chooses among what is reported here (`lifecycle/look.ts` there).
 */
import { fingerprintAt, type Looked, lookAt } from '@muster/checkpoints/fingerprint';
import { type CheckpointScan, scanCheckpoints } from '@muster/checkpoints/scan';
import { unverifiable, type Verification } from '@muster/checkpoints/verification';
import { untilAborted } from '@muster/common/async';
import {
  type CheckpointFacts,
  type CheckpointIdentity,
  type CheckpointLook,
  externalCheckpoint,
  type FoundCheckpoint,
  isSetAside,
  type LookOrder,
  lookFoundMax,
} from '@muster/common/checkpoints';
import type { CheckpointPlace } from '../launch/checkpointDir.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { Beginning } from './beginning.ts';
import { versionsOf } from './belonging.ts';
import { reasonOf } from './checkpointPlace.ts';
import { doubtAbout, endsOf } from './halfWritten.ts';
import { type CheckpointIndex, type IndexedCheckpoint, readIndex, writeIndex } from './indexFile.ts';
import type { SavePlace, WatcherParts } from './parts.ts';
import { latestFirst } from './retention.ts';

/** Newer checkpoints than the ordered one that are offered. Of more than these the newest are. */
const offersMax = 16;
/** A client of NFS may keep what it knew of a file for this long, and finds it only then. */
const cacheMs = 5_000;
const lookAgainMs = 250;

export interface LookParts
  extends Pick<WatcherParts, 'dirs' | 'verify' | 'monotonicMs' | 'nodeName' | 'log'> {
  /** True if the file system of this path is one of a server, whose answers may be a while old. */
  readonly isRemote: (path: string) => Promise<boolean>;
}

export interface WantedLook {
  readonly assignment: Assignment;
  readonly order: LookOrder;
  /** The directory in which the job saves. null: it saves nowhere that this agent sees. */
  readonly place: SavePlace | null;
  /** What stands there that is not of the chain. null: that cannot be seen. */
  readonly beginning: Pick<Beginning, 'before'> | null;
  /** What the look is busy with, for people. */
  readonly onDoing: (text: string) => void;
  /** Gives the look up. */
  readonly signal: AbortSignal;
  /** What was not read within this duration does not count as verified. */
  readonly limitMs: number;
}

/** @throws the reason of the signal */
export async function lookBeforeStart(parts: LookParts, wanted: WantedLook): Promise<CheckpointLook> {
  return new Look(parts, wanted).run();
}

/** A checkpoint as this look knows it. */
interface Member {
  readonly name: string;
  readonly looked: Looked;
  readonly step: number | null;
  readonly indexed: IndexedCheckpoint | null;
  /** As `latestFirst` orders them. */
  readonly facts: Pick<IndexedCheckpoint, 'name' | 'step' | 'savedAtMs' | 'by' | 'attempt'>;
}

class Look {
  private readonly parts: LookParts;
  private readonly wanted: WantedLook;
  private readonly beganMs: number;
  private readonly limit: AbortSignal;
  private index: CheckpointIndex | null = null;
  /** Verified in this look, to be written into the index. */
  private readonly verifiedNow: IndexedCheckpoint[] = [];

  constructor(parts: LookParts, wanted: WantedLook) {
    this.parts = parts;
    this.wanted = wanted;
    this.beganMs = parts.monotonicMs();
    this.limit = AbortSignal.any([wanted.signal, AbortSignal.timeout(wanted.limitMs)]);
  }

  async run(): Promise<CheckpointLook> {
    const { order, place } = this.wanted;
    const scan = place === null ? nothingThere : await scanCheckpoints(place.root, place);
    this.index = place === null ? null : await readIndex(place.root);
    const found: FoundCheckpoint[] = [];
    let confirmed: CheckpointFacts | null = null;
    for (const candidate of order.candidates) {
      this.wanted.signal.throwIfAborted();
      const each = await this.confirm(candidate, scan);
      found.push(each);
      if (each.checkpoint.verdict !== 'verified') continue;
      confirmed = each.checkpoint;
      break;
    }
    const offers = place === null ? [] : await this.offers(place, scan, confirmed, found);
    await this.noteInIndex();
    const isNothing = confirmed === null && offers.length === 0 && this.index === null;
    return {
      found: [...found, ...offers].slice(0, lookFoundMax),
      shared: await this.isShared(),
      problem: isNothing && order.candidates.length > 0 ? nothingOf(scan) : null,
      tookMs: Math.round(this.parts.monotonicMs() - this.beganMs),
    };
  }

  /** Compares one that was ordered with what lies under its name now. */
  private async confirm(wanted: CheckpointIdentity, scan: CheckpointScan): Promise<FoundCheckpoint> {
    const { dirs } = this.parts;
    const { checkpointJobId, spec } = this.wanted.assignment;
    const at = dirs.placeOf(checkpointJobId, spec, wanted.name);
    const isOutside = externalCheckpoint(wanted.name) !== null;
    const indexed = isOutside ? null : this.indexedAs(wanted.name);
    const scanned = isOutside ? undefined : scan.candidates.find(({ name }) => name === wanted.name);
    const step = scanned?.step ?? indexed?.step ?? null;
    const known = { ...factsOf(wanted, step), ...(indexed?.version === wanted.version ? indexed : {}) };
    const savedBy = saverOf(indexed);
    const answer = (change: Partial<CheckpointFacts>): FoundCheckpoint => ({
      checkpoint: { ...known, ...change, name: wanted.name },
      ...savedBy,
    });
    if (at === null) return answer({ verdict: 'gone', problem: 'it lies inside the container' });
    let looked: Looked | null;
    try {
      looked = await this.patiently(at, (now) => now !== null && isVersion(now, wanted));
    } catch (error) {
      return answer({ verdict: 'unverified', depth: null, problem: reasonOf(error) });
    }
    if (looked === null) return answer({ verdict: 'gone', depth: null, problem: 'it no longer exists' });
    const isSame = isVersion(looked, wanted);
    const { version } = looked;
    if (isSame && (await this.hasFingerprint(at, wanted.fingerprint)))
      return answer({ verdict: 'verified', version });
    // Another content under its name: nobody has verified that one.
    const verified = await this.verifyNow(at, looked, step, indexed, wanted.files);
    return { checkpoint: { ...verified, name: wanted.name }, ...savedBy };
  }

  /** Those that the chain has saved after the confirmed one, the newest first. */
  private async offers(
    place: SavePlace,
    scan: CheckpointScan,
    confirmed: CheckpointFacts | null,
    found: readonly FoundCheckpoint[],
  ): Promise<readonly FoundCheckpoint[]> {
    const { stepMax } = this.wanted.order;
    const members = this.membersOf(scan);
    const wanted =
      stepMax === null
        ? latestFirst(members, this.wanted.assignment.task.jobId)
        : members
            .filter(({ step }) => step !== null && step <= stepMax)
            .sort((a, b) => (b.step ?? 0) - (a.step ?? 0));
    const end = confirmed === null ? -1 : wanted.findIndex(({ name }) => name === confirmed.name);
    const newer = end < 0 ? wanted : wanted.slice(0, end);
    const looked = new Set(found.map(({ checkpoint: { name } }) => name));
    const offers: FoundCheckpoint[] = [];
    for (const member of newer) {
      if (offers.length === offersMax) break;
      if (looked.has(member.name)) continue;
      this.wanted.signal.throwIfAborted();
      // One that was verified suffices: older ones that nobody has read are of no use beside it.
      const checkpoint = await this.offered(place, member, offers.length > 0);
      if (checkpoint !== null) offers.push({ checkpoint, ...saverOf(member.indexed) });
    }
    return offers;
  }

  /** What stood in the directory before the chain began is none of it. */
  private membersOf({ candidates }: CheckpointScan): Member[] {
    const { assignment, beginning } = this.wanted;
    if (beginning === null) return [];
    const { task } = assignment;
    const before = versionsOf(beginning.before);
    return candidates
      .filter(({ name, version }) => before.get(name) !== version)
      .filter(({ name, unfinished }) => unfinished === null && !isSetAside(name))
      .map(({ name, version, step, bytes, files, savedAtMs, kind }) => {
        const indexed = this.indexedAs(name);
        // The program names no step, and the verification has found one inside.
        const known = step ?? (indexed?.version === version ? indexed.step : null);
        const savedBy = indexed ?? { by: null, attempt: task.attempt - 1 };
        const { by, attempt } = savedBy;
        return {
          name,
          looked: { version, bytes, files, savedAtMs, kind },
          step: known,
          indexed,
          facts: { name, step: known, savedAtMs, by, attempt },
        };
      });
  }

  /** @returns null: it is not known to be intact */
  private async offered(
    { root }: SavePlace,
    { name, looked, step, indexed }: Member,
    isKnownOnly: boolean,
  ): Promise<CheckpointFacts | null> {
    const at = { root, name };
    if (indexed?.version === looked.version && indexed.verdict !== 'unverified') {
      if (indexed.verdict !== 'verified') return null;
      if (await this.hasFingerprint(at, indexed.fingerprint ?? null)) return indexed;
    }
    if (isKnownOnly) return null;
    const now = await lookAt(root, name).catch(() => null);
    const facts = now === null ? null : await this.verifyNow(at, now, step, indexed);
    return facts?.verdict === 'verified' ? facts : null;
  }

  /** Reads every byte of it. What cannot be read within the limit is not verified. @param wantedFiles as many were verified; 0: unknown */
  private async verifyNow(
    { root, name }: CheckpointPlace,
    looked: Looked,
    step: number | null,
    indexed: IndexedCheckpoint | null,
    wantedFiles = 0,
  ): Promise<CheckpointFacts> {
    const why = indexed === null ? 'no agent has verified it' : 'it has changed since it was verified';
    this.wanted.onDoing(`reading the checkpoint ${name} (${looked.bytes} bytes): ${why}`);
    const order = { root, name, depth: 'deep' } as const;
    const found = await untilAborted(this.parts.verify(order, this.limit), this.limit).catch(
      (error: unknown): Verification => {
        this.wanted.signal.throwIfAborted();
        const seconds = Math.round(this.wanted.limitMs / 1_000);
        const late = `it was not read within the ${seconds} s that a start waits for it`;
        return unverifiable(this.limit.aborted ? late : reasonOf(error));
      },
    );
    const filesBefore = Math.max(indexed?.files ?? 0, wantedFiles);
    const doubt = found.verdict === 'verified' ? doubtAbout(indexed, filesBefore, found) : null;
    const verdict = doubt === null ? found.verdict : 'unverified';
    const facts: CheckpointFacts = {
      name,
      version: found.version === '' ? looked.version : found.version,
      step: found.step ?? step,
      format: found.format,
      bytes: looked.bytes,
      files: looked.files,
      savedAtMs: looked.savedAtMs,
      saveDurationMs: null,
      metrics: {},
      digest: found.digest,
      verdict,
      depth: verdict === 'unverified' ? null : found.depth,
      problem: doubt ?? found.problem,
      reread: false,
      ...(found.fingerprint === undefined ? {} : { fingerprint: found.fingerprint }),
    };
    if (verdict === 'verified' && externalCheckpoint(name) === null && root === this.wanted.place?.root) {
      const { task } = this.wanted.assignment;
      const savedBy = indexed ?? { by: null, attempt: task.attempt - 1, node: this.parts.nodeName };
      const { by, attempt, node } = savedBy;
      this.verifiedNow.push({ ...facts, by, attempt, node, ...endsOf(indexed, found) });
    }
    return facts;
  }

  /** Whether the small parts are those that were verified. Of an older agent nothing is known of them. */
  private async hasFingerprint({ root, name }: CheckpointPlace, wanted: string | null): Promise<boolean> {
    if (wanted === null) return true;
    const now = await fingerprintAt(root, name).catch(() => null);
    return now?.fingerprint === wanted;
  }

  /** Looks until the file server has told of it, which may take the time of a client's cache. */
  private async patiently(
    { root, name }: CheckpointPlace,
    isWanted: (now: Looked | null) => boolean,
  ): Promise<Looked | null> {
    const untilMs = this.parts.monotonicMs() + ((await this.parts.isRemote(root)) ? cacheMs : 0);
    for (;;) {
      const now = await lookAt(root, name);
      if (isWanted(now) || this.parts.monotonicMs() >= untilMs) return now;
      await untilAborted(new Promise((resolve) => setTimeout(resolve, lookAgainMs)), this.wanted.signal);
    }
  }

  /** So that the watch of this attempt, and the next look, need not read them again. */
  private async noteInIndex(): Promise<void> {
    const { place, assignment } = this.wanted;
    if (place === null || this.verifiedNow.length === 0) return;
    const own = {
      version: 1,
      by: assignment.task.jobId,
      sinceMs: 0,
      before: [],
      found: [],
      marker: null,
      quarantined: [],
    } as const;
    const index = this.index ?? { ...own, job: assignment.checkpointJobId, checkpoints: [] };
    const isForeign = index.job !== assignment.checkpointJobId;
    if (isForeign || (this.index === null && !this.parts.dirs.isOwn(place.spec))) return;
    const names = new Set(this.verifiedNow.map(({ name }) => name));
    const others = index.checkpoints.filter(({ name }) => !names.has(name));
    const checkpoints = [...others, ...this.verifiedNow].sort((a, b) => (a.name < b.name ? -1 : 1));
    await writeIndex(place.root, { ...index, checkpoints }).catch((error: unknown) => {
      const fields = { directory: place.root, error: reasonOf(error) };
      this.parts.log.warn(fields, 'what a look before a start has verified could not be written down');
    });
  }

  private indexedAs(name: string): IndexedCheckpoint | null {
    if (this.index === null || this.index.job !== this.wanted.assignment.checkpointJobId) return null;
    return this.index.checkpoints.find((each) => each.name === name) ?? null;
  }

  private async isShared(): Promise<boolean> {
    const { place } = this.wanted;
    return place !== null && !this.parts.dirs.isOwn(place.spec) && (await this.parts.isRemote(place.root));
  }
}

/** Nobody has noted who saved a checkpoint that is in the index without a job. */
function saverOf(indexed: IndexedCheckpoint | null): Pick<FoundCheckpoint, 'by' | 'attempt'> {
  return indexed?.by == null ? { by: null, attempt: null } : { by: indexed.by, attempt: indexed.attempt };
}

const nothingThere: CheckpointScan = { candidates: [], problem: null, isTrainingComplete: false };

/** Why nothing that was ordered is there. null: the directory holds other things, so that it is the right one. */
function nothingOf({ candidates, problem }: CheckpointScan): string | null {
  if (problem !== null) return problem;
  return candidates.length === 0 ? 'holds no checkpoint' : null;
}

/** The version that a user has named by its path is whatever lies there. */
function isVersion({ version }: Looked, wanted: CheckpointIdentity): boolean {
  return wanted.version === '' || version === wanted.version;
}

function factsOf({ name, version, bytes, files }: CheckpointIdentity, step: number | null): CheckpointFacts {
  return {
    name,
    // A coordinator takes none without a version.
    version: version === '' ? 'unknown' : version,
    step,
    bytes,
    files,
    format: 'unknown',
    savedAtMs: 0,
    saveDurationMs: null,
    metrics: {},
    digest: null,
    verdict: 'verified',
    depth: null,
    problem: null,
    reread: false,
  };
}
