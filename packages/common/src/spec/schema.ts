/**
 * The one description of the job file: validation, the TypeScript type and the JSON Schema of editors and API all come
 * from here. It checks and changes nothing; `normalize.ts` turns what passed into a `JobSpec` (the agent does only that,
 * and so needs no zod).
 *
 * Every error text in this file says what was expected; `problems.ts` adds what was found. Every field has a
 * description: it is what an editor shows on hover.
 */
import { isIPv6 } from 'node:net';
import * as z from 'zod';
import { afterForm, afterPattern } from './after.ts';
import { arrayForm, arrayIndexMax, parseArray } from './array.ts';
import { fillArrayIndex } from './arrayIndex.ts';
import {
  divergenceActions,
  hangActions,
  launchers,
  leaseExpiryActions,
  nodeLossActions,
  stopSignals,
  topologies,
} from './choices.ts';
import { jobSpecDefaults as defaults } from './defaults.ts';
import { formatDuration } from './duration.ts';
import {
  absolutePath,
  argument,
  dayMs,
  duration,
  hourMs,
  patterned,
  secondMs,
  wholeNumber,
} from './fields.ts';
import { networkOfAddress, networkPattern } from './network.ts';
import {
  backoffShape,
  breakerShape,
  checkpointShape,
  hangForm,
  hangShape,
  keepBestShape,
  retryShape,
} from './recoverySchema.ts';
import { parseVolume, volumePattern } from './volume.ts';

/** 64 TiB; any bound far above real machines, so that no number leaves the exact integers. */
const umaskForm = 'octal digits in quotes, such as "0027"';
const memoryMbMax = 64 * 1024 * 1024;

/** Shorter ones would freeze a task on every hiccup. */
const leaseMsMin = 10 * secondMs;
/** An interface, or a network that is one: with an address that exists and, of IPv4, no bits behind its prefix. */
function isNetwork(text: string): boolean {
  const [address = '', prefix] = text.split('/');
  if (prefix === undefined || networkOfAddress(text) === text) return true;
  return isIPv6(address) && Number(prefix) <= 128;
}

const memberNamePattern =
  /^(?:[a-z0-9]|\{array_index\})(?:(?:[a-z0-9-]|\{array_index\}){0,61}(?:[a-z0-9]|\{array_index\}))?$/;
const labelPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** `[registry[:port]/]path[:tag][@digest]`, as Docker reads it (distribution/reference grammar). */
const imageParts = {
  registry: '(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\\d{1,5})?/)?',
  component: '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*',
  tag: '(?::\\w[\\w.-]{0,127})?',
  digest: '(?:@sha256:[a-f0-9]{64})?',
};
const imagePattern = new RegExp(
  `^${imageParts.registry}${imageParts.component}(?:/${imageParts.component})*${imageParts.tag}${imageParts.digest}$`,
);

const scalarText = 'text, a number, or true/false; write "" for empty text';
/** What a YAML writer does not think of as text (`60`, `true`) is taken as the text it was written as. */
const writtenText = z.union([argument(), z.number({ error: scalarText }), z.boolean({ error: scalarText })], {
  error: scalarText,
});

const label = (what: string) =>
  patterned(labelPattern, `${what}: 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends`);

const labelText = 'text of one line, at most 256 characters';

const memoryMb = () => wholeNumber(1, memoryMbMax);

const gpuModelForm = 'a GPU model such as H100, or a list such as [H100, A100]';
const gpuModel = patterned(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/, gpuModelForm);

const nodeCountMax = 1_024;
const nodeCount = `a whole number from 1 to ${nodeCountMax}`;
const nodeCountForm = `${nodeCount}, or a range such as {min: 1, max: 4}`;
const cpuCount = 'a number from 0.01 to 4096';

const nodeRangeShape = {
  min: wholeNumber(1, nodeCountMax).describe('The smallest acceptable number of nodes.'),
  max: wholeNumber(1, nodeCountMax).describe('The largest useful number of nodes.'),
};

const bandwidth = 'Mbit/s, a number from 1 to 10000000, such as 10000';
const preflightForm = 'true, false, or {min_bandwidth_mbps: 10000}';

const preflightShape = {
  min_bandwidth_mbps: z
    .number({ error: bandwidth })
    .min(1, { error: bandwidth })
    .max(10_000_000, { error: bandwidth })
    .optional()
    .describe(
      'Minimum Mbit/s between each pair of nodes; a slower pair is reported and the next attempt avoids it.',
    ),
};

