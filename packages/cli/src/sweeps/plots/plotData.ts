/** What the plots of a sweep show, asked of the coordinator. */
import { MusterError } from '@muster/common/errors';
import type { TrialView } from '@muster/common/sweeps';
import type { MusterApi } from '@muster/common/wire/client';
import { checkedSweep } from '@muster/experiments/file/checkedSweep';
import { meanOf } from '@muster/experiments/seeds';
import { importanceOfSweep } from '../importance.ts';
import type { SweepPlotData, TrialCurveView } from './plots.ts';

/** More curves cannot be told apart, and each is a call. */
const curvesMax = 200;
const pointsMax = 200;
const callsAtOnce = 8;

/** @param isCurvesWanted whether the output of the trials is asked for, which takes a call for each */
export async function plotDataOf(api: MusterApi, name: string, isCurvesWanted: boolean) {
  const sweep = await api.getSweep(name);
  const trials = await api.listTrials(sweep.id);
  const { objective, parameters } = checkedSweep(sweep.spec);
  const { metric, goal } = objective;
  const curves = isCurvesWanted ? await curvesOf(api, metric, chosenTrials(trials, goal)) : [];
  const importance = importanceOfSweep(sweep, trials);
  const data: SweepPlotData = { metric, goal, parameters, trials, curves, importance };
  return { sweep, data };
}

/** The best, and then those without a value. */
function chosenTrials(trials: readonly TrialView[], goal: 'min' | 'max'): readonly TrialView[] {
  const most = Math.ceil(curvesMax / Math.max(1, ...trials.map(({ seeds }) => seeds.length)));
  if (trials.length <= most) return trials;
  const worst = Number.POSITIVE_INFINITY;
  const lossOf = ({ value }: TrialView) => (value === null ? worst : goal === 'min' ? value : -value);
  return trials.toSorted((a, b) => (lossOf(a) < lossOf(b) ? -1 : 1)).slice(0, most);
}

async function curvesOf(
  api: MusterApi,
  metric: string,
  trials: readonly TrialView[],
): Promise<readonly TrialCurveView[]> {
  const curves: TrialCurveView[] = [];
  for (let from = 0; from < trials.length; from += callsAtOnce)
    curves.push(
      ...(await Promise.all(
        trials.slice(from, from + callsAtOnce).map((each) => curveOf(api, metric, each)),
      )),
    );
  return curves;
}

/** With seeds, the mean over them at each step that all of them have printed. */
async function curveOf(
  api: MusterApi,
  metric: string,
  { number, jobId, seeds }: TrialView,
): Promise<TrialCurveView> {
  const jobs = seeds.length === 0 ? [jobId] : seeds.map((seed) => seed.jobId);
  const points: CurvePoint[] = [];
  for (const each of jobs) points.push(...(await pointsOf(api, metric, each)));
  const bySteps = Map.groupBy(points, ({ step }) => step);
  const means = [...bySteps].flatMap(([step, all]) => {
    const value = meanOf(all.map((point) => point.value));
    return value === null || all.length < jobs.length ? [] : [{ step, value }];
  });
  return {
    trial: number,
    points: (jobs.length === 1 ? points : means).toSorted((a, b) => a.step - b.step),
  };
}

type CurvePoint = TrialCurveView['points'][number];

/** Of the lowest rank that prints the metric, over all attempts. */
async function pointsOf(api: MusterApi, metric: string, jobId: string): Promise<readonly CurvePoint[]> {
  // A job that retention has removed has no curve any longer, but its value is still known.
  const series = await api.queryMetrics({ jobId, name: metric, pointsMax }).then(
    (view) => view.series,
    (error: unknown) => {
      if (error instanceof MusterError && error.code === 'not_found') return [];
      throw error;
    },
  );
  const rank = Math.min(...series.map(({ nodeRank }) => nodeRank ?? 0));
  return series
    .filter(({ nodeRank }) => (nodeRank ?? 0) === rank)
    .flatMap((each) => each.points)
    .flatMap(({ step = null, value: single, bucket }) => {
      const value = bucket === undefined ? single : bucket.last;
      return step === null || value === null ? [] : [{ step, value }];
    });
}
