/**
 * The formats of lines of metrics: what each trainer prints for a step. Most are shapes, which are data; four need a function of
 * their own.
 */
import type { Framework } from '../model.ts';
import { addPairs, type LineShape, type MutableValues, put, shapeReader, type Values } from './lineShape.ts';

export interface LineFormat {
  readonly framework: Framework;
  /** A line without any of these is not one of this format. Found much faster than a pattern, so they spare it most lines. */
  readonly marks: readonly string[];
  /** null: no line of metrics. */
  read(text: string): Values | null;
}

function format(framework: Framework, marks: readonly string[], ...shapes: readonly LineShape[]): LineFormat {
  const readers = shapes.map(shapeReader);
  return {
    framework,
    marks,
    read(text) {
      for (const read of readers) {
        const values = read(text);
        if (values !== null) return values;
      }
      return null;
    },
  };
}

const nanogpt = format(
  'nanogpt',
  [': loss ', ': train loss '],
  {
    // A utilization of -100 % stands for "not known yet".
    columns:
      /\biter (?<step>\d{1,15}): loss (?<loss>[-+.\w]{1,40}), time (?<step_time_s$ms>[-+.\w]{1,40})ms(?:, mfu (?:-|(?<mfu_percent>[+.\w]{1,40})%))?/,
  },
  {
    columns:
      /\bstep (?<step>\d{1,15}): train loss (?<train_loss_eval>[-+.\w]{1,40}), val loss (?<val_loss>[-+.\w]{1,40})/,
  },
);

/** `step` counts steps of the optimizer, `iter` micro batches: several of these make one of those. */
const litgpt = format(
  'litgpt',
  ['loss train: ', ': val loss '],
  {
    columns:
      /\bEpoch (?<epoch>\d{1,9}) \| iter (?<iter>\d{1,15}) step (?<step>\d{1,15}) \| loss train: (?<loss>[-+.\w]{1,40}), val: (?<val_loss>[-+./\w]{1,40}) \| /,
    pairs: /(iter time): ([-+.\w]{1,40}) ms/g,
    keys: { 'iter time': 'step_time_s$ms' },
    needs: /./,
  },
  {
    columns:
      /\biter (?<iter>\d{1,15}): val loss (?<val_loss>[-+.\w]{1,40}), val time: (?<val_time_s$ms>[-+.\w]{1,40}) ms/,
  },
);

/**
 * Megatron-LM and Megatron-DeepSpeed, printed by the LAST rank: `name: value` between bars, whose names, units and order
 * differ between versions. A time stamp may stand in front or not.
 */
const megatron = format(
  'megatron',
  ['iteration '],
  {
    columns: /(?:^|[\s\]])iteration {1,12}(?<step>\d{1,12}) {0,12}\/ {0,12}(?<total_steps>\d{1,12}) (?=\|)/,
    pairs: /\|([^|:]{1,80}):\s{0,12}([^|:\s]{1,80})\s{0,12}(?=\||$)/g,
    keys: {
      'consumed samples': 'samples',
      'elapsed time per iteration (ms)': 'step_time_s$ms',
      'elapsed time per iteration (s)': 'step_time_s',
      'throughput per GPU (TFLOP/s/GPU)': 'tflops_per_gpu',
      TFLOPs: 'tflops_per_gpu',
      'learning rate': 'learning_rate',
      'lm loss': 'loss',
      // GPT-NeoX
      lm_loss: 'loss',
      'loss scale': 'loss_scale',
      'grad norm': 'grad_norm',
      'number of skipped iterations': 'skipped_iterations',
      'number of nan iterations': 'nan_iterations',
      'samples per second': 'samples_per_s',
    },
    onlyKeys: true,
    needs: /./,
  },
  {
    columns:
      /\bvalidation loss at iteration (?<step>\d{1,12})\b[^|]{0,100}\| lm loss value: (?<val_loss>[-+.\w]{1,40})/,
  },
);

const titanPairs = {
  pairs: / {2}(grad_norm|memory|tps|wps|tflops|mfu): {1,10}([-+.,/\w]{1,40}?)(?=GiB|[^-+.,/\w]|$)/g,
  keys: {
    memory: 'memory_gib',
    tps: 'tokens_per_s',
    // Before there was `tps`.
    wps: 'tokens_per_s',
    mfu: 'mfu_percent',
  },
};
const torchtitan = format(
  'torchtitan',
  ['step: '],
  {
    columns: /\bvalidate step: {1,6}(?<step>\d{1,12}) {2,6}loss: {1,10}(?<val_loss>[-+.\w]{1,40})(?= |$)/,
    ...titanPairs,
  },
  {
    columns: /\bstep: {1,6}(?<step>\d{1,12}) {2,6}loss: {1,10}(?<loss>[-+.\w]{1,40})(?= |$)/,
    ...titanPairs,
  },
);

