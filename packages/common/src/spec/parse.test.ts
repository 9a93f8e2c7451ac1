import { describe, expect, test } from 'vitest';
import { defaultRetryCauses, retryableCauses } from './causes.ts';
import { parseJobSpec } from './parse.ts';
import { jobSpecToFile } from './serialize.ts';
import type { JobSpec, SpecProblem } from './types.ts';
import { validateJobSpec } from './validate.ts';

function good(text: string): JobSpec {
  const result = parseJobSpec(text);
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.problems)}`);
  return result.spec;
}

function bad(text: string): readonly SpecProblem[] {
  const result = parseJobSpec(text);
  if (result.ok) throw new Error(`accepted: ${JSON.stringify(result.spec)}`);
  return result.problems;
}

const fullYaml = `
name: llama-7b-finetune
image: nvcr.io/nvidia/pytorch:24.01-py3     # leave out to run as a process on the node
command: [python, train.py]                 # a plain string goes to the shell
args: [--config=config.yaml]
env: {WANDB_PROJECT: demo}
resources: {nodes: {min: 2, max: 4}, gpus: 4, gpu_type: [H100, A100], gpu_memory_mb: 81920, cpus: 16, memory_mb: 65536,
  shm_mb: 16384, topology: required}
volumes: [/data:/data:ro, /checkpoints:/checkpoints]
priority: 50                                # 0..100
preemptible: false
max_runtime: 24h
stop_grace: 60s                             # SIGTERM, then this long, then SIGKILL
launcher: env                               # torchrun | env | mpi-hostfile
network: 10.1.0.0/16
preflight: {min_bandwidth_mbps: 10000}
prepare_timeout: 20m
rendezvous_timeout: 5m
lease: 2m
on_lease_expiry: kill
node_loss: requeue
stop_signal: SIGUSR1
on_divergence: stop
on_hang: {action: restart, times: 20, at_least: 2m}
params: {batch_size: 32, lr: 3e-4, data: c4}
retry:
  max_attempts: 3
  backoff: {initial: 2s, max: 60s}
  on: [cuda_oom, nccl_timeout, node_lost, corrupt_checkpoint]
  max_preemptions: 7
  batch_scale: 0.75
  lr_scale: 0.2
  breaker: {failures: 5, pause: 1m}
checkpoint:
  dir: /checkpoints/llama-{array_index}
  pattern: run-{step}.bin
  verify: deep
  keep_last: 3
  keep_every: 1000
  keep_best: {metric: eval_loss, mode: max}
evaluate:
  command: [python, eval.py, '{checkpoint}']
  args: [--split=test]
  env: {A: 1}
  every: 2
  resources: {gpus: 1}
  priority: 10
  timeout: 30m
  metric: {name: eval_loss}
phases:
  - {name: broad, steps: 1000, params: {data: web}}
  - name: curated
    steps: 500
    params: {data: books, lr: 1e-4}
    success: eval_loss < 2.9
    extend: {steps: 200, max: 3, finally: continue}
