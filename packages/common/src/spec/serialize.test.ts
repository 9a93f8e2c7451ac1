import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { parseJobSpec } from './parse.ts';
import { decodeJobSpec, encodeJobSpec, jobSpecToFile } from './serialize.ts';
import type { JobSpec } from './types.ts';

function specOf(text: string): JobSpec {
  const result = parseJobSpec(text);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.spec;
}

function digestOf(spec: JobSpec): string {
  return createHash('sha256').update(encodeJobSpec(spec)).digest('hex');
}

test('the file shape says what is in force and leaves out what is not set', () => {
  expect(
    jobSpecToFile(specOf('command: [a]\nmax_runtime: 90s\nretry: {max_attempts: 2, on: [hung]}')),
  ).toEqual({
    name: 'a',
    project: 'default',
    command: ['a'],
    resources: { nodes: 1, gpus: 0 },
    priority: 50,
    preemptible: false,
    max_runtime: '90s',
    stop_grace: '1m',
    retry: { max_attempts: 2, backoff: { initial: '2s', max: '1m' }, on: ['hung'] },
  });
});

test.each([
  'image: a\ncommand: x "$@"\nargs: [1]\nenv: {B: b, A: a}\nvolumes: [/a:/b:ro]\ncheckpoint: {keep_last: 1}\nworkdir: /w\numask: "027"',
  'command: [a]\nresources: {nodes: {min: 1, max: 4}, topology: required}\nlauncher: mpi-hostfile\nnetwork: ib0',
  'command: [a]\nresources: {nodes: 2}\npreflight: true\nprepare_timeout: 1m\nrendezvous_timeout: 1m\nlease: 90s',
  'command: [a]\nresources: {nodes: 2}\npreflight: {min_bandwidth_mbps: 2.5}\non_lease_expiry: kill',
  'command: [a]\nnode_loss: hold',
  'command: [a]\non_hang: restart\non_divergence: stop\nstop_signal: SIGINT\nparams: {lr: 0.1, data: x}',
  'command: [a]\non_hang: {action: warn, times: 3}\nretry: {max_preemptions: 2, lr_scale: 1, breaker: {pause: 5s}}',
  'command: [a, "{batch_size}"]\nparams: {batch_size: 32}\nretry: {batch_min: 8}',
  'command: [a]\ncheckpoint: {keep_last: 1, keep_every: 5, keep_best: {metric: eval_loss}, pattern: s-*, verify: deep}',
])('what was encoded is decoded: %s', (text) => {
  const spec = specOf(text);
  expect(decodeJobSpec(encodeJobSpec(spec))).toEqual(spec);
  expect(specOf(encodeJobSpec(spec))).toEqual(spec);
});

test.each(['', '[]', '3', 'null', '{"stop_grace":"x"}', '{"volumes":["x"]}'])('%j is not decoded', (json) => {
  expect(() => decodeJobSpec(json)).toThrow(/JSON|not a checked job spec/);
});

test('the digest is that of the meaning, not of the writing', () => {
  const digest = digestOf(specOf('command: [a, b]\nenv: {A: 1, B: 2}\nmax_runtime: 1h'));
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  for (const same of [
    '{"max_runtime": 3600, "env": {"B": "2", "A": "1"}, "command": ["a", "b"]}',
    'name: a\ncommand: [a, b]\nenv: {B: 2, A: 1}\nmax_runtime: 60m\nresources: {nodes: 1}\npriority: 50',
  ]) {
    expect(digestOf(specOf(same))).toBe(digest);
  }
  for (const other of [
    'command: [b, a]\nenv: {A: 1, B: 2}\nmax_runtime: 1h',
    'command: [a, b]\nenv: {A: 1, B: 3}\nmax_runtime: 1h',
    'command: [a, b]\nenv: {A: 1, B: 2}',
    'command: [a]\nargs: [b]\nenv: {A: 1, B: 2}\nmax_runtime: 1h',
    'command: [a, b]\nenv: {A: 1, B: 2}\nmax_runtime: 1h\nnode_loss: hold',
    'command: [a, b]\nenv: {A: 1, B: 2}\nmax_runtime: 1h\nresources: {nodes: {min: 1, max: 2}}',
  ]) {
    expect(digestOf(specOf(other))).not.toBe(digest);
  }
});

/** Every setting that the first version had. */
const firstVersionYaml = `
name: llama-7b-finetune
image: nvcr.io/nvidia/pytorch:24.01-py3
command: [torchrun, train.py]
args: [--config=config.yaml]
env: {WANDB_PROJECT: demo}
resources: {nodes: 2, gpus: 4, gpu_type: [H100, A100], gpu_memory_mb: 81920, cpus: 16, memory_mb: 65536, shm_mb: 16384}
volumes: [/data:/data:ro, /checkpoints:/checkpoints]
priority: 60
preemptible: true
max_runtime: 24h
stop_grace: 90s
retry: {max_attempts: 3, backoff: {initial: 2s, max: 60s}, on: [cuda_oom, nccl_timeout]}
checkpoint: {dir: /checkpoints/llama, keep_last: 3}
after: [job_0123456789ab]
labels: {type: training, model: llama}
`;

test.each([
  // What was stored says what was in force then, whatever the defaults are by now.
  [
    '{"command":["python","train.py"],"retry":{"max_attempts":1,"on":["node_lost","gpu_fault","gpu_suspect",' +
      '"gpu_hw_ecc","gpu_hw_nvlink","nccl_timeout","nccl_error","rendezvous","rendezvous_timeout","hung",' +
      '"image_pull","corrupt_checkpoint"]}}',
    '5c01952c8f6968518895c447dc4c8797c4c07da304c8cfda4b67f8c99eafd2e4',
  ],
  [firstVersionYaml, 'dcbf3301b5f79d1d22ce8745647a450efa3db5c133165758c1796db52049f1ad'],
])('the digest of a stored spec does not change from version to version: %s', (text, digest) => {
  expect(digestOf(specOf(text))).toBe(digest);
});

test('reading a checked spec loads neither zod nor yaml: the agent has no memory to spare for them', () => {
  const program = `
    import { registerHooks } from 'node:module';
    const seen = [];
    registerHooks({ resolve(name, context, next) { seen.push(name); return next(name, context); } });
    await import(process.argv[1]);
    console.log(JSON.stringify(seen));
  `;
  const loadedBy = (file: string): readonly string[] => {
    const url = new URL(file, import.meta.url).href;
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', program, url], {
      encoding: 'utf8',
    });
    return JSON.parse(child.stdout) as string[];
  };
  for (const lean of ['./serialize.ts', './causes.ts', './fields.ts', './types.ts']) {
    const names = loadedBy(lean);
    expect(names[0]).toContain('/spec/');
    expect(names.filter((name) => !name.startsWith('.') && !name.includes(':'))).toEqual([]);
  }
  // Types only: nothing behind it is loaded at all.
  expect(loadedBy('./types.ts')).toHaveLength(1);
  expect(loadedBy('./resolve.ts')).toContain('zod');
  expect(loadedBy('./resolve.ts')).not.toContain('yaml');
  expect(loadedBy('./parse.ts')).toEqual(expect.arrayContaining(['zod', 'yaml']));
});