/** torchtune prints the same step twice: in its progress bar, and in the file of its disk logger. */
const torchtune = format(
  'torchtune',
  ['|Loss: ', 'Step '],
  {
    columns: /(?:^|\s)(?<epoch>\d{1,9})\|(?<step>\d{1,12})\|Loss: (?<loss>[-+.\w]{1,40})(?=:|$)/,
    constants: { from: 'bar' },
  },
  {
    columns: /^Step (?<step>\d{1,12}) \| (?=\S)/,
    pairs: /(?<![\w./-])([\w./-]{1,80}):([-+.\w]{1,40})(?= |$)/g,
    needs: /./,
  },
);

/**
 * The Trainer of transformers prints a Python dictionary: with numbers up to version 4, with strings of four digits from
 * version 5 on. TRL and axolotl add keys. It may follow a progress bar on the same line.
 */
const hfTrainer: LineFormat = {
  framework: 'hf_trainer',
  marks: ["loss': ", "runtime': "],
  read(text) {
    const from = text.indexOf("{'");
    const to = text.indexOf('}', from);
    return from === -1 || to === -1
      ? null
      : addPairs({}, text.slice(from, to + 1), entry, { needs: trainerMeasure });
  },
};
const entry = /'([^'\\]{1,100})': ('[^'\\]{0,100}'|[-+.\w]{1,40})(?=[,}])/g;
/** Dictionaries that a program prints for other reasons (its configuration) have none of these. */
const trainerMeasure =
  /^(?:loss|train_loss|eval_(?:\w{1,80}_)?loss|eval_(?:\w{1,80}_)?runtime|train_runtime)$/;

/** The progress bar of PyTorch Lightning: it shows what the module logs with `prog_bar=True`, and nothing else does. */
const lightning = format('lightning', ['Epoch '], {
  // Bars of epochs that count `update/s` belong to others.
  columns: new RegExp(
    [
      String.raw`(?:^|\s)Epoch (?<epoch>\d{1,9})(?:/\d{1,9})?: {1,4}\d{1,3}%\|[^|]{0,400}\| {0,2}`,
      String.raw`(?<batch>\d{1,12})/(?<batches>\d{1,12}) \[[\d:]{1,12}<[\d:?]{1,12}, {1,4}(?:[\d.]{1,20}|\?)(?:it/s|s/it)`,
      String.raw`(?<pairs>[^\]]{0,4000})`,
    ].join(''),
  ),
  pairs: /, ([^=,\]]{1,100})=([^,\]]{1,60})/g,
  // The number of the experiment is shown from the first moment on and measures nothing.
  needs: /^(?!v_num$)/,
});

