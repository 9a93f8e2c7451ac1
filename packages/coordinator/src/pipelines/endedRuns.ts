/** Which ended runs of pipelines are no longer kept. What a kept run has read stays, so that its lineage has no gap. Pure. */
import { hasPipelineEnded } from '@muster/common/pipelines';
import type { Pipelines } from '../state/pipelines.ts';
import type { StoredPipeline, StoredPipelineStep } from '../store/pipelines.ts';
import { artifactKey } from './lineage.ts';

/** After that their outputs are no longer taken for later runs. */
const keptMs = 90 * 24 * 60 * 60_000;
/** Of the whole cluster: each is in memory, with its file and its steps. */
export const endedRunsMax = 10_000;
/** Of one trigger: a run each minute would be 130,000 in the time that runs are kept. */
const endedRunsOfTriggerMax = 500;

/**
 * Ids of runs to remove, the oldest end first: those that are too old or too many, of one trigger too, unless a run that stays has read
 * what they have made, or has taken steps from them.
 * @param nowMs wall clock
 */
export function runsToRemove(
  { runs, steps }: Pick<Pipelines, 'runs' | 'steps'>,
  nowMs: number,
): readonly string[] {
  const ended = [...runs.values()].filter(({ state }) => hasPipelineEnded(state)).sort(byEnd);
  const ofTrigger = new Map<string, number>();
  const old = new Set<string>();
  // The newest first: they are those that stay.
  for (const [position, { id, endedAtMs, triggers }] of ended.toReversed().entries()) {
    const trigger = triggers.at(-1) ?? null;
    const count = trigger === null ? 0 : (ofTrigger.get(trigger) ?? 0) + 1;
    if (trigger !== null) ofTrigger.set(trigger, count);
    const isTooMany = position >= endedRunsMax || count > endedRunsOfTriggerMax;
    if (isTooMany || (endedAtMs ?? 0) + keptMs < nowMs) old.add(id);
  }
  if (old.size === 0) return [];
  const needed = neededBy(
    [...runs.values()].filter(({ id }) => !old.has(id)),
    steps,
  );
  return ended.flatMap(({ id }) => (old.has(id) && !needed.has(id) ? [id] : []));
}

/** Runs that these come from, directly or by others. */
function neededBy(kept: readonly StoredPipeline[], steps: Pipelines['steps']): ReadonlySet<string> {
  const makers = new Map<string, string>();
  for (const each of steps.values())
    for (const { run, state, outputs } of each.values())
      if (state === 'succeeded') for (const output of outputs) makers.set(artifactKey(output), run);
  const needed = new Set(kept.map(({ id }) => id));
  for (const id of needed)
    for (const step of steps.get(id)?.values() ?? [])
      for (const source of sourcesOf(step, makers)) needed.add(source);
  return needed;
}

function sourcesOf(
  { inputs, cachedFrom }: StoredPipelineStep,
  makers: ReadonlyMap<string, string>,
): readonly string[] {
  const read = Object.values(inputs)
    .flat()
    .flatMap((each) => makers.get(artifactKey(each)) ?? []);
  return cachedFrom === null ? read : [...read, cachedFrom];
}

function byEnd(a: StoredPipeline, b: StoredPipeline): number {
  return (a.endedAtMs ?? 0) - (b.endedAtMs ?? 0) || (a.id < b.id ? -1 : 1);
}
