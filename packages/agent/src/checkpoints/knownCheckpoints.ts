/** The checkpoints of one task that are known: in memory, in the index beside them, and in what is reported to the coordinator. */

import { realpath } from 'node:fs/promises';
import { levelsOf } from '@muster/checkpoints/namePattern';
import type { CheckpointCandidate, CheckpointScan } from '@muster/checkpoints/scan';
import type { Verification } from '@muster/checkpoints/verification';
import {
  type CheckpointFacts,
  type CheckpointSeen,
  isSetAside,
  nameBeforeSetAside,
} from '@muster/common/checkpoints';
import { taskKey } from '@muster/common/ids';
import { checkpointFactsOf } from './checkpointFacts.ts';
import { type CompletionMarker, reasonOf } from './checkpointPlace.ts';
import type { DirectoryProblems } from './directoryProblems.ts';
import { endsOf } from './halfWritten.ts';
import {
  type CheckpointIndex,
  type IndexedCheckpoint,
  indexedMax,
  readIndex,
  writeIndex,
} from './indexFile.ts';
import type { CheckpointObservation } from './observations.ts';
import type { CheckpointedTask, CheckpointMessage, WatcherParts } from './parts.ts';
import { writeProblem } from './place.ts';
import { isShared, removeCheckpoint, sweepAside } from './removal.ts';
import { latestFirst, neededNames, toDelete } from './retention.ts';
import type { FirstReadings, SecondReading } from './secondReadings.ts';
import { beganAfter, identityAt, type StopSnapshot, takeSnapshot } from './stopSnapshot.ts';
import { checkpointReportOf, type SavedFacts, TaskBelongings } from './taskBelongings.ts';

/** A coordinator keeps no more. */
const sentMax = 64;

type Sendable = Pick<CheckpointSeen, 'afterStop'> & { readonly facts: SavedFacts };

interface Known extends Sendable {
  readonly facts: IndexedCheckpoint;
}

export class KnownCheckpoints {
  private readonly parts: WatcherParts;
  private readonly problems: DirectoryProblems;
  private readonly firstReadings: FirstReadings;
  private readonly of: CheckpointedTask;
  private readonly isOwn: boolean;
  private readonly known = new Map<string, Known>();
  /** Last messages on checkpoints that are not known, or no longer. */
  private readonly finalUpdates = new Map<string, SavedFacts>();
  private quarantined: CheckpointIndex['quarantined'] = [];
  private readonly belongings: TaskBelongings;
  /** As of the last look, by name. */
  private present: ReadonlyMap<string, string> = new Map();
  private stop: StopSnapshot | null = null;
  private shared = false;
  private isFirstLook = true;
  private isClaimed = false;
  /** The index of another job that was there at the beginning, as text: nobody may be at work on it. */
  private foundIndex: string | null = null;
  /** Another job that saves here at the same time. It is not known whose is whose, so nothing is deleted. */
  private conflictingJob: string | null = null;
  /** An index that cannot be written is complained of once. */
  private lastError: string | null = null;
  /** The newest that was saved before the loss diverged: the next attempt begins from that one. */
  private beforeDivergence: string | null = null;
  private readonly undeletable = new Set<string>();
  private deleting: string | null = null;
  /** A large one takes its time; nobody waits for that but the next. */
  private tidying: Promise<void> = Promise.resolve();
  private writing: Promise<void> = Promise.resolve();

  constructor(
    parts: WatcherParts,
    problems: DirectoryProblems,
    firstReadings: FirstReadings,
    of: CheckpointedTask,
  ) {
    this.parts = parts;
    this.firstReadings = firstReadings;
    this.problems = problems;
    this.of = of;
    this.isOwn = parts.dirs.isOwn(of.spec);
    this.belongings = new TaskBelongings(of, this.isOwn);
  }

  /** What the last watch of this job's checkpoints, here or on another node, has found out. */
  async load(): Promise<void> {
    const { root, pattern } = this.of;
    await this.loadIndex();
    if (this.of.spec.checkpoint.keepLast !== null) await sweepAside(root, levelsOf(pattern)).catch(() => {});
  }

