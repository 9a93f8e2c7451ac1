/**
 * Looks at the checkpoint directory of one task, from its start to its end: what is new and complete is verified,
 * written into the index beside it, and reported. One thing is done at a time (`inTurn`), except verifications, which may
 * take minutes: looks continue beside them, so that a newer checkpoint can replace the one that is being verified.
 */
import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { isWholeAlready } from '@muster/checkpoints/completeness';
import { scanCheckpoints } from '@muster/checkpoints/scan';
import { unverifiable, type Verification } from '@muster/checkpoints/verification';
import { untilAborted } from '@muster/common/async';
import { messageOf } from '@muster/common/errors';
import { taskKey } from '@muster/common/ids';
import { completionMarkerIn } from './checkpointPlace.ts';
import type { DirectoryProblems } from './directoryProblems.ts';
import { KnownCheckpoints } from './knownCheckpoints.ts';
import {
  type CheckpointObservation,
  isStill,
  newest,
  nextStep,
  observed,
  type Step,
  triesMax,
} from './observations.ts';
import { Pacer, paceAfter } from './pacer.ts';
import type { CheckpointedTask, WatcherParts } from './parts.ts';
import type { FirstReadings, SecondReading } from './secondReadings.ts';

/** A signal waits no longer than this for the snapshot that is taken before it. */
const snapshotMs = 1_000;
/** And the report of an end no longer than this for what is known of the last checkpoint. */
const lastLookMs = 10_000;
/** And so much longer for quick verifications of all whose deep ones have taken too long. */
const lastQuickMs = 2_000;
/** The agent's other tasks wait no longer than this for what an ended one has saved. */
const recallMs = 3_000;
/** Looks whose durations determine the pause before the next one. */
const tooksMax = 3;

/** What is being read beside the looks. */
interface Verifying {
  readonly of: { readonly name: string; readonly version: string };
  /** It has a verdict, which this reading is to confirm. */
  readonly isSecond: boolean;
  readonly abort: AbortController;
}

export class DirectoryWatch {
  private readonly parts: WatcherParts;
  private readonly problems: DirectoryProblems;
  private readonly of: CheckpointedTask;
  readonly known: KnownCheckpoints;
  private readonly observations = new Map<string, CheckpointObservation>();
  private readonly pacer: Pacer;
  /** No more looks by itself. */
  private readonly ended = new AbortController();
  private turn: Promise<unknown> = Promise.resolve();
  private verifying: Verifying | null = null;
  /** By name: without another look there is nothing new to learn of them. */
  private readonly verifiedSinceLook = new Set<string>();
  private hints: FSWatcher | null = null;
  private isStopping = false;
  private reportedProblem: string | null = null;
  private wasThere = false;
  private isComplete = false;
  private isLoaded = false;
  /** Nothing has been in the directory, which is the node's own, for as long as this watch has been there. */
  private isUnused: boolean;

  constructor(
    parts: WatcherParts,
    problems: DirectoryProblems,
    firstReadings: FirstReadings,
    of: CheckpointedTask,
  ) {
    this.parts = parts;
    this.problems = problems;
    this.of = of;
    this.known = new KnownCheckpoints(parts, problems, firstReadings, of);
    this.pacer = new Pacer(parts.monotonicMs);
    this.isUnused = parts.dirs.isOwn(of.spec);
  }

  /** Looks until `lastLook` or `close`. */
  start(): void {
    void this.run().catch((error: unknown) => this.warn(messageOf(error)));
  }

  /** The program has left its marker in this attempt. */
  get isTrainingComplete(): boolean {
    return this.isComplete;
  }

  /** Deletes what keep rules give up, unless the task has ended. */
  tidy(): void {
    if (!this.ended.signal.aborted) void this.known.tidy();
  }

  /** To be awaited before the first signal of a stop, which waits for a second at most. */
  async stopping(): Promise<void> {
    if (this.isStopping) return;
    this.isStopping = true;
    const taken = this.inTurn(async () => {
      await this.look();
      await this.known.noteStop();
    });
    await untilAborted(taken, AbortSignal.timeout(snapshotMs)).catch(() => {});
    this.pacer.hint();
  }

  /** The stop has failed. The next attempt to stop takes a new snapshot of what is there. */
  notStopped(): void {
    this.isStopping = false;
    // In turn, because the snapshot of the stop that failed may still be on its way.
    this.inTurn(async () => this.known.forgetStop()).catch(() => {});
  }

  /**
   * Nothing of the task runs any longer: whatever there is stays as it is, unless others of its gang still write. What can
   * be reported of it by now is reported; resolves within some 10 s whatever the storage does.
   */
  async lastLook(): Promise<void> {
    if (this.isStillUnused()) {
      this.end();
      return;
    }
    const limit = AbortSignal.timeout(lastLookMs);
    const quickLimit = AbortSignal.timeout(lastLookMs + lastQuickMs);
    this.end();
    try {
      await untilAborted(
        this.inTurn(() => this.look()),
        limit,
      );
      for (const observation of newest(this.observations.values()))
        await this.verifyLast(observation, limit, quickLimit);
    } catch (error) {
      this.warn(`could not examine its checkpoints: ${messageOf(error)}`);
    }
    await untilAborted(this.known.tidy(), limit).catch(() => {});
  }

