/**
 * Stands in an agent for what watches checkpoint directories: the same calls, with looks and verifications that take
 * their time. What it has found out lies beside the checkpoints and outlives it, as an index does.
 */

import type { CheckpointMessage } from '@muster/agent/checkpoints/parts';
import type { PreparationProblem } from '@muster/agent/checkpoints/preparation';
import { overtakenBy } from '@muster/agent/checkpoints/setAside';
import type { Checkpoints } from '@muster/agent/checkpoints/watcher';
import type { Assignment } from '@muster/agent/taskFacts/assignment';
import {
  type CheckpointFacts,
  type CheckpointLook,
  type FoundCheckpoint,
  isSetAside,
  type LookOrder,
  secondReadingMs,
} from '@muster/common/checkpoints';
import { type JobId, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Machine } from './machine.ts';
import { type SavedCheckpoint, type Shelf, sharedRoot } from './shelf.ts';
import type { Life } from './timeline.ts';

const lookMsMax = 1_500;
const verifyMsMax = 2_500;
/** A report of an end waits for these, one after the other. */
const lastVerifyMsMax = 800;

/** As the job sees it, and as its agents find it. */
export function checkpointDirectory(checkpointJobId: JobId, spec: JobSpec): string {
  return spec.checkpoint.dir ?? `/checkpoints/${checkpointJobId}`;
}

interface Known {
  readonly facts: CheckpointFacts;
  readonly savedBy: TaskRef;
  readonly afterStop: boolean;
}

interface Watch {
  readonly task: TaskRef;
  readonly shelf: Shelf;
  readonly checkpointJobId: JobId;
  readonly shared: boolean;
  readonly known: Map<string, Known>;
  isVerifying: boolean;
  hasEnded: boolean;
  /** What was there when it was ordered to stop. null: it was not. */
  before: ReadonlySet<SavedCheckpoint> | null;
}

export interface SimulatedCheckpointParts {
  readonly machine: Machine;
  readonly agent: Life;
  readonly send: (message: CheckpointMessage) => void;
}

export class SimulatedCheckpoints implements Checkpoints {
  private readonly parts: SimulatedCheckpointParts;
  private readonly watches = new Map<TaskKey, Watch>();
  private readonly looks = new Map<TaskKey, CheckpointLook>();

  constructor(parts: SimulatedCheckpointParts) {
    this.parts = parts;
  }

  async prepare(wanted: Assignment): Promise<PreparationProblem | null> {
    const { task, resume, quarantine, lineage, look = null, ...assignment } = wanted;
    if (task.nodeRank !== 0) return null;
    await this.moment(20);
    const { shelf } = this.placeOf(assignment);
    const mayBeOf = [null, assignment.checkpointJobId, ...lineage];
    if (resume === null && shelf.checkpoints.size > 0 && !mayBeOf.includes(shelf.owner))
      return { kind: 'checkpoint_conflict', message: `it holds checkpoints of ${shelf.owner}` };
    for (const { name, version } of quarantine) {
      if (shelf.checkpoints.get(name)?.version === version) shelf.checkpoints.delete(name);
    }
    if (look !== null) {
      this.looks.set(taskKey(task), await this.lookAt(wanted, look));
      return null;
    }
    if (resume === null || shelf.checkpoints.has(resume.name)) return null;
    return { kind: 'corrupt_checkpoint', message: `the checkpoint ${resume.name} is not there` };
  }

  lookOf(task: TaskRef): CheckpointLook | null {
    return this.looks.get(taskKey(task)) ?? null;
  }

  /** What is really on the disk, as `lookBeforeStart` of an agent finds it. */
  private async lookAt(assignment: Assignment, order: LookOrder): Promise<CheckpointLook> {
    const { shelf, shared } = this.placeOf(assignment);
    const found: FoundCheckpoint[] = [];
    let confirmed: SavedCheckpoint | null = null;
    for (const { name, version } of order.candidates) {
      const saved = shelf.checkpoints.get(name);
      if (saved !== undefined && isVersion(saved, version)) confirmed = saved;
      else if (saved !== undefined && (await this.verifyNow(shelf, saved))) confirmed = saved;
      found.push(saved === undefined ? goneCheckpoint(name, version) : foundAs(saved));
      if (confirmed !== null) break;
    }
    for (const saved of this.newerThan(confirmed, shelf, assignment, order)) {
      if (saved.verdict !== 'verified' && !(await this.verifyNow(shelf, saved))) continue;
      found.push(foundAs(saved));
      break;
    }
    return { found, shared, problem: null, tookMs: 1 };
  }