const resourcesShape = {
  nodes: z
    .union(
      [wholeNumber(1, nodeCountMax), z.strictObject(nodeRangeShape, { error: nodeCountForm })],
      // Whoever wrote a number hears of numbers only.
      { error: ({ input }) => (typeof input === 'number' ? nodeCount : nodeCountForm) },
    )
    .optional()
    .describe(
      'Number of nodes the job runs on at the same time. A range: as many of them as are free when it starts.',
    )
    .meta({ default: defaults.nodes }),
  topology: z
    .enum(topologies, { error: 'preferred or required' })
    .optional()
    .describe(
      'Placement of several nodes: under as few switches as possible (preferred), or only under one of the nearest level (required).',
    )
    .meta({ default: defaults.topology }),
  gpus: wholeNumber(0, 64).optional().describe('GPUs on each node.').meta({ default: defaults.gpus }),
  gpu_type: z
    .union([gpuModel, z.array(gpuModel).min(1, { error: 'at least one GPU model' })], { error: gpuModelForm })
    .optional()
    .describe('Acceptable GPU models, one or a list. Default: any model.'),
  gpu_memory_mb: memoryMb().optional().describe('Minimum memory of each GPU, in MB of 1,048,576 bytes.'),
  cpus: z
    .number({ error: cpuCount })
    .min(0.01, { error: cpuCount })
    .max(4096, { error: cpuCount })
    .optional()
    .describe('Logical CPUs on each node; may be a fraction.'),
  memory_mb: memoryMb().optional().describe('Memory on each node, in MB of 1,048,576 bytes.'),
  shm_mb: memoryMb()
    .optional()
    .describe('Size of /dev/shm in each container, in MB. PyTorch data loaders need more than the usual 64.'),
};

const networkForm = 'a network such as 10.1.0.0/16, or an interface such as ib0';
const commandForm = 'a list such as [torchrun, train.py], or text for the shell';