/** What DeepSpeed's engine prints of its own accord: never a loss, which is the program's to print. */
const deepspeedMemory = {
  pairs: /\b((?:Max)?MemAllocated)=([.\d]{1,20})GB/g,
  keys: { MemAllocated: 'memory_gb', MaxMemAllocated: 'max_memory_gb' },
};
const deepspeed = format(
  'deepspeed',
  [', skipped=', '/global_step=', 'SamplesPerSec='],
  {
    // At step 0 the engine is made, and nothing has been trained.
    columns:
      /\bstep=(?!0,)(?<step>\d{1,15}), skipped=(?<skipped>\d{1,15}), lr=\[(?<learning_rate>[-+.\w]{1,40})/,
  },
  {
    columns:
      /\bglobal_step=(?<step>\d{1,15}), RunningAvgSamplesPerSec=[-+.\w]{1,40}, CurrSamplesPerSec=(?<samples_per_s>[-+.\w]{1,40})/,
    ...deepspeedMemory,
  },
  {
    // Before 0.7: `0/100, SamplesPerSec=12.5`.
    columns:
      /\b\d{1,15}\/(?<step>\d{1,15}), (?:RunningAvgSamplesPerSec=[-+.\w]{1,40}, Curr)?SamplesPerSec=(?<samples_per_s>[-+.\w]{1,40})/,
    ...deepspeedMemory,
  },
);

/** `completed step: 18, seconds: 5.12, TFLOP/s/device: 123.4, Tokens/s/device: 1600.2, total_weights: 65536, loss: 9.8`. */
const maxtext = format('maxtext', ['completed step: '], {
  columns: /\bcompleted step: (?<step>\d{1,15}), seconds: (?<step_time_s>[-+.\w]{1,40})(?=,)/,
  pairs: /, (loss|TFLOP\/s\/device|Tokens\/s\/device|perplexity|moe_lb_loss): ([-+.\w]{1,40})(?=,|\s|$)/g,
  // Tokens of one device, while others count those of all.
  keys: { 'TFLOP/s/device': 'tflops_per_gpu', 'Tokens/s/device': 'tokens_per_s_per_device' },
  needs: /^loss$/,
});

/** `iteration: 10 / 15000 | consumed_tokens: 2.1M | … | lm_loss: 10.4 | lr: 5e-07 | grad_norm: 12.3`, K, M, G for thousands. */
const nanotron = format('nanotron', ['iteration: '], {
  columns: /\biteration: (?<step>\d{1,12}) \/ (?<total_steps>\d{1,12}) (?=\| )/,
  pairs: /\|\s{0,8}([a-z][a-z_]{0,60}): ([-+.\w]{1,40})\s{0,8}(?=\||$)/g,
  keys: { elapsed_time_per_iteration_ms: 'step_time_s$ms', tokens_per_sec: 'tokens_per_s' },
  needs: /^lm_loss$/,
  toNumber(printed) {
    const [, digits, unit] = human.exec(printed) ?? [];
    return digits === undefined ? printed : String(Number(digits) * (factors[unit ?? ''] ?? Number.NaN));
  },
});
const human = /^([-+]?\d{1,15}(?:\.\d{0,15})?)([KMGBT])$/;
const factors: Readonly<Record<string, number>> = { K: 1e3, M: 1e6, G: 1e9, B: 1e9, T: 1e12 };

/** `step:0/1390 val_loss:10.8258 train_time:0ms step_avg:nanms`. */
const moddedNanogpt = format('modded_nanogpt', ['step:'], {
  columns: /(?:^|\s)step:(?<step>\d{1,12})\/(?<total_steps>\d{1,12}) (?=(?:train_loss|val_loss|train_time):)/,
  pairs: /(?<![\w:])(train_loss|val_loss|train_time|step_avg):([-+.\d]{1,40}|nan|inf)(?:ms)?(?=\s|$)/g,
  keys: { train_time: 'train_time_s$ms', step_avg: 'step_time_s$ms' },
});

/** The console of verl: `step:3 - actor/pg_loss:0.012 - actor/lr:1e-06 - timing_s/step:41.2`, numbers of NumPy with their type. */
const verl = format('verl', ['step:'], {
  columns: /(?:^|\s)step:(?<step>\d{1,12}) (?=- )/,
  pairs:
    /- ([A-Za-z_][\w.()@-]{0,60}\/[\w./()@-]{0,60}):(?:np\.\w{1,12}\()?([-+.\w]{1,40})\)?(?= - |\s{0,8}$)/g,
  needs: /./,
});

/**
 * What people print by hand: `step 10/250 | loss 2.31 | lr 3e-4`, `Step: 10, Loss: 2.31`, `epoch: 3451 loss: 0.123`. The line
 * begins with a step or an epoch, and has a loss.
 */
const plain: LineFormat = {
  framework: 'plain',
  marks: ['loss:', 'loss ', 'loss=', 'Loss:', 'Loss ', 'Loss='],
  read(text) {
    if (text.length > plainLengthMax || !plainHead.test(text) || text.includes(barMark) || prose.test(text))
      return null;
    const values: MutableValues = {};
    let hasLoss = false;
    for (const [, printedName = '', printed = '', total] of text.matchAll(plainPair)) {
      const name = printedName.toLowerCase().replace(/[ /]/g, '_');
      if (name in values || !put(values, name, printed)) continue;
      hasLoss ||= name.endsWith('loss');
      if (total !== undefined && plainCounts.has(name)) values['total_steps'] = Number(total);
    }
    return hasLoss ? values : null;
  },
};
const plainHead = /^\s{0,8}\[?(?:global[_ ]step|step|iteration|iter|epoch)[:= ]/i;
const plainPair = new RegExp(
  [
    String.raw`(?:^|[\s,;|([])`,
    String.raw`(global[_ ]step|step|iteration|iter|epoch|lr|learning[_ ]rate|grad[_ ]norm|gnorm|(?:consumed[_ ])?tokens(?:[_ ]seen)?`,
    String.raw`|(?:(?:train|training|val|valid|validation|eval)[_ /])?loss)`,
    String.raw`\s{0,2}[:= ]\s{0,4}([-+.\w]{1,40})(?:\s?\/\s?(\d{1,9}))?(?=[\s,;:|)\]]|$)`,
  ].join(''),
  'gi',
);
const plainCounts: ReadonlySet<string> = new Set(['global_step', 'step', 'iteration', 'iter']);
/** Words of a sentence about the run, such as `Epoch 1/1 with loss 0.66`: no column has such a name. */
const prose = /\s(?:and|at|had|has|is|of|the|was|with)\s/i;
/** A bar shows what it likes beside the loss, and is read as a bar. */
const barMark = '%|';
const plainLengthMax = 500;

/**
 * fairseq: `… | INFO | train_inner | …` with a JSON object whose numbers are strings, or with `key=value` (within an epoch)
 * and ` | key value` (at its end, and after a validation).
 */
const fairseq: LineFormat = {
  framework: 'fairseq',
  marks: ['| INFO | '],
  read(text) {
    const found = fairseqHead.exec(text);
    if (found === null) return null;
    const rest = text.slice(found.index + found[0].length);
    const values = rest.startsWith('{') ? valuesOf(rest) : fairseqPairs(rest, found[1] ?? '');
    if (values === null) return null;
    return 'num_updates' in values || Object.keys(values).some((key) => key.endsWith('loss')) ? values : null;
  },
};
const fairseqHead = /\| INFO \| (train_inner|train|valid) \| /;
const fairseqEpoch = /\bepoch (\d{1,9})\b/;
const withEquals = /(?<![\w./-])([A-Za-z_][\w./-]{0,80})=([-+.\w]{1,40})(?=,|\s|$)/g;
const withBars = /\| ([A-Za-z_][\w./-]{0,80}) ([-+.\w]{1,40}) ?(?=\||$)/g;

/** Losses of an epoch and of a validation have names of their own in JSON and not in plain text; here they have them in both. */
function fairseqPairs(text: string, part: string): Values {
  const found: MutableValues = {};
  addPairs(found, text, withEquals);
  addPairs(found, text, withBars);
  const prefix = part === 'train_inner' ? '' : `${part}_`;
  const values: MutableValues = {};
  const epoch = fairseqEpoch.exec(text)?.[1];
  if (epoch !== undefined) values['epoch'] = Number(epoch);
  for (const name in found) values[prefix + name] = found[name] ?? null;
  return values;
}

/**
 * One JSON object per line, by whatever program: a step (or an epoch) and something that training measures make it a line
 * of metrics. Structured logs of servers have neither.
 */
export const jsonLines: LineFormat = {
  framework: 'json_lines',
  marks: ['":'],
  read(text) {
    const from = text.indexOf('{"');
    // The prefix of a logger may stand in front; nothing stands behind.
    if (from === -1 || !endsObject(text) || !likelyMeasures.test(text)) return null;
    const values = valuesOf(text.slice(from));
    if (values === null) return null;
    let hasCount = false;
    let hasMeasure = false;
    for (const name in values) {
      const value = values[name];
      if (typeof value === 'string') continue;
      hasCount ||= value !== null && counts.test(name);
      hasMeasure ||= measures.test(name);
    }
    return hasCount && hasMeasure ? values : null;
  },
};
const counts =
  /^(?:global_|train_|trainer\/global_)?(?:step|steps|iteration|iter|num_updates|update|epoch|tokens|tokens_seen|consumed_tokens)$/i;
const measures =
  /(?:^|[_/.\s-])(?:loss|lr|learning_rate|grad_norm|gnorm|perplexity|ppl|tokens_per_s(?:ec(?:ond)?)?|samples_per_s(?:ec(?:ond)?)?)$/i;
/** One of these is in every such name; parsing costs much more. */
const likelyMeasures = /(?:loss|lr|rate|norm|perplexity|ppl|_per_s\w{0,5})":/i;
const blanks = /^\s{0,8}$/;

/** The brace stands at the end, but for a few blanks: found from behind, since a search from the front tries every brace. */
function endsObject(text: string): boolean {
  const brace = text.lastIndexOf('}');
  return brace !== -1 && blanks.test(text.slice(brace + 1));
}

/** Python writes numbers that JSON does not have. A reader that refuses them misses exactly the steps that went wrong. */
const pythonNumber = /(?<=[:[,]\s?)-?(?:NaN|Infinity)(?=\s?[,}\]])/g;

/**
 * @returns the numbers and strings of a JSON object, strings that are numbers as numbers; null where the text is not a JSON
 *   object. A JSON null is omitted: programs write it for what they did not measure at that step
 */
function valuesOf(text: string): Values | null {
  const object =
    parsed(text) ?? (/NaN|Infinity/.test(text) ? parsed(text.replace(pythonNumber, '"nan"')) : null);
  if (object === null) return null;
  const values: MutableValues = {};
  for (const name in object) {
    const value = object[name];
    if (typeof value === 'number') values[name] = value;
    else if (typeof value === 'string' && !put(values, name, value)) values[name] = value;
  }
  return values;
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** All formats. A line belongs to the first that can read it: those that take the most lines come last. */
export const lineFormats: readonly LineFormat[] = [
  nanogpt,
  litgpt,
  megatron,
  torchtitan,
  torchtune,
  hfTrainer,
  lightning,
  deepspeed,
  maxtext,
  nanotron,
  moddedNanogpt,
  verl,
  plain,
  fairseq,
  jsonLines,
];
