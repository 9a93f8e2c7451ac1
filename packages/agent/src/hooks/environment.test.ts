import type { JobId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { describe, expect, test } from 'vitest';
import { type EnvironmentInput, taskEnvironment } from './environment.ts';

const hopper = { uuid: 'GPU-5d0c1b2a', simulated: false };
const other = { uuid: 'GPU-6e1f2c3b', simulated: false };

/** Rank 1 of two nodes with two GPUs each, as a bare process. */
function environmentOf(
  changes: Partial<EnvironmentInput> = {},
  spec: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, string>> {
  return taskEnvironment({
    task: { jobId: 'job_0123456789ab' as JobId, attempt: 3, nodeRank: 1 },
    spec: decodeJobSpec(JSON.stringify({ name: 'llama', command: ['torchrun', 'train.py'], ...spec })),
    nodeCount: 2,
    gpus: [hopper, other],
    array: null,
    masterAddr: '10.0.0.1',
    masterPort: 29_500,
    checkpointDir: '/checkpoints/llama',
    hasInfiniband: false,
    networkInterface: 'eth0',
    base: { PATH: '/usr/bin', HOME: '/somewhere' },
    ...changes,
  });
}

test('a task finds the whole contract in its environment', () => {
  expect(environmentOf()).toEqual({
    PATH: '/usr/bin',
    HOME: '/somewhere',
    MUSTER_JOB_ID: 'job_0123456789ab',
    MUSTER_JOB_NAME: 'llama',
    MUSTER_ATTEMPT: '3',
    MUSTER_NODE_RANK: '1',
    MUSTER_NNODES: '2',
    MUSTER_CHECKPOINT_DIR: '/checkpoints/llama',
    MUSTER_RESUME_FROM: '',
    MASTER_ADDR: '10.0.0.1',
    MASTER_PORT: '29500',
    NNODES: '2',
    NODE_RANK: '1',
    NPROC_PER_NODE: '2',
    WORLD_SIZE: '4',
    PET_NNODES: '2',
    PET_NODE_RANK: '1',
    PET_NPROC_PER_NODE: '2',
    PET_MASTER_ADDR: '10.0.0.1',
    PET_MASTER_PORT: '29500',
    PET_RDZV_ID: 'job_0123456789ab.3',
    PET_MONITOR_INTERVAL: '0.5',
    CUDA_VISIBLE_DEVICES: 'GPU-5d0c1b2a,GPU-6e1f2c3b',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    NVIDIA_VISIBLE_DEVICES: 'GPU-5d0c1b2a,GPU-6e1f2c3b',
    TORCH_NCCL_ASYNC_ERROR_HANDLING: '1',
    NCCL_IB_DISABLE: '1',
    NCCL_SOCKET_IFNAME: 'eth0',
    GLOO_SOCKET_IFNAME: 'eth0',
  });
});

test('what the user set wins over the contract and over the node', () => {
  const env = { MASTER_PORT: '1', CUDA_VISIBLE_DEVICES: '0', PATH: '/opt/bin', WANDB_PROJECT: 'demo' };
  expect(environmentOf({}, { env })).toMatchObject(env);
});

test('a task without GPUs runs one process and sees none of the GPUs of others', () => {
  expect(environmentOf({ gpus: [] })).toMatchObject({
    CUDA_VISIBLE_DEVICES: '',
    NVIDIA_VISIBLE_DEVICES: 'void',
    NPROC_PER_NODE: '1',
    PET_NPROC_PER_NODE: '1',
    WORLD_SIZE: '2',
  });
});

test('an array job knows its place', () => {
  expect(environmentOf({ array: { index: 0, size: 8 } })).toMatchObject({
    MUSTER_ARRAY_INDEX: '0',
    MUSTER_ARRAY_SIZE: '8',
  });
  expect(environmentOf()).not.toHaveProperty('MUSTER_ARRAY_INDEX');
});

test('each attempt has a rendezvous of its own', () => {
  const task = { jobId: 'job_0123456789ab' as JobId, nodeRank: 0 };
  const ids = [1, 2].map((attempt) => environmentOf({ task: { ...task, attempt } })['PET_RDZV_ID']);
  expect(new Set(ids).size).toBe(2);
});

test('a node with InfiniBand lets NCCL use it', () => {
  expect(environmentOf({ hasInfiniband: true })).not.toHaveProperty('NCCL_IB_DISABLE');
});

test('without a known interface the libraries choose', () => {
  const env = environmentOf({ networkInterface: null });
  expect(env).not.toHaveProperty('NCCL_SOCKET_IFNAME');
  expect(env).not.toHaveProperty('GLOO_SOCKET_IFNAME');
});

test('a job without a checkpoint directory is not told of one', () => {
  expect(environmentOf({ checkpointDir: null })).not.toHaveProperty('MUSTER_CHECKPOINT_DIR');
});

describe('in a container', () => {
  const image = { image: 'pytorch:24.01' };

  test('devices are shown by the driver, not named by UUIDs that may mean nothing inside', () => {
    const env = environmentOf({ base: {} }, image);
    for (const name of ['CUDA_VISIBLE_DEVICES', 'CUDA_DEVICE_ORDER', 'NVIDIA_VISIBLE_DEVICES', 'PATH']) {
      expect(env).not.toHaveProperty(name);
    }
    expect(env).toMatchObject({ NPROC_PER_NODE: '2', WORLD_SIZE: '4' });
  });

  test('simulated GPUs, for which there is no device, are named', () => {
    const gpus = [{ uuid: 'GPU-SIMULATED-a-0', simulated: true }];
    expect(environmentOf({ gpus }, image)).toMatchObject({ CUDA_VISIBLE_DEVICES: 'GPU-SIMULATED-a-0' });
  });
});
