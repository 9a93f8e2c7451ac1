/** Sees at the start whether the agent can write where it was told that jobs keep their checkpoints, and says so if not. */
import type { Logger } from '@muster/common/log';
import type { Mount } from '../host/mounts.ts';
import type { DirectoryProblem } from './directoryProblems.ts';
import { rootProblem } from './place.ts';

export interface RootsParts {
  /** Absolute. */
  readonly roots: readonly string[];
  readonly mounts: () => readonly Mount[];
  /** The gravest there is, of a root or of a job; null: none. */
  readonly onProblem: (problem: DirectoryProblem | null) => void;
  /** Until the next look where something is wrong: somebody mends it, and waits to see that it is mended. */
  readonly againMs: number;
  readonly log: Logger;
}

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
    this.tell();
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
    this.tell();
    if (found !== null) this.timer = setTimeout(() => void this.look(), againMs);
  }

  private tell(): void {
    this.parts.onProblem(this.ofJob ?? this.ofRoot);
  }
}
