/** What is wrong with checkpoint directories now: a condition of the node, for the job trains on and nothing is safe. */
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { Mount } from '../host/mounts.ts';
import { rootProblem } from './place.ts';

export interface DirectoryProblem {
  /** null: of no job yet, a directory that the agent is configured to look after. */
  readonly task: TaskRef | null;
  readonly directory: string;
  /** Without the directory: `is a symbolic link`. */
  readonly problem: string;
}

/** `place`: it is not watched. `index`: it is, and what is known of it cannot be written down beside it. */
export type ProblemSource = 'place' | 'index';

export class DirectoryProblems {
  private readonly known = new Map<TaskKey, Map<ProblemSource, DirectoryProblem>>();
  private readonly onChange: (gravest: DirectoryProblem | null) => void;
  private published: DirectoryProblem | null = null;

  /** @param onChange gets the first that there is; null: there is no longer valid */
  constructor(onChange: (gravest: DirectoryProblem | null) => void) {
    this.onChange = onChange;
  }

  /** @param problem null: it is over */
  note(task: TaskRef, source: ProblemSource, directory: string, problem: string | null): void {
    const ofTask = this.known.get(taskKey(task)) ?? new Map<ProblemSource, DirectoryProblem>();
    if (problem === null) ofTask.delete(source);
    else if (ofTask.get(source)?.problem !== problem) ofTask.set(source, { task, directory, problem });
    if (ofTask.size === 0) this.known.delete(taskKey(task));
    else this.known.set(taskKey(task), ofTask);
    this.publish();
  }

  forget(task: TaskRef): void {
    this.known.delete(taskKey(task));
    this.publish();
  }

  private publish(): void {
    const all = [...this.known.values()];
    const gravest = all.find((each) => each.has('place'))?.get('place') ?? all[0]?.get('index') ?? null;
    if (gravest === this.published) return;
    this.published = gravest;
    this.onChange(gravest);
  }
}

export interface RootsParts {
  /** Absolute. */
  readonly roots: readonly string[];
  readonly mounts: () => readonly Mount[];
  /** The gravest there is, of a root or of a job; null: none. */
  readonly onProblem: (problem: DirectoryProblem | null) => void;
  /** Until the next look where something is wrong: somebody fixes it, and waits to see that. */
  readonly againMs: number;
  readonly log: Logger;
}

/** Sees at the start whether the agent can write where jobs keep their checkpoints according to its configuration, and reports it if not. */
export class CheckpointRoots {
  private readonly parts: RootsParts;
  private ofRoot: DirectoryProblem | null = null;
  private ofJob: DirectoryProblem | null = null;
  private timer: NodeJS.Timeout | null = null;
  private isClosed = false;

  constructor(parts: RootsParts) {
    this.parts = parts;
  }

  /** Nobody waits for it: storage that does not answer must not keep an agent from its tasks. */
  start(): void {
    void this.look();
  }

  /** What is wrong for a job that runs is graver than what may go wrong for one to come. */
  jobProblem(problem: DirectoryProblem | null): void {
    this.ofJob = problem;
    this.publish();
  }

  close(): void {
    this.isClosed = true;
    if (this.timer !== null) clearTimeout(this.timer);
  }

  private async look(): Promise<void> {
    const { roots, mounts, log, againMs } = this.parts;
    let found: DirectoryProblem | null = null;
    for (const directory of roots) {
      const problem = await rootProblem(directory, mounts);
      if (problem !== null) found ??= { task: null, directory, problem };
    }
    if (this.isClosed) return;
    if (found !== null && found.problem !== this.ofRoot?.problem) {
      const { directory, problem } = found;
      log.warn({ directory }, `the checkpoint root ${problem}`);
    }
    this.ofRoot = found;
    this.publish();
    if (found !== null) this.timer = setTimeout(() => void this.look(), againMs);
  }

  private publish(): void {
    this.parts.onProblem(this.ofJob ?? this.ofRoot);
  }
}
