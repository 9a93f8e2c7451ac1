import { describe, expect, test } from 'vitest';
import { toLabel } from './forms.ts';
import { closest, editDistance, specKeys, suggestKey } from './suggest.ts';

test.each([
  ['', '', 0],
  ['gpus', 'gpus', 0],
  ['gpu', 'gpus', 1],
  ['nmae', 'name', 1],
  ['kitten', 'sitting', 3],
  ['', 'abc', 3],
])('editDistance(%j, %j) = %i', (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
  expect(editDistance(b, a)).toBe(distance);
});

describe('closest', () => {
  const words = ['max_runtime', 'priority', 'preemptible', 'name', 'on'];

  test.each([
    ['max_runtme', 'max_runtime'],
    ['maxRuntime', 'max_runtime'],
    ['max-runtime', 'max_runtime'],
    ['MAX_RUNTIME', 'max_runtime'],
    ['prio', 'priority'],
    ['pr', null],
    ['no', null],
    ['banana', null],
    ['__', null],
    ['n'.repeat(1_000_000), null],
  ])('%j → %j', (word, expected) => {
    expect(closest(word, words)).toBe(expected);
  });
});

describe('suggestKey', () => {
  test.each([
    ['gpu', 'resources', 'gpus'],
    ['gpus', '', 'resources.gpus'],
    ['gpuType', '', 'resources.gpu_type'],
    ['image', 'resources', 'image'],
    ['enviroment', '', 'env'],
    ['environment', '', 'env'],
    ['timeout', '', 'max_runtime'],
    ['memory', 'resources', 'memory_mb'],
    ['memory', '', 'resources.memory_mb'],
    ['retries', '', 'retry.max_attempts'],
    ['maxAttempts', 'retry', 'max_attempts'],
    ['keeplast', '', 'checkpoint.keep_last'],
    ['constructor', '', null],
    ['toString', 'resources', null],
  ])('%j in %j → %j', (key, mapping, expected) => {
    expect(suggestKey(key, mapping, specKeys)).toBe(expected);
  });

  test('every suggestion is a key of the schema', () => {
    const foreign = [
      'cmd',
      'run',
      'script',
      'cwd',
      'mounts',
      'timeout',
      'depends_on',
      'tags',
      'account',
      'retries',
    ];
    const known = [...specKeys].flatMap(([path, keys]) =>
      keys.map((key) => (path === '' ? key : `${path}.${key}`)),
    );
    for (const key of [
      ...foreign,
      'cpu',
      'mem',
      'shm_size',
      'gpu_memory',
      'nnodes',
      'gpus_per_node',
      'entrypoint',
      'min_nodes',
      'socket_ifname',
      'interface',
      'rdzv_timeout',
      'pull_timeout',
      'lease_ttl',
      'on_node_loss',
      'min_bandwidth',
      'placement',
    ]) {
      expect(known).toContain(suggestKey(key, '', specKeys));
    }
  });
});

test.each([
  ['Llama 7B', 'llama-7b'],
  ['--x--', 'x'],
  ['ÄÖ', ''],
  ['a'.repeat(62) + '-b', 'a'.repeat(62)],
])('toLabel(%j) = %j', (text, label) => {
  expect(toLabel(text)).toBe(label);
});
