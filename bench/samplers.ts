/**
 * How good and how fast the samplers of sweeps are. On ten standard functions, the regret of TPE after 100 trials beside that of
 * Optuna's TPESampler, medians over 30 seeds (60 or more to tell a ratio of 1.1 from chance); and the time of one suggestion after 1,000 trials.
 *
 *     node bench/samplers.ts [--seeds N] [--first-seed N] [--without-optuna]
 *
 * Optuna runs in /usr/bin/python3 (Debian: python3-optuna), which takes some minutes.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sampleHalton } from '@muster/experiments/samplers/halton';
import { sampleRandom } from '@muster/experiments/samplers/random';
import type { Observation } from '@muster/experiments/samplers/sampler';
import { sampleTpe } from '@muster/experiments/samplers/tpe';
import type { Parameter, SearchSpace } from '@muster/experiments/space';
import { standardFunctions } from '../packages/experiments/src/testing/functions.ts';
import { median, regretOf } from '../packages/experiments/src/testing/study.ts';
import { report, reportMachine, summary } from './support.ts';

const { values: flags } = parseArgs({
  options: {
    seeds: { type: 'string', default: '30' },
    // The constants of TPE were chosen by the seeds 0 to 29, 2000 to 2059 and 3000 to 3059.
    'first-seed': { type: 'string', default: '1000' },
    'without-optuna': { type: 'boolean', default: false },
  },
});
const firstSeed = Number(flags['first-seed']);
const seeds = Array.from({ length: Number(flags.seeds) }, (_, index) => firstSeed + index);
const trials = 100;

interface OptunaAnswer {
  readonly name: string;
  readonly probe: number;
  readonly multivariate: readonly number[];
  readonly independent: readonly number[];
}

/** A point at which both sides must agree about a function. */
function probeOf(bounds: readonly (readonly [number, number])[]): readonly number[] {
  return bounds.map(([min, max], index) => min + ((max - min) * (index + 1)) / (bounds.length + 2));
}

function optunaRegrets(): ReadonlyMap<string, OptunaAnswer> {
  const functions = standardFunctions.map((each) => ({
    name: each.name,
    bounds: each.bounds,
    optimum: each.optimum,
    probe: probeOf(each.bounds),
  }));
  const { stdout, stderr, status } = spawnSync(
    '/usr/bin/python3',
    [join(import.meta.dirname, 'samplers.py')],
    {
      input: JSON.stringify({ functions, seeds, trials }),
      encoding: 'utf8',
    },
  );
  if (status !== 0) throw new Error(`Optuna: ${stderr}`);
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as OptunaAnswer);
  return new Map(answers.map((each) => [each.name, each]));
}

function regrets(): void {
  const optuna = flags['without-optuna'] ? null : optunaRegrets();
  const ratios = { multivariate: [] as number[], independent: [] as number[] };
  for (const target of standardFunctions) {
    const tpe = median(seeds.map((seed) => regretOf(sampleTpe, target, seed, trials)));
    const random = median(seeds.map((seed) => regretOf(sampleRandom, target, seed, trials)));
    const halton = median(seeds.map((seed) => regretOf(sampleHalton, target, seed, trials)));
    const other = optuna?.get(target.name);
    if (other === undefined) {
      report(`regret, ${target.name}`, { tpe, random, halton });
      continue;
    }
    if (Math.abs(other.probe - target.at(probeOf(target.bounds))) > 1e-9)
      throw new Error(`${target.name} is not the same function on both sides`);
    const multivariate = median(other.multivariate);
    const independent = median(other.independent);
    ratios.multivariate.push(tpe / multivariate);
    ratios.independent.push(tpe / independent);
    report(`regret, ${target.name}`, {
      tpe,
      random,
      halton,
      optunaMultivariate: multivariate,
      optunaIndependent: independent,
      ratioToMultivariate: tpe / multivariate,
      ratioToIndependent: tpe / independent,
    });
  }
  if (optuna === null) return;
  report('regret, median of the ratios', {
    toMultivariate: median(ratios.multivariate),
    toIndependent: median(ratios.independent),
    worstToMultivariate: Math.max(...ratios.multivariate),
  });
}

/** Ten parameters of every kind, and 1,000 trials behind them. */
function suggestionTimes(): void {
  const numeric = { when: {}, min: 1, max: 1_000 } as const;
  const parameters: readonly Parameter[] = [
    ...[0, 1, 2].map(
      (index) => ({ ...numeric, name: `f${index}`, type: 'float', log: false, step: null }) as const,
    ),
    ...[0, 1, 2].map(
      (index) => ({ ...numeric, name: `l${index}`, type: 'float', log: true, step: null }) as const,
    ),
    ...[0, 1].map((index) => ({ ...numeric, name: `i${index}`, type: 'int', log: false, step: 1 }) as const),
    ...[0, 1].map(
      (index) => ({ name: `c${index}`, type: 'categorical', values: ['a', 'b', 'c'], when: {} }) as const,
    ),
  ];
  const space: SearchSpace = { parameters, allows: null };
  const history: Observation[] = Array.from({ length: 1_000 }, (_, number) => {
    const point = sampleRandom({ space, history: [], seed: 1, number });
    return {
      point,
      state: 'complete',
      loss: Number(point['f0']) + Number(point['l1']),
      step: 0,
    };
  });
  // Every third trial samples each parameter by itself, which takes longer. CPU time, because others may use the machine as well.
  const samplesMs: [together: number[], separately: number[]] = [[], []];
  for (let number = 1_000; number < 1_450; number += 1) {
    const began = process.cpuUsage();
    sampleTpe({ space, history, seed: 1, number });
    const { user, system } = process.cpuUsage(began);
    samplesMs[number % 3 === 0 ? 1 : 0].push((user + system) / 1_000);
  }
  report(
    'TPE, one suggestion after 1,000 trials of ten parameters, ms of CPU, together',
    summary(samplesMs[0]),
  );
  report('… each parameter by itself', summary(samplesMs[1]));
}

reportMachine();
suggestionTimes();
regrets();
