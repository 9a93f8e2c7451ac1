/**
 * The checkpoints of the tasks of this node. Only the node of rank 0 watches: the directory is one for all ranks where
 * it is shared, and where it is not, what frameworks need to resume is what rank 0 has.
 */

import { realpath } from 'node:fs/promises';
import { compilePattern } from '@muster/checkpoints/namePattern';
import {
  type CheckpointLook,
  evaluatesLabel,
  externalCheckpoint,
  type KeptCheckpoints,
} from '@muster/common/checkpoints';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Assignment } from '../taskFacts/assignment.ts';
import { type Beginning, beginIn } from './beginning.ts';
import { DirectoryProblems } from './directoryProblems.ts';
import { DirectoryWatch } from './directoryWatch.ts';
import { lookBeforeStart, type WantedLook } from './look.ts';
import type { CheckpointMessage, SavePlace, WatcherParts } from './parts.ts';
import { conflictIn, type PreparationProblem, resumeProblem, setAsideCorrupt } from './preparation.ts';
import { isShared } from './removal.ts';
import { FirstReadings } from './secondReadings.ts';
import { setNewerAside } from './setAside.ts';

/** What the tasks of a node need of it. */
export interface Checkpoints {
  /**
   * Refuses a directory that holds checkpoints of another job, sets corrupt ones aside, and looks at what may be resumed from. For a
   * coordinator that asks for no look it makes sure that the one to resume from exists. May be repeated.
   * @param onDoing gets what it is busy with, for people
   * @returns why the attempt cannot begin; null: it can
   */
  prepare(
    assignment: Assignment,
    onDoing: (text: string) => void,
    signal: AbortSignal,
  ): Promise<PreparationProblem | null>;
  /** What the last preparation of the task has found in its directory. null: nobody asked for that. */
  lookOf(task: TaskRef): CheckpointLook | null;
  /** Called before the program starts, with what it resumes from: sets newer checkpoints of earlier attempts aside. May be repeated. */
  starting(assignment: Assignment): Promise<void>;
  /** The task runs. May be repeated. @param startedAtMs wall clock */
  watch(assignment: Assignment, startedAtMs: number): void;
  /** To be awaited before the first signal of a stop; takes a second at most. */
  stopping(task: TaskRef): Promise<void>;
  /** That signal may not have reached the task: nothing counts as saved after it until `stopping` runs again. */
  notStopped(task: TaskRef): void;
  isWatched(task: TaskRef): boolean;
  /** Its processes are gone: resolves, within some 10 s, when that may be reported. */
  lastLook(task: TaskRef): Promise<void>;
  /**
   * An earlier agent recorded the end of the task: what that agent knew of its checkpoints is read from beside them. Nothing is
   * changed there, where a later attempt may be at work. Resolves within some 3 s whatever the storage does.
   */
  recall(assignment: Assignment, startedAtMs: number): Promise<void>;
  isTrainingComplete(task: TaskRef): boolean;
  /** Its loss has diverged: the newest checkpoint from before that is kept. @param goodUntil null: no step is known */
  noteDivergence(task: TaskRef, goodUntil: number | null): void;
  /** The coordinator may not have received what was sent so far. */
  resend(): void;
  /** Of what `resend` sends the newest of each task, for a Hello, which has a bound. */
  messages(): readonly CheckpointMessage[];
  /** Nothing more needs to be reported about the task. */
  forget(task: TaskRef): void;
}

/** Of one task; all of them are sent after the Welcome. */
const newestMax = 8;

const evaluatedIsGone = {
  kind: 'checkpoint_conflict',
  message: 'the checkpoint that this job evaluates is no longer there',
} as const;

function isEvaluation({ labels }: JobSpec): boolean {
  return labels[evaluatesLabel] !== undefined;
}

const insideContainer = 'lies inside the container, on none of its volumes';

export class CheckpointWatcher implements Checkpoints {
  private readonly parts: WatcherParts;
  private readonly watches = new Map<TaskKey, DirectoryWatch>();
  private readonly kept = new Map<TaskKey, KeptCheckpoints>();
  private readonly beginnings = new Map<TaskKey, Beginning>();
  private readonly problems: DirectoryProblems;
  private readonly firstReadings = new FirstReadings();
  private readonly looks = new Map<TaskKey, CheckpointLook>();

