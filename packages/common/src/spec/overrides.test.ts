import { describe, expect, test } from 'vitest';
import { formatProblems } from './format.ts';
import type { Environment, SpecOverrides } from './overrides.ts';
import { applyOverrides } from './overrides.ts';
import { parseJobSpec } from './parse.ts';
import { jobSpecFromFlags } from './resolve.ts';
import type { JobSpec } from './types.ts';

function fromFlags(overrides: SpecOverrides, environment: Environment = {}): JobSpec {
  const result = jobSpecFromFlags(overrides, environment);
  if (!result.ok) throw new Error(formatProblems(result.problems, null));
  return result.spec;
}

function refusal(overrides: SpecOverrides, environment: Environment = {}): readonly string[] {
  const result = jobSpecFromFlags(overrides, environment);
  if (result.ok) throw new Error(`accepted: ${JSON.stringify(result.spec)}`);
  expect(result.problems.every(({ line }) => line === null)).toBe(true);
  return formatProblems(result.problems, null).split('\n');
}

test('flags alone make a job', () => {
  const spec = fromFlags(
    {
      name: 'x',
      project: 'lab',
      image: 'ubuntu',
      command: ['torchrun', 'train.py', '--lr', '0.10'],
      env: ['A=1=2', 'COPIED', 'EMPTY='],
      workdir: '/srv',
      nodes: '2',
      gpus: '4',
      gpuType: ['H100', 'A100'],
      gpuMemory: '80G',
      cpus: '1.5',
      memory: '64G',
      shm: '512M',
      volume: ['/a:/a:ro'],
      priority: '0',
      preemptible: true,
      maxRuntime: '90',
      stopGrace: '5s',
      launcher: 'mpi-hostfile',
      topology: 'required',
      network: '10.1.0.0/16',
      preflight: true,
      lease: '90s',
      nodeLoss: 'requeue',
      maxAttempts: '3',
      checkpointDir: '/ckpt',
      after: ['job_0123456789ab'],
      label: ['a=b=c'],
    },
    { COPIED: 'from here', OTHER: 'not asked for' },
  );
  expect(spec).toMatchObject({
    name: 'x',
    project: 'lab',
    image: 'ubuntu',
    command: ['torchrun', 'train.py', '--lr', '0.10'],
    args: [],
    workdir: '/srv',
    resources: {
      nodes: 2,
      minNodes: 2,
      topology: 'required',
      gpus: 4,
      gpuType: ['H100', 'A100'],
      gpuMemoryMb: 81_920,
      cpus: 1.5,
      memoryMb: 65_536,
      shmMb: 512,
    },
    volumes: [{ source: '/a', target: '/a', readOnly: true }],
    priority: 0,
    preemptible: true,
    maxRuntimeMs: 90_000,
    stopGraceMs: 5_000,
    launcher: 'mpi-hostfile',
    network: '10.1.0.0/16',
    preflight: { minBandwidthMbps: null },
    leaseMs: 90_000,
    nodeLoss: 'requeue',
    retry: { maxAttempts: 3 },
    checkpoint: { dir: '/ckpt' },
    after: ['job_0123456789ab'],
  });
  expect(spec.env).toEqual({ A: '1=2', COPIED: 'from here', EMPTY: '' });
  expect(spec.labels).toEqual({ a: 'b=c' });
});

test.each([
  ['3', 3, 3],
  ['1:4', 1, 4],
  [' 1-4 ', 1, 4],
  ['2..3', 2, 3],
])('--nodes %j', (nodes, minNodes, most) => {
  expect(fromFlags({ command: ['a'], nodes }).resources).toMatchObject({ minNodes, nodes: most });
});

test('--preflight keeps the floor that the file sets', () => {
  const text = 'command: [a]\nresources: {nodes: 2}\npreflight: {min_bandwidth_mbps: 5000}';
  const result = parseJobSpec(text, { overrides: { preflight: true } });
  expect(result).toMatchObject({ ok: true, spec: { preflight: { minBandwidthMbps: 5_000 } } });
  const off = parseJobSpec(text.replace('{min_bandwidth_mbps: 5000}', 'false'), {
    overrides: { preflight: true },
  });
  expect(off).toMatchObject({ ok: true, spec: { preflight: { minBandwidthMbps: null } } });
});

test('flags win over the file, and lists and maps grow', () => {
  const text = `
image: ubuntu
command: echo
args: 3
env: {A: file, B: file}
resources: {nodes: 1, gpus: 2}
volumes: [/a:/a]
`;
  const overrides = { command: ['true'], nodes: '3', env: ['A=flag'], volume: ['/b:/b'], label: ['x=1'] };
  const result = parseJobSpec(text, { overrides });
  expect(result).toMatchObject({
    ok: true,
    spec: {
      command: ['true'],
      args: [],
      env: { A: 'flag', B: 'file' },
      resources: { nodes: 3, gpus: 2 },
      volumes: [{ target: '/a' }, { target: '/b' }],
      labels: { x: '1' },
    },
  });
});

test('the value that came from the file is left as it was', () => {
  const value = { command: ['a'], env: { A: '1' }, volumes: ['/a:/a'] };
  const copy = structuredClone(value);
  applyOverrides(value, { command: ['b'], env: ['A=2'], volume: ['/b:/b'], nodes: '2' }, {});
  expect(value).toEqual(copy);
});

