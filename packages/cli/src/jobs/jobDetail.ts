/** Everything about one job, for a person. Pure. */
import { lossOfOutputs } from '@muster/common/gangs';
import { isSimulatedUuid } from '@muster/common/hardware';
import { phaseInShort, phaseLines } from '@muster/common/phaseText';
import { scaleTexts } from '@muster/common/scales';
import { resumeText, signLines } from '@muster/common/signText';
import { retryFields } from '@muster/common/spec/recoveryFields';
import type { JobSpec } from '@muster/common/spec/types';
import { isTerminal } from '@muster/common/states';
import type { GpuUsage } from '@muster/common/telemetry';
import type { AttemptView, JobView, TaskView } from '@muster/common/views';
import { type Column, type Field, formatFields, formatTable, type View } from '../output/table.ts';
import { count, printable, rangesText, shellText, wrapText } from '../output/text.ts';
import { agoText, bytesText, clockText, durationText, memoryText } from '../output/times.ts';
import { ratioText, valueText } from '../output/units.ts';
import { endText, markedState, nameOf, needsText, newestAttempt, ranText, specOf } from './summary.ts';
import { ledgerText, newestCheckpointText, progressText } from './trainingText.ts';

export function formatJob(job: JobView, options: View): string {
  const { colours } = options;
  const attempts = job.attempts.toSorted((a, b) => b.number - a.number);
  return [
    `${colours.bold(nameOf(job))}  ${job.id}\n`,
    formatFields(jobFields(job, options), colours, options.width),
    ...attempts.map((attempt) => formatAttempt(attempt, options)),
    formatFields([['Next', nextCommands(job, options.programName).join('\n')]], colours),
  ].join('\n');
}

