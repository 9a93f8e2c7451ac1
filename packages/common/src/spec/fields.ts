/**
 * The settings of a job, each in one place. From this table come the checks of job files, the types `JobSpec` and `JobSpecFile`, the
 * defaults, the canonical text, the JSON Schema, the flags of `submit` with their help and completion, and docs/job-file.md.
 *
 * A name on the left is that of `JobSpec`, with its unit last; the first argument is the key of the job file.
 */
import { artifactSettings } from './artifactFields.ts';
import { evaluationFields } from './evaluationFields.ts';
import {
  absolutePath,
  dependencyList,
  imageReference,
  jobName,
  labelPairs,
  networkOrInterface,
  parameterPairs,
  programName,
  projectName,
  secretList,
  variablePairs,
  volumeList,
} from './forms.ts';
import {
  type AnyField,
  boolean,
  choice,
  dayMs,
  duration,
  field,
  hourMs,
  mapping,
  optional,
  type SpecFields,
  secondMs,
  section,
  textList,
  wholeNumber,
} from './kinds.ts';
import { phaseFields, phasesMax } from './phaseFields.ts';
import { checkpointFields, retryFields } from './recoveryFields.ts';
import { resources } from './resourceFields.ts';
import {
  arrayIndexes,
  commandLine,
  fileModeMask,
  hangReaction,
  mappingList,
  preflightChoice,
} from './structures.ts';