describe('a problem in a flag names the flag', () => {
  test.each<[SpecOverrides, readonly string[]]>([
    [
      { nodes: 'two' },
      ['--nodes  got "two"; expected a whole number from 1 to 1024, or a range such as 1:4'],
    ],
    [
      { nodes: 'two', preflight: true },
      ['--nodes  got "two"; expected a whole number from 1 to 1024, or a range such as 1:4'],
    ],
    [{ nodes: '0:4' }, ['--nodes  got 0; expected a whole number from 1 to 1024']],
    [{ nodes: '4:1' }, ['--nodes  less than min; expected at least as many as min']],
    [
      { launcher: 'mpi' },
      ['--launcher  got "mpi"; expected torchrun, env or mpi-hostfile; did you mean "mpi-hostfile"?'],
    ],
    [
      { preflight: true },
      [
        expect.stringContaining(
          '--preflight  given for one node, so there are no paths to measure; ',
        ) as string,
      ],
    ],
    [
      { lease: '1m', nodeLoss: 'hold' },
      ['--lease  given with node_loss: hold, which has no lease; expected node_loss: requeue; or to omit it'],
    ],
    [{ nodes: '0' }, ['--nodes  got 0; expected a whole number from 1 to 1024']],
    [{ priority: '1e1' }, ['--priority  got "1e1"; expected a whole number from 0 to 100']],
    [{ memory: '64X' }, ['--memory  got "64X"; expected a size with its unit, such as "64G" or "512M"']],
    [{ memory: '4' }, ['--memory  got "4"; expected a size with its unit, such as "64G" or "512M"']],
    [{ name: 'A b' }, [expect.stringMatching(/^--name {2}got "A b"; .*; did you mean "a-b"\?$/) as string]],
    [{ maxRuntime: '1 day' }, [expect.stringMatching(/^--max-runtime {2}.* did you mean "1d"\?$/) as string]],
    [{ env: ['A'] }, ['--env A  not set in your environment; expected --env A=VALUE']],
    [{ env: ['=x'] }, ['--env  got "=x"; expected NAME=VALUE or NAME']],
    [{ env: ['1X=2'] }, [expect.stringContaining('--env 1X  is not a valid name') as string]],
    [{ env: ['__proto__=2'] }, [expect.stringContaining('--env __proto__  is not a valid name') as string]],
    [{ label: ['x'] }, ['--label  got "x"; expected NAME=VALUE']],
    [{ gpus: '1', gpuType: ['H100', 'a/b'] }, [expect.stringContaining('--gpu-type  got "a/b"; ') as string]],
    [{ gpuType: ['H100'] }, [expect.stringContaining('--gpu-type  given without gpus; ') as string]],
    [{ volume: ['/a:/b'] }, [expect.stringContaining('--volume  given without an image; ') as string]],
    [{ image: 'x', volume: ['/a:/b', 'c'] }, [expect.stringContaining('--volume  got "c"; ') as string]],
    [{ after: ['job x'] }, [expect.stringContaining('--after  got "job x"; ') as string]],
    [{ command: [] }, [expect.stringContaining('--  got an empty list; expected the command') as string]],
  ])('%j', (overrides, lines) => {
    expect(refusal({ command: ['a'], ...overrides })).toEqual(lines);
  });

  test('all of them at once, beside those of the file with their lines', () => {
    const text = 'command: [a]\nresources: {gpu: 1}\nvolumes: [x]\nimage: u\n';
    const result = parseJobSpec(text, { overrides: { nodes: 'x', memory: 'y', volume: ['z'] } });
    expect(result.ok ? [] : result.problems.map(({ path, line, flag }) => [path, line, flag])).toEqual([
      ['resources.gpu', 2, null],
      ['volumes[0]', 3, null],
      ['resources.nodes', null, '--nodes'],
      ['resources.memory_mb', null, '--memory'],
      ['volumes[1]', null, '--volume'],
    ]);
  });

  test('a flag does not hide that the file has no mapping where one belongs', () => {
    const result = parseJobSpec('command: [a]\nresources: 4', { overrides: { nodes: '2' } });
    expect(result).toMatchObject({
      ok: false,
      problems: [{ path: 'resources', line: 2, flag: null, message: 'got 4' }],
    });
  });

  test('without anything, the command is missing', () => {
    expect(refusal({})).toEqual([expect.stringContaining('command: missing; expected the command')]);
  });
});

test('parameters are numbers where they can be, and are added to those of the file', () => {
  const { value, findings } = applyOverrides(
    { command: ['a'], params: { data: 'c4', lr: 1 } },
    {
      param: ['lr=3e-4', 'batch_size=32', 'name=x=y'],
      onHang: 'restart',
      keepLast: '2',
      maxPreemptions: '3',
    },
    {},
  );
  expect(findings).toEqual([]);
  expect(value).toEqual({
    command: ['a'],
    params: { data: 'c4', lr: 3e-4, batch_size: 32, name: 'x=y' },
    on_hang: 'restart',
    retry: { max_preemptions: 3 },
    checkpoint: { keep_last: 2 },
  });
  expect(applyOverrides({}, { param: ['lr'] }, {}).findings[0]?.finding).toMatchObject({
    expected: 'NAME=VALUE',
  });
});
