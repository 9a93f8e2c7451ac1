/** What is wrong with checkpoint directories now: a condition of the node, for the job trains on and nothing is safe. */
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';

export interface DirectoryProblem {
  /** null: of no job yet, a directory that the agent was told to look after. */
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

  /** @param onChange gets the first that there is; null: there is none any more */
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
    this.tell();
  }

  forget(task: TaskRef): void {
    this.known.delete(taskKey(task));
    this.tell();
  }

  private tell(): void {
    const all = [...this.known.values()];
    const gravest = all.find((each) => each.has('place'))?.get('place') ?? all[0]?.get('index') ?? null;
    if (gravest === this.published) return;
    this.published = gravest;
    this.onChange(gravest);
  }
}
