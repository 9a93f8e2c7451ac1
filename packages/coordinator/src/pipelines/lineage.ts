/** From which steps an artifact comes, and which have used it. Pure. */
import type { ArtifactView } from '@muster/common/pipelines';
import type { StoredPipelineStep } from '../store/pipelines.ts';

type Step = StoredPipelineStep;

export interface StepLineage {
  /** The earliest first. Those that were asked about are among them. */
  readonly madeBy: readonly Step[];
  readonly usedBy: readonly Step[];
}

/** One artifact is at one place, with one content. A step that is cached has those of the step that has made them. */
export function artifactKey({ path, digest }: ArtifactView): string {
  return `${digest} ${path}`;
}

export class LineageGraph {
  private readonly makers = new Map<string, Step>();
  private readonly users = new Map<string, Step[]>();

  /** @param steps all that the caller may see */
  constructor(steps: readonly Step[]) {
    for (const step of steps) {
      if (step.state === 'succeeded')
        for (const each of step.outputs) this.makers.set(artifactKey(each), step);
      for (const each of inputsOf(step)) {
        const key = artifactKey(each);
        const users = this.users.get(key) ?? [];
        users.push(step);
        this.users.set(key, users);
      }
    }
    for (const step of steps)
      if (step.state === 'cached')
        for (const each of step.outputs)
          if (!this.makers.has(artifactKey(each))) this.makers.set(artifactKey(each), step);
  }

  /** The steps that have made it. */
  makersOf(isMeant: (artifact: ArtifactView) => boolean): readonly Step[] {
    return [...new Set(this.makers.values())].filter(({ outputs }) => outputs.some(isMeant));
  }

  /** @param isMeant which outputs of the steps themselves count; of what others made of them, all do */
  of(steps: readonly Step[], isMeant: (artifact: ArtifactView) => boolean): StepLineage {
    const made = reach(steps, (step) =>
      inputsOf(step).flatMap((each) => this.makers.get(artifactKey(each)) ?? []),
    );
    const usersOf = (outputs: readonly ArtifactView[]) =>
      outputs.flatMap((each) => this.users.get(artifactKey(each)) ?? []);
    const first = steps.flatMap(({ outputs }) => usersOf(outputs.filter(isMeant)));
    const used = reach(first, ({ outputs }) => usersOf(outputs));
    return {
      madeBy: inOrder([...made]),
      usedBy: inOrder([...used].filter((step) => !steps.includes(step))),
    };
  }
}

function inputsOf({ inputs }: Step): readonly ArtifactView[] {
  return Object.values(inputs).flat();
}

function reach(from: readonly Step[], next: (step: Step) => readonly Step[]): ReadonlySet<Step> {
  const reached = new Set(from);
  for (const step of reached) for (const each of next(step)) reached.add(each);
  return reached;
}

function inOrder(steps: readonly Step[]): readonly Step[] {
  return steps.toSorted((a, b) => a.startedAtMs - b.startedAtMs || (a.step < b.step ? -1 : 1));
}
