/** Advice for people. Pure. */
import type { ComputeAdvice, ComputeOption, SpotEstimate } from '@muster/advice/compute';
import { type DistributedAdvice, methodNames, planName } from '@muster/advice/distributed';
import type { ParallelPlan } from '@muster/advice/parallelPlan';
import { gigabytes } from '@muster/advice/tips';
import { type Column, formatFields, formatTable, type View } from '../output/table.ts';
import { listWith } from './section.ts';

export function distributedText(advice: DistributedAdvice, view: View): string {
  const { plan, distributed_config: config, model, files, tips, sufficient } = advice;
  const { colours, width } = view;
  const fields = formatFields(
    [
      ['Strategy', plan === null || config === null ? 'none fits' : `${planName(plan)} (${config.strategy})`],
      [
        'World size',
        config === null ? null : `${config.world_size} × ${advice.gpu}, backend ${config.backend}`,
      ],
      ['Degrees', plan === null ? null : degreesText(plan)],
      ['Batch', plan === null ? null : batchText(plan)],
      [
        'Model',
        `${model.layers} layers, hidden size ${model.hiddenSize}, ${model.sequenceLength} tokens a sample`,
      ],
      ['Precision', advice.precision],
      ['Why', advice.reasons.join('\n')],
    ],
    colours,
    width,
  );
  const list = listWith(colours);
  return [
    fields,
    `\n${colours.bold('Memory of each GPU')}\n`,
    formatTable(advice.considered, memoryColumns(advice.considered, plan), view),
    list(
      plan === null ? 'Would fit on' : 'Would fit without an offload on',
      sufficient.map(({ gpu, gpuCount, method }) => `${gpuCount} × ${gpu} with ${methodNames[method]}`),
    ),
    list(
      'Tips',
      tips.map(({ tip, because }) => `${tip} Because ${because}.`),
    ),
    list(
      'Files',
      files.map(({ name, about, fits }) => `${name}: ${about}${fits ? '' : ' (does not fit)'}`),
    ),
    list('Assumed', advice.assumptions),
    list('Sources', advice.sources),
  ].join('');
}

function degreesText({ degrees }: ParallelPlan): string {
  return `data ${degrees.data} × tensor ${degrees.tensor} × pipeline ${degrees.pipeline}`;
}

function batchText({ microBatch, accumulation, degrees }: ParallelPlan): string {
  const total = microBatch * accumulation * degrees.data;
  return `${total} samples: ${microBatch} at a time, ${accumulation} accumulated, ${degrees.data} ranks`;
}

function memoryColumns(
  considered: readonly ParallelPlan[],
  chosen: ParallelPlan | null,
): readonly Column<ParallelPlan>[] {
  const size = (header: string, bytes: (plan: ParallelPlan) => number): Column<ParallelPlan> => ({
    header,
    cell: (plan) => gigabytes(bytes(plan)),
    align: 'right',
  });
  return [
    { header: 'STRATEGY', cell: planName },
    size('WEIGHTS', ({ memory }) => memory.parametersBytes + memory.gatheredBytes),
    size('GRADIENTS', ({ memory }) => memory.gradientsBytes),
    size('OPTIMIZER', ({ memory }) => memory.optimizerBytes),
    size('ACTIVATIONS', ({ memory }) => memory.activationsBytes),
    size('TOTAL', ({ memory }) => memory.totalBytes),
    ...(considered.some(({ hostBytes }) => hostBytes > 0)
      ? [size('OF EACH NODE', ({ hostBytes }) => hostBytes)]
      : []),
    { header: 'RECOMPUTED', cell: ({ recomputation }) => recomputation },
    {
      header: '',
      cell: (plan) =>
        planName(plan) === (chosen && planName(chosen)) ? 'chosen' : plan.fits ? 'fits' : 'does not fit',
    },
  ];
}

export function computeText(advice: ComputeAdvice, view: View): string {
  const { recommended, spot, scalingPolicy, alternatives, checkpointIntervalMinutes } = advice;
  const { colours, width } = view;
  const fields = formatFields(
    [
      [
        'GPUs',
        recommended === null
          ? 'none fit'
          : `${recommended.gpuCount} × ${recommended.gpu}, ${methodNames[recommended.method]}`,
      ],
      [
        'Duration',
        recommended === null
          ? null
          : `${rangeText(recommended.durationRangeHours, 'h')}, about ${hoursText(recommended.estimated_duration_hours)}`,
      ],
      ['Cost', recommended === null ? null : costText(recommended, advice.pricesAsOf)],
      ['Spot', recommended === null ? null : spotText(spot)],
      [
        'Checkpoints',
        checkpointIntervalMinutes === null
          ? null
          : `every ${checkpointIntervalMinutes} min, ${gigabytes(advice.checkpointBytes)} each`,
      ],
      [
        'Scaling',
        scalingPolicy === null
          ? null
          : `${scalingPolicy.minGpus} to ${scalingPolicy.maxGpus} GPUs: ${scalingPolicy.reasons.join('; ')}`,
      ],
      ['Why', advice.reasons.join('\n')],
    ],
    colours,
    width,
  );
  const list = listWith(colours);
  return [
    fields,
    ...(alternatives.length === 0
      ? []
      : [`\n${colours.bold('Also possible')}\n`, formatTable(alternatives, optionColumns, view)]),
    list('Assumed', advice.assumptions),
    list('Sources', advice.sources),
  ].join('');
}

const optionColumns: readonly Column<ComputeOption>[] = [
  { header: 'GPUS', cell: ({ gpuCount, gpu }) => `${gpuCount} × ${gpu}` },
  { header: 'STRATEGY', cell: ({ method }) => methodNames[method] },
  { header: 'HOURS', cell: ({ durationRangeHours }) => rangeText(durationRangeHours, 'h'), align: 'right' },
  { header: 'USD', cell: ({ costRangeUsd }) => rangeText(costRangeUsd, 'USD'), align: 'right' },
  { header: 'LIMITS', cell: ({ isWithinLimits }) => (isWithinLimits ? 'within' : 'exceeded') },
];

function costText({ costRangeUsd, total_cost_usd, hourly_cost_usd }: ComputeOption, asOf: string): string {
  return `${rangeText(costRangeUsd, 'USD')}, about ${amountText(total_cost_usd)} USD; ${amountText(hourly_cost_usd)} USD an hour, prices of ${asOf}`;
}

function spotText(spot: SpotEstimate | null): string {
  if (spot === null) return 'does not end: interruptions take more time than passes between them';
  const { total_cost_usd, estimated_duration_hours, interruptions, lostHours, isCheaper } = spot;
  return (
    `about ${amountText(total_cost_usd)} USD in ${hoursText(estimated_duration_hours)}, ${isCheaper ? 'cheaper' : 'not cheaper'}; ` +
    `${amountText(interruptions)} interruptions lose ${hoursText(lostHours)}`
  );
}

export function rangeText([least, most]: readonly [number, number], unit: string): string {
  return `${amountText(least)} to ${amountText(most)} ${unit}`;
}

export function hoursText(hours: number): string {
  return `${amountText(hours)} h`;
}

/** Two digits are more than estimates know. */
export function amountText(value: number): string {
  if (value >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(2)));
}
