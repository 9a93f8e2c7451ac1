/** Submits a workload: the parameters that agents use, as the settings of a job file. */
import type { SubmitResult } from '@muster/common/submitResult';
import type { PendingReason } from '@muster/common/views';
import * as z from 'zod';
import { dryRun, requestId } from '../parameters.ts';
import { brief, isoTime } from '../size.ts';
import { tool } from '../tool.ts';

const text = z.string().max(4_096);
const scalar = z.union([text, z.number(), z.boolean()]);
/** Longer ones are in a file of the job's own; the coordinator bounds the whole spec besides. */
const listMax = 1_000;

/** Without what only a submit has, for whoever only asks whether it would fit. */
export const resourceParameters = {
  gpus: z.int().min(0).max(64).optional().describe('GPUs on each node; default: 0'),
  gpuMemoryMb: z.int().min(1).optional().describe('least memory of each GPU, in MiB'),
  gpuType: z
    .union([text, z.array(text).max(20)])
    .optional()
    .describe('acceptable GPU models, such as H100, or a list'),
  nodes: z.int().min(1).max(4_096).optional().describe('nodes at the same time; default: 1'),
  cpus: z.number().min(0.01).max(4_096).optional().describe('CPUs on each node'),
  memoryMb: z.int().min(1).optional().describe('memory on each node, in MiB'),
  priority: z.int().min(0).max(100).optional().describe('0 to 100, higher starts first; default: 50'),
  project: z.string().max(64).optional().describe('project for accounting; default: default'),
};

const input = z.strictObject({
  name: z.string().max(64).optional().describe('lower-case letters, digits and "-"'),
  image: text.optional().describe('container image; without one it runs as a process on the node'),
  command: z
    .union([text, z.array(text).max(listMax)])
    .optional()
    .describe('run once on each node: a list as it is, or a text for /bin/sh -c'),
  args: z.array(text).max(listMax).optional().describe('added to the command'),
  env: z.record(z.string(), scalar).optional().describe('environment variables'),
  labels: z.record(z.string(), scalar).optional().describe('names and values to find it by'),
  ...resourceParameters,
  shmMb: z.int().min(1).optional().describe('size of /dev/shm in a container, in MiB'),
  preemptible: z.boolean().optional().describe('may be preempted by a workload of higher priority'),
  maxRuntimeSeconds: z
    .int()
    .min(1)
    .max(365 * 86_400)
    .optional()
    .describe('longest time that one attempt may run'),
  stopGraceSeconds: z.int().min(0).max(3_600).optional().describe('time to save after the stop signal'),
  workdir: text.optional().describe('working directory'),
  volumes: z.array(text).max(100).optional().describe('/on/node:/in/container[:ro]'),
  secrets: z.array(text).max(100).optional().describe('secrets of the project: NAME or VARIABLE=NAME'),
  checkpoint: z
    .strictObject({
      dir: text.optional().describe('directory that it saves to, as the job sees it'),
      pattern: text.optional(),
      keepLast: z.int().min(1).max(1_000).optional(),
      verify: z.enum(['quick', 'deep']).optional(),
    })
    .optional()
    .describe('where checkpoints are saved, and how many are kept'),
  retry: z
    .strictObject({ maxAttempts: z.int().min(1).max(100).optional(), on: z.array(text).max(50).optional() })
    .optional()
    .describe('how often, and after which causes, it is run again'),
  after: z.array(text).max(100).optional().describe('ids of workloads that have to succeed first'),
  onHang: z.enum(['warn', 'restart']).optional(),
  onDivergence: z.enum(['warn', 'stop']).optional(),
  resumeFrom: text
    .optional()
    .describe('continue from this workload (its id), or from a checkpoint (an absolute path)'),
  settings: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('further keys of the job file (docs/job-file.md), such as launcher or on_hang'),
  requestId,
  dryRun,
});

export type SubmitInput = z.output<typeof input>;

const waits = z.object({ kind: z.string(), message: z.string(), remedy: z.string().nullable() }).nullable();

export function waitsOf(reason: PendingReason | null): z.input<typeof waits> {
  if (reason === null) return null;
  return { kind: reason.kind, message: brief(reason.message), remedy: brief(reason.remedy) };
}

const output = z.object({
  workloadId: z.string().nullable().describe('null: it was a dry run'),
  arrayId: z.string().nullable(),
  dryRun: z.boolean(),
  repeatedRequest: z.boolean().describe('this requestId had been accepted before; nothing new was submitted'),
  startsNow: z.boolean(),
  wouldStartOn: z.array(z.string()).describe('of a dry run: the nodes'),
  jobsAhead: z.number().describe('of a dry run: queued workloads ahead of it'),
  waits: waits.describe('why it does not start at once; null: it does'),
  endsBy: z
    .string()
    .nullable()
    .describe('by when it has ended at the latest, if it starts now and needs one attempt; null: no limit'),
});