  /** As `load`, of what is there and as it was when it was found out. Nothing is changed in the directory. */
  async recall({ candidates }: CheckpointScan): Promise<void> {
    await this.loadIndex();
    const present = new Map(candidates.map(({ name, version }) => [name, version]));
    for (const [name, { facts }] of this.known)
      if (present.get(name) !== facts.version) this.known.delete(name);
    this.shared = await this.isOnSharedStorage();
  }

  private async loadIndex(): Promise<void> {
    const { root, assignment } = this.of;
    const index = await readIndex(root);
    this.foundIndex = JSON.stringify(index);
    // Of another job that saved here before: this one has nothing to do with its checkpoints.
    if (index?.job === assignment.checkpointJobId) {
      this.belongings.load(index);
      this.quarantined = index.quarantined;
      this.isClaimed = index.before !== null;
      for (const facts of index.checkpoints) this.known.set(facts.name, { facts, afterStop: false });
    }
  }

  private async isOnSharedStorage(): Promise<boolean> {
    return !this.isOwn && isShared(await realpath(this.of.root), this.parts.mounts());
  }

  /** Candidates of this job of which nothing is known yet, by name. */
  changesIn(scan: CheckpointScan): ReadonlyMap<string, CheckpointCandidate> {
    this.belongings.settle(
      scan,
      [...this.known.values()].map(({ facts }) => facts),
    );
    const changes = scan.candidates.filter((candidate) => {
      const known = this.known.get(candidate.name);
      return known === undefined
        ? this.belongings.isOfChain(candidate)
        : known.facts.version !== candidate.version;
    });
    return new Map(changes.map((candidate) => [candidate.name, candidate]));
  }

  /**
   * From the first sign of a checkpoint on the index records whose it is: should this node die before it has verified one, the
   * next knows that it is not somebody else's. Usually the beginning of the attempt has written that.
   */
  async claim(): Promise<void> {
    if (this.isClaimed) return;
    this.isClaimed = true;
    await this.write();
  }

  /** Reports the checkpoints that no longer exist. A directory that cannot be read is no evidence that any is gone. */
  async lookedAt({ candidates, problem }: CheckpointScan): Promise<void> {
    this.present = new Map(candidates.map(({ name, version }) => [name, version]));
    if (problem === null) await this.sendMissing();
    // With a problem there may be more than was looked at, or nothing that could be.
    if (!this.isFirstLook || (problem !== null && candidates.length === 0)) return;
    this.isFirstLook = false;
    this.shared = await this.isOnSharedStorage();
    // Of an agent that died before it could send them, here or on another node.
    this.resend();
  }

  private async sendMissing(): Promise<void> {
    const gone = [...this.known.values()].filter(
      ({ facts: { name } }) => !this.present.has(name) && name !== this.deleting,
    );
    for (const { facts } of gone) this.sendGone(facts, 'it no longer exists');
    if (gone.length > 0) await this.write();
  }

  /** Whether this attempt, and no run before it, has left its marker. */
  isOwnMarker(found: CompletionMarker): boolean {
    return this.belongings.isOwnMarker(found);
  }

  /** The task is about to be asked to stop. */
  async noteStop(): Promise<void> {
    const settled = [...this.known.values()].flatMap(({ facts: { name, version } }): [string, string][] =>
      this.present.get(name) === version ? [[name, version]] : [],
    );
    this.stop = await takeSnapshot(this.of.root, new Map(settled), levelsOf(this.of.pattern));
  }

  /** The task may not have been asked to stop after all. */
  forgetStop(): void {
    this.stop = null;
  }

  async accept(observation: CheckpointObservation, found: Verification): Promise<void> {
    const { root } = this.of;
    const { name } = observation.candidate;
    const saver = { ...this.belongings.saverOf(observation.candidate), node: this.parts.nodeName };
    const ends = endsOf(this.known.get(name)?.facts ?? null, found);
    const facts = { ...checkpointFactsOf(observation, found, this.metricsAt), ...saver, ...ends };
    const afterStop =
      this.stop !== null && beganAfter(this.stop, observation.candidate, await identityAt(root, name));
    const known = { facts, afterStop };
    this.known.set(name, known);
    if (found.verdict === 'corrupt') this.noteFirstReading(facts);
    this.forgetOldest();
    this.finalUpdates.delete(name);
    // Sent before it is written down: GPUs may be waiting for it.
    this.send(known);
    await this.write();
  }

