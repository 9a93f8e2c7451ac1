/** What a run of a pipeline does next, from what is known of its steps now. Pure. */
import { needsOf } from './file/graph.ts';
import type { PipelineStep, StepGroup } from './model.ts';

/** A step that runs once is one instance; one with `for_each` has one for each item. */
export interface InstanceLook {
  readonly state: 'running' | 'succeeded' | 'cached' | 'failed' | 'skipped' | 'blocked' | 'stopped';
  readonly tries: number;
  /** Of the newest try, by the clock of `nowMs`; counts while it runs. */
  readonly startedAtMs: number;
  /** Its time was up, and it is being stopped. */
  readonly isExpired: boolean;
}

export interface PipelineLook {
  /** In each group, a step comes behind those that it waits for. */
  readonly steps: readonly PipelineStep[];
  /** How many instances a step has. */
  readonly countOf: (step: PipelineStep) => number;
  /** null: it was not started yet. */
  readonly instanceOf: (step: string, index: number) => InstanceLook | null;
  /** Whether its start was refused a moment ago: it takes no room from others. */
  readonly isHeldBack: (step: string, index: number) => boolean;
  readonly isStopping: boolean;
  /** Instances at the same time. null: no limit. */
  readonly parallel: number | null;
  /** By a clock that no change of the time of day moves. */
  readonly nowMs: number;
  /** Whether the condition of a step holds; null: that cannot be said. @param outcomes of all steps, by name */
  readonly holds: (step: PipelineStep, outcomes: Readonly<Record<string, StepOutcome>>) => boolean | null;
}

export type StepOutcome = 'waiting' | 'running' | 'succeeded' | 'failed' | 'skipped' | 'blocked';

export interface InstanceRef {
  readonly step: string;
  readonly index: number;
}

export type PipelineAction =
  | ({ readonly kind: 'start'; readonly try: number } & InstanceRef)
  | ({
      readonly kind: 'settle';
      readonly state: 'skipped' | 'blocked' | 'failed';
      readonly reason: string;
    } & InstanceRef)
  /** It has run for longer than it may. */
  | ({ readonly kind: 'expire' } & InstanceRef)
  | {
      readonly kind: 'end';
      readonly state: 'succeeded' | 'failed' | 'stopped';
      /** The first step that has failed. */
      readonly failed: string | null;
    };

/** Every action that is possible now. None: the run waits until something of it ends. */
export function nextPipelineActions(look: PipelineLook): readonly PipelineAction[] {
  const outcomes: Record<string, StepOutcome> = {};
  for (const step of look.steps) outcomes[step.name] = outcomeOf(look, step);
  const ofGroup = (group: StepGroup) => look.steps.filter((step) => step.group === group);
  const hasEnded = (group: StepGroup) =>
    ofGroup(group).every(({ name }) => !['waiting', 'running'].includes(outcomes[name] ?? 'waiting'));
  const failed = look.steps.find(({ name }) => outcomes[name] === 'failed')?.name ?? null;
  const actions: PipelineAction[] = expirations(look);
  const room = roomIn(look);
  for (const group of ['steps', 'on_failure', 'finally'] as const) {
    const isOpen = group !== 'finally' && look.isStopping ? 'the run was stopped' : null;
    const hasMainFailed = ofGroup('steps').some(({ name }) => outcomes[name] === 'failed');
    for (const step of ofGroup(group)) {
      if (group === 'on_failure' && !look.isStopping && !hasMainFailed)
        actions.push(...settleAll(look, step, 'skipped', 'no step has failed'));
      else if (isOpen !== null) actions.push(...settleAll(look, step, 'blocked', isOpen));
      else actions.push(...actionsOf(look, step, outcomes, room));
    }
    if (!hasEnded(group)) return actions;
  }
  if (actions.length > 0) return actions;
  if (look.isStopping) return [{ kind: 'end', state: 'stopped', failed }];
  return [{ kind: 'end', state: failed === null ? 'succeeded' : 'failed', failed }];
}