export const workloadSubmit = tool({
  name: 'workload_submit',
  title: 'Submit a workload',
  about:
    'Submits a training job or any other program. With dryRun it is checked only: whether it is valid, where it would start, or why ' +
    'it would wait. Validate first (requirements_validate), then submit with a requestId, so that a repeated call never makes a second one.',
  verb: 'submit',
  effect: 'change',
  idempotent: false,
  input,
  output,
  async run(given, { api, nowMs, newRequestId }) {
    const result = await api.submit({
      specJson: JSON.stringify(specFileOf(given)),
      requestId: given.requestId ?? newRequestId(),
      dryRun: given.dryRun,
      ...resumeOf(given.resumeFrom),
    });
    const data = dataOf(result, given, nowMs());
    return { data, text: sentenceOf(data) };
  },
});

function resumeOf(from: string | undefined) {
  if (from === undefined) return {};
  return from.startsWith('/') ? { resumeFromPath: from } : { resumeFromJob: from };
}

function dataOf(result: SubmitResult, given: SubmitInput, nowMs: number): z.input<typeof output> {
  const reason = given.dryRun ? result.wouldWait : result.waits;
  const limitMs = given.maxRuntimeSeconds === undefined ? null : given.maxRuntimeSeconds * 1000;
  return {
    workloadId: given.dryRun ? null : (result.jobIds[0] ?? null),
    arrayId: result.arrayId,
    dryRun: given.dryRun,
    repeatedRequest: result.repeatedRequest,
    startsNow: reason === null,
    wouldStartOn: result.wouldStartOn.slice(0, 16),
    jobsAhead: result.jobsAhead,
    waits: waitsOf(reason),
    endsBy: limitMs === null || reason !== null ? null : isoTime(nowMs + limitMs),
  };
}

function sentenceOf(data: z.input<typeof output>): string {
  const start =
    data.waits === null
      ? `starts now${data.wouldStartOn.length === 0 ? '' : ` on ${data.wouldStartOn.join(', ')}`}`
      : `waits: ${data.waits.message}`;
  if (data.dryRun) return `Dry run, nothing was submitted. Valid; it ${start}.`;
  const id = data.arrayId ?? data.workloadId ?? '';
  if (data.repeatedRequest)
    return `${id} had been submitted with this requestId before; nothing new was submitted.`;
  return `Submitted ${id}; it ${start}. Follow it with workload_get and events_since.`;
}

/**
 * In the shape of the job file. What was not given is left to its default, and `settings` count where no parameter of the same meaning
 * was given.
 */
export function specFileOf(given: Omit<SubmitInput, 'dryRun'>): Record<string, unknown> {
  const { settings = {}, checkpoint, retry } = given;
  const { resources } = settings;
  return {
    ...settings,
    ...present({
      name: given.name,
      image: given.image,
      command: given.command,
      args: given.args,
      env: textValues(given.env),
      labels: textValues(given.labels),
      priority: given.priority,
      project: given.project,
      preemptible: given.preemptible,
      max_runtime: secondsText(given.maxRuntimeSeconds),
      stop_grace: secondsText(given.stopGraceSeconds),
      workdir: given.workdir,
      volumes: given.volumes,
      secrets: given.secrets,
      after: given.after,
      on_hang: given.onHang,
      on_divergence: given.onDivergence,
      checkpoint:
        checkpoint &&
        present({
          dir: checkpoint.dir,
          pattern: checkpoint.pattern,
          keep_last: checkpoint.keepLast,
          verify: checkpoint.verify,
        }),
      retry: retry && present({ max_attempts: retry.maxAttempts, on: retry.on }),
    }),
    resources: {
      ...(isMapping(resources) ? resources : {}),
      ...present({
        gpus: given.gpus,
        nodes: given.nodes,
        gpu_memory_mb: given.gpuMemoryMb,
        gpu_type: given.gpuType,
        cpus: given.cpus,
        memory_mb: given.memoryMb,
        shm_mb: given.shmMb,
      }),
    },
  };
}

function present(map: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== undefined));
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function secondsText(seconds: number | undefined): string | undefined {
  return seconds === undefined ? undefined : `${seconds}s`;
}

function textValues(map: Readonly<Record<string, unknown>> | undefined): Record<string, string> | undefined {
  if (map === undefined) return undefined;
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, String(value)]));
}