  /** Those that the chain has saved since, the newest first. */
  newerThan(
    confirmed: SavedCheckpoint | null,
    shelf: Shelf,
    { task, checkpointJobId }: Assignment,
    { stepMax }: LookOrder,
  ): readonly SavedCheckpoint[] {
    if (shelf.owner !== null && shelf.owner !== checkpointJobId) return [];
    const attemptOf = ({ savedBy }: SavedCheckpoint) => (savedBy.jobId === task.jobId ? savedBy.attempt : 0);
    const isNewer = (each: SavedCheckpoint) =>
      confirmed === null ||
      attemptOf(each) > attemptOf(confirmed) ||
      (attemptOf(each) === attemptOf(confirmed) && each.step > confirmed.step);
    return [...shelf.checkpoints.values()]
      .filter((each) => isNewer(each) && (stepMax === null || each.step <= stepMax))
      .filter(({ name }) => !isSetAside(name))
      .sort((a, b) => attemptOf(b) - attemptOf(a) || b.step - a.step);
  }

  private async verifyNow(shelf: Shelf, saved: SavedCheckpoint): Promise<boolean> {
    await this.moment(20);
    if (shelf.checkpoints.get(saved.name) !== saved || saved.verdict === 'corrupt') return false;
    saved.verdict = saved.savedAtMs === null || saved.quality === 'corrupt' ? 'corrupt' : 'verified';
    return saved.verdict === 'verified';
  }

  /** One rename after the other: an agent may be killed between any two. */
  async starting({ task, resume, ...assignment }: Assignment): Promise<void> {
    if (task.nodeRank !== 0) return;
    const { shelf } = this.placeOf(assignment);
    const isOfChain = ({ savedBy }: SavedCheckpoint) =>
      savedBy.jobId === task.jobId || shelf.owner === assignment.checkpointJobId;
    const saved = [...shelf.checkpoints.values()].filter(isOfChain);
    const index = {
      found: saved.filter(({ verdict }) => verdict === null),
      checkpoints: saved.flatMap(({ name, version, step, verdict, savedBy: { attempt } }) =>
        verdict === null ? [] : [{ name, version, step, verdict, attempt }],
      ),
    };
    for (const { name, version, attempt } of overtakenBy(index, { candidates: saved }, { task, resume })) {
      await this.moment(5);
      const each = shelf.checkpoints.get(name);
      if (each !== undefined && each.version === version) shelf.rename(each, `${name}.attempt-${attempt}`);
    }
  }

  watch({ task, ...assignment }: Assignment): void {
    const key = taskKey(task);
    if (task.nodeRank !== 0 || this.watches.has(key)) return;
    const watch = this.watchOf({ task, ...assignment });
    for (const known of watch.known.values()) this.report(watch, known);
    for (const saved of watch.shelf.checkpoints.values()) {
      if (saved.verdict === 'corrupt' && !saved.reread) this.readAgainLater(watch, saved);
    }
    this.look(watch);
  }

  private watchOf({ task, ...assignment }: Assignment): Watch {
    const watch: Watch = {
      task,
      ...this.placeOf(assignment),
      known: new Map(),
      checkpointJobId: assignment.checkpointJobId,
      isVerifying: false,
      hasEnded: false,
      before: null,
    };
    this.watches.set(taskKey(task), watch);
    for (const saved of watch.shelf.checkpoints.values()) {
      if (saved.verdict !== null)
        watch.known.set(saved.name, { facts: factsOf(saved), savedBy: saved.savedBy, afterStop: false });
    }
    return watch;
  }

  async stopping(task: TaskRef): Promise<void> {
    const watch = this.watches.get(taskKey(task));
    if (watch === undefined || watch.before !== null) return;
    await this.moment(this.parts.machine.random.chance(0.9) ? 30 : 1_000);
    watch.before = new Set(watch.shelf.checkpoints.values());
  }

  notStopped(task: TaskRef): void {
    const watch = this.watches.get(taskKey(task));
    if (watch !== undefined) watch.before = null;
  }

  isWatched(task: TaskRef): boolean {
    return this.watches.has(taskKey(task));
  }

  async lastLook(task: TaskRef): Promise<void> {
    const watch = this.watches.get(taskKey(task));
    if (watch === undefined || watch.hasEnded) return;
    watch.hasEnded = true;
    for (const saved of unverifiedOf(watch)) {
      await this.moment(lastVerifyMsMax);
      this.accept(watch, saved);
    }
  }

  async recall({ task, ...assignment }: Assignment): Promise<void> {
    if (task.nodeRank !== 0) return;
    await this.moment(20);
    const watch = this.watchOf({ task, ...assignment });
    watch.hasEnded = true;
  }

  isTrainingComplete(): boolean {
    return false;
  }

  noteDivergence(): void {}

  resend(): void {
    for (const message of this.messages()) this.parts.send(message);
  }