export const jobFields = {
  /** A DNS label; in an array it may hold `{array_index}`. */
  name: field('name', jobName, {
    default: programName,
    isAlwaysWritten: true,
    about: "Shown in lists; in an array it may hold {array_index}. Default: the program's name.",
    flag: '--name <name>',
    help: "default: the program's name",
  }),
  project: field('project', projectName, {
    default: 'default',
    isAlwaysWritten: true,
    about: 'Project, for accounting.',
    flag: '--project <project>',
    aliases: ['account'],
  }),
  /** null: run as a process on the node. */
  image: optional('image', imageReference, {
    about: 'Container image. Default: the job runs as a process on the node.',
    flag: '--image <image>',
    help: 'container image; without one the job runs as a process on the node',
    aliases: ['container', 'dockerimage'],
  }),
  /** What runs is `[...command, ...args]`. Empty, and then without args: the image's own entrypoint. */
  command: field('command', commandLine, {
    default: [],
    about: 'The command, run once per node. A list is run as it is; plain text goes to /bin/sh -c.',
    aliases: ['cmd', 'run', 'script', 'entrypoint'],
  }),
  args: field('args', textList('a list such as [--config=config.yaml]'), {
    default: [],
    about: 'Added to the command. For a command given as text they are "$@" of the shell.',
  }),
  env: field('env', variablePairs, {
    default: {},
    about: 'Environment variables. They override the ones that Muster sets.',
    flag: '-e, --env <name=value>',
    help: 'environment variable; NAME alone copies yours',
    aliases: ['environment', 'envs'],
  }),
  secrets: field('secrets', secretList, {
    default: [],
    about:
      'Secrets of the project: NAME is a file in $MUSTER_SECRETS_DIR, VARIABLE=NAME a variable. Output shows *** in their place.',
    flag: '--secret <secret>',
    help: 'secret of the project: NAME for a file in $MUSTER_SECRETS_DIR, VARIABLE=NAME for a variable',
    aliases: ['secretenv', 'envsecrets'],
  }),
  /** Absolute. null: the task's own new directory (process) or that of the image (container). */
  workdir: optional('workdir', absolutePath('/workspace'), {
    about: 'Working directory. Default: a new one for each task, or that of the image.',
    flag: '--workdir <dir>',
    help: 'working directory; default: the current one, for jobs without an image',
    aliases: ['cwd', 'workingdir', 'workingdirectory'],
  }),
  /** 0 to 0o777. null: that of the node. */
  umask: optional('umask', fileModeMask, {
    about:
      "File mode mask of a job without an image, such as '0027'. Default: that of the shell, else of the node.",
    flag: '--umask <mode>',
    help: 'file mode mask, such as 0027; default: that of this shell, for jobs without an image',
  }),
  resources: field('resources', resources, {
    default: resources.read({}, {}),
    isAlwaysWritten: true,
    about: 'Resources that the job needs.',
  }),
  volumes: field('volumes', volumeList, {
    default: [],
    about: 'Directories of the node that the container sees: /on/node:/in/container, then :ro for read only.',
    flag: '-v, --volume <volume>',
    help: '/on/node:/in/container[:ro]',
    aliases: ['mounts'],
  }),
  /** Higher starts first. */
  priority: field('priority', wholeNumber(0, 100), {
    default: 50,
    isAlwaysWritten: true,
    about: '0 to 100; higher starts first.',
    flag: '--priority <0..100>',
    help: 'higher starts first',
  }),
  preemptible: field('preemptible', boolean(), {
    default: false,
    isAlwaysWritten: true,
    about: 'Whether a higher-priority job can preempt this one.',
    flag: '--preemptible',
    help: 'can be preempted by a higher-priority job, with time to save',
  }),
  /** Of one attempt. null: no limit. */
  maxRuntimeMs: optional('max_runtime', duration(secondMs, 365 * dayMs), {
    about: 'Longest time one attempt may run, such as 24h.',
    flag: '--max-runtime <duration>',
    aliases: ['timeout', 'time', 'timelimit', 'walltime'],
  }),
  stopGraceMs: field('stop_grace', duration(0, hourMs), {
    default: 60_000,
    isAlwaysWritten: true,
    about: 'Time from the stop signal to SIGKILL, for a last checkpoint.',
    flag: '--stop-grace <duration>',
    help: 'time from the stop signal to SIGKILL',
    aliases: ['graceperiod'],
  }),
  stopSignal: field('stop_signal', choice(['SIGTERM', 'SIGINT', 'SIGUSR1', 'SIGUSR2', 'SIGHUP']), {
    default: 'SIGTERM',
    about: 'The first signal of a stop.',
    flag: '--stop-signal <signal>',
  }),
  onDivergence: field('on_divergence', choice(['warn', 'stop']), {
    default: 'warn',
    about: 'When the loss becomes NaN or explodes: warn, or stop the attempt and resume from before that.',
    flag: '--on-divergence <reaction>',
    help: 'what to do when the loss becomes NaN or explodes: warn or stop',
  }),
  hang: field('on_hang', hangReaction, {
    default: hangReaction.read('warn', {}),
    about: 'When it hangs: no activity in output, steps and checkpoints, and its GPUs compute nothing.',
    flag: '--on-hang <reaction>',
    help: 'what to do when it hangs: warn or restart',
  }),
  /** What `{name}` in command and args stands for; those that are named for a batch size or a learning rate are scaled. */
  params: field('params', parameterPairs, {
    default: {},
    about:
      'Values of {name} in command and args. After cuda_oom a batch size, after a divergence a learning rate is scaled.',
    flag: '--param <name=value>',
    help: 'value of {name} in the command, such as batch_size=32',
  }),
  /**
   * `torchrun`: the command once per node, with what torchrun and scripts alike read. `env`: once per GPU, with RANK and
   * LOCAL_RANK. `mpi-hostfile`: on node rank 0 only, with the names of a file that lists the nodes.
   */
  launcher: field(
    'launcher',
    choice(['torchrun', 'env', 'mpi-hostfile'], {
      meant: {
        torchrun: ['accelerate', 'deepspeed', 'torch', 'pytorch'],
        'mpi-hostfile': ['mpirun', 'mpiexec', 'openmpi'],
      },
    }),
    {
      default: 'torchrun',
      about:
        'How the command is started: torchrun: once per node. env: once per GPU, with RANK and LOCAL_RANK. ' +
        'mpi-hostfile: on the first node only, with a file that lists all of them.',
      flag: '--launcher <launcher>',
      help: 'torchrun, env or mpi-hostfile: how the command is started',
    },
  ),
  /** `10.1.0.0/16` or `ib0`. null: the best that all its nodes share. */
  network: optional('network', networkOrInterface, {
    about: 'Network or interface between the nodes of the job. Default: the best that all of them share.',
    flag: '--network <network>',
    help: 'network or interface between the nodes, such as 10.1.0.0/16 or ib0',
    aliases: ['interface', 'ifname', 'socketifname'],
  }),
  /** null: paths are measured only for nodes that were away. */
  preflight: optional('preflight', preflightChoice, {
    about: 'Measure the paths between the nodes of each attempt before it starts.',
    flag: '--preflight',
    help: 'measure the paths between the nodes before each attempt',
  }),
  /** From allocation until every node is prepared. */
  prepareTimeoutMs: field('prepare_timeout', duration(secondMs, dayMs), {
    default: 600_000,
    about: 'Time until all nodes are ready to start, image pulls included.',
    aliases: ['starttimeout', 'pulltimeout'],
  }),
  /** From release until every task runs. */
  rendezvousTimeoutMs: field('rendezvous_timeout', duration(secondMs, dayMs), {
    default: 120_000,
    about: 'Time until all tasks run, once they may start.',
    aliases: ['rdzvtimeout'],
  }),
  /** null: as the coordinator is set. Shorter ones would freeze a task on every hiccup. */
  leaseMs: optional('lease', duration(10 * secondMs, dayMs), {
    about:
      "How long a task may run without contact with the coordinator. Default: the coordinator's --lease.",
    flag: '--lease <duration>',
    help: 'how long a task may run without contact with the coordinator',
    aliases: ['leasettl'],
  }),
  /** `freeze`: the task may resume later where it stopped. `kill`: its processes are killed. */
  onLeaseExpiry: field(
    'on_lease_expiry',
    choice(['freeze', 'kill'], {
      meant: { freeze: ['pause', 'suspend'], kill: ['stop', 'terminate', 'end'] },
    }),
    {
      default: 'freeze',
      about: 'What happens to a task whose lease expires: it is frozen until contact is restored, or killed.',
    },
  ),
  /** `hold`: never fenced, and never run elsewhere without proof that the lost node is dead. */
  nodeLoss: field(
    'node_loss',
    choice(['requeue', 'hold'], {
      meant: { requeue: ['retry', 'restart', 'reschedule'], hold: ['wait', 'keep'] },
    }),
    {
      default: 'requeue',
      about:
        'When one of its nodes is lost: requeue once the node is fenced, or hold until a user confirms that the node is dead.',
      flag: '--node-loss <action>',
      help: 'what to do when a node is lost: requeue or hold',
      aliases: ['onnodeloss'],
    },
  ),
  retry: section('retry', retryFields, 'a mapping such as {max_attempts: 3}', {
    isAlwaysWritten: true,
    about: 'What happens when an attempt fails. Default: it is retried if that can help.',
  }),
  checkpoint: section(
    'checkpoint',
    checkpointFields,
    'a mapping such as {dir: /checkpoints/llama, keep_last: 3}',
    { about: 'Where the job saves its progress.' },
  ),
  /** null: its checkpoints are not evaluated. */
  evaluate: optional(
    'evaluate',
    mapping(evaluationFields, 'a mapping such as {command: [python, eval.py, "{checkpoint}"], every: 2}'),
    { about: 'Evaluates checkpoints of the job while it runs, each in a job of its own.' },
  ),
  /** Empty: it has none. */
  phases: field(
    'phases',
    mappingList(
      phaseFields,
      'a list such as [{name: broad, steps: 1000}, {name: cooldown, steps: 100}]',
      phasesMax,
    ),
    {
      default: [],
      about:
        'Phases of a curriculum, one after the other in one job: each is an attempt that resumes from the checkpoint of the phase before.',
      aliases: ['curriculum', 'stages'],
    },
  ),
  /** null: its agent moves no files. Pipelines with an S3-compatible store set it. */
  artifacts: optional('artifacts', artifactSettings, {
    about:
      'Files that the agent fetches from an S3-compatible store before the program starts, and keeps there when it has ended. ' +
      'Steps of pipelines get it from their pipeline.',
  }),
  /** null: it is one job. */
  array: optional('array', arrayIndexes, {
    about:
      'Makes an array of jobs: a count such as 100, or indexes such as 0-9, 1,3,7 or 0-9%4 (at most 4 at the same time). ' +
      'Each finds its index in MUSTER_ARRAY_INDEX, and {array_index} stands for it in name, command, args, env and directories.',
    flag: '--array <indexes>',
    help: 'submit an array of jobs: a count, or indexes such as 0-9, 1,3,7 or 0-9%4 (at most 4 at the same time)',
    aliases: ['jobarray', 'arraysize'],
  }),
  /** `JOB`, `JOB:any` or `JOB:fail`; once it is submitted, with ids of jobs and arrays. */
  after: field('after', dependencyList, {
    default: [],
    about:
      'Jobs or arrays that this one starts after: JOB or JOB:ok once it has succeeded, JOB:any once it has ended, JOB:fail once ' +
      'it has failed. A name means the newest job of that name at the time of the submit.',
    flag: '--after <job>',
    help: 'start once this job or array has succeeded; JOB:any once it has ended, JOB:fail once it failed',
    aliases: ['dependson', 'dependencies'],
  }),
  labels: field('labels', labelPairs, {
    default: {},
    about: 'Labels, to filter jobs by.',
    flag: '--label <name=value>',
    help: 'label, NAME=VALUE',
    aliases: ['tags'],
  }),
};

/** The mappings whose names are the user's, by their keys. */
export const freeMaps: ReadonlyMap<string, AnyField> = new Map(
  Object.values<AnyField>(jobFields)
    .filter(({ flagForm }) => flagForm === 'pairs')
    .map((each) => [each.key, each]),
);

/** Every setting, also those in mappings, with its place in the job file. */
export const specPlaces: readonly SpecPlace[] = placesOf(jobFields, []);

export interface SpecPlace {
  /** `['resources', 'gpus']` */
  readonly path: readonly string[];
  readonly field: AnyField;
}

function placesOf(fields: SpecFields, outer: readonly string[]): readonly SpecPlace[] {
  return Object.values(fields).flatMap((each) => {
    const path = [...outer, each.key];
    return [{ path, field: each }, ...placesOf(each.fields ?? {}, path)];
  });
}
