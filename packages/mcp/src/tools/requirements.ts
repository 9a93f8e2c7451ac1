/** Would it fit, and when: asked before something is submitted. */
import type { JobView, NodeView } from '@muster/common/views';
import * as z from 'zod';
import { adviceForSize, billionsOf, checkpointIntervalSeconds, estimateHours } from '../advice.ts';
import { firstFitting, isoTime } from '../size.ts';
import { tool } from '../tool.ts';
import { settingsOf } from '../workloads.ts';
import { resourceParameters, specFileOf, waitsOf } from './submit.ts';

const advice = z.object({
  modelSize: z.string(),
  gpusMin: z.number(),
  gpusMax: z.number().nullable().describe('null: as many as there are'),
  gpuType: z.string(),
  gpuMemoryMb: z.number(),
  strategy: z.string(),
});

export const requirementsValidate = tool({
  name: 'requirements_validate',
  title: 'Check requirements',
  about:
    'Whether the cluster can run a workload with these GPUs, memory and storage: now, later (and why, and about when), or never. With ' +
    'modelSize it also advises how many GPUs of which kind, a range of the duration, and how often to save. Changes nothing.',
  verb: 'submit',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    ...resourceParameters,
    storageGb: z.number().min(0).max(10_000_000).optional().describe('space for data and checkpoints, in GB'),
    modelSize: z
      .union([z.string().max(40), z.number()])
      .optional()
      .describe(
        'parameters of the model to train: 7B, 350M, 7000000000, or a number of billions below a million',
      ),
    expectedHours: z.number().min(0).max(8_760).optional().describe('how long you expect it to run'),
  }),
  output: z.object({
    verdict: z.enum(['fits_now', 'fits_later', 'never_fits']),
    startsOn: z.array(z.string()).describe('the nodes on which it would start now'),
    waits: z
      .object({ kind: z.string(), message: z.string(), remedy: z.string().nullable() })
      .nullable()
      .describe('why it would not start now'),
    jobsAhead: z.number().describe('queued workloads ahead of it'),
    freedBy: z
      .string()
      .nullable()
      .describe('when the first running workload with a time limit has ended at the latest; null: unknown'),
    storage: z
      .object({ enough: z.boolean(), largestGb: z.number(), note: z.string() })
      .nullable()
      .describe('null: storageGb was not given'),
    requested: z.object({ nodes: z.number(), gpus: z.number(), gpuMemoryMb: z.number().nullable() }),
    advice: advice.nullable().describe('for modelSize'),
    belowAdvice: z.boolean().describe('fewer GPUs than advised were asked for'),
    estimatedHours: z
      .object({ hoursMin: z.number(), hoursMax: z.number(), basis: z.string() })
      .nullable()
      .describe('a range, for modelSize'),
    checkpointEverySeconds: z.number().nullable(),
  }),
  async run(given, { api, newRequestId, nowMs }) {
    const billions = given.modelSize === undefined ? null : billionsOf(given.modelSize);
    const sizeAdvice = billions === null ? null : adviceForSize(billions);
    // Whoever gives no number of GPUs asks about the advised one.
    const gpus = given.gpus ?? (sizeAdvice === null ? 0 : Math.min(8, sizeAdvice.gpusMin));
    const nodes = given.nodes ?? (sizeAdvice === null ? 1 : Math.ceil(sizeAdvice.gpusMin / 8));
    const asked = { ...given, gpus, nodes, command: ['true'], name: 'requirements' };
    const [result, cluster, active] = await Promise.all([
      api.submit({
        specJson: JSON.stringify(specFileOf(asked)),
        requestId: newRequestId(),
        dryRun: true,
      }),
      given.storageGb === undefined ? [] : api.listNodes(),
      api.listJobs({ states: ['running', 'starting'], limit: 200 }),
    ]);
    const { wouldWait } = result;
    const total = gpus * nodes;
    const estimate =
      billions === null || total === 0
        ? null
        : estimateHours(billions, total, typesOf(given.gpuType) || (sizeAdvice?.gpuType ?? ''));
    const hours = given.expectedHours ?? estimate?.hoursMax ?? null;
    const isNever = wouldWait?.kind === 'never_fits' || wouldWait?.kind === 'no_nodes';
    const ends = active.jobs.flatMap((job) => endOf(job, nowMs()) ?? []);
    const data = {
      verdict:
        wouldWait === null
          ? ('fits_now' as const)
          : isNever
            ? ('never_fits' as const)
            : ('fits_later' as const),
      startsOn: [...firstFitting(result.wouldStartOn, 1_000)],
      waits: waitsOf(wouldWait),
      jobsAhead: result.jobsAhead,
      freedBy: wouldWait === null || isNever || ends.length === 0 ? null : isoTime(Math.min(...ends)),
      storage: given.storageGb === undefined ? null : storageOf(cluster, given.storageGb),
      requested: { nodes, gpus, gpuMemoryMb: given.gpuMemoryMb ?? null },
      advice: sizeAdvice,
      belowAdvice: sizeAdvice !== null && total < sizeAdvice.gpusMin,
      estimatedHours: estimate,
      checkpointEverySeconds: hours === null ? null : checkpointIntervalSeconds(hours),
    };
    return { data, text: sentenceOf(data) };
  },
});

function typesOf(gpuType: string | readonly string[] | undefined): string {
  return typeof gpuType === 'string' ? gpuType : (gpuType?.join(' ') ?? '');
}

/** Wall clock. null: it has no time limit. */
function endOf(job: JobView, nowMs: number): number | null {
  const { maxRuntimeMs } = settingsOf(job);
  const startedAtMs = job.attempts.at(-1)?.runningAtMs ?? nowMs;
  return maxRuntimeMs === null ? null : startedAtMs + maxRuntimeMs + job.extraRuntimeMs;
}

/** Sizes of file systems are known, and what is free in them is not. */
function storageOf(nodes: readonly NodeView[], storageGb: number) {
  const sizes = nodes.flatMap(
    ({ inventory }) => inventory.host?.fileSystems.map(({ sizeBytes }) => sizeBytes) ?? [],
  );
  const largestGb = Math.floor(Math.max(0, ...sizes) / 1e9);
  return {
    enough: largestGb >= storageGb,
    largestGb,
    note: 'by the size of the largest file system of a node; what is free in it is not known',
  };
}

function sentenceOf(data: {
  readonly verdict: string;
  readonly startsOn: readonly string[];
  readonly waits: { readonly message: string } | null;
  readonly storage: { readonly enough: boolean } | null;
}): string {
  const storage = data.storage?.enough === false ? ' No file system of a node is that large.' : '';
  if (data.verdict === 'fits_now')
    return `It fits, and would start now on ${data.startsOn.join(', ')}.${storage}`;
  const never = data.verdict === 'never_fits' ? 'It never fits' : 'It fits, but not now';
  return `${never}: ${data.waits?.message ?? ''}.${storage}`;
}
