import { adviseOnAutoml } from '@muster/advice/file/advise';
import { type GpuModel, gpuTable, withPrices } from '@muster/advice/gpus';
import type { GpuPrice } from '@muster/coordinator/options';
import type { Command } from 'commander';
import { computeText, distributedText } from '../advise/adviceText.ts';
import { automlAdviceText } from '../advise/automlAdviceText.ts';
import { pipelineText } from '../advise/pipelineText.ts';
import { tuningText } from '../advise/tuningText.ts';
import { readAutomlContext, withAutomlFlags } from '../automl/automlContext.ts';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, priceList, withOutput } from '../flags.ts';
import type { View } from '../output/table.ts';
import { print } from '../query.ts';
import { adviseOnInput, withContextFlags } from '../submit/adviceContext.ts';
import { writeNewFiles } from '../submit/writeNewFiles.ts';

interface AdviseFlags extends OutputFlags {
  readonly file?: string;
  readonly json?: true;
  readonly prices?: readonly GpuPrice[];
  readonly write?: string;
}

const pipeline: Subcommand = {
  name: 'pipeline',
  summary: 'design a pipeline from the data to a registered model; write its file and its programs',
  define(sub) {
    withWrite(withAdviceFlags(sub));
    withContextFlags(sub);
  },
  async run(context: Context, flags: AdviseFlags): Promise<ExitCode> {
    const task = 'design_pipeline';
    const advice = await adviseOnInput(task, flags.file ?? null, { ...flags }, gpuTable, context);
    return answer(context, flags, advice, pipelineText);
  },
};

const distributed: Subcommand = {
  name: 'distributed',
  summary: 'choose a strategy that fits into memory; write launch scripts and configuration files',
  define(sub) {
    withWrite(withAdviceFlags(sub));
    withContextFlags(sub);
  },
  async run(context: Context, flags: AdviseFlags): Promise<ExitCode> {
    const task = 'configure_distributed';
    const advice = await adviseOnInput(task, flags.file ?? null, { ...flags }, gpuTable, context);
    return answer(context, flags, advice, distributedText, advice.distributed_config !== null);
  },
};

const tuning: Subcommand = {
  name: 'tuning',
  summary: 'choose what to search, how, and with how many trials; write a sweep file',
  define(sub) {
    withWrite(withPriceFlag(withAdviceFlags(sub)));
    withContextFlags(sub);
  },
  async run(context: Context, flags: AdviseFlags): Promise<ExitCode> {
    const gpus = pricedGpus(flags.prices ?? []);
    const task = 'tune_hyperparameters';
    const advice = await adviseOnInput(task, flags.file ?? null, { ...flags }, gpus, context);
    return answer(context, flags, advice, tuningText);
  },
};

const automl: Subcommand = {
  name: 'automl',
  summary: 'show what an AutoML run would try, and with which limits; write its task file',
  define(sub) {
    withWrite(withAdviceFlags(sub));
    withAutomlFlags(sub);
  },
  async run(context: Context, flags: AdviseFlags): Promise<ExitCode> {
    const advice = adviseOnAutoml(await readAutomlContext(flags.file ?? null, { ...flags }, context));
    return answer(context, flags, advice, automlAdviceText);
  },
};

const compute: Subcommand = {
  name: 'compute',
  summary: 'choose GPUs; estimate duration and cost, on demand and spot',
  define(sub) {
    withPriceFlag(withAdviceFlags(sub));
    withContextFlags(sub);
  },
  async run(context: Context, flags: AdviseFlags): Promise<ExitCode> {
    const gpus = pricedGpus(flags.prices ?? []);
    const advice = await adviseOnInput('manage_compute', flags.file ?? null, { ...flags }, gpus, context);
    await print(context, outputOf(flags), advice, computeText);
    return advice.cost_estimate === null ? exitCodes.problemFound : exitCodes.ok;
  },
};

export const command: CommandModule = {
  define(sub) {
    sub.argument('<question>', 'pipeline, distributed, tuning, automl or compute');
    sub.addHelpText('after', '\nNeeds no coordinator. docs/advise.md describes the file and the arithmetic.');
  },
  async run(_context: Context, question: string): Promise<ExitCode> {
    throw usageError(
      `unknown subcommand "${question}"`,
      'Give pipeline, distributed, tuning, automl or compute.',
    );
  },
  subcommands: [pipeline, distributed, tuning, automl, compute],
};

function withAdviceFlags(sub: Command): Command {
  sub.option('-f, --file <file>', 'a training context in YAML or JSON; -: standard input');
  return withOutput(sub).option('--json', 'the same as -o json');
}

function withWrite(sub: Command): Command {
  return sub.option('--write <dir>', 'write the files there; existing files are never overwritten');
}

function withPriceFlag(sub: Command): Command {
  return sub.option(
    '--prices <type=usd>',
    'what an hour of a GPU costs, such as H100=8.00; may be repeated; default: the built-in table',
    priceList,
  );
}

/** @param fits false: there is no advice to follow, so that no files are written */
async function answer<Advice extends { readonly files: Parameters<typeof writeNewFiles>[1] }>(
  context: Context,
  flags: AdviseFlags,
  advice: Advice,
  text: (advice: Advice, view: View) => string,
  fits = true,
): Promise<ExitCode> {
  if (fits && flags.write !== undefined) await writeNewFiles(flags.write, advice.files, context);
  await print(context, outputOf(flags), advice, text);
  return fits ? exitCodes.ok : exitCodes.problemFound;
}

function outputOf({ json, output }: AdviseFlags): OutputFlags {
  return json === true ? { output: 'json' } : output === undefined ? {} : { output };
}

/** @throws {CliError} a price is that of a node, or of no GPU in the table */
function pricedGpus(prices: readonly GpuPrice[]): readonly GpuModel[] {
  for (const { of, name } of prices) {
    const isKnown = gpuTable.some((gpu) => gpu.name.toLowerCase().includes(name.toLowerCase()));
    if (of === 'node' || !isKnown)
      throw usageError(
        `--prices takes a part of the name of a GPU here; got "${name}"`,
        `GPUs: ${gpuTable.map((gpu) => gpu.name).join(', ')}`,
      );
  }
  return withPrices(gpuTable, prices);
}