  messages(): readonly CheckpointMessage[] {
    return [...this.watches.values()].flatMap((watch) =>
      [...watch.known.values()].map((known) => messageOf(watch, known)),
    );
  }

  forget(task: TaskRef): void {
    const watch = this.watches.get(taskKey(task));
    if (watch !== undefined) watch.hasEnded = true;
    this.watches.delete(taskKey(task));
  }

  private look(watch: Watch): void {
    const { machine, agent } = this.parts;
    machine.timeline.at(machine.random.between(50, lookMsMax), agent, () => {
      if (watch.hasEnded) return;
      const next = unverifiedOf(watch).find(({ savedAtMs }) => savedAtMs !== null);
      if (next !== undefined && !watch.isVerifying) {
        watch.isVerifying = true;
        machine.timeline.at(machine.random.between(5, verifyMsMax), agent, () => {
          watch.isVerifying = false;
          if (!watch.hasEnded) this.accept(watch, next);
        });
      }
      this.look(watch);
    });
  }

  private accept(watch: Watch, saved: SavedCheckpoint): void {
    // It was rewritten meanwhile: that is another one.
    if (watch.shelf.checkpoints.get(saved.name) !== saved) return;
    watch.shelf.owner = watch.checkpointJobId;
    saved.verdict = saved.savedAtMs === null || saved.quality === 'corrupt' ? 'corrupt' : 'verified';
    const known = {
      facts: factsOf(saved),
      savedBy: saved.savedBy,
      afterStop: watch.before?.has(saved) === false,
    };
    watch.known.set(saved.name, known);
    this.report(watch, known);
    if (saved.verdict === 'corrupt') this.readAgainLater(watch, saved);
  }

  private readAgainLater(watch: Watch, saved: SavedCheckpoint): void {
    const { machine, agent } = this.parts;
    machine.timeline.at(secondReadingMs, agent, () => {
      const known = watch.known.get(saved.name);
      if (watch.hasEnded || known === undefined || watch.shelf.checkpoints.get(saved.name) !== saved) return;
      saved.reread = true;
      const after = { ...known, facts: factsOf(saved) };
      watch.known.set(saved.name, after);
      this.report(watch, after);
    });
  }

  private report(watch: Watch, known: Known): void {
    this.parts.send(messageOf(watch, known));
  }

  private placeOf({ checkpointJobId, spec }: Pick<Assignment, 'checkpointJobId' | 'spec'>) {
    const path = checkpointDirectory(checkpointJobId, spec);
    return { shelf: this.parts.machine.shelfAt(path), shared: path.startsWith(sharedRoot) };
  }

  private moment(msMax: number): Promise<void> {
    const { machine, agent } = this.parts;
    return new Promise((resolve) => {
      machine.timeline.at(machine.random.between(0, msMax), agent, resolve);
    });
  }
}

/** Whether a checkpoint is the version that was verified. A mutant takes it for any. */
export function isVersion(saved: SavedCheckpoint, version: string): boolean {
  return saved.version === version && saved.verdict === 'verified';
}

function foundAs(saved: SavedCheckpoint): FoundCheckpoint {
  const { jobId: by, attempt } = saved.savedBy;
  return { checkpoint: factsOf(saved), by, attempt };
}

function goneCheckpoint(name: string, version: string): FoundCheckpoint {
  const nothing = {
    name,
    version,
    step: 0,
    quality: 'good',
    savedAtMs: 0,
    verdict: null,
    reread: false,
  } as const;
  const facts = factsOf({ ...nothing, savedBy: { jobId: '' as JobId, attempt: 0, nodeRank: 0 } });
  return {
    checkpoint: { ...facts, verdict: 'gone', problem: 'it no longer exists' },
    by: null,
    attempt: null,
  };
}

function messageOf({ task, shared }: Watch, { facts, savedBy, afterStop }: Known): CheckpointMessage {
  const { jobId: by, attempt } = savedBy;
  return { kind: 'checkpoint', task, checkpoint: facts, shared, afterStop, by, attempt };
}

/** The newest first. */
function unverifiedOf({ shelf, known }: Watch): readonly SavedCheckpoint[] {
  return [...shelf.checkpoints.values()]
    .filter(({ name, version }) => known.get(name)?.facts.version !== version)
    .sort((a, b) => b.step - a.step);
}

function factsOf({ name, version, step, savedAtMs, verdict, reread }: SavedCheckpoint): CheckpointFacts {
  return {
    reread,
    name,
    version,
    step,
    savedAtMs: savedAtMs ?? 0,
    verdict: verdict ?? 'unverified',
    format: 'torch',
    bytes: 1_048_576,
    files: 1,
    saveDurationMs: 10,
    metrics: {},
    digest: null,
    depth: 'quick',
    problem: verdict === 'corrupt' ? 'it is cut off' : null,
  };
}