  /** Instead of `start`, for a task whose end is recorded: reads what was found out before, and changes nothing. */
  async recall(): Promise<void> {
    this.end();
    const recalled = this.inTurn(async () => {
      const { root, pattern } = this.of;
      const scan = await scanCheckpoints(root, { pattern });
      await this.known.recall(scan);
      this.isComplete = scan.isTrainingComplete && (await this.hasLeftMarker());
    });
    await untilAborted(recalled, AbortSignal.timeout(recallMs)).catch((error: unknown) =>
      this.warn(`its last checkpoints are not known yet: ${messageOf(error)}`),
    );
  }

  async close(): Promise<void> {
    this.end();
    await untilAborted(this.turn, AbortSignal.timeout(snapshotMs)).catch(() => {});
  }

  private end(): void {
    this.ended.abort(new Error('the task has ended'));
    this.verifying?.abort.abort(this.ended.signal.reason);
    this.hints?.close();
    this.hints = null;
    this.pacer.end();
  }

  private async run(): Promise<void> {
    let isFirst = true;
    let tooksMs: readonly number[] = [];
    while (!this.ended.signal.aborted) {
      const beganMs = this.parts.monotonicMs();
      const isUnused = this.isStillUnused();
      if (isUnused) this.noteProblem(null);
      else await this.inTurn(() => this.look());
      tooksMs = [...tooksMs.slice(1 - tooksMax), this.parts.monotonicMs() - beganMs];
      this.verifiedSinceLook.clear();
      if (this.ended.signal.aborted) return;
      this.verifyNext();
      // Most short tasks save nothing and end before the second look, and a hint costs more than a look.
      if (!isFirst || !isUnused) this.listen();
      isFirst = false;
      await this.pacer.pause(() => paceAfter(tooksMs, this.isStopping));
    }
  }