const jobShape = {
  name: patterned(
    memberNamePattern,
    'a name: 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends',
  )
    .refine((name) => labelPattern.test(fillArrayIndex(name, arrayIndexMax)), {
      error: 'a name that has at most 63 characters with its index',
    })
    .optional()
    .describe("Shown in lists; in an array it may hold {array_index}. Default: the program's name."),
  project: label('a project name')
    .optional()
    .describe('Project, for accounting.')
    .meta({ default: defaults.project }),
  image: patterned(imagePattern, 'an image such as nvcr.io/nvidia/pytorch:24.01-py3')
    .max(512, { error: 'an image reference of at most 512 characters' })
    .optional()
    .describe('Container image. Default: the job runs as a process on the node.'),
  command: z
    .union([argument().regex(/\S/, { error: commandForm }), z.array(writtenText)], { error: commandForm })
    .optional()
    .describe('The command, run once per node. A list is run as it is; plain text goes to /bin/sh -c.'),
  args: z
    .array(writtenText, { error: 'a list such as [--config=config.yaml]' })
    .optional()
    .describe('Added to the command. For a command given as text they are "$@" of the shell.'),
  env: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/, {
        error: 'a variable name: letters, digits and "_", not starting with a digit',
      }),
      writtenText,
      { error: 'a mapping such as {WANDB_PROJECT: demo}' },
    )
    .optional()
    .describe('Environment variables. They override the ones that Muster sets.'),
  workdir: absolutePath('/workspace')
    .optional()
    .describe('Working directory. Default: a new one for each task, or that of the image.'),
  umask: z
    .string({ error: umaskForm })
    .regex(/^0?[0-7]{3}$/, { error: umaskForm })
    .optional()
    .describe(
      "File mode mask of a job without an image, such as '0027'. Default: that of the shell, else of the node.",
    ),
  resources: z
    .strictObject(resourcesShape, { error: 'a mapping such as {nodes: 2, gpus: 4}' })
    .optional()
    .describe('Resources that the job needs.'),
  volumes: z
    .array(
      patterned(volumePattern, 'two absolute paths, such as /data:/data or /data:/data:ro').refine(
        (text) => parseVolume(text) !== null,
        { error: 'two absolute paths without ".." parts, the second not "/", such as /data:/data:ro' },
      ),
      { error: 'a list such as [/data:/data:ro]' },
    )
    .optional()
    .describe(
      'Directories of the node that the container sees: /on/node:/in/container, then :ro for read only.',
    ),
  priority: wholeNumber(0, 100)
    .optional()
    .describe('0 to 100; higher starts first.')
    .meta({ default: defaults.priority }),
  preemptible: z
    .boolean({ error: 'true or false' })
    .optional()
    .describe('Whether a higher-priority job can preempt this one.')
    .meta({ default: defaults.preemptible }),
  max_runtime: duration(secondMs, 365 * dayMs)
    .optional()
    .describe('Longest time one attempt may run, such as 24h.'),
  stop_grace: duration(0, hourMs)
    .optional()
    .describe('Time from the stop signal to SIGKILL, for a last checkpoint.')
    .meta({ default: formatDuration(defaults.stopGraceMs) }),
  stop_signal: z
    .enum(stopSignals, { error: stopSignals.join(', ') })
    .optional()
    .describe('The first signal of a stop.')
    .meta({ default: defaults.stopSignal }),
  on_divergence: z
    .enum(divergenceActions, { error: 'warn or stop' })
    .optional()
    .describe('When the loss becomes NaN or explodes: warn, or stop the attempt and resume from before that.')
    .meta({ default: defaults.onDivergence }),
  on_hang: z
    .union([z.enum(hangActions, { error: hangForm }), z.strictObject(hangShape, { error: hangForm })], {
      error: hangForm,
    })
    .optional()
    .describe('When it hangs: no activity in output, steps and checkpoints, and its GPUs compute nothing.')
    .meta({ default: defaults.hangAction }),
  params: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, { error: 'a name of letters, digits and "_"' }),
      z.union([argument(), z.number({ error: 'text or a number' })], { error: 'text or a number' }),
      { error: 'a mapping such as {batch_size: 32, lr: 3e-4}' },
    )
    .optional()
    .describe(
      'Values of {name} in command and args. After cuda_oom a batch size, after a divergence a learning rate is scaled.',
    ),
  launcher: z
    .enum(launchers, { error: 'torchrun, env or mpi-hostfile' })
    .optional()
    .describe(
      'How the command is started: torchrun: once per node. env: once per GPU, with RANK and LOCAL_RANK. ' +
        'mpi-hostfile: on the first node only, with a file that lists all of them.',
    )
    .meta({ default: defaults.launcher }),
  network: patterned(networkPattern, networkForm)
    .refine(isNetwork, { error: networkForm })
    .optional()
    .describe('Network or interface between the nodes of the job. Default: the best that all of them share.'),
  preflight: z
    .union([z.boolean(), z.strictObject(preflightShape, { error: preflightForm })], { error: preflightForm })
    .optional()
    .describe('Measure the paths between the nodes of each attempt before it starts.'),
  prepare_timeout: duration(secondMs, dayMs)
    .optional()
    .describe('Time until all nodes are ready to start, image pulls included.')
    .meta({ default: formatDuration(defaults.prepareTimeoutMs) }),
  rendezvous_timeout: duration(secondMs, dayMs)
    .optional()
    .describe('Time until all tasks run, once they may start.')
    .meta({ default: formatDuration(defaults.rendezvousTimeoutMs) }),
  lease: duration(leaseMsMin, dayMs)
    .optional()
    .describe(
      "How long a task may run without contact with the coordinator. Default: the coordinator's --lease.",
    ),
  on_lease_expiry: z
    .enum(leaseExpiryActions, { error: 'freeze or kill' })
    .optional()
    .describe(
      'What happens to a task whose lease expires: it is frozen until contact is restored, or killed.',
    )
    .meta({ default: defaults.onLeaseExpiry }),
  node_loss: z
    .enum(nodeLossActions, { error: 'requeue or hold' })
    .optional()
    .describe(
      'When one of its nodes is lost: requeue once the node is fenced, or hold until a user confirms that the node is dead.',
    )
    .meta({ default: defaults.nodeLoss }),
  retry: z
    .strictObject(retryShape, { error: 'a mapping such as {max_attempts: 3}' })
    .optional()
    .describe('What happens when an attempt fails. Default: it is retried if that can help.'),
  checkpoint: z
    .strictObject(checkpointShape, { error: 'a mapping such as {dir: /checkpoints/llama, keep_last: 3}' })
    .optional()
    .describe('Where the job saves its progress.'),
  array: z
    .union([z.string(), z.number()], { error: arrayForm })
    .superRefine((written, context) => {
      const reading = parseArray(written);
      if ('expected' in reading) context.addIssue({ code: 'custom', message: reading.expected });
    })
    .optional()
    .describe(
      'Makes an array of jobs: a count such as 100, or indexes such as 0-9, 1,3,7 or 0-9%4 (at most 4 at the same time). ' +
        'Each finds its index in MUSTER_ARRAY_INDEX, and {array_index} stands for it in name, command, args, env and directories.',
    ),
  after: z
    .array(patterned(afterPattern, afterForm), {
      error: 'a list of jobs, such as [prepare] or [job_0123456789ab:any]',
    })
    .max(100, { error: 'at most 100 jobs' })
    .optional()
    .describe(
      'Jobs or arrays that this one starts after: JOB or JOB:ok once it has succeeded, JOB:any once it has ended, JOB:fail once ' +
        'it has failed. A name means the newest job of that name at the time of the submit.',
    ),
  labels: z
    .record(
      z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$/, {
        error: 'a label name: 1 to 63 letters, digits, ".", "_", "/" or "-"',
      }),
      z.union([patterned(/^\P{Cc}{0,256}$/u, labelText), z.number(), z.boolean()], { error: labelText }),
      { error: 'a mapping such as {type: training}' },
    )
    .optional()
    .describe('Labels, to filter jobs by.'),
};

export const jobSpecSchema = z
  .strictObject(jobShape, { error: 'a mapping of job settings, such as command: [torchrun, train.py]' })
  .describe('A Muster job.');

/** The known keys of each mapping, by the mapping's path. */
export const specKeys: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    '': jobShape,
    resources: resourcesShape,
    'resources.nodes': nodeRangeShape,
    preflight: preflightShape,
    retry: retryShape,
    'retry.backoff': backoffShape,
    checkpoint: checkpointShape,
    'checkpoint.keep_best': keepBestShape,
    'retry.breaker': breakerShape,
    on_hang: hangShape,
  }).map(([path, shape]) => [path, Object.keys(shape)]),
);