  constructor(parts: WatcherParts) {
    this.parts = parts;
    this.problems = new DirectoryProblems(parts.onProblem);
  }

  async prepare(
    assignment: Assignment,
    onDoing: (text: string) => void = () => {},
    signal: AbortSignal = AbortSignal.timeout(assignment.spec.prepareTimeoutMs),
  ): Promise<PreparationProblem | null> {
    const { task, spec, quarantine: corrupt, resume, look: order = null } = assignment;
    if (task.nodeRank !== 0) return null;
    if (resume === null && isEvaluation(spec)) return evaluatedIsGone;
    const foreign = resume === null || externalCheckpoint(resume.name) === null ? null : resume.name;
    const place = this.placeOf(assignment);
    if (place !== null) {
      const message = this.isAtHome(assignment, place)
        ? null
        : await conflictIn({ ...place, lineage: [assignment.checkpointJobId, ...assignment.lineage] });
      if (message !== null) return { kind: 'checkpoint_conflict', message };
      await setAsideCorrupt({ ...place, corrupt }, (warning) => this.warn(task, place.root, warning));
    }
    const beginning = place === null ? null : await this.begin(assignment, place);
    // Inside of a container nothing can be seen.
    if (order !== null && (place !== null || foreign !== null)) {
      const limitMs = spec.prepareTimeoutMs / 2;
      return this.look({ assignment, order, place, beginning, onDoing, signal, limitMs });
    }
    if (foreign !== null) return this.foreignProblem(assignment, foreign);
    const message = resume === null || place === null ? null : await resumeProblem(place.root, resume.name);
    // As good as corrupt: the coordinator takes the one before.
    return message === null ? null : { kind: 'corrupt_checkpoint', message };
  }

  lookOf(task: TaskRef): CheckpointLook | null {
    return this.looks.get(taskKey(task)) ?? null;
  }

  private async look(wanted: WantedLook): Promise<PreparationProblem | null> {
    const { task, resume, spec } = wanted.assignment;
    const found = await lookBeforeStart({ ...this.parts, isRemote: (path) => this.isRemote(path) }, wanted);
    const isFound = found.found.some(({ checkpoint: { verdict } }) => verdict === 'verified');
    const ordered = found.found.find(({ checkpoint: { name } }) => name === resume?.name)?.checkpoint;
    // What is evaluated is one version of a checkpoint, and nothing in its place will do.
    if (isEvaluation(spec) && ordered?.version !== wanted.order.candidates[0]?.version)
      return { ...evaluatedIsGone, message: `${evaluatedIsGone.message}: another one has its name now` };
    if (!isFound && resume !== null && externalCheckpoint(resume.name) !== null) {
      const problem = ordered?.problem ?? 'it cannot be read';
      const message = `the checkpoint ${resume.name}, which this job was asked to continue from, cannot be used on this node: ${problem}`;
      return { kind: 'checkpoint_conflict', message };
    }
    this.looks.set(taskKey(task), found);
    return null;
  }

  private async isRemote(path: string): Promise<boolean> {
    const real = await realpath(path).catch(() => path);
    return isShared(real, this.parts.mounts());
  }

  private async begin(assignment: Assignment, { root, pattern, spec }: SavePlace): Promise<Beginning | null> {
    const { dirs, wallMs } = this.parts;
    const beginning = await beginIn({ root, pattern, isOwn: dirs.isOwn(spec) }, assignment, wallMs());
    const key = taskKey(assignment.task);
    if (beginning === null) this.beginnings.delete(key);
    else this.beginnings.set(key, beginning);
    return beginning;
  }

  async starting(assignment: Assignment): Promise<void> {
    const { task } = assignment;
    const place = task.nodeRank === 0 ? this.placeOf(assignment) : null;
    if (place !== null)
      await setNewerAside(place, assignment, (warning) => this.warn(task, place.root, warning));
  }

  watch(assignment: Assignment, startedAtMs: number): void {
    this.watchOf(assignment, startedAtMs)?.start();
  }

