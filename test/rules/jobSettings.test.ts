/** Every setting in the table of the job file has a flag or a reason, words for people, and a way into the canonical text and back. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { specPlaces } from '@muster/common/spec/fields';
import { specFlags } from '@muster/common/spec/overrides';
import { type SpecPath, valueAt } from '@muster/common/spec/path';
import { decodeJobSpec, encodeJobSpec } from '@muster/common/spec/serialize';
import { validateJobSpec } from '@muster/common/spec/validate';
import { expect, test } from 'vitest';
import { root } from './source.ts';

/** None at its default. */
const everySetting = {
  name: 'all-{array_index}',
  project: 'lab',
  image: 'ubuntu',
  command: ['train', '{lr}', '{batch_size}'],
  args: ['x'],
  env: { A: 'b' },
  secrets: ['ssh', 'TOKEN=wandb'],
  workdir: '/w',
  umask: '0027',
  resources: {
    nodes: { min: 1, max: 2 },
    topology: 'required',
    gpus: 1,
    gpu_type: ['H100'],
    gpu_memory_mb: 1,
    cpus: 1,
    memory_mb: 1,
    shm_mb: 1,
  },
  volumes: ['/a:/b:ro'],
  priority: 1,
  preemptible: true,
  max_runtime: '1h',
  stop_grace: '1s',
  stop_signal: 'SIGINT',
  on_divergence: 'stop',
  on_hang: { action: 'restart', times: 3, at_least: '1m' },
  params: { lr: 1, batch_size: 1 },
  launcher: 'env',
  network: 'ib0',
  preflight: { min_bandwidth_mbps: 1 },
  prepare_timeout: '1m',
  rendezvous_timeout: '1m',
  lease: '1m',
  on_lease_expiry: 'kill',
  node_loss: 'hold',
  retry: {
    max_attempts: 2,
    max_preemptions: 1,
    batch_scale: 1,
    batch_min: 1,
    lr_scale: 1,
    breaker: { failures: 1, pause: '1s' },
    backoff: { initial: '1s', max: '2s' },
    on: ['hung'],
  },
  checkpoint: {
    dir: '/c/{array_index}',
    pattern: 's-*',
    verify: 'deep',
    keep_last: 1,
    keep_every: 2,
    keep_best: { metric: 'eval_loss', mode: 'max' },
  },
  evaluate: {
    command: ['eval', '{checkpoint}'],
    args: ['x'],
    env: { A: 'b' },
    every: 2,
    resources: { nodes: 1, gpus: 1 },
    priority: 0,
    timeout: '1m',
    metric: { name: 'eval_loss', goal: 'max' },
  },
  phases: [
    {
      name: 'broad',
      steps: 10,
      params: { lr: 1 },
      success: 'eval_loss < 3',
      unmet: 'extend',
      extend: { steps: 5, max: 2, finally: 'continue' },
    },
  ],
  artifacts: {
    url: 's3://models/runs',
    endpoint: 'https://s3.example.com',
    region: 'eu-central-1',
    path_style: false,
    secret: 's3',
    inputs: [
      {
        name: 'data',
        type: 'file',
        url: 's3://models/a',
        digest: `sha256:${'a'.repeat(64)}`,
        path: 'data/a',
      },
    ],
    outputs: [{ name: 'model', type: 'directory', path: 'model' }],
  },
  array: '0-3',
  after: ['prepare'],
  labels: { a: 'b' },
};

/** Some exclude each other. */
const { every: _every, ...onBest } = { ...everySetting.evaluate, on: 'best' };
/** Nor do phases count steps and tokens. */
const ofTokens = [{ name: 'a', tokens: 10, success: 'loss < 3', extend: { tokens: 5 } }];
const halves = [
  { ...everySetting, lease: undefined, on_lease_expiry: undefined },
  { ...everySetting, node_loss: undefined, evaluate: onBest, phases: ofTokens },
];

/** The first of a list of mappings. */
function inList(path: SpecPath): SpecPath {
  const [first = '', second = ''] = path;
  if (first === 'phases' && path.length > 1) return ['phases', 0, ...path.slice(1)];
  const isOfArtifact =
    first === 'artifacts' && (second === 'inputs' || second === 'outputs') && path.length > 2;
  return isOfArtifact ? [first, second, 0, ...path.slice(2)] : path;
}

