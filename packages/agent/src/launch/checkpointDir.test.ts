import type { JobId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { expect, test } from 'vitest';
import { checkpointDirs } from './checkpointDir.ts';

const job = 'job_0123456789ab' as JobId;
const dirs = checkpointDirs('/data/checkpoints');
const spec = (changes: Readonly<Record<string, unknown>>) =>
  decodeJobSpec(JSON.stringify({ name: 'test', command: ['train'], ...changes }));
const volumes = ['/disk:/data', '/fast/ckpt:/data/checkpoints/', '/other:/data/checkpoints-old'];

test.each([
  ['the node has one for a process', {}, `/data/checkpoints/${job}`],
  ['a process names one', { checkpoint: { dir: '/ckpt//llama/' } }, '/ckpt/llama'],
  ['a container has none by itself', { image: 'i' }, null],
  ['a container writes inside itself', { image: 'i', checkpoint: { dir: '/ckpt' } }, null],
  ['a volume', { image: 'i', volumes, checkpoint: { dir: '/data/llama' } }, '/disk/llama'],
  [
    'the innermost volume',
    { image: 'i', volumes, checkpoint: { dir: '/data/checkpoints/llama' } },
    '/fast/ckpt/llama',
  ],
  ['a volume itself', { image: 'i', volumes, checkpoint: { dir: '/data/checkpoints' } }, '/fast/ckpt'],
  ['a name that only begins like one', { image: 'i', volumes, checkpoint: { dir: '/database' } }, null],
])('where the agent finds the checkpoints: %s', (_, changes, path) => {
  expect(dirs.hostPathFor(job, spec(changes))).toBe(path);
});