  /** @returns a new watch that has not begun. null: there is one, or nothing to watch */
  private watchOf(assignment: Assignment, startedAtMs: number): DirectoryWatch | null {
    const { task } = assignment;
    const key = taskKey(task);
    if (task.nodeRank !== 0 || this.watches.has(key)) return null;
    const place = this.placeOf(assignment);
    if (place === null) {
      const { checkpoint } = assignment.spec;
      if (checkpoint.dir !== null) {
        this.warn(task, checkpoint.dir, `the checkpoint directory ${insideContainer}`);
        this.problems.note(task, 'place', checkpoint.dir, insideContainer);
      }
      return null;
    }
    const kept = () => this.kept.get(key) ?? null;
    const beginning = this.beginnings.get(key) ?? null;
    const of = { task, assignment, startedAtMs, beginning, kept, ...place };
    const watch = new DirectoryWatch(this.parts, this.problems, this.firstReadings, of);
    this.watches.set(key, watch);
    return watch;
  }

  async recall(assignment: Assignment, startedAtMs: number): Promise<void> {
    await this.watchOf(assignment, startedAtMs)?.recall();
  }

  async stopping(task: TaskRef): Promise<void> {
    await this.watches.get(taskKey(task))?.stopping();
  }

  notStopped(task: TaskRef): void {
    this.watches.get(taskKey(task))?.notStopped();
  }

  isWatched(task: TaskRef): boolean {
    return this.watches.has(taskKey(task));
  }

  async lastLook(task: TaskRef): Promise<void> {
    await this.watches.get(taskKey(task))?.lastLook();
  }

  isTrainingComplete(task: TaskRef): boolean {
    return this.watches.get(taskKey(task))?.isTrainingComplete === true;
  }

  noteDivergence(task: TaskRef, goodUntil: number | null): void {
    this.watches.get(taskKey(task))?.known.noteDivergence(goodUntil);
  }

  /** Which of its checkpoints evaluations need. Each call replaces the one before. */
  keep(task: TaskRef, kept: KeptCheckpoints): void {
    this.kept.set(taskKey(task), kept);
    this.watches.get(taskKey(task))?.tidy();
  }

  resend(): void {
    for (const watch of this.watches.values()) watch.known.resend();
  }

  messages(): readonly CheckpointMessage[] {
    return [...this.watches.values()].flatMap((watch) => watch.known.messages().slice(-newestMax));
  }

  forget(task: TaskRef): void {
    const key = taskKey(task);
    void this.watches.get(key)?.close();
    this.watches.delete(key);
    this.kept.delete(key);
    this.looks.delete(key);
    this.beginnings.delete(key);
    this.problems.forget(task);
  }

  async close(): Promise<void> {
    await Promise.all([...this.watches.values()].map((watch) => watch.close()));
    this.watches.clear();
  }

  /** Of another job, whose user wants this one to continue from it: nothing else will do instead. */
  private async foreignProblem(
    { checkpointJobId, spec }: Assignment,
    name: string,
  ): Promise<PreparationProblem | null> {
    const place = this.parts.dirs.placeOf(checkpointJobId, spec, name);
    const message =
      place === null
        ? `the checkpoint ${name}, which this job was asked to continue from, ${insideContainer}`
        : await resumeProblem(place.root, place.name);
    return message === null ? null : { kind: 'checkpoint_conflict', message };
  }

  /**
   * The checkpoint that it begins from is in its directory: it has saved there before, or its user has named that one. It is
   * never sent away from its own work.
   */
  private isAtHome({ checkpointJobId, resume }: Assignment, { spec, root }: SavePlace): boolean {
    if (this.parts.dirs.isOwn(spec)) return true;
    const from = resume === null ? null : this.parts.dirs.placeOf(checkpointJobId, spec, resume.name);
    return from !== null && `${from.root}/`.startsWith(root === '/' ? '/' : `${root}/`);
  }

  private placeOf({ checkpointJobId, spec }: Assignment): SavePlace | null {
    const root = this.parts.dirs.hostPathFor(checkpointJobId, spec);
    if (root === null) return null;
    const { pattern } = spec.checkpoint;
    return { spec, root, pattern: pattern === null ? null : compilePattern(pattern) };
  }

  private warn(task: TaskRef, directory: string, message: string): void {
    this.parts.log.warn({ task: taskKey(task), directory }, message);
  }
}