interface Room {
  left: number;
}

function roomIn(look: PipelineLook): Room {
  if (look.parallel === null) return { left: Number.POSITIVE_INFINITY };
  const running = look.steps
    .flatMap((step) => instancesOf(look, step))
    .filter((each) => each?.state === 'running').length;
  return { left: look.parallel - running };
}

function instancesOf(look: PipelineLook, step: PipelineStep): readonly (InstanceLook | null)[] {
  return Array.from({ length: look.countOf(step) }, (_, index) => look.instanceOf(step.name, index));
}

/** Whether it has failed and is started again. */
function isRetried(
  { isStopping }: PipelineLook,
  { retries, group }: PipelineStep,
  each: InstanceLook,
): boolean {
  return (
    each.state === 'failed' && each.tries > 0 && each.tries <= retries && !(isStopping && group !== 'finally')
  );
}

function outcomeOf(look: PipelineLook, step: PipelineStep): StepOutcome {
  const instances = instancesOf(look, step);
  if (instances.some((each) => each !== null && (each.state === 'running' || isRetried(look, step, each))))
    return 'running';
  if (instances.includes(null)) return instances.every((each) => each === null) ? 'waiting' : 'running';
  const states = new Set(instances.map((each) => each?.state));
  if (states.has('failed') || states.has('stopped')) return 'failed';
  if (states.has('blocked')) return 'blocked';
  return states.has('skipped') ? 'skipped' : 'succeeded';
}

function expirations(look: PipelineLook): PipelineAction[] {
  return look.steps.flatMap((step) => {
    const { name, timeoutMs } = step;
    if (timeoutMs === null) return [];
    return instancesOf(look, step).flatMap((each, index): PipelineAction[] =>
      each?.state === 'running' && !each.isExpired && look.nowMs - each.startedAtMs >= timeoutMs
        ? [{ kind: 'expire', step: name, index }]
        : [],
    );
  });
}

function settleAll(
  look: PipelineLook,
  step: PipelineStep,
  state: 'skipped' | 'blocked' | 'failed',
  reason: string,
): readonly PipelineAction[] {
  return instancesOf(look, step).flatMap((each, index): PipelineAction[] =>
    each === null ? [{ kind: 'settle', step: step.name, index, state, reason }] : [],
  );
}

function actionsOf(
  look: PipelineLook,
  step: PipelineStep,
  outcomes: Readonly<Record<string, StepOutcome>>,
  room: Room,
): readonly PipelineAction[] {
  const { name, inputs } = step;
  const instances = instancesOf(look, step);
  if (instances.every((each) => each !== null && !isRetried(look, step, each))) return [];
  const needs = needsOf(step);
  const outcome = (other: string) => outcomes[other] ?? 'waiting';
  if (needs.some((other) => outcome(other) === 'waiting' || outcome(other) === 'running')) return [];
  const broken = needs.find((other) => outcome(other) === 'failed' || outcome(other) === 'blocked');
  if (broken !== undefined)
    return settleAll(
      look,
      step,
      'blocked',
      outcome(broken) === 'failed' ? `${broken} has failed` : `${broken} was not run`,
    );
  const without = inputs.find((each) => each.kind === 'output' && outcome(each.step) === 'skipped');
  if (without?.kind === 'output') return settleAll(look, step, 'skipped', `${without.step} was skipped`);
  // A condition is judged once: what has begun continues.
  if (step.when !== null && instances.every((each) => each === null)) {
    const holds = look.holds(step, outcomes);
    if (holds === null)
      return settleAll(look, step, 'failed', 'its condition depends on a value that is not known');
    if (!holds) return settleAll(look, step, 'skipped', 'its condition does not hold');
  }
  return instances.flatMap((each, index): PipelineAction[] => {
    if ((each !== null && !isRetried(look, step, each)) || room.left <= 0) return [];
    if (look.isHeldBack(name, index)) return [];
    room.left -= 1;
    return [{ kind: 'start', step: name, index, try: (each?.tries ?? 0) + 1 }];
  });
}