array: 0-9%4
after: [job_0123456789ab]
labels: {type: training, model: llama}
`;

const leastResources: JobSpec['resources'] = {
  nodes: 1,
  minNodes: 1,
  topology: 'preferred',
  gpus: 0,
  gpuType: [],
  gpuMemoryMb: null,
  cpus: null,
  memoryMb: null,
  shmMb: null,
};

const plainPhase = {
  steps: null,
  tokens: null,
  params: {},
  success: null,
  unmet: 'stop',
  extend: null,
} as const;

const fullSpec: JobSpec = {
  name: 'llama-7b-finetune',
  project: 'default',
  image: 'nvcr.io/nvidia/pytorch:24.01-py3',
  command: ['python', 'train.py'],
  args: ['--config=config.yaml'],
  env: { WANDB_PROJECT: 'demo' },
  secrets: [],
  workdir: null,
  umask: null,
  resources: {
    nodes: 4,
    minNodes: 2,
    topology: 'required',
    gpus: 4,
    gpuType: ['H100', 'A100'],
    gpuMemoryMb: 81_920,
    cpus: 16,
    memoryMb: 65_536,
    shmMb: 16_384,
  },
  volumes: [
    { source: '/data', target: '/data', readOnly: true },
    { source: '/checkpoints', target: '/checkpoints', readOnly: false },
  ],
  priority: 50,
  preemptible: false,
  maxRuntimeMs: 86_400_000,
  stopGraceMs: 60_000,
  launcher: 'env',
  network: '10.1.0.0/16',
  preflight: { minBandwidthMbps: 10_000 },
  prepareTimeoutMs: 1_200_000,
  rendezvousTimeoutMs: 300_000,
  leaseMs: 120_000,
  onLeaseExpiry: 'kill',
  nodeLoss: 'requeue',
  retry: {
    maxAttempts: 3,
    backoff: { initialMs: 2_000, maxMs: 60_000 },
    on: ['cuda_oom', 'nccl_timeout', 'node_lost', 'corrupt_checkpoint'],
    maxPreemptions: 7,
    batchScale: 0.75,
    batchMin: null,
    lrScale: 0.2,
    breaker: { failures: 5, pauseMs: 60_000 },
  },
  stopSignal: 'SIGUSR1',
  onDivergence: 'stop',
  hang: { action: 'restart', times: 20, atLeastMs: 120_000 },
  params: { batch_size: 32, lr: 3e-4, data: 'c4' },
  checkpoint: {
    dir: '/checkpoints/llama-{array_index}',
    pattern: 'run-{step}.bin',
    verify: 'deep',
    keepLast: 3,
    keepEvery: 1_000,
    keepBest: { metric: 'eval_loss', mode: 'max' },
  },
  evaluate: {
    command: ['python', 'eval.py', '{checkpoint}'],
    args: ['--split=test'],
    env: { A: '1' },
    every: 2,
    on: null,
    resources: { ...leastResources, gpus: 1 },
    priority: 10,
    timeoutMs: 1_800_000,
    metric: { name: 'eval_loss', goal: 'min' },
  },
  phases: [
    { ...plainPhase, name: 'broad', steps: 1_000, params: { data: 'web' } },
    {
      ...plainPhase,
      name: 'curated',
      steps: 500,
      params: { data: 'books', lr: 1e-4 },
      success: 'eval_loss < 2.9',
      unmet: 'extend',
      extend: { steps: 200, tokens: null, max: 3, finally: 'continue' },
    },
  ],
  artifacts: null,
  array: { ranges: [[0, 9]], atOnce: 4 },
  after: ['job_0123456789ab'],
  labels: { type: 'training', model: 'llama' },
};

describe('good specs', () => {
  test('every setting at once', () => {
    expect(good(fullYaml)).toEqual(fullSpec);
  });

  test('the least there is gets every default', () => {
    expect(good('command: [python, train.py]')).toEqual({
      name: 'python',
      project: 'default',
      image: null,
      command: ['python', 'train.py'],
      args: [],
      env: {},
      workdir: null,
      umask: null,
      resources: {
        nodes: 1,
        minNodes: 1,
        topology: 'preferred',
        gpus: 0,
        gpuType: [],
        gpuMemoryMb: null,
        cpus: null,
        memoryMb: null,
        shmMb: null,
      },
      volumes: [],
      secrets: [],
      priority: 50,
      preemptible: false,
      maxRuntimeMs: null,
      stopGraceMs: 60_000,
      launcher: 'torchrun',
      network: null,
      preflight: null,
      prepareTimeoutMs: 600_000,
      rendezvousTimeoutMs: 120_000,
      leaseMs: null,
      onLeaseExpiry: 'freeze',
      nodeLoss: 'requeue',
      stopSignal: 'SIGTERM',
      onDivergence: 'warn',
      hang: { action: 'warn', times: 10, atLeastMs: 300_000 },
      params: {},
      retry: {
        maxAttempts: 5,
        backoff: { initialMs: 2_000, maxMs: 60_000 },
        on: defaultRetryCauses,
        maxPreemptions: null,
        batchScale: 0.5,
        batchMin: null,
        lrScale: 0.1,
        breaker: { failures: 3, pauseMs: 120_000 },
      },
      checkpoint: {
        dir: null,
        pattern: null,
        verify: 'quick',
        keepLast: null,
        keepEvery: null,
        keepBest: null,
      },
      evaluate: null,
      phases: [],
      artifacts: null,
      array: null,
      after: [],
      labels: {},
    });
  });

  test.each([
    ['JSON', JSON.stringify({ command: ['python', 'train.py'], env: { A: '😀' } })],
    [
      'JSON indented with tabs',
      JSON.stringify({ command: ['python', 'train.py'], env: { A: '😀' } }, null, '\t'),
    ],
    ['JSON escapes', '{"command":["python","train.py"],"env":{"A":"\\ud83d\\ude00"}}'],
    ['Windows line ends', 'command: [python, train.py]\r\nenv:\r\n  A: 😀\r\n'],
    ['a byte order mark', '\ufeffcommand: [python, train.py]\nenv: {A: 😀}'],
    ['a document marker', '--- # job\ncommand: [python, train.py]\nenv: {A: 😀}\n...\n'],
  ])('%s', (_what, text) => {
    expect(good(text)).toMatchObject({ command: ['python', 'train.py'], env: { A: '😀' } });
  });

  test.each<[string, Partial<JobSpec>]>([
    ['command: [sleep, 60]', { command: ['sleep', '60'] }],
    ['command: echo hi | wc', { command: ['/bin/sh', '-c', 'echo hi | wc'], args: [], name: 'echo' }],
    ['command: [a]\nargs: [0.10, 1e3, True, 0x1F, 007]', { args: ['0.10', '1e3', 'True', '0x1F', '007'] }],
    ['image: ubuntu', { command: [], args: [], name: 'job' }],
    ['image: ubuntu\ncommand: []', { command: [] }],
    [
      'command: [a]\nenv: {A: 1.10, B: true, C: "", D: 123456789012345678901}',
      {
        env: { A: '1.10', B: 'true', C: '', D: '123456789012345678901' },
      },
    ],
    ['command: [a]\nlabels: {version: 1.10, team/x: a b}', { labels: { version: '1.10', 'team/x': 'a b' } }],
    ['command: [a]\nname: 007', { name: '007' }],
    ['command: [a]\nworkdir: /srv/x', { workdir: '/srv/x' }],
    ["command: [a]\numask: '0027'", { umask: 0o027 }],
    ["command: [a]\numask: '077'", { umask: 0o077 }],
    ['command: [a]\nmax_runtime: 90', { maxRuntimeMs: 90_000 }],
    ['command: [a]\nmax_runtime: 0.5h\nstop_grace: 0', { maxRuntimeMs: 1_800_000, stopGraceMs: 0 }],
    [
      'command: [a]\ncheckpoint: {keep_last: 2}',
      {
        checkpoint: {
          dir: null,
          pattern: null,
          verify: 'quick',
          keepLast: 2,
          keepEvery: null,
          keepBest: null,
        },
      },
    ],
    ['command: [a]\nafter: [job_0123456789ab, job_0123456789ab:ok]', { after: ['job_0123456789ab'] }],
    [
      'command: [a]\nafter: [prepare, "sweep[3]:any", latest:fail]',
      { after: ['prepare', 'sweep[3]:any', 'latest:fail'] },
    ],
    ['command: [a]\nlease: 10s\nnode_loss: requeue', { leaseMs: 10_000, nodeLoss: 'requeue' }],
    ['command: [a]\nnode_loss: hold\non_lease_expiry: freeze', { nodeLoss: 'hold', leaseMs: null }],
    ['command: [a]\npreflight: false\nlauncher: env', { preflight: null, launcher: 'env' }],
    [
      'command: [mpirun, a]\nresources: {nodes: 2}\nlauncher: mpi-hostfile\npreflight: true\nnetwork: ib0',
      { launcher: 'mpi-hostfile', preflight: { minBandwidthMbps: null }, network: 'ib0' },
    ],
    ['command: !!str x', { command: ['/bin/sh', '-c', 'x'] }],
  ])('%s', (text, expected) => {
    expect(good(text)).toMatchObject(expected);
  });

  test.each([
    ['3', 3, 3],
    ['{min: 1, max: 4}', 1, 4],
    ['{min: 2, max: 2}', 2, 2],
  ])('nodes: %s', (nodes, minNodes, most) => {
    expect(good(`command: [a]\nresources: {nodes: ${nodes}}`).resources).toMatchObject({
      minNodes,
      nodes: most,
    });
  });

  test.each(['10.1.0.0/16', '192.168.7.4/32', '0.0.0.0/0', 'fd00::/8', 'ib0', 'enp1s0f0np0', 'bond0.100'])(
    'network %s',
    (network) => {
      expect(good(`command: [a]\nresources: {nodes: 2}\nnetwork: "${network}"`).network).toBe(network);
    },
  );

  test('one GPU model may stand alone, and may look like a number', () => {
    expect(good('command: [a]\nresources: {gpus: 1, gpu_type: 4090, cpus: 0.5}').resources).toMatchObject({
      gpus: 1,
      gpuType: ['4090'],
      cpus: 0.5,
    });
  });

  test('arguments of a shell text become its positional parameters', () => {
    const spec = good('command: exec python train.py "$@"\nargs: [--lr, 0.1]');
    expect([...spec.command, ...spec.args]).toEqual([
      '/bin/sh',
      '-c',
      'exec python train.py "$@"',
      'sh',
      '--lr',
      '0.1',
    ]);
  });

  test.each([
    ['command: [/opt/bin/Torch_Run.py, x]', 'torch-run'],
    ['command: FOO=1 BAR=2 ./train.sh --x', 'train'],
    ['command: "((1))"', '1'],
    ['command: "(("', 'job'],
    ['command: [...]', 'job'],
    ['command: []\nimage: x/y:1', 'job'],
  ])('%s gives the job a name', (text, name) => {
    expect(good(text).name).toBe(name);
  });

  test.each([
    ['{max_attempts: 2}', 2_000, 60_000],
    ['{max_attempts: 2, backoff: {initial: 5m}}', 300_000, 300_000],
    ['{max_attempts: 2, backoff: {max: 500ms}}', 500, 500],
    ['{max_attempts: 2, backoff: {initial: 0, max: 0}}', 0, 0],
  ])('backoff of %s', (retry, initialMs, maxMs) => {
    expect(good(`command: [a]\nretry: ${retry}`).retry.backoff).toEqual({ initialMs, maxMs });
  });

  test.each([
    'ubuntu',
    'ubuntu:24.04',
    'localhost:5000/a/b_c/d-e:x@sha256:' + 'a'.repeat(64),
    'nvcr.io/nvidia/pytorch:24.01-py3',
    'registry.example.com/team',
  ])('image %s', (image) => {
    expect(good(`image: ${image}`).image).toBe(image);
  });

  test('every offered cause can be retried on', () => {
    expect(
      good(`command: [a]\nretry: {max_attempts: 2, on: [${retryableCauses.join(', ')}]}`).retry.on,
    ).toEqual(retryableCauses);
  });
});

/** Path, line, part of "message; expected", suggestion. */
type Expected = readonly [path: string, line: number, words: string, suggestion?: string];

describe('bad specs', () => {
  test.each<[string, readonly Expected[]]>([
    [
      'comand: [a]',
      [
        ['comand', 1, 'unknown key', 'command'],
        ['command', 1, 'missing; expected the command'],
      ],
    ],
    [
      'command: [a]\ngpus: 4\nnmae: x\nresources:\n  gpu: 4\n  memroy_mb: 1\nzzz: 1',
      [
        ['gpus', 2, 'unknown key', 'resources.gpus'],
        ['nmae', 3, 'unknown key', 'name'],
        ['resources.gpu', 5, 'unknown key', 'gpus'],
        ['resources.memroy_mb', 6, 'unknown key', 'memory_mb'],
        ['zzz', 7, 'unknown key; expected one of name, project, image'],
      ],
    ],
    ['command: [a]\nname: Llama 7B', [['name', 2, 'got "Llama 7B"; expected a name: 1 to 63', 'llama-7b']]],
    [
      'command: [a]\npriority: 5\nevaluate: {command: [b], every: 1, on: best, priority: 5}',
      [
        ['evaluate.on', 3, 'given with every; expected only one of them'],
        ['evaluate.on', 3, 'best, and no metric says which one that is; expected checkpoint.keep_best'],
        [
          'evaluate.priority',
          3,
          'got 5, and that of the job is 5; expected less than the priority of the job',
        ],
      ],
    ],
    [
      'command: [a]\nphases:\n  - {name: a, stps: 3}\n  - {name: a, steps: 1, success: 3, unmet: repeat}',
      [
        ['phases[0]', 3, 'does not say how long it is; expected steps, such as steps: 1000; or tokens'],
        ['phases[0].stps', 3, 'unknown key', 'steps'],
        ['phases[1].name', 4, 'the same as that of phases[0]'],
        ['phases[1].success', 4, 'got 3; expected a condition in CEL'],
        ['phases[1].unmet', 4, 'got "repeat"; expected extend, continue or stop', 'extend'],
      ],
    ],
    [
      'command: [a, "{lr}", "{mix}"]\nimage: b\nparams: {mix: a}\nphases:\n  - {name: a, steps: 1, tokens: 2}\n' +
        '  - {name: b, tokens: 1, params: {lr: 1, mix: c}, unmet: extend}\n' +
        '  - {name: c, steps: 1, params: {lr: 1}, success: loss < 1, unmet: extend}\n' +
        '  - {name: d, steps: 1, params: {lr: 1}, success: loss < 1, unmet: stop, extend: {tokens: 1}}',
      [
        ['phases', 5, 'given for a container without checkpoint.dir'],
        ['phases[0]', 5, 'has no value of {lr}, which the command uses and phases[1] sets'],
        ['phases[0].tokens', 5, 'given with steps; expected only one of them'],
        ['phases[1].tokens', 6, 'given, and other phases count steps'],
        ['phases[1].unmet', 6, 'given without success'],
        ['phases[1].unmet', 6, 'extend, and nothing says by how much'],
        ['phases[2].unmet', 7, 'extend, and nothing says by how much'],
        ['phases[3].extend', 8, 'given with another unmet; expected unmet: extend; or no extend'],
        ['phases[3].extend', 8, 'says tokens, and the phases count steps'],
      ],
    ],
    [
      'command: [a]\nimage: b\nevaluate: {command: [c]}',
      [
        ['evaluate', 3, 'does not say which checkpoints; expected every, such as every: 2'],
        ['evaluate', 3, 'given for a container without checkpoint.dir'],
      ],
    ],
    [
      'command: [a]\nevaluate: {every: 0, metric: {nam: x}, resources: {gpu: 1}}',
      [
        ['evaluate.command', 2, 'missing'],
        ['evaluate.every', 2, 'got 0; expected a whole number from 1 to 1000'],
        ['evaluate.metric.name', 2, 'missing'],
        ['evaluate.metric.nam', 2, 'unknown key', 'name'],
        ['evaluate.resources.gpu', 2, 'unknown key', 'gpus'],
      ],
    ],
    ['command: [a]\npriority: 101', [['priority', 2, 'got 101; expected a whole number from 0 to 100']]],
    ['command: [a]\npriority: 1.5', [['priority', 2, 'got 1.5; expected a whole number']]],
    ['command: [a]\npriority: "7"', [['priority', 2, 'got "7"; expected a whole number', '7']]],
    ['command: [a]\npriority: 12345678901234567890', [['priority', 2, 'too large; expected a whole number']]],
    ['command: [a]\npriority: .inf', [['priority', 2, 'expected a whole number from 0 to 100']]],
    ['command: [a]\npriority: .nan', [['priority', 2, 'got NaN; expected a whole number from 0 to 100']]],
    ['command: [a]\npreemptible: yes', [['preemptible', 2, 'got "yes"; expected true or false', 'true']]],
    ['command: [a]\npreemptible: off', [['preemptible', 2, 'got "off"', 'false']]],
    [
      'command: [a]\nmax_runtime: 24 hours',
      [['max_runtime', 2, 'expected a duration from 1s to 365d', '24h']],
    ],
    ['command: [a]\nmax_runtime: 0', [['max_runtime', 2, 'got 0; expected a duration from 1s']]],
    ['command: [a]\nstop_grace: 2h', [['stop_grace', 2, 'got "2h"; expected a duration from 0s to 1h']]],
    ['command: [a]\nstop_grace: [1]', [['stop_grace', 2, 'got a list; expected a duration']]],
    ['command: [a]\nstop_grace:', [['stop_grace', 2, 'has no value; expected a duration']]],
    ['command: [a]\nresources: {memory_mb: 64G}', [['resources.memory_mb', 2, 'got "64G"', '65536']]],
    [
      'command: [a]\nresources: {nodes: {min: 4, max: 2}}',
      [['resources.nodes.max', 2, 'less than min; expected at least as many as min']],
    ],
    [
      'command: [a]\nresources: {nodes: {mim: 1, max: 2000}}',
      [
        ['resources.nodes.min', 2, 'missing; expected a whole number from 1 to 1024'],
        ['resources.nodes.mim', 2, 'unknown key', 'min'],
        ['resources.nodes.max', 2, 'got 2000; expected a whole number from 1 to 1024'],
      ],
    ],
    [
      'command: [a]\nresources: {nodes: 1-4, topology: require}',
      [
        ['resources.nodes', 2, 'got "1-4"; expected a whole number from 1 to 1024, or a', '{min: 1, max: 4}'],
        ['resources.topology', 2, 'got "require"; expected preferred or required', 'required'],
      ],
    ],
    [
      'command: [a]\nlauncher: mpi-hostfile\npreflight: true\nnetwork: ib0\nresources: {topology: required}',
      [
        ['launcher', 2, 'given for one node, so there are no others to list; expected resources.nodes of 2'],
        [
          'preflight',
          3,
          'given for one node, so there are no paths to measure; expected resources.nodes of 2',
        ],
        ['network', 4, 'given for one node, which talks to no other; expected resources.nodes of 2'],
        ['resources.topology', 5, 'required of one node, which is always under one switch'],
      ],
    ],
    [
      'command: [a]\nresources: {nodes: {min: 1, max: 1}}\npreflight: {min_bandwidth_mbps: 5}',
      [['preflight', 3, 'given for one node']],
    ],
    [
      'command: [/opt/bin/torchrun, train.py]\nlauncher: env',
      [
        [
          'launcher',
          2,
          'would start torchrun once per GPU, and it starts a rank per GPU itself; expected torchrun',
        ],
      ],
    ],
    [
      'image: trainer\nlauncher: env',
      [
        [
          'launcher',
          2,
          "starts a command once per GPU, and the image's own cannot be seen from outside; expected",
        ],
      ],
    ],
    [
      'image: trainer\ncommand: []\nlauncher: env',
      [
        [
          'launcher',
          3,
          "starts a command once per GPU, and the image's own cannot be seen from outside; expected",
        ],
      ],
    ],
    ['launcher: env', [['command', 1, 'missing']]],
    [
      'command: [a]\nlauncher: mpirun\nresources: {nodes: 2}',
      [['launcher', 2, 'got "mpirun"; expected torchrun, env or mpi-hostfile', 'mpi-hostfile']],
    ],
    [
      'command: [a]\nnode_loss: hold\nlease: 5m\non_lease_expiry: kill',
      [
        ['lease', 3, 'given with node_loss: hold, which has no lease; expected node_loss: requeue'],
        ['on_lease_expiry', 4, 'given with node_loss: hold, whose lease never expires'],
      ],
    ],
    [
      'command: [a]\nnode_loss: wait\non_lease_expiry: frezee\nlease: 9s',
      [
        ['node_loss', 2, 'got "wait"; expected requeue or hold', 'hold'],
        ['on_lease_expiry', 3, 'got "frezee"; expected freeze or kill', 'freeze'],
        ['lease', 4, 'got "9s"; expected a duration from 10s to 1d'],
      ],
    ],
    [
      'command: [a]\nprepare_timeout: 10 minutes\nrendezvous_timeout: 0\nleases: 1m\nnic: ib0',
      [
        ['prepare_timeout', 2, 'expected a duration from 1s to 1d', '10m'],
        ['rendezvous_timeout', 3, 'got 0; expected a duration from 1s to 1d'],
        ['leases', 4, 'unknown key', 'lease'],
        ['nic', 5, 'unknown key; expected one of'],
      ],
    ],
    [
      'command: [a]\nresources: {nodes: 2}\nnetwork: 10.1.2.3/16\npreflight: {min_bandwith_mbps: 1}',
      [
        ['network', 3, 'got "10.1.2.3/16"; expected a network such as 10.1.0.0/16', '10.1.0.0/16'],
        ['preflight.min_bandwith_mbps', 4, 'unknown key', 'min_bandwidth_mbps'],
      ],
    ],
    [
      'command: [a]\nresources: {nodes: 2}\nnetwork: 300.1.1.0/24\npreflight: yes',
      [
        ['network', 3, 'got "300.1.1.0/24"; expected a network such as 10.1.0.0/16, or an interface'],
        ['preflight', 4, 'got "yes"; expected true, false, or {min_bandwidth_mbps: 10000}', 'true'],
      ],
    ],
    [
      'command: [a]\nresources: {nodes: 0, gpus: 65, cpus: 0}',
      [
        ['resources.nodes', 2, 'got 0; expected a whole number from 1 to 1024'],
        ['resources.gpus', 2, 'got 65; expected a whole number from 0 to 64'],
        ['resources.cpus', 2, 'got 0; expected a number from 0.01 to 4096'],
      ],
    ],
    [
      'command: [a]\nresources:\n  gpu_type: H100\n  gpu_memory_mb: 1',
      [
        ['resources.gpu_type', 3, 'given without gpus'],
        ['resources.gpu_memory_mb', 4, 'given without gpus'],
      ],
    ],
    [
      'command: [a]\nresources: {gpus: 1, gpu_type: [H100, "", 3]}',
      [['resources.gpu_type[1]', 2, 'got ""; expected a GPU model']],
    ],
    [
      'command: [a]\nresources: 4',
      [['resources', 2, 'got 4; expected a mapping such as {nodes: 2, gpus: 4}']],
    ],
    [
      'command: [a, {b: 1}, ~]',
      [
        ['command[1]', 1, 'got a mapping; expected text'],
        ['command[2]', 1, 'has no value; expected text'],
      ],
    ],
    ['command: " "', [['command', 1, 'got " "; expected a list such as']]],
    ['command: {a: 1}', [['command', 1, 'got a mapping; expected a list such as']]],
    ['command: []', [['command', 1, 'got an empty list; expected the command']]],
    ['command: "a\\0b"', [['command', 1, 'without NUL characters']]],
    ['args: [a]\nimage: b', [['args', 1, 'given without a command']]],
    ['command: python train.py\nargs: [--lr, 1]', [['args', 2, 'never uses "$@"']]],
    ['command: [a]\nargs: -x', [['args', 2, 'got "-x"; expected a list such as']]],
    ['command: [a]\nenv: [A=1]', [['env', 2, 'got a list; expected a mapping such as']]],
    [
      'command: [a]\nenv:\n  1X: a\n  B:\n  C: [1]',
      [
        ['env.1X', 3, 'is not a valid name; expected a variable name'],
        ['env.B', 4, 'has no value; expected text, a number, or true/false; write ""'],
        ['env.C', 5, 'got a list; expected text'],
      ],
    ],
    [
      'command: [a]\nlabels:\n  "a b": 1\n  c: "1\\n2"',
      [
        ['labels["a b"]', 3, 'is not a valid name; expected a label name'],
        ['labels.c', 4, 'got "1\\n2"; expected text of one line'],
      ],
    ],
    ['image: Ubuntu:24', [['image', 1, 'got "Ubuntu:24"; expected an image such as']]],
    [
      'image: x\nvolumes: [data:/data, /a:/../b, /a:/c, /b:/c/]',
      [
        ['volumes[0]', 2, 'got "data:/data"; expected two absolute paths'],
        ['volumes[1]', 2, 'without ".." parts'],
        ['volumes[3]', 2, 'mounts over volumes[2] at /c'],
      ],
    ],
    [
      'command: [a]\nvolumes: [/a:/b]\nresources: {shm_mb: 64}',
      [
        ['volumes', 2, 'given without an image'],
        ['resources.shm_mb', 3, 'given without an image'],
      ],
    ],
    ['command: [a]\nretry: 3', [['retry', 2, 'got 3; expected a mapping such as {max_attempts: 3}']]],
    [
      'command: [a]\nretry:\n  on: [nccl_timeot, cancelled, preempted, 3]',
      [
        ['retry.on[0]', 3, 'got "nccl_timeot"; expected one of', 'nccl_timeout'],
        ['retry.on[1]', 3, 'a cancelled job is not retried'],
        ['retry.on[2]', 3, 'returns to the queue automatically'],
        ['retry.on[3]', 3, 'got 3; expected one of'],
      ],
    ],
    [
      'command: [a]\ncheckpoint: {keep_every: 5, keep_best: {metric: loss}}',
      [
        ['checkpoint.keep_every', 2, 'given without keep_last, so nothing is ever deleted'],
        ['checkpoint.keep_best', 2, 'given without keep_last, so nothing is ever deleted'],
        ['checkpoint.keep_best.metric', 2, 'got "loss"; expected one of train_loss, eval_loss'],
      ],
    ],
    [
      'command: [a]\nretry: {batch_scale: 0, lr_scale: 2, max_preemptions: -1, breaker: {failures: 0}}',
      [
        ['retry.batch_scale', 2, 'got 0; expected a number more than 0 and at most 1'],
        ['retry.lr_scale', 2, 'got 2; expected a number more than 0 and at most 1'],
        ['retry.max_preemptions', 2, 'got -1; expected a whole number from 0 to 1000'],
        ['retry.breaker.failures', 2, 'got 0; expected a whole number from 1 to 100'],
      ],
    ],
    [
      'command: [a, "{bs}"]\nparams: {bs: 16}\nphases: [{name: a, steps: 1, params: {bs: 8}}]\nretry: {batch_min: 32}',
      [
        ['retry.batch_min', 4, 'got 32, and params.bs is 16; expected at most 16'],
        ['retry.batch_min', 4, 'got 32, and phases[0].params.bs is 8; expected at most 8'],
      ],
    ],
    [
      'command: [a, "{bs:x}", "{lr}"]\nparams: {bs: 16, lr: 1}\nretry: {batch_min: 8}',
      [
        [
          'retry.batch_min',
          3,
          'given, and the command names no batch size to compare with; expected {batch_size} in the command, with batch_size in params; or no batch_min',
        ],
      ],
    ],
    [
      'command: [a]\nstop_signal: TERM\non_divergence: explode\non_hang: {times: 3}\nparams: {a-b: 1}',
      [
        ['stop_signal', 2, 'got "TERM"; expected SIGTERM, SIGINT', 'SIGTERM'],
        ['on_divergence', 3, 'got "explode"; expected warn or stop'],
        ['on_hang.action', 4, 'missing; expected warn or restart'],
        ['params.a-b', 5, 'a name of letters, digits and "_"'],
      ],
    ],
    [
      'command: [a]\ncheckpoint: {pattern: a/b}',
      [['checkpoint.pattern', 2, 'got "a/b"; expected a name without']],
    ],
    [
      'command: [a]\nretry: {max_attempts: 2, backoff: {initial: 5m, max: 1m, inital: 1}}',
      [
        ['retry.backoff.max', 2, 'shorter than the initial wait'],
        ['retry.backoff.inital', 2, 'unknown key', 'initial'],
      ],
    ],
    [
      'command: [a]\ncheckpoint: {dir: ckpt, keep_last: 0}',
      [
        ['checkpoint.dir', 2, 'got "ckpt"; expected an absolute path'],
        ['checkpoint.keep_last', 2, 'got 0; expected a whole number from 1'],
      ],
    ],
    ['command: [a]\nafter: [Job 1]', [['after[0]', 2, 'expected a job: its id']]],
    ['command: [a]\nafter: job_0123456789ab', [['after', 2, 'expected a list of jobs']]],
    [
      'command: [a]\nname: x\nname: y\nfoo: 1\nname: z',
      [
        ['name', 3, 'given twice, first on line 2'],
        ['foo', 4, 'unknown key'],
        ['name', 5, 'given twice, first on line 2'],
      ],
    ],
    [
      'command: &c [a]\nenv: {A: *c, B: !secret x}\nprio: 1',
      [
        ['command', 1, 'an anchor, "&c"'],
        ['env.A', 2, 'an alias, "*c"'],
        ['env.B', 2, 'a YAML tag, "!secret"'],
        ['prio', 3, 'unknown key', 'priority'],
      ],
    ],
    [
      'command: [a]\n__proto__: {a: 1}\nconstructor: 1\nenv: {__proto__: x}\nparams: {__proto__: z}',
      [
        ['__proto__', 2, 'unknown key'],
        ['constructor', 3, 'unknown key'],
        ['env.__proto__', 4, 'is not a valid name'],
        ['params.__proto__', 5, 'is not a valid name'],
      ],
    ],
  ])('%s', (text, expected) => {
    const problems = bad(text).map(({ path, line, message, expected: wanted, suggestion }) => {
      return { path, line, words: `${message}; expected ${wanted}`, suggestion };
    });
    expect(problems).toEqual(
      expected.map(([path, line, words, suggestion = null]) => {
        return { path, line, words: expect.stringContaining(words), suggestion };
      }),
    );
  });

  test('columns point at the key or the value that is wrong', () => {
    expect(
      bad('command: [a]\nresources:\n  gpu: 4\n  cpus:   many').map(({ line, column }) => [line, column]),
    ).toEqual([
      [3, 3],
      [4, 11],
    ]);
  });

  test('an argument longer than the kernel takes is refused before it fails on a node', () => {
    expect(bad(`command: [echo, ${'x'.repeat(130_001)}]`)).toMatchObject([{ path: 'command[1]', line: 1 }]);
    expect(bad(`command: [a]\nenv: {A: ${'é'.repeat(65_001)}}`)).toMatchObject([{ path: 'env.A', line: 2 }]);
    expect(good(`command: [echo, ${'x'.repeat(130_000)}]`).command[1]).toHaveLength(130_000);
  });

  test('very many problems are cut short, and that is reported', () => {
    const problems = bad(
      ['command: [a]', ...Array.from({ length: 5_000 }, (_, index) => `k${index}: 1`)].join('\n'),
    );
    expect(problems).toHaveLength(101);
    expect(problems[0]).toMatchObject({ path: 'k0', line: 2 });
    expect(problems[100]?.message).toBe('more than 100 problems; the others are not shown');
  });
});

describe('validateJobSpec', () => {
  test('says the same about a value as about a file, without places', () => {
    const file = JSON.parse(
      '{"command":["a"],"nmae":"x","resources":{"gpu":1},"env":{"A":null},"__proto__":1}',
    );
    expect(validateJobSpec(file)).toMatchObject({
      ok: false,
      problems: [
        { path: 'env.A', line: null, column: null, flag: null, message: 'has no value' },
        { path: 'resources.gpu', suggestion: 'gpus' },
        { path: 'nmae', suggestion: 'name' },
        { path: '__proto__', message: 'unknown key' },
      ],
    });
  });

  test('numbers and booleans of JSON become text where text belongs', () => {
    expect(validateJobSpec({ command: ['sleep', 60], env: { A: 1.5, B: true } })).toMatchObject({
      ok: true,
      spec: { command: ['sleep', '60'], env: { A: '1.5', B: 'true' } },
    });
  });

  test.each([undefined, null, 3, 'x', [], [{}], true])('%j is no spec', (value) => {
    const result = validateJobSpec(value);
    expect(result).toMatchObject({ ok: false, problems: [{ path: '' }] });
  });

  test('depth is bounded', () => {
    const nested = (depth: number): unknown =>
      Array.from({ length: depth }).reduce((inner) => ({ a: inner }), 'leaf' as unknown);
    expect(validateJobSpec(nested(32))).toMatchObject({
      problems: [{ path: 'command' }, { path: 'a' }].toReversed(),
    });
    expect(validateJobSpec(nested(33))).toMatchObject({ problems: [{ message: 'nested too deeply' }] });
    expect(validateJobSpec(nested(200_000))).toMatchObject({ problems: [{ message: 'nested too deeply' }] });
  });
});

test('a spec survives the way into the file shape and back', () => {
  for (const text of [
    fullYaml,
    'command: echo "$1"\nargs: [x]',
    'image: a',
    'command: [a]\nstop_grace: 1ms',
  ]) {
    const spec = good(text);
    const file = jobSpecToFile(spec);
    expect(good(JSON.stringify(file))).toEqual(spec);
    expect(validateJobSpec(file)).toEqual({ ok: true, spec });
  }
});
