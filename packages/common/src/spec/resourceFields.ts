/** The settings about what a job needs of its nodes: a part of the table in `fields.ts`. */
import { choice, field, mapping, megabytes, number, optional, wholeNumber } from './kinds.ts';
import { gpuModels, nodeCount, withNodeCounts } from './structures.ts';

const resourceFields = {
  nodes: field('nodes', nodeCount, {
    default: { min: 1, max: 1 },
    isAlwaysWritten: true,
    about:
      'Number of nodes the job runs on at the same time. A range: as many of them as are free when it starts.',
    flag: '--nodes <count>',
    help: 'nodes at the same time, or a range such as 1:4',
    aliases: ['numnodes', 'nnodes', 'minnodes', 'maxnodes'],
  }),
  /** Of a gang of several nodes. `required` never starts where it would be under several switches. */
  topology: field(
    'topology',
    choice(['preferred', 'required'], {
      meant: { required: ['strict', 'must'], preferred: ['soft', 'any'] },
    }),
    {
      default: 'preferred',
      about:
        'Placement of several nodes: under as few switches as possible (preferred), or only under one of the nearest level (required).',
      flag: '--topology <topology>',
      help: 'required: all nodes under one switch',
      aliases: ['placement'],
    },
  ),
  /** On each node. */
  gpus: field('gpus', wholeNumber(0, 64), {
    default: 0,
    isAlwaysWritten: true,
    about: 'GPUs on each node.',
    flag: '--gpus <count>',
    aliases: ['gpuspernode'],
  }),
  /** Any of these models will do; empty: every model. */
  gpuType: field('gpu_type', gpuModels, {
    default: [],
    about: 'Acceptable GPU models, one or a list. Default: any model.',
    flag: '--gpu-type <model>',
    help: 'acceptable GPU model, such as H100',
    aliases: ['gputypes'],
  }),
  gpuMemoryMb: optional('gpu_memory_mb', megabytes(), {
    about: 'Minimum memory of each GPU, in MB of 1,048,576 bytes.',
    flag: '--gpu-memory <size>',
    help: 'minimum memory of each GPU, such as 80G',
    aliases: ['gpumemory'],
  }),
  /** On each node. null: no request and no limit. */
  cpus: optional('cpus', number([0.01, 4096], 'a number from 0.01 to 4096'), {
    about: 'Logical CPUs on each node; may be a fraction. The job gets no more than that there.',
    flag: '--cpus <count>',
    help: 'CPUs on each node',
    aliases: ['cpu'],
  }),
  /** On each node. null: no request and no limit. */
  memoryMb: optional('memory_mb', megabytes(), {
    about:
      'Memory on each node, in MB of 1,048,576 bytes. A job that needs more is killed there, with the cause host_oom.',
    flag: '--memory <size>',
    help: 'memory on each node, such as 64G',
    aliases: ['mem', 'memory'],
  }),
  /** null: the default of the container engine. */
  shmMb: optional('shm_mb', megabytes(), {
    about: 'Size of /dev/shm in each container, in MB. PyTorch data loaders need more than the usual 64.',
    flag: '--shm <size>',
    help: 'size of /dev/shm in the container, such as 16G',
    aliases: ['shm', 'shmsize'],
  }),
};

export const resources = withNodeCounts(mapping(resourceFields, 'a mapping such as {nodes: 2, gpus: 4}'));