function jobFields(job: JobView, { nowMs }: View): readonly Field[] {
  const spec = specOf(job);
  return [
    ['State', stateText(job, nowMs)],
    ['Why', whyLines(job)],
    ['Submitted', `${clockText(job.submittedAtMs)} (${agoText(job.submittedAtMs, nowMs)})`],
    ['Array', job.array === null ? null : `${job.array.index} of 0–${job.array.size - 1} in ${job.array.id}`],
    ['Requeued from', job.requeuedFrom],
    ['Continues from', continuedText(job)],
    ['Excluded', excludedNodesText(job)],
    ['Phases', job.phases === null ? null : [phaseInShort(job.phases), ...phaseLines(job.phases)].join('\n')],
    ['Training', trainingText(job)],
    ['Signs', signsText(job)],
    ['Output', outputText(job, nowMs)],
    ['Checkpoint', newestCheckpointText(job, nowMs)],
    ['GPU time', ledgerText(job.ledger) || null],
    ['Cost', job.costUsd === null || job.attempts.length === 0 ? null : `${job.costUsd.toFixed(2)} USD`],
    ['Scaled', scaleTexts(job).lines.join('\n')],
    ['Preempted', job.preemptions === 0 ? null : count(job.preemptions, 'time')],
    ['Needs', needsLine(spec)],
    ['Image', spec.image],
    ['Command', shellText([...spec.command, ...spec.args]) || null],
    ['Directory', spec.workdir],
    [
      'Volumes',
      spec.volumes
        .map(({ source, target, readOnly }) => `${source} → ${target}${readOnly ? ' (read only)' : ''}`)
        .join('\n'),
    ],
    ['After', spec.after.join(' ')],
    ['Priority', `${spec.priority}${spec.preemptible ? ', preemptible' : ''}`],
    ['Limits', limitsText(spec, job.extraRuntimeMs)],
    [
      'Labels',
      Object.entries(spec.labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(' '),
    ],
  ];
}

/** `running`, `cancelled just now`, `failed after 5 attempts (4 min 31 s), 20 s ago (cuda_oom)`. */
function stateText(job: JobView, nowMs: number): string {
  const { endedAtMs, cause, attempts } = job;
  const state = markedState(job);
  const why =
    cause === null || job.state === 'succeeded' || cause.kind === job.state ? '' : ` (${cause.kind})`;
  if (endedAtMs === null) return `${state}${why}`;
  const tries = attempts.length < 2 ? '' : ` after ${ranText(job, nowMs)},`;
  return `${state}${tries} ${agoText(endedAtMs, nowMs)}${why}`;
}

function trainingText({ training, state }: JobView): string | null {
  return training === null ? null : progressText(training, { isOver: isTerminal(state) });
}

function whyLines(job: JobView): string | null {
  if (job.state === 'queued' && job.pending !== null) {
    return [job.pending.message, job.pending.remedy].filter(Boolean).join('\n');
  }
  return job.state === 'succeeded' ? null : (job.cause?.message ?? null);
}

/** `job_…, checkpoint-250 (step 250)`, or the path that was given. */
function continuedText({ resumedFrom }: JobView): string | null {
  if (resumedFrom === null) return null;
  const { jobId, name, step } = resumedFrom;
  const checkpoint = step === null ? name : `${name} (step ${step})`;
  return jobId === null ? checkpoint : `${jobId}, ${checkpoint}`;
}

/** Of its newest attempt: what its owner should know, and since when. */
function signsText(job: JobView): string | null {
  const attempt = newestAttempt(job);
  if (attempt === null) return null;
  const { hangs, hungAtMs, cause } = attempt;
  const hang =
    hungAtMs === null ? 'hangs now' : `${hangs ? 'hangs since' : 'hung at'} ${clockText(hungAtMs)}`;
  const isInCause = hungAtMs !== null && !hangs && cause?.kind === 'hung';
  const lines = [...signLines(attempt), ...((hangs || hungAtMs !== null) && !isInCause ? [hang] : [])];
  return lines.join('\n') || null;
}

/** Of one that runs: whether it still prints anything. Of one that has ended its tasks tell how much there is. */
function outputText({ state, attempts, outputAtMs }: JobView, nowMs: number): string | null {
  if (isTerminal(state) || attempts.every(({ state: each }) => each === 'ended')) return null;
  return outputAtMs === null ? 'none yet' : `last seen ${agoText(outputAtMs, nowMs)}`;
}

/** Of the next attempt, should there be one. */
function excludedNodesText({ excludedNodes, state }: JobView): string | null {
  if (isTerminal(state)) return null;
  return excludedNodes.map(({ node, cause }) => `${node}: ${cause.message} (${cause.kind})`).join('\n');
}

function needsLine({ resources }: JobSpec): string {
  const each = [
    resources.gpuType.length > 0 ? resources.gpuType.join(' or ') : null,
    resources.gpuMemoryMb === null ? null : `${memoryText(resources.gpuMemoryMb)} per GPU`,
    resources.cpus === null ? null : count(resources.cpus, 'CPU'),
    resources.memoryMb === null ? null : `${memoryText(resources.memoryMb)} memory`,
  ].filter((part) => part !== null);
  return [needsText(resources) || '1 node', ...each].join(', ');
}

function limitsText(spec: JobSpec, extraRuntimeMs: number): string | null {
  const extra = extraRuntimeMs === 0 ? '' : ` (${durationText(extraRuntimeMs)} of it added)`;
  const parts = [
    spec.maxRuntimeMs === null
      ? null
      : `${durationText(spec.maxRuntimeMs + extraRuntimeMs)} an attempt${extra}`,
    spec.retry.maxAttempts === retryFields.maxAttempts.default
      ? null
      : spec.retry.maxAttempts === 1
        ? 'no retry'
        : `${spec.retry.maxAttempts} failures without a newer checkpoint`,
  ].filter((part) => part !== null);
  return parts.join(', ') || null;
}

function formatAttempt(attempt: AttemptView, options: View): string {
  const { colours } = options;
  const heading = `${colours.bold(`Attempt ${attempt.number}`)}  ${attemptText(attempt, options.nowMs)}\n`;
  const resume = resumeText(attempt);
  const began = formatFields([['Start', resume]], colours, options.width);
  const why =
    attempt.cause === null
      ? ''
      : `${wrapText(`${printable(attempt.cause.message)} (${attempt.cause.kind})`, options.width)}\n`;
  const usage = attempt.gpuUsage === null ? '' : usageText(attempt.gpuUsage);
  const isSimulated = attempt.tasks.some(({ gpuUuids }) => gpuUuids.some(isSimulatedUuid));
  const what = isSimulated ? 'GPUs (simulated)' : 'GPUs';
  const gpus = usage === '' ? '' : formatFields([[what, usage]], colours, options.width);
  return `${heading}${began}${why}${gpus}${formatTable(attempt.tasks, taskColumns(attempt.tasks), options)}`;
}

function attemptText({ state, runningAtMs, endedAtMs, allocatedAtMs }: AttemptView, nowMs: number): string {
  if (state !== 'ended') {
    const began = runningAtMs ?? allocatedAtMs;
    return `${state === 'running' ? 'running' : 'starting'} for ${durationText(nowMs - began)}`;
  }
  if (runningAtMs === null || endedAtMs === null) return 'ended before it ran';
  return `ran ${durationText(endedAtMs - runningAtMs)}, ended ${agoText(endedAtMs, nowMs)}`;
}

const addressColumn: Column<TaskView> = {
  header: 'ADDRESS',
  cell: (task) => task.address ?? '',
  narrow: 'drop',
};

const taskColumns = (tasks: readonly TaskView[]): readonly Column<TaskView>[] => [
  { header: 'RANK', cell: (task) => String(task.nodeRank), align: 'right' },
  { header: 'NODE', cell: (task) => task.node, narrow: { cutTo: 12 } },
  {
    header: 'STATE',
    cell: taskStateText,
    style: (task) => (task.frozen ? 'yellow' : null),
    narrow: { cutTo: 24 },
  },
  // Only a gang has them.
  ...(tasks.some(({ address }) => address !== null) ? [addressColumn] : []),
  { header: 'ENDED', cell: (task) => endText(task.exit), style: endStyle, narrow: { cutTo: 20 } },
  {
    header: 'OUTPUT',
    cell: (task) => (task.exit === null ? '' : bytesText(task.exit.logBytes)),
    align: 'right',
    narrow: 'drop',
  },
  { header: 'GPUS', cell: gpusText, narrow: { cutTo: 16 } },
];

/** `0-3,6`: the driver's numbers. Where these are not known how many there are; `-o json` has the UUIDs. */
function gpusText({ gpuUuids, gpuIndexes }: TaskView): string {
  if (gpuUuids.length === 0) return '';
  return gpuIndexes.length === 0 ? count(gpuUuids.length, 'GPU') : rangesText(gpuIndexes);
}

/** `running`, `running, frozen`, `assigned: pulls image pytorch:24.01`. */
function taskStateText({ state, frozen, doing }: TaskView): string {
  const held = frozen ? `${state}, frozen` : state;
  return doing === null ? held : `${held}: ${doing}`;
}

function endStyle({ exit }: TaskView): 'red' | null {
  return exit === null || (exit.exitCode === 0 && lossOfOutputs(exit) === null) ? null : 'red';
}

function nextCommands(job: JobView, programName: string): readonly string[] {
  const ran = job.attempts.some((attempt) => attempt.runningAtMs !== null);
  const words = [
    ran ? `logs ${job.id}${isTerminal(job.state) ? '' : ' -f'}` : null,
    job.state === 'queued' || job.state === 'failed' ? `explain ${job.id}` : null,
    isTerminal(job.state) ? `requeue ${job.id}` : `stop ${job.id}`,
  ].filter((word) => word !== null);
  return words.map((word) => `${programName} ${word}`);
}

/** `avg 92 %, peak 100 %; SM 61 %, tensor 44 %; peak memory 71 GiB; 3.21 kWh; idle 5 min of 8 h GPU time`. */
function usageText(usage: GpuUsage): string {
  const { utilizationMean, utilizationPeak, memoryPeakMb, energyKwh, idleGpuSeconds } = usage;
  const busy = [
    utilizationMean === null ? null : `avg ${valueText(utilizationMean, 'percent')}`,
    utilizationPeak === null ? null : `peak ${valueText(utilizationPeak, 'percent')}`,
  ];
  const activity = [
    usage.smActiveMean === null ? null : `SM ${ratioText(usage.smActiveMean)}`,
    usage.tensorActiveMean === null ? null : `tensor ${ratioText(usage.tensorActiveMean)}`,
  ];
  const parts = [
    joined(busy),
    joined(activity),
    memoryPeakMb === null ? '' : `peak memory ${memoryText(memoryPeakMb)}`,
    energyKwh === null ? '' : energyText(energyKwh),
    idleGpuSeconds === null
      ? ''
      : `idle ${durationText(idleGpuSeconds * 1_000)} of ${durationText(usage.observedGpuSeconds * 1_000)} GPU time`,
  ];
  return parts.filter((part) => part !== '').join('; ');
}

function joined(parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null).join(', ');
}

/** Three digits: a test run takes a few watt-hours, a training run megawatt-hours. */
function energyText(kwh: number): string {
  return kwh < 0.1 ? `${Number((kwh * 1_000).toPrecision(3))} Wh` : `${Number(kwh.toPrecision(3))} kWh`;
}