  /** One that was found corrupt, by a look at it or by a program, long enough ago to be read again now. null: none. */
  nextToReadAgain(): SecondReading | null {
    const { root, assignment, spec } = this.of;
    const doubted = new Map(assignment.doubted.map(({ name, version }) => [name, version]));
    for (const { facts } of this.known.values()) {
      const { name, version, verdict, depth, reread } = facts;
      const isCorrupt = verdict === 'corrupt';
      if (reread || this.present.get(name) !== version) continue;
      // The order named it before it was set aside.
      const isDoubted = [name, nameBeforeSetAside(name)].some((each) => doubted.get(each) === version);
      if (!isCorrupt && !isDoubted) continue;
      if (!this.firstReadings.isLongAgo({ root, name, version }, this.parts.monotonicMs())) continue;
      // A checkpoint that looked good here, but that a program could not load, must be read to its last byte.
      return { name, version, depth: isCorrupt ? (depth ?? spec.checkpoint.verify) : 'deep' };
    }
    return null;
  }

  /** Takes the result of a second reading. If it has none, another reading follows after the same delay. */
  async acceptSecond({ name, version }: SecondReading, found: Verification): Promise<void> {
    const known = this.known.get(name);
    if (known === undefined || known.facts.version !== version) return;
    if (found.verdict === 'unverified' || found.version !== version) {
      this.noteFirstReading(known.facts);
      return;
    }
    const { verdict, depth, problem } = found;
    const digest = found.digest ?? known.facts.digest;
    const after = { ...known, facts: { ...known.facts, verdict, depth, problem, digest, reread: true } };
    this.known.set(name, after);
    this.send(after);
    await this.write();
  }

  private noteFirstReading({ name, version }: CheckpointFacts): void {
    this.firstReadings.note({ root: this.of.root, name, version }, this.parts.monotonicMs());
  }

  /** Not written down: the next look finds out. */
  sendUnverified(observation: CheckpointObservation, problem: string): void {
    const { format, bytes, files, step, version } = observation.candidate;
    const nothing = { format, bytes, files, step, version, digest: null, depth: null };
    const facts = checkpointFactsOf(
      observation,
      { ...nothing, verdict: 'unverified', problem },
      this.metricsAt,
    );
    this.noteFinalUpdate({ ...facts, ...this.belongings.saverOf(observation.candidate) });
  }

  resend(): void {
    for (const message of this.messages()) this.parts.send(message);
  }

  /** From now on the newest one from before it is kept, whatever is saved after it. @param goodUntil null: no step is known */
  noteDivergence(goodUntil: number | null): void {
    if (this.beforeDivergence !== null) return;
    const newest = this.newestFirst().find(
      ({ facts: { name, verdict, step } }) =>
        verdict === 'verified' &&
        !isSetAside(name) &&
        (step === null || goodUntil === null || step <= goodUntil),
    );
    this.beforeDivergence = newest?.facts.name ?? null;
  }

  private newestFirst(): readonly Known[] {
    return latestFirst(this.known.values(), this.of.task.jobId);
  }

  /** All messages, the oldest first: so they are kept, too. */
  messages(): readonly CheckpointMessage[] {
    const newest = this.newestFirst().slice(0, sentMax).reverse();
    const finalUpdates = [...this.finalUpdates.values()].map((facts) => ({ facts, afterStop: false }));
    return [...finalUpdates, ...newest].map((each) => this.messageOf(each));
  }

  /** Deletes what the rules of the job give up. */
  tidy(): Promise<void> {
    this.tidying = this.tidying.then(() => this.deleteGivenUp());
    return this.tidying;
  }

