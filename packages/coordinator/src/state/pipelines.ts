/** Runs of pipelines and their triggers in the state, and what a draft changes of them. */
import type {
  PipelineChanges,
  StoredPipeline,
  StoredPipelineStep,
  StoredPipelines,
} from '../store/pipelines.ts';
import type { StoredTrigger } from '../store/triggers.ts';
import { applyChanges, removedOf } from './committed.ts';
import type { SetUndoably } from './people.ts';

/** The steps of one run, by name and index. */
export type StepsOfRun = Map<string, StoredPipelineStep>;

export interface Pipelines {
  readonly runs: Map<string, StoredPipeline>;
  /** By run. */
  readonly steps: Map<string, StepsOfRun>;
  /** By name. */
  readonly triggers: Map<string, StoredTrigger>;
}

export function pipelineStepKey(step: string, index: number): string {
  return `${step}/${index}`;
}

export function pipelinesOf({ runs, steps, triggers }: StoredPipelines): Pipelines {
  const byRun = new Map<string, StepsOfRun>();
  for (const step of steps) put(byRun, step);
  return {
    runs: new Map(runs.map((run) => [run.id, run])),
    steps: byRun,
    triggers: new Map(triggers.map((trigger) => [trigger.name, trigger])),
  };
}

export class DraftedPipelines {
  /** null: removed. */
  private readonly runs = new Map<string, StoredPipeline | null>();
  /** By run, name and index. */
  private readonly steps = new Map<string, StoredPipelineStep>();
  /** null: removed. */
  private readonly triggers = new Map<string, StoredTrigger | null>();
  private readonly base: Pipelines;
  private readonly set: SetUndoably;

  constructor(base: Pipelines, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  run(id: string): StoredPipeline | undefined {
    const drafted = this.runs.get(id);
    return drafted === undefined ? this.base.runs.get(id) : (drafted ?? undefined);
  }

  every(): readonly StoredPipeline[] {
    const ids = new Set([...this.base.runs.keys(), ...this.runs.keys()]);
    return [...ids].flatMap((id) => this.run(id) ?? []);
  }

  put(run: StoredPipeline): void {
    this.set(this.runs, run.id, run);
  }

  remove(id: string): void {
    this.set(this.runs, id, null);
  }

  step(run: string, step: string, index: number): StoredPipelineStep | undefined {
    const key = pipelineStepKey(step, index);
    return this.steps.get(`${run}/${key}`) ?? this.base.steps.get(run)?.get(key);
  }

  /** Those of a run that were started, or will not be. */
  stepsOf(run: string): readonly StoredPipelineStep[] {
    const known = new Map(this.base.steps.get(run));
    for (const step of this.steps.values())
      if (step.run === run) known.set(pipelineStepKey(step.step, step.index), step);
    return [...known.values()];
  }

  putStep(step: StoredPipelineStep): void {
    this.set(this.steps, `${step.run}/${pipelineStepKey(step.step, step.index)}`, step);
  }

  trigger(name: string): StoredTrigger | undefined {
    const drafted = this.triggers.get(name);
    return drafted === undefined ? this.base.triggers.get(name) : (drafted ?? undefined);
  }

  everyTrigger(): readonly StoredTrigger[] {
    const names = new Set([...this.base.triggers.keys(), ...this.triggers.keys()]);
    return [...names].flatMap((name) => this.trigger(name) ?? []);
  }

  putTrigger(trigger: StoredTrigger): void {
    this.set(this.triggers, trigger.name, trigger);
  }

  removeTrigger(name: string): void {
    this.set(this.triggers, name, null);
  }

  toBatch(): PipelineChanges {
    return {
      pipelines: [...this.runs.values()].filter((run) => run !== null),
      pipelineSteps: [...this.steps.values()],
      removedPipelines: removedOf(this.runs),
      triggers: [...this.triggers.values()].filter((trigger) => trigger !== null),
      removedTriggers: removedOf(this.triggers),
    };
  }

  /** After the commit. */
  apply(): void {
    applyChanges(this.base.runs, this.runs);
    for (const step of this.steps.values()) put(this.base.steps, step);
    for (const id of removedOf(this.runs)) this.base.steps.delete(id);
    applyChanges(this.base.triggers, this.triggers);
  }
}

function put(byRun: Map<string, StepsOfRun>, step: StoredPipelineStep): void {
  const steps = byRun.get(step.run) ?? new Map<string, StoredPipelineStep>();
  steps.set(pipelineStepKey(step.step, step.index), step);
  byRun.set(step.run, steps);
}
