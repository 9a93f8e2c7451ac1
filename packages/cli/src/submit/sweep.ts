/** The JSON of a sweep that is sent, from a sweep file. */
import type { MusterError } from '@muster/common/errors';
import { jobSpecToFile } from '@muster/common/spec/serialize';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { SweepView, TrialView } from '@muster/common/sweeps';
import { checkedSweep } from '@muster/experiments/file/checkedSweep';
import { readSweep, sweepToFile } from '@muster/experiments/file/sweepFile';
import type { Point } from '@muster/experiments/space';
import { namesSeed, trialSpec, unusedParameters } from '@muster/experiments/trialSpec';
import type { Context } from '../context.ts';
import { placedInFile } from './placedInFile.ts';
import { asSentFromHere } from './spec.ts';
import { readCheckedFile } from './specFile.ts';

export interface PreparedSweep {
  readonly json: string;
  /** For people. */
  readonly notes: readonly string[];
  /** What the coordinator refused, with the place in the file. */
  explainRefusal(error: MusterError): Error;
}

/** @throws {CliError} with every problem and its place */
export async function sweepFromFile(
  file: string,
  context: Context,
  exports: string | undefined,
): Promise<PreparedSweep> {
  const { document, checked, refuse } = await readCheckedFile(file, context, {
    noun: 'sweep',
    expected: 'a sweep: objective, parameters, trials and job',
    check: readSweep,
  });
  const { sweep } = checked;
  const { spec: job, notes } = asSentFromHere(sweep.job, context, exports);
  const unused = unusedParameters(job, sweep.parameters);
  const seeded = sweep.seeds > 1 && !namesSeed(job) ? [unusedSeedNote] : [];
  return {
    json: JSON.stringify(sweepToFile({ ...sweep, job })),
    notes: [...notes, ...unusedNote(unused), ...seeded],
    explainRefusal: (error) => {
      const problems = placedInFile(document, error.problems);
      return problems.length === 0 ? error : refuse(problems);
    },
  };
}

const unusedSeedNote = 'The job names {seed} nowhere: its program must read MUSTER_PARAM_SEED.';

function unusedNote(unused: readonly string[]): readonly string[] {
  if (unused.length === 0) return [];
  const names = unused.map((name) => `{${name}}`).join(', ');
  return [`The job names ${names} nowhere: its program must read MUSTER_TRIAL_PARAMS.`];
}

/** The job of a trial with its first seed, without what makes it one. @throws {MusterError} `internal`: the spec is not that of a sweep */
export function jobFileOf(spec: SweepView['spec'], { number, params }: TrialView): JobSpecFile {
  const sweep = checkedSweep(spec);
  const seed = sweep.seeds > 1 ? 0 : null;
  return jobSpecToFile(trialSpec({ ...sweep, number, point: params as Point, seed }, null));
}