  private async deleteGivenUp(): Promise<void> {
    const { root, assignment } = this.of;
    const there = this.newestFirst()
      .map(({ facts }) => facts)
      .filter(({ name, version }) => this.present.get(name) === version && !this.undeletable.has(name));
    const needed = neededNames(there, this.of.kept(), this.of.spec.evaluate !== null);
    const kept = new Set([assignment.resume?.name, this.beforeDivergence, ...needed]);
    const names = toDelete(there, this.of.spec.checkpoint, kept);
    if (names.length > 0) await this.lookForConflict();
    if (this.conflictingJob !== null) return;
    for (const name of names) {
      const known = this.known.get(name);
      if (known === undefined) continue;
      this.deleting = name;
      try {
        const isGone = await removeCheckpoint(root, name, known.facts.version, this.parts.mounts());
        if (isGone) this.sendGone(known.facts, 'it was deleted by the keep rules of the job');
      } catch (error) {
        this.undeletable.add(name);
        this.warn(`the checkpoint ${name} could not be deleted: ${reasonOf(error)}`);
      } finally {
        this.deleting = null;
      }
    }
    if (names.length > 0) await this.write();
  }

  private readonly metricsAt = (step: number | null) => this.parts.metricsAt(this.of.task, step);

  private send(known: Sendable): void {
    this.parts.send(this.messageOf(known));
  }

  private messageOf({ facts, afterStop }: Sendable): CheckpointMessage {
    return {
      kind: 'checkpoint',
      task: this.of.task,
      ...checkpointReportOf(facts),
      shared: this.shared,
      afterStop,
    };
  }

  private sendGone(facts: SavedFacts, problem: string): void {
    this.known.delete(facts.name);
    this.noteFinalUpdate({ ...facts, verdict: 'gone', depth: null, digest: null, problem });
  }

  private noteFinalUpdate(facts: SavedFacts): void {
    this.finalUpdates.set(facts.name, facts);
    const [oldest] = this.finalUpdates.keys();
    if (oldest !== undefined && this.finalUpdates.size > sentMax) this.finalUpdates.delete(oldest);
    this.send({ facts, afterStop: false });
  }

  /** A directory that holds more than are looked at never shows that one of them has gone. */
  private forgetOldest(): void {
    if (this.known.size <= 2 * indexedMax) return;
    for (const { facts } of this.newestFirst().slice(-indexedMax)) this.known.delete(facts.name);
  }

  /** One after the other: each writes all there is at its turn. */
  private write(): Promise<void> {
    this.writing = this.writing.then(() => this.writeNow());
    return this.writing;
  }

  private async writeNow(): Promise<void> {
    const checkpoints = this.newestFirst()
      .slice(0, indexedMax)
      .map(({ facts }) => facts)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const { quarantined } = this;
    const belongings = this.belongings.record(this.known);
    const job = this.of.assignment.checkpointJobId;
    const by = this.of.task.jobId;
    await this.lookForConflict();
    try {
      await writeIndex(this.of.root, { version: 1, job, by, ...belongings, checkpoints, quarantined });
      this.lastError = null;
      this.noteProblem(null);
    } catch (error) {
      const lastError = `the index of its checkpoints cannot be written: ${reasonOf(error)}`;
      if (lastError !== this.lastError) this.warn(`${lastError}; they are watched anyway`);
      this.lastError = lastError;
      this.noteProblem(await writeProblem(this.of.root, error, this.parts.mounts));
    }
  }

  /** Before it is written over: an index of somebody else's that has changed since the beginning. */
  private async lookForConflict(): Promise<void> {
    if (this.conflictingJob !== null) return;
    const { keepLast } = this.of.spec.checkpoint;
    const index = await readIndex(this.of.root);
    if (index === null || index.job === this.of.assignment.checkpointJobId) return;
    if (JSON.stringify(index) === this.foundIndex) return;
    this.conflictingJob = index.job;
    const consequence = keepLast === null ? '' : ', and keep_last deletes nothing';
    this.warn(
      `${index.job} saves its checkpoints here at the same time: each may resume from those of the other` +
        `${consequence}; give each job a directory of its own`,
    );
  }

  private noteProblem(problem: string | null): void {
    this.problems.note(this.of.task, 'index', this.of.root, problem);
  }

  private warn(message: string): void {
    this.parts.log.warn({ task: taskKey(this.of.task), directory: this.of.root }, message);
  }
}