  /** What fails is logged; the next one gets its turn anyway. */
  private inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.turn.then(act).catch((error: unknown) => this.warn(messageOf(error)));
    this.turn = done;
    return done;
  }

  /** One system call instead of a look, which has nothing to find: most short tasks save nothing. */
  private isStillUnused(): boolean {
    this.isUnused &&= isEmpty(this.of.root);
    return this.isUnused;
  }

  private async look(): Promise<void> {
    const { root, pattern } = this.of;
    if (!this.isLoaded) {
      this.isLoaded = true;
      await this.known.load();
    }
    const scan = await scanCheckpoints(root, { pattern });
    const nowMs = this.parts.monotonicMs();
    this.noteProblem(scan.problem);
    if (scan.isTrainingComplete && !this.isComplete && (await this.hasLeftMarker())) {
      this.isComplete = true;
      this.parts.onTrainingComplete(this.of.task);
    }
    const changes = this.known.changesIn(scan);
    if (changes.size > 0) await this.known.claim();
    for (const name of this.observations.keys()) {
      if (!changes.has(name)) this.observations.delete(name);
    }
    for (const [name, candidate] of changes) {
      const before = this.observations.get(name) ?? null;
      const observation = observed(before, candidate, nowMs);
      if (observation.versionSeenMs === nowMs) this.parts.onProgress(this.of.task);
      this.observations.set(name, observation);
    }
    await this.known.lookedAt(scan);
  }

  private async hasLeftMarker(): Promise<boolean> {
    const marker = await completionMarkerIn(this.of.root);
    return marker !== null && this.known.isOwnMarker(marker);
  }

  /**
   * Verifies one checkpoint at a time for this task, the newest first. It replaces the verification of a checkpoint that was
   * written over and, while the task is being stopped, that of any older one. Second readings wait until nothing else is due.
   */
  private verifyNext(): void {
    if (this.ended.signal.aborted) return;
    const unread = [...this.observations.values()].filter(
      ({ candidate }) => !this.verifiedSinceLook.has(candidate.name),
    );
    const step = nextStep(unread, this.of.spec.checkpoint.verify);
    if (this.verifying !== null) {
      if (step !== null && this.isOvertaken(this.verifying, step))
        this.verifying.abort.abort(new Error('a newer checkpoint comes first'));
      return;
    }
    if (step !== null) {
      this.verifyAside(step.observation.candidate, false, (abort) => this.take(step, abort));
      return;
    }
    const second = this.isStopping ? null : this.known.nextToReadAgain();
    if (second !== null && !this.verifiedSinceLook.has(second.name))
      this.verifyAside(second, true, (abort) => this.takeAgain(second, abort));
  }

  private isOvertaken({ of, isSecond }: Verifying, { observation }: Step): boolean {
    const isOther = of.name !== observation.candidate.name;
    // Nobody is interested any longer in what has been written over.
    const isOver = this.observations.get(of.name)?.candidate.version !== of.version;
    return isSecond || isOver || (this.isStopping && isOther);
  }

  private verifyAside(
    of: Verifying['of'],
    isSecond: boolean,
    take: (abort: AbortSignal) => Promise<void>,
  ): void {
    const abort = new AbortController();
    this.verifying = { of, isSecond, abort };
    this.verifiedSinceLook.add(of.name);
    void take(abort.signal)
      .catch((error: unknown) => {
        if (!abort.signal.aborted) this.warn(messageOf(error));
      })
      .finally(() => {
        this.verifying = null;
        this.pacer.hint();
        this.verifyNext();
      });
  }

  private async take({ kind, observation, depth }: Step, abort: AbortSignal): Promise<void> {
    const { candidate } = observation;
    const found = await this.parts.verify({ root: this.of.root, name: candidate.name, depth }, abort);
    abort.throwIfAborted();
    const present = this.observations.get(candidate.name);
    // Written on in the meantime, or gone.
    if (present === undefined || present.candidate.version !== candidate.version) return;
    const tried = { ...present, tries: present.tries + 1 };
    this.observations.set(candidate.name, tried);
    const isWhole = isWholeAlready(candidate, found);
    const isVerdict = kind === 'verify' || (isWhole && this.of.spec.checkpoint.verify === depth);
    if (isVerdict && isBelievable(tried, found)) await this.accept(tried, found);
    else if (kind === 'verify' && tried.tries >= triesMax) await this.accept(tried, unverifiable(neverStill));
    else if (isWhole) this.observations.set(candidate.name, { ...present, isWhole });
  }

  private async takeAgain(second: SecondReading, abort: AbortSignal): Promise<void> {
    const { name, depth } = second;
    const found = await this.parts.verify({ root: this.of.root, name, depth }, abort);
    abort.throwIfAborted();
    await this.inTurn(() => this.known.acceptSecond(second, found));
  }

  private async verifyLast(
    observation: CheckpointObservation,
    limit: AbortSignal,
    quickLimit: AbortSignal,
  ): Promise<void> {
    const { candidate } = observation;
    if (candidate.unfinished !== null) return;
    const { verify: depth } = this.of.spec.checkpoint;
    const order = { root: this.of.root, name: candidate.name };
    const ask = async (wanted: 'quick' | 'deep', signal: AbortSignal) => {
      return await untilAborted(this.parts.verify({ ...order, depth: wanted }, signal), signal).catch(
        () => null,
      );
    };
    const found = (await ask(depth, limit)) ?? (await ask('quick', quickLimit));
    if (found === null) {
      this.known.sendUnverified(observation, 'its job ended before it was verified');
      return;
    }
    // Ranks on other nodes may be writing their parts.
    const mayGrow = this.of.assignment.nodeCount > 1 && !isStill(observation);
    if (found.verdict === 'corrupt' && mayGrow) return;
    // It is reported before its index is written, which storage that hangs may keep waiting.
    await untilAborted(this.accept(observation, found), quickLimit);
  }

  private accept(observation: CheckpointObservation, found: Verification): Promise<void> {
    return this.inTurn(async () => {
      const { name } = observation.candidate;
      await this.known.accept(observation, found);
      if (this.observations.get(name)?.candidate.version === observation.candidate.version)
        this.observations.delete(name);
      // Not awaited: looks continue meanwhile.
      this.tidy();
    });
  }

  /** A hint is no more than that: a directory on a file server has none, and one that was replaced is another. */
  private listen(): void {
    if (this.hints !== null || this.reportedProblem !== null || !this.wasThere) return;
    try {
      const hints = watch(this.of.root, { persistent: false });
      const forget = () => {
        hints.close();
        if (this.hints === hints) this.hints = null;
      };
      // Every write to a file that is being saved is a `change`: only names that come and go are worth a look.
      hints.on('change', (event) => {
        if (event === 'rename' || this.isStopping) this.pacer.hint();
      });
      hints.on('error', forget);
      this.hints = hints;
    } catch {
      // It vanished, or the node has no watches left: looking regularly finds it anyway.
    }
  }

  private noteProblem(problem: string | null): void {
    const isMissing = problem === 'does not exist';
    // Many programs make it when they save for the first time.
    const sent = isMissing && !this.wasThere ? null : problem;
    this.wasThere ||= !isMissing;
    if (problem !== null) {
      this.hints?.close();
      this.hints = null;
    }
    if (sent !== null && sent !== this.reportedProblem) this.warn(`the checkpoint directory ${sent}`);
    this.reportedProblem = sent;
    this.problems.note(this.of.task, 'place', this.of.root, sent);
  }

  private warn(message: string): void {
    this.parts.log.warn({ task: taskKey(this.of.task), directory: this.of.root }, message);
  }
}

/** A directory that is missing or cannot be read is not empty. */
function isEmpty(directory: string): boolean {
  try {
    return readdirSync(directory).length === 0;
  } catch {
    return false;
  }
}

const neverStill = 'it changed during every read';

/** Whether the verdict is one on what is there, and would be the same in a while. */
function isBelievable(observation: CheckpointObservation, found: Verification): boolean {
  const isSame = found.version === observation.candidate.version;
  if (found.verdict === 'verified') return isSame;
  return isStill(observation) && (isSame || found.verdict === 'unverified');
}
