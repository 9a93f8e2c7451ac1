/** The parameters with which agents describe a sweep, as a sweep file. What it means is checked by the coordinator. Pure. */
import * as z from 'zod';

/** As the sweep file has it, with its own names: docs/sweeps.md says what may stand there. */
const part = z.record(z.string(), z.unknown());
const wholeMax = 2 ** 32 - 1;

export const sweepInput = z.strictObject({
  name: z
    .string()
    .max(64)
    .optional()
    .describe('lower-case letters, digits and "-"; default: that of the job'),
  sampler: z.string().max(40).optional().describe('tpe (default), random, halton or grid'),
  seed: z.int().min(0).max(wholeMax).optional().describe('the same seed gives the same points; default: 0'),
  trials: z.int().min(1).max(10_000).optional().describe('how many; of a grid default is every point'),
  parallel: z
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .describe('trials at the same time; default: as many as there is room for'),
  maxFailures: z.int().min(1).max(10_000).optional().describe('trials in a row that may fail; default: 5'),
  objective: part
    .optional()
    .describe('a metric that the output shows: {"metric": "eval_loss", "goal": "min", "of": "last"}'),
  objectives: z.array(part).max(4).optional().describe('several of them, instead of one'),
  earlyStopping: part.optional().describe('default: none; {"rule": "asha", "min_steps": 500}'),
  parameters: z
    .record(z.string(), z.unknown())
    .describe(
      'what is searched: {"lr": {"type": "float", "min": 1e-5, "max": 0.1, "log": true}, "layers": {"type": "int", "min": 2, "max": 8}, ' +
        '"optimizer": ["adam", "sgd"], "momentum": {"type": "float", "min": 0, "max": 0.99, "when": {"optimizer": "sgd"}}}',
    ),
  constraints: z
    .array(z.string().max(1_000))
    .max(50)
    .optional()
    .describe('in CEL: "layers * width <= 16384"'),
  job: part.describe(
    'the workload of each trial, with the names of a job file: {"command": ["python", "train.py", "--lr={lr}"], "resources": {"gpus": 1}}',
  ),
  settings: part.optional().describe('further keys of the sweep file (docs/sweeps.md)'),
});

/** In the shape of the sweep file. `settings` count where no parameter of the same meaning was given. */
export function sweepFileOf(given: z.output<typeof sweepInput>): Readonly<Record<string, unknown>> {
  const { settings = {}, maxFailures, earlyStopping } = given;
  const { name, sampler, seed, trials, parallel, objective, objectives, parameters, constraints, job } =
    given;
  const named = {
    name,
    sampler,
    seed,
    trials,
    parallel,
    objective,
    objectives,
    parameters,
    constraints,
    job,
  };
  const all = { ...named, max_failures: maxFailures, early_stopping: earlyStopping };
  return {
    ...settings,
    ...Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
  };
}
