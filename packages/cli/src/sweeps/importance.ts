/** Which parameters of a sweep matter. */
import type { SweepView, TrialView } from '@muster/common/sweeps';
import { checkedSweep } from '@muster/experiments/file/checkedSweep';
import {
  importanceOf,
  importanceTrialsMin,
  type ParameterImportance,
} from '@muster/experiments/importance/importance';
import type { Point } from '@muster/experiments/space';
import { fitsSpace } from '@muster/experiments/warmStart';
import { type Column, formatTable, type View } from '../output/table.ts';

export interface SweepImportance {
  /** Complete trials, by which it is measured. */
  readonly trials: number;
  /** Most important first. Empty: there are too few trials, or all their values are equal. */
  readonly parameters: readonly ParameterImportance[];
}

export function importanceOfSweep(
  sweep: Pick<SweepView, 'spec'>,
  trials: readonly TrialView[],
): SweepImportance {
  const { parameters, seed } = checkedSweep(sweep.spec);
  const complete = trials.flatMap(({ state, value, params }) =>
    state === 'complete' && value !== null && fitsSpace(parameters, params as Point)
      ? [{ point: params as Point, value }]
      : [],
  );
  return { trials: complete.length, parameters: importanceOf(parameters, complete, seed) };
}

export function importanceTable({ trials, parameters }: SweepImportance, view: View): string {
  if (parameters.length === 0)
    return trials < importanceTrialsMin
      ? `${trials} trials are complete; importance needs ${importanceTrialsMin}.\n`
      : 'All trials have the same value: no parameter matters.\n';
  const columns: readonly Column<ParameterImportance>[] = [
    { header: 'PARAMETER', cell: ({ name }) => name },
    { header: 'IMPORTANCE', cell: ({ share }) => percentText(share), align: 'right' },
  ];
  const together = Math.max(0, 1 - parameters.reduce((sum, { share }) => sum + share, 0));
  return `${formatTable(parameters, columns, view)}
The share of the variance between ${trials} complete trials that each explains by itself; ${percentText(together)} only together.\n`;
}

const shownMax = 3;
const shownMin = 0.01;

/** `lr 62 %, layers 20 %`; empty: it is not known. */
export function importanceInShort({ parameters }: SweepImportance): string {
  return parameters
    .filter(({ share }) => share >= shownMin)
    .slice(0, shownMax)
    .map(({ name, share }) => `${name} ${percentText(share)}`)
    .join(', ');
}

function percentText(share: number): string {
  return `${Math.round(share * 100)} %`;
}
