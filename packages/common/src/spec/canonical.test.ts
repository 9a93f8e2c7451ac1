/**
 * The canonical text of a spec is what its digest is made of, and digests are stored. The sum below is that of the texts of 2,000
 * specs before the table of settings existed; a new setting, which is omitted while it has its default, does not change it.
 */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { encodeJobSpec } from './serialize.ts';
import { validateJobSpec } from './validate.ts';

type Values = Readonly<Record<string, readonly unknown[]>>;

const settings: Values = {
  name: ['llama', 'job'],
  project: ['default', 'lab'],
  command: ['echo "$@"', 'A=1 /opt/train.py -v "$@"', ['/opt/bin/torch_run.py', 1, true], ['a', '{lr}']],
  args: [['a', 1, true, 1.5], [], ['--x', 'ü']],
  env: [{ B: 'b', A: 'a' }, { A: 1, B: true, C: '' }, {}],
  workdir: ['/srv/x'],
  umask: ['0027', '077'],
  priority: [0, 50, 100],
  preemptible: [true, false],
  max_runtime: ['90s', 60, '1h30m', '2d'],
  stop_grace: ['60s', '1m', 0, '500ms', 90],
  stop_signal: ['SIGTERM', 'SIGUSR1'],
  on_divergence: ['warn', 'stop'],
  on_hang: [
    'warn',
    'restart',
    { action: 'warn', times: 10 },
    { action: 'restart', times: 20 },
    { action: 'warn', at_least: '2m' },
  ],
  params: [{ lr: 0.1, b: 'x' }, {}],
  prepare_timeout: ['10m', '600s', '20m'],
  rendezvous_timeout: ['2m', 120, '5m'],
  lease: ['90s', 3600],
  on_lease_expiry: ['freeze', 'kill'],
  node_loss: ['requeue'],
  after: [['prepare'], ['b:ok', 'b', 'a:any'], []],
  labels: [{ version: 1.1, type: 'x' }, {}],
};
const resources: Values = {
  gpus: [0, 1, 8],
  cpus: [0.5, 16],
  memory_mb: [1_024],
};
const gang: Values = {
  nodes: [2, { min: 1, max: 4 }, { min: 3, max: 3 }],
  topology: ['preferred', 'required'],
};
const gangSettings: Values = {
  network: ['ib0', '10.1.0.0/16', 'fd00::/8'],
  preflight: [true, false, {}, { min_bandwidth_mbps: 2.5 }],
  launcher: ['torchrun', 'env', 'mpi-hostfile'],
};
const gpus: Values = { gpu_type: ['H100', ['H100', 'A100', 'H100']], gpu_memory_mb: [81_920] };
const container: Values = { volumes: [['/a:/b'], ['/a:/b:ro', '/c:/d:rw'], []] };
const retry: Values = {
  max_attempts: [1, 5, 3],
  max_preemptions: [0, 3],
  batch_scale: [0.5, 0.75, 1],
  lr_scale: [0.1, 0.2],
  breaker: [{}, { failures: 3 }, { failures: 5, pause: '1m' }, { pause: '120s' }],
  backoff: [{}, { initial: '5m' }, { max: '500ms' }, { initial: '2s', max: '60s' }],
  on: [['node_lost'], ['cuda_oom', 'hung', 'cuda_oom'], []],
};
const checkpoint: Values = {
  dir: ['/c', '/c/x'],
  pattern: ['run-{step}.bin'],
  verify: ['quick', 'deep'],
  keep_last: [1, 3],
};
const kept: Values = {
  keep_last: [2],
  keep_every: [5],
  keep_best: [{ metric: 'eval_loss' }, { metric: 'train_loss', mode: 'max' }],
};

/** mulberry32 */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function aFile(seed: number): unknown {
  const choose = seeded(seed);
  const density = [5, 20, 50, 90][choose(4)] ?? 0;
  const some = (values: Values) =>
    Object.fromEntries(
      Object.entries(values)
        .filter(() => choose(100) < density)
        .map(([key, all]) => [key, all[choose(all.length)]]),
    );
  const isGang = choose(3) === 0;
  const hasGpus = choose(2) === 0;
  const file = { command: ['torch', 'x'], ...some(settings) };
  return {
    ...file,
    ...(choose(3) === 0 ? { image: 'nvcr.io/nvidia/pytorch:24.01-py3', ...some(container) } : {}),
    ...(isGang ? some(gangSettings) : {}),
    ...(choose(8) === 0 ? { array: [3, '0-9%4', '5', '1,3,7-9'][choose(4)] } : {}),
    resources: {
      ...some(resources),
      ...(hasGpus ? { gpus: 2, ...some(gpus) } : {}),
      ...(isGang ? { nodes: 2, ...some(gang) } : {}),
    },
    retry: some(retry),
    checkpoint: choose(2) === 0 ? some(checkpoint) : { keep_last: 3, ...some(kept) },
  };
}

test('the canonical text of a spec is what it always was', () => {
  const sum = createHash('sha256');
  let accepted = 0;
  for (let seed = 0; seed < 2_000; seed++) {
    const result = validateJobSpec(aFile(seed));
    if (!result.ok) continue;
    accepted += 1;
    sum.update(`${encodeJobSpec(result.spec)}\n`);
  }
  expect({ accepted, sum: sum.digest('hex') }).toEqual({
    accepted: 1_954,
    sum: '3bf54c5c693177d5def3e61308b902221354168405a6c4d763a96f569b8d3ed5',
  });
});