test('every setting survives the canonical text', () => {
  const lost = new Set(specPlaces.map(({ path }) => path.join('.')));
  for (const file of halves) {
    const result = validateJobSpec(JSON.parse(JSON.stringify(file)));
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    const text = encodeJobSpec(result.spec);
    expect(decodeJobSpec(text)).toEqual(result.spec);
    const written: unknown = JSON.parse(text);
    for (const { path } of specPlaces) {
      const at = inList(path);
      const value = valueAt(written, at);
      if (value === undefined) continue;
      const given = valueAt(file, at);
      if (given !== undefined && typeof given !== 'object')
        expect({ path, value }).toEqual({ path, value: given });
      lost.delete(path.join('.'));
    }
  }
  // A new setting needs a value above.
  expect([...lost]).toEqual([]);
});

/** Given by other means, or too rarely to be typed. */
const withoutFlag = new Set([
  'command', // behind `--`
  'args',
  'resources',
  'resources.nodes.min', // --nodes 1:4
  'resources.nodes.max',
  'on_hang.action', // --on-hang
  'on_hang.times',
  'on_hang.at_least',
  'preflight.min_bandwidth_mbps',
  'prepare_timeout',
  'rendezvous_timeout',
  'on_lease_expiry',
  'retry',
  'retry.batch_scale',
  'retry.batch_min',
  'retry.lr_scale',
  'retry.breaker',
  'retry.breaker.failures',
  'retry.breaker.pause',
  'retry.backoff',
  'retry.backoff.initial',
  'retry.backoff.max',
  'retry.on',
  'phases', // a list of mappings
  'phases.name',
  'phases.steps',
  'phases.tokens',
  'phases.params',
  'phases.success',
  'phases.unmet',
  'phases.extend',
  'phases.extend.steps',
  'phases.extend.tokens',
  'phases.extend.max',
  'phases.extend.finally',
  'evaluate', // a program of its own
  'evaluate.command',
  'evaluate.args',
  'evaluate.env',
  'evaluate.every',
  'evaluate.on',
  'evaluate.resources',
  'evaluate.priority',
  'evaluate.timeout',
  'evaluate.metric',
  'evaluate.metric.name',
  'evaluate.metric.goal',
  'checkpoint',
  'checkpoint.verify',
  'checkpoint.keep_every',
  'checkpoint.keep_best',
  'checkpoint.keep_best.metric',
  'checkpoint.keep_best.mode',
  'artifacts', // pipelines say it
  'artifacts.url',
  'artifacts.endpoint',
  'artifacts.region',
  'artifacts.path_style',
  'artifacts.secret',
  'artifacts.inputs',
  'artifacts.inputs.name',
  'artifacts.inputs.type',
  'artifacts.inputs.url',
  'artifacts.inputs.digest',
  'artifacts.inputs.path',
  'artifacts.outputs',
  'artifacts.outputs.name',
  'artifacts.outputs.type',
  'artifacts.outputs.path',
]);

test('every setting has a flag, or is known to have none', () => {
  const bare = specPlaces.filter(({ field }) => field.flag === undefined).map(({ path }) => path.join('.'));
  expect(new Set(bare)).toEqual(withoutFlag);
  const names = specFlags.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
  for (const { long, help } of specFlags) {
    expect(long).toMatch(/^--[a-z]+(?:-[a-z]+)*$/);
    // One line of a terminal, next to the flag.
    expect(help.length, `${long}: ${help}`).toBeLessThan(130);
    expect(help, long).not.toMatch(/\.$|undefined|\[object/);
  }
});

test('every setting is explained in sentences, and docs/job-file.md shows them', () => {
  const unclear = specPlaces.filter(({ field }) => !/^[A-Z0-9/].+\.$/s.test(field.about));
  expect(unclear.map(({ path }) => path.join('.'))).toEqual([]);
  execFileSync(process.execPath, [join(root, 'scripts/generate-job-docs.mjs'), '--check']);
});

test('no other name of a setting stands for two', () => {
  const aliases = specPlaces.flatMap(({ field }) => field.aliases ?? []);
  expect(aliases).toEqual([...new Set(aliases)]);
  expect(aliases.filter((alias) => !/^[a-z]+$/.test(alias))).toEqual([]);
});
