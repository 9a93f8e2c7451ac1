/** Trials of a sweep as agents see them: small, and in the order in which they are looked for. Pure. */
import { type SweepView, type TrialView, trialStates } from '@muster/common/sweeps';
import * as z from 'zod';
import { brief, briefEntries, isoTime } from './size.ts';

export const trialState = z.enum(trialStates);

export const trialsOrder = z
  .enum(['best', 'number'])
  .default('best')
  .describe('best: by value, and those without one last; number: as they were started');

export const trialRow = z.object({
  trial: z.number().describe('its number, from 0'),
  state: trialState,
  value: z
    .number()
    .nullable()
    .describe('of the objective, with seeds their mean; null: it has none, or none yet'),
  deviation: z
    .number()
    .nullable()
    .describe('standard deviation of the values of its seeds; null: no seeds, or no value'),
  furtherValues: z.array(z.number()).describe('of the second objective and so on'),
  furtherDeviations: z.array(z.number()),
  seeds: z
    .object({
      complete: z.number(),
      running: z.number(),
      failed: z.record(z.string(), z.number()).describe('how many have no value, by cause'),
    })
    .nullable()
    .describe('runs of it with other seeds; null: it runs once'),
  step: z.number().nullable().describe('of that value'),
  parameters: z.record(z.string(), z.union([z.number(), z.string(), z.boolean()])),
  parametersNotShown: z.number(),
  workloadId: z.string().describe('its job'),
  cause: z.string().nullable().describe('why it has no value, as causes of workloads are named'),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
});

/** Of one trial: a page still has several. */
const parameterBytesMax = 1_000;

export function trialRowOf(trial: TrialView): z.input<typeof trialRow> {
  const given = Object.entries(trial.params);
  const parameters = briefEntries(
    Object.fromEntries(given.map(([name, value]) => [name, shownValue(value)])),
    parameterBytesMax,
  );
  return {
    trial: trial.number,
    state: trial.state,
    value: trial.value,
    deviation: trial.deviation,
    furtherValues: [...trial.furtherValues],
    furtherDeviations: [...trial.furtherDeviations],
    seeds: seedsOf(trial),
    step: trial.step,
    parameters: { ...parameters },
    parametersNotShown: given.length - Object.keys(parameters).length,
    workloadId: trial.jobId,
    cause: trial.cause,
    startedAt: isoTime(trial.startedAtMs),
    endedAt: isoTime(trial.endedAtMs),
  };
}

function seedsOf({ seeds }: TrialView): z.input<typeof trialRow>['seeds'] {
  if (seeds.length === 0) return null;
  const count = (wanted: string) => seeds.filter(({ state }) => state === wanted).length;
  const causes = Map.groupBy(
    seeds.flatMap(({ cause }) => cause ?? []),
    (cause) => cause,
  );
  const failed = Object.fromEntries([...causes].map(([cause, all]) => [cause, all.length]));
  return { complete: count('complete'), running: count('running'), failed };
}

function shownValue(value: unknown): number | string | boolean {
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  return brief(String(value), 200);
}

/** @param order `best`: complete trials by their value, then those that were stopped early, then the others */
export function trialsInOrder(
  { spec }: Pick<SweepView, 'spec'>,
  trials: readonly TrialView[],
  order: 'best' | 'number',
): readonly TrialView[] {
  if (order === 'number') return trials;
  const { goal } = (spec['objective'] ?? {}) as { readonly goal?: unknown };
  const sign = goal === 'max' ? -1 : 1;
  const rank = ({ state, value }: TrialView) => (value === null ? 2 : state === 'complete' ? 0 : 1);
  return trials.toSorted(
    (a, b) => rank(a) - rank(b) || sign * ((a.value ?? 0) - (b.value ?? 0)) || a.number - b.number,
  );
}
